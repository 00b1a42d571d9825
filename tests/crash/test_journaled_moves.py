"""Every write of a move with a journal is a crash point, and both directions end exactly."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from asynccommit.engine import BulkError, resume
from asynccommit.errors import OwnedError, PreflightError
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.moves import OLD, Move, Mover, ends, lost, settle
from tests.crash.recovery import places
from tests.crash.worlds import KINDS, new_world
from tests.support.crashes import LocalWorld, ModelWorld
from tests.support.selection import amount
from tests.support.storms import STORM

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
    late = [Crash(write, When.LATE, late=100.0) for write in range(1, count + 1)]
    for crash in [*places(count), *late]:
        world = _world(kind, move)
        first = Mover.new(world, move, "first", crash)
        assert not await first.until_death(first.begin)
        is_late = crash.when is When.LATE
        found = [] if is_late else lost(world, move, copies=kind == "steps")
        found += await settle(world, move, "second", back=back, late=is_late)
        died = f"died {crash.when.value} write {crash.write}, {first.process.writes[-1]}"
        problems += [f"{died}: {text}" for text in found]
    return problems


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("back", [False, True], ids=["finished", "undone"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_move_that_died_is_finished_or_undone(name: str, kind: str, back: bool) -> None:
    """After each crash every file is at one end, and the next process brings all to either end."""
    assert run_virtual(_every_crash(kind, SCENARIOS[name], back=back)) == []


async def _rival(kind: str) -> tuple[list[str], tuple[object, object]]:
    """Let a second process act while the first one is at work; return what it was told."""
    world, move, told = _world(kind, Move()), Move(), []
    first = Mover.new(world, move, "first")
    second = Mover.new(world, move, "second")

    async def meddle() -> None:
        for act in (second.finish, second.undo, second.begin):
            with pytest.raises((OwnedError, PreflightError)) as caught:
                await act()
            told.append(str(caught.value))

    first.process.hooks[await _whole(kind, move) // 2] = meddle
    await first.begin()
    return told, ends(world)


@pytest.mark.parametrize("kind", ["adls", "flat"])
def test_a_second_process_is_refused_while_the_first_lives(kind: str) -> None:
    """Whether it would finish, undo or begin the move, and it changes nothing."""
    told, found = run_virtual(_rival(kind))
    assert len(told) == 3
    assert "alice@mover" in told[0]
    assert "--force" in told[0]
    assert "--rollback" in told[2]
    assert found == Move().after


async def _planted(kind: str) -> str:
    """Die in the middle, and let the record name another source; return what a resume says."""
    world, move = _world(kind, Move()), Move()
    first = Mover.new(world, move, "first", Crash(await _whole(kind, move) // 2))
    assert not await first.until_death(first.begin)
    record = next(path for path in world.tree() if path.endswith("commit-record.json"))
    second = Mover.new(world, move, "second")
    data = await second.store.get(record, 1 << 20)
    await second.store.put(record, data.replace(b'"source": "/in"', b'"source": "/secret"'))
    before = ends(world)
    with pytest.raises(BulkError) as caught:
        await resume(second.store, second.journal, host=second.host)
    assert ends(world) == before
    return str(caught.value)


def test_the_record_of_another_move_is_refused() -> None:
    """What the journal does not name is not touched."""
    assert "is not of the move of this journal" in run_virtual(_planted("adls"))


async def _every_crash_on_disk(world: LocalWorld, move: Move, *, back: bool) -> list[str]:
    move.place(world)
    kept = world.keep()
    world.start(kept)
    whole = Mover.new(world, move, "first")
    await whole.begin()
    assert ends(world) == move.after
    problems = []
    for crash in places(len(whole.process.writes), once=True):
        world.start(kept)
        first = Mover.new(world, move, "first", crash)
        assert not await first.until_death(first.begin)
        found = lost(world, move) + await settle(world, move, "second", back=back, wait=0)
        died = f"died {crash.when.value} write {crash.write}, {first.process.writes[-1]}"
        problems += [f"{died}: {text}" for text in found]
    return problems


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("back", [False, True], ids=["finished", "undone"])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_move_that_died_on_disk_is_finished_or_undone(
    name: str, back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with directories of the local filesystem."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # nobody pulls a plug here
    world = LocalWorld(tmp_path / "root")
    world.root.mkdir()
    try:
        problems = await _every_crash_on_disk(world, SCENARIOS[name], back=back)
    finally:
        await world.aclose()

    assert problems == []


async def violations(seed: int) -> list[str]:
    """Let several processes begin, finish and undo one move, each with its own fate, in a storm."""
    rng = random.Random(seed)
    kind, move = rng.choice(KINDS), SCENARIOS[rng.choice([*SCENARIOS])]
    world = new_world(kind, seed)
    move.place(world)
    world.storm(random.Random(f"weather {seed}"), Climate(STORM.faults, Latency("lognormal", 0.03)))
    for number in range(rng.randint(1, 6)):
        whens = (When.BEFORE, When.AFTER, When.LATE)
        crash = Crash(rng.randint(1, 50), rng.choice(whens), late=rng.uniform(0, 150))
        mover = Mover.new(world, move, f"mover-{number}", crash)
        act = rng.choice([mover.begin, mover.finish, mover.finish, mover.undo])
        await mover.until_refusal(act)
        await asyncio.sleep(rng.choice([0, 1, 50, 200]))
        mover.process.kill()
    world.weather = None
    back = rng.random() < 0.5
    found = await settle(world, move, "last", back=back, late=True)
    return [f"seed {seed}, {kind}, {'undone' if back else 'finished'}: {text}" for text in found]


SEEDS = amount("ASYNCCOMMIT_CRASH_SEEDS", quick=20, full=200)


@pytest.mark.more
@pytest.mark.timeout(300)
def test_no_seed_loses_or_doubles_a_file() -> None:
    """Whoever dies whenever: in the end all files are at one end, which the last process chose."""
    assert [text for seed in range(SEEDS) for text in run_virtual(violations(seed))] == []
