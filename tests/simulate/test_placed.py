"""A job that is put into a model is one that tasks have committed."""

from __future__ import annotations

import asyncio
import math

import pytest

from asynccommit.commit.job.messages import digest
from asynccommit.commit.planning.entries import decode_entries
from asynccommit.formats.manifest import decode_manifest
from asynccommit.simulate.placed import SIZE, ModelTaskWriter
from asynccommit.simulate.run import World
from asynccommit.simulate.setup import KINDS, Setup
from asynccommit.testing.models.virtual_loop import VirtualLoop


@pytest.mark.parametrize("store", KINDS)
@pytest.mark.parametrize(
    "setup",
    [Setup(files=1, tasks=1, partitions=1), Setup(files=103, tasks=7, partitions=5)],
    ids=["one file", "uneven"],
)
def test_manifests_list_the_files_that_are_there(setup: Setup, store: str) -> None:
    """Each file is there once, with the size and etag that its manifest says."""
    setup = Setup(setup.files, setup.tasks, setup.partitions, store=store)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf)) as runner:
        told = list[int]()
        dests = runner.run(_look(World(setup, runner.get_loop()), told))

    assert told[-1] == len({*dests}) == len(dests) == setup.files
    assert len(told) == setup.tasks
    assert len({dest.rpartition("/")[0] for dest in dests}) == setup.partitions


async def _look(world: World, told: list[int]) -> list[str]:
    """Put the job there, hold all that is told of it against the store, and return its files."""
    layout, store = world.layout, world.model.store
    commits = ModelTaskWriter(world.model, layout, world.setup).all_tasks(told.append)
    dests: list[str] = []
    for commit in commits:
        path = layout.manifest(commit.task_id)
        data = await store.get(path, 1 << 20)
        entries, directories = decode_entries(layout, decode_manifest(data, path))
        infos = [await store.head(entry.source) for entry in entries]

        assert commit.digest == digest(data)
        assert commit.files == len(entries)
        assert commit.bytes == len(entries) * SIZE
        assert [(e.size, e.etag) for e in entries] == [(i.size, i.etag) for i in infos]
        assert {entry.dest.rpartition("/")[0] for entry in entries} == {*directories}
        assert (await store.head(layout.task_attempt_dir(commit.attempt_id))).is_dir
        dests += [entry.dest for entry in entries]
    return dests
