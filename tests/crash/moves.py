"""Moves with a journal whose processes die, and what must be true in the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from asynccommit.engine import BulkError, BulkReport, move_tree, rename_files, resume, rollback
from asynccommit.errors import (
    CommitError,
    CommittedError,
    NotFoundError,
    OwnedError,
    PreflightError,
    StoreError,
)
from asynccommit.runtime.host import Host
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.testing.models.crashes import Crash, Process
from tests.crash.jobs import host_of
from tests.support.crashes import World
from tests.support.strikes import CountedProcess

MOVED = {f"p={n % 3}/f{n}": f"file {n}" for n in range(5)} | {"top": "t", "deep/a/b": "deep"}
OWN = {"p=0/own": "own", "p=2/own": "own too"}
OLD = {"p=1/f1": "to be replaced"}
JOURNAL = "/journals/move.json"
TRIES = 12
MACHINE = "mover"


@dataclass(frozen=True)
class Move:
    """A move of the directory ``/in`` to ``/out``.

    Attributes:
        pairs: whether each file is named.
        replaced: files at the destination that are replaced.
    """

    pairs: bool = False
    replaced: Mapping[str, str] = field(default_factory=dict)

    @property
    def before(self) -> tuple[dict[str, str], dict[str, str]]:
        """The files at both ends before the move."""
        return MOVED, {**OWN, **self.replaced}

    @property
    def after(self) -> tuple[dict[str, str], dict[str, str]]:
        """The files at both ends after it."""
        return {}, {**OWN, **MOVED}

    def place(self, world: World) -> None:
        """Put the files."""
        for top, files in zip(("in", "out"), self.before, strict=True):
            for name, text in files.items():
                world.place(f"/{top}/{name}", text)


@dataclass
class Mover:
    """A process that moves files, finishes a move or undoes it."""

    world: World
    move: Move
    process: Process
    store: Wrapped
    host: Host

    @classmethod
    def new(cls, world: World, move: Move, name: str, crash: Crash | None = None) -> Mover:
        """Return a fresh process, which dies at ``crash``."""
        process = CountedProcess(f"{name}@{MACHINE}", crash)
        world.processes[process.name] = process
        rng = random.Random(f"{world.seed}/{name}")
        settings = StoreSettings(rng, attempts=20)
        store = wrap(world.store(process), settings)
        store.address = world.address("/")
        return cls(world, move, process, store, host_of(world, process, MACHINE, rng, 0.0))

    @property
    def journal(self) -> str:
        """The URL of the journal."""
        return str(self.world.address(JOURNAL))

    def path(self, path: str) -> str:
        """Return a path of the scenario as one of the store."""
        return self.world.address(path).path

    async def begin(self) -> BulkReport:
        """Move the files."""
        replace = bool(self.move.replaced)
        if not self.move.pairs:
            ends = self.path("/in"), self.path("/out")
            return await move_tree(
                self.store, *ends, replace=replace, journal=self.journal, host=self.host
            )
        pairs = [(self.path(f"/in/{name}"), self.path(f"/out/{name}")) for name in MOVED]
        return await rename_files(
            self.store, pairs, replace=replace, journal=self.journal, host=self.host
        )

    async def finish(self) -> BulkReport:
        """Finish the move, or begin one of which nothing is there."""
        try:
            return await resume(self.store, self.journal, host=self.host)
        except (NotFoundError, PreflightError):
            return await self.begin()

    async def undo(self) -> BulkReport | None:
        """Undo the move; ``None`` if there is none."""
        try:
            return await rollback(self.store, self.journal, host=self.host)
        except NotFoundError:
            return None

    async def until_refusal(self, act: Callable[[], Awaitable[object]]) -> None:
        """Act; take a refusal, or a failure that a report is of."""
        with suppress(CommitError, BulkError, StoreError):
            await self.until_death(act)

    async def until_death(self, act: Callable[[], Awaitable[object]]) -> bool:
        """Act; return whether the process lives.

        The store of a dead process stays open: closing waits for what is under way.
        """
        try:
            await act()
        except BaseException:
            if not self.process.dead:
                raise
        return not self.process.dead


async def patiently(act: Callable[[], Awaitable[BulkReport | None]]) -> BulkReport | None:
    """Act as soon as nobody else is said to be at work."""
    for _ in range(TRIES):
        try:
            return await act()
        except OwnedError:
            await asyncio.sleep(100)
    return await act()


def ends(world: World) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files at both ends, and of jobs what is left in either."""
    found: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for path, item in world.tree().items():
        _, top, *names = path.split("/")
        if item.data is not None and top in ("in", "out") and names[-1:] != [""]:
            found[top == "out"]["/".join(names)] = item.data.decode(errors="replace")
    return found


def lost(world: World, move: Move, *, copies: bool = False) -> list[str]:
    """Return the files that are at neither end, or at both; rubbish of a commit is left out.

    With ``copies`` a file may be at both, as a rename is a copy and a delete.
    """
    here, there = ends(world)
    at_dest = {name: text for name, text in there.items() if not name.startswith("_")}
    problems = []
    for name, text in MOVED.items():
        places = [here.get(name) == text, at_dest.get(name) == text]
        if places.count(True) != 1 and not (copies and any(places)):
            problems.append(f"{name} is at {places.count(True)} ends")
    return problems + [f"{name} is lost" for name in OWN if at_dest.get(name) != OWN[name]]


async def settle(
    world: World, move: Move, name: str, *, back: bool, late: bool = False, wait: float = 400
) -> list[str]:
    """Finish or undo a move by a fresh process; return what is then not as it should be.

    With ``late``, requests under way may leave state files behind, as those of a job may.
    """
    mover = Mover.new(world, move, name)
    wanted = move.before if back else move.after
    try:
        await patiently(mover.undo if back else mover.finish)
    except CommittedError:
        assert back
        await patiently(mover.finish)
        wanted = move.after
    except PreflightError:  # the journal is of a move that was undone
        assert not back
        wanted = move.before
    await asyncio.sleep(wait)  # what was under way has happened
    found = ends(world)
    if late:
        found = found[0], {name: text for name, text in found[1].items() if name[0] != "_"}
    await mover.store.aclose()
    if found != wanted:
        return [f"{found} is not {wanted}"]
    return []
