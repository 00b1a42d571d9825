"""Commits that another user has made up: no driver carries one out; planted faults are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from asynccommit.commit.by_rename import recovery
from asynccommit.commit.ownership import status
from asynccommit.commit.planning import plan_file
from tests.crash.simulator import idle, run

Plant = Callable[[pytest.MonkeyPatch], None]
SEEDS = 60


def nobody_is_asked(patch: pytest.MonkeyPatch) -> None:
    """Act on a commit whoever has begun it."""
    _leave_out(patch, recovery, "require_own_record")


def plan_is_obeyed(patch: pytest.MonkeyPatch) -> None:
    """Do what a plan says, whatever its record says."""
    nobody_is_asked(patch)
    _leave_out(patch, plan_file, "refuse_excess")


def outcome_is_believed(patch: pytest.MonkeyPatch) -> None:
    """Clean up after what another user calls committed."""
    patch.setattr(status, "is_of_commit", lambda path: False)


def _leave_out(patch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    async def nothing(*_: object) -> None:
        """Check nothing."""

    patch.setattr(module, name, nothing)


def test_no_driver_carries_a_forged_commit_out() -> None:
    """Neither unasked nor asked, and each forgery has been met."""
    one = run("forgers", range(SEEDS))

    assert one.failures == ()
    assert idle([one]) == []


@pytest.mark.parametrize(
    "plant, forgery",
    [
        (nobody_is_asked, "forged commit"),
        (plan_is_obeyed, "forged plan"),
        (plan_is_obeyed, "forged record"),
        (outcome_is_believed, "forged outcome"),
    ],
)
def test_a_planted_fault_is_caught(
    plant: Plant, forgery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its check each forgery takes a file of the table, or brings one into it."""
    plant(monkeypatch)
    found = [text for text in run("forgers", range(SEEDS)).failures if forgery in text]

    assert [text for text in found if "is lost" in text or "is published" in text]
