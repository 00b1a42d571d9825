"""Every write of a move with a journal is a crash point, and both directions end exactly."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.moves import OLD, Move, Mover, ends, lost, settle
from tests.crash.recovery import places
from tests.crash.worlds import KINDS, new_world
from tests.support.crashes import ModelWorld

SCENARIOS = {
    "tree": Move(),
    "pairs": Move(pairs=True),
    "replacing": Move(replaced=OLD),
}


def _world(kind: str, move: Move) -> ModelWorld:
    world = new_world(kind)
    move.place(world)
    return world


async def _whole(kind: str, move: Move) -> int:
    """Return how many writes an undisturbed move takes."""
    world = _world(kind, move)
    mover = Mover.new(world, move, "first")
    report = await mover.begin()
    await mover.store.aclose()
    assert ends(world) == move.after
    assert report.failed == 0
    return len(mover.process.writes)


async def _every_crash(kind: str, move: Move, *, back: bool) -> list[str]:
    """Die at every write of a move, then finish it or undo it; return what was wrong."""
    count, problems = await _whole(kind, move), []
    late = [Crash(write, When.LATE) for write in range(1, count + 1)]
    for crash in [*places(count), *late]:
        world = _world(kind, move)
        first = Mover.new(world, move, "first", crash)
        assert not await first.until_death(first.begin)
        found = [] if crash.when is When.LATE else lost(world, move, copies=kind == "steps")
        found += await settle(world, move, "second", back=back)
        died = f"died {crash.when.value} write {crash.write}, {first.process.writes[-1]}"
        problems += [f"{died}: {text}" for text in found]
    return problems


@pytest.mark.parametrize("back", [False, True], ids=["finished", "undone"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_move_that_died_is_finished_or_undone(name: str, kind: str, back: bool) -> None:
    """After each crash every file is at one end, and the next process brings all to either end."""
    assert run_virtual(_every_crash(kind, SCENARIOS[name], back=back)) == []
