"""Disks that fail a request of a job's life: whoever comes next ends it; faults are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from asynccommit.commit.by_rename import publisher
from asynccommit.commit.by_rename.steps import clean
from asynccommit.commit.context import CommitContext
from asynccommit.commit.job import setup
from asynccommit.commit.ownership.attempt_files import delete_remains
from asynccommit.commit.ownership.job_state import has_work
from asynccommit.inspect import status
from tests.crash.disks import STAGES
from tests.crash.simulator import idle, run
from tests.support.selection import amount

Plant = Callable[[pytest.MonkeyPatch], None]
SEEDS = amount("ASYNCCOMMIT_SEEDS", quick=len(STAGES), full=80)
PLANTED = 30  # seeds of a stage


def emptied_directories_are_work(patch: pytest.MonkeyPatch) -> None:
    """Keep a committed job that has the directories of its own tasks."""

    async def finish(self: object, run: CommitContext, state: object) -> CommitContext:
        if await has_work(run):
            run.warn(f"{run.layout.attempt_dir} was kept: tasks have written there since")
            await delete_remains(run)
        else:
            await clean(run)
        return run

    patch.setattr(publisher.RenamePublisher, "finish", finish)


def commits_are_in_the_way(patch: pytest.MonkeyPatch) -> None:
    """Refuse the next job when only the clean-up of a committed one is left."""

    async def told(run: CommitContext, found: Sequence[Any]) -> list[Any]:
        return []

    patch.setattr(setup, "_told", told)


def remains_are_hidden(patch: pytest.MonkeyPatch) -> None:
    """Print no command for what half a deletion has left."""

    async def find_rubbish(*_: object) -> dict[str, Any]:
        return {}

    patch.setattr(status, "find_rubbish", find_rubbish)


@pytest.mark.more
@pytest.mark.timeout(300)
def test_every_job_ends_once_the_disk_has_healed() -> None:
    """The table has all or nothing, nothing else is left, and what ``status`` prints works."""
    one = run("disks", range(SEEDS))

    assert one.failures == ()
    assert idle([one]) == []


@pytest.mark.sample(1)
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "plant, stage, said",
    [
        (emptied_directories_are_work, "clean-up", "was kept"),
        (commits_are_in_the_way, "clean-up", "refused after a commit"),
        (remains_are_hidden, "abort", "status shows nothing to do"),
    ],
)
def test_a_planted_fault_is_found(
    plant: Plant, stage: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some seed of the stage finds each of them."""
    plant(monkeypatch)
    first = STAGES.index(stage)

    assert any(
        said in text
        for seed in range(first, PLANTED * len(STAGES), len(STAGES))
        for text in run("disks", range(seed, seed + 1)).failures
    )
