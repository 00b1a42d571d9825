"""Every write of a bulk move is a crash point, and both directions end exactly."""

from __future__ import annotations

import random

import pytest

from asynccommit.engine import BulkError, move_tree, rename_files
from asynccommit.errors import NotFoundError
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.testing.models.crashes import Crash, Crashed, Process
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.recovery import places
from tests.crash.worlds import new_world
from tests.support.crashes import ModelWorld

MOVED = {f"p={n % 3}/f{n}": f"file {n}" for n in range(7)} | {"top": "t", "deep/a/b": "deep"}
OWN = {"p=0/own": "own", "p=2/own": "own too"}
KINDS = ("adls", "flat", "hns")


def _world(kind: str) -> ModelWorld:
    world = new_world(kind)
    for top, files in (("in", MOVED), ("out", OWN)):
        for name, text in files.items():
            world.place(f"/{top}/{name}", text)
    return world


def _store(world: ModelWorld, name: str, crash: Crash | None = None) -> tuple[Wrapped, Process]:
    process = world.processes[name] = Process(name, crash)
    return wrap(world.store(process), StoreSettings(random.Random(name), attempts=20)), process


async def _move(store: Wrapped) -> None:
    try:
        await move_tree(store, "/in", "/out")
    except NotFoundError:  # the directory was the last thing to go
        return


async def _move_back(store: Wrapped) -> None:
    pairs = [(f"/out/{name}", f"/in/{name}") for name in MOVED]
    await rename_files(store, pairs, on_error="continue")


def _files(world: ModelWorld, top: str) -> dict[str, str]:
    return {
        path.removeprefix(f"/{top}/"): item.data.decode()
        for path, item in world.tree().items()
        if item.data is not None and path.startswith(f"/{top}/") and path[-1] != "/"
    }


async def _every_crash(kind: str, *, back: bool) -> list[str]:
    """Die at every write of a move, then finish it or undo it; return what was wrong."""
    whole = _world(kind)
    store, process = _store(whole, "first")
    await _move(store)
    await store.aclose()
    assert (_files(whole, "in"), _files(whole, "out")) == ({}, MOVED | OWN)

    problems = []
    for crash in places(len(process.writes)):
        world = _world(kind)
        store, process = _store(world, "first", crash)
        try:
            await _move(store)
        except (Crashed, BulkError, BaseExceptionGroup):
            assert process.dead
        died = f"died {crash.when.value} write {crash.write}, {process.writes[-1]}"
        left = _files(world, "in"), _files(world, "out")
        if left[0].keys() & left[1].keys() or left[0] | left[1] != MOVED | OWN:
            problems.append(f"{died}: {left}")
        second, _ = _store(world, "second")
        await (_move_back(second) if back else _move(second))
        await second.aclose()
        ends = (MOVED, OWN) if back else ({}, MOVED | OWN)
        if (_files(world, "in"), _files(world, "out")) != ends:
            problems.append(f"{died}, {'undone' if back else 'finished'}: {world.tree().keys()}")
    return problems


@pytest.mark.parametrize("back", [False, True], ids=["finished", "undone"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_move_that_died_is_finished_or_undone(kind: str, back: bool) -> None:
    """After each crash every file is at one end, and the next process brings all to either end."""
    assert run_virtual(_every_crash(kind, back=back)) == []
