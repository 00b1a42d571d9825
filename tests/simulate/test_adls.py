"""The account of ADLS Gen2 that jobs are simulated on."""

from __future__ import annotations

import asyncio
import math

from asynccommit.simulate.adls import FILESYSTEM, Adls
from asynccommit.simulate.placed import ModelTaskWriter
from asynccommit.simulate.run import World
from asynccommit.simulate.setup import Setup
from asynccommit.testing.models.virtual_loop import VirtualLoop


def test_a_packed_manifest_reads_as_any_file() -> None:
    """A manifest is compressed in memory, and nobody sees that."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf)) as runner:
        world = World(Setup(files=50, tasks=1, partitions=5), runner.get_loop())
    commit = ModelTaskWriter(world.model, world.layout, world.setup).all_tasks(print)[0]
    assert isinstance(world.model, Adls)
    account, path = world.model.account, world.layout.manifest(commit.task_id)[1:]
    node, data = account.read(FILESYSTEM, path)

    assert node.size == len(data)
    assert account.read(FILESYSTEM, path, 10, 20)[1] == data[10:20]
    assert account.read(FILESYSTEM, path, -5)[1] == data[-5:]


def test_many_directories_are_found_again() -> None:
    """A file goes to its directory, also when thousands of others were made since."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf)) as runner:
        model = World(Setup(), runner.get_loop()).model
    for number in (1, 2):
        for directory in range(1_500):
            model.put_file(f"/table/d{directory}/{number}", 5)

    assert {model.files_in(f"/table/d{directory}") for directory in range(1_500)} == {2}
    assert model.files_in("/table/nowhere") == 0
