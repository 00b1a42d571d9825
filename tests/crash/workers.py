"""Workers of a commit as processes of a world: they die, sleep, come late and run twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from asynccommit.commit.orders import Order, Slice, Tally, WorkerLostError
from asynccommit.commit.slices.worker import Worker, look
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.testing.models.crashes import Crash, Process, Suspension, When
from tests.crash.jobs import host_of
from tests.support.crashes import ModelWorld
from tests.support.strikes import strike

SILENCE = 120.0
Fate = Callable[[Slice], "Crash | Suspension | None"]


@dataclass
class SimRunner:
    """A ``Runner`` of which each slice has a process of its own.

    Attributes:
        world: where they act.
        fate: what the worker of a slice meets.
        twice: whether an engine gives each slice to two workers at once.
        workers: number of slices at once.
    """

    world: ModelWorld
    fate: Fate = lambda piece: None
    twice: bool = False
    workers: int = 3
    name: str = "sim"
    least: int = 0
    kills: bool = False
    processes: list[Process] = field(default_factory=list)
    tasks: list[asyncio.Task[Tally]] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)

    async def open(self, order: Order) -> None:
        """See ``Runner.open``."""
        process = self._process("probe", None)
        await look(order, self.world.store(process))

    async def submit(self, order: Order, piece: Slice) -> Tally:
        """See ``Runner.submit``."""
        process, task = self._begin(order, piece, self.fate(piece))
        if self.twice:
            strike("slice given twice")
            self._begin(order, piece, None)
        done, _ = await asyncio.wait([task], timeout=SILENCE)
        if not done:
            strike("silent worker")
            raise WorkerLostError(f"{process.name} is silent")
        if process.dead:
            strike("dead worker")
            raise WorkerLostError(f"{process.name} is dead")
        tally = task.result()
        self.tallies.append(tally)
        return tally

    async def aclose(self) -> None:
        """See ``Runner.aclose``: an engine that cancels nothing."""

    async def end(self) -> None:
        """Wake those who sleep, and wait until all have ended."""
        for process in self.processes:
            process.awaken()
        if self.tasks:
            await asyncio.wait(self.tasks)
        for task in self.tasks:
            task.exception()

    @property
    def struck(self) -> bool:
        """Return whether a worker has died or was suspended."""
        slept = (p.stop is not None and p.requests >= p.stop.request for p in self.processes)
        return any(slept) or any(process.dead for process in self.processes)

    @property
    def asleep(self) -> list[Process]:
        """The workers that are suspended."""
        return [process for process in self.processes if process.is_stopped]

    def _begin(
        self, order: Order, piece: Slice, fate: Crash | Suspension | None
    ) -> tuple[Process, asyncio.Task[Tally]]:
        process = self._process(f"{piece.chunk}", fate)
        machine = process.name.rpartition("@")[2]
        rng = random.Random(f"{self.world.seed}/{process.name}")
        store = wrap(self.world.store(process), StoreSettings(rng, attempts=20))
        host = host_of(self.world, process, machine, rng, 0.0)
        task = asyncio.create_task(_do(Worker(order, store, host), piece))
        self.tasks.append(task)
        return process, task

    def _process(self, what: str, fate: Crash | Suspension | None) -> Process:
        number = len(self.world.processes)
        crash = fate if isinstance(fate, Crash) else None
        stop = fate if isinstance(fate, Suspension) else None
        process = Process(f"worker-{what}-{number}@machine-{number}", crash, stop)
        self.world.processes[process.name] = process
        self.processes.append(process)
        return process


async def _do(worker: Worker, piece: Slice) -> Tally:
    async with worker:
        return await worker.do(piece)


def first(fate: Crash | Suspension | None) -> Fate:
    """Return a fate that the first worker of each slice meets; later ones are well."""
    return lambda piece: None if piece.attempt else fate


def fates() -> list[tuple[str, Crash | Suspension | None]]:
    """Return each end of a worker: death in and after a rename, and sleep."""
    found: list[tuple[str, Crash | Suspension | None]] = [("well", None)]
    for write in (1, 2):
        found += [(f"{when.value}-{write}", Crash(write, when)) for when in When]
        found.append((f"late-{write}-50s", Crash(write, When.LATE, 50.0)))
    found += [(f"sleeps-{request}", Suspension(request, 1000.0)) for request in (3, 4, 5, 6)]
    return found
