"""One simulated commit: the real committer and wrappers, over the model, in virtual time."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.context import OnProgress, Progress
from asynccommit.commit.layout import Layout, TaskCommit
from asynccommit.errors import OptionError
from asynccommit.results import JobReport
from asynccommit.runtime.host import Host
from asynccommit.simulate.memory import Memory, MemoryGrowth
from asynccommit.simulate.model import Site
from asynccommit.simulate.placed import Placed, visible
from asynccommit.simulate.setup import Setup
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.policies.traffic import traffic_of
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.testing.models.seeds import Seeds
from asynccommit.testing.models.virtual_loop import VirtualLoop

JOB = "simulated"
EPOCH = 1_795_000_000.0
"""Seconds since the epoch at which every simulated run begins."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one commit took.

    Attributes:
        files: of the job.
        tasks: that wrote them.
        partitions: that they went to.
        seconds: of virtual time, from the call to its return.
        stages: stage -> seconds of virtual time, by Hadoop's names; the outer ones hold the inner.
        requests: operation of the store -> how many it was asked for, every sending counted.
        struck: what went wrong -> how often: ``limit``, or the kind of a fault.
        refused: requests that the store refused for their rate, or because it was busy.
        recovered: method -> requests that were found done though no answer said so.
        waited: reason -> seconds that requests waited before they were sent, added up.
        warnings: of the commit.
        memory: what it took.
        real: seconds that all this took to simulate.
    """

    files: int
    tasks: int
    partitions: int
    seconds: float
    stages: Mapping[str, float]
    requests: Mapping[str, int]
    struck: Mapping[str, int]
    refused: int
    recovered: Mapping[str, int]
    waited: Mapping[str, float]
    warnings: Sequence[str]
    memory: Memory
    real: float

    @property
    def rate(self) -> float:
        """Files a second, from beginning to end."""
        return self.files / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "memory": self.memory.to_json()}


class World:
    """A store that is a model, and all that a commit on it needs; everything follows a seed.

    Args:
        setup: what to simulate.
        loop: whose time it is.
    """

    def __init__(self, setup: Setup, loop: asyncio.AbstractEventLoop) -> None:
        def now() -> float:
            return EPOCH + loop.time()

        self.setup = setup
        self.seeds = Seeds(setup.seed)
        self.host = Host(
            now=now,
            new_id=self.seeds.ids("host"),
            rng=self.seeds.rng("host"),
            name="driver-0",
            user="simulated",
            clock=loop.time,
        )
        self.model = setup.kind.make(
            Site(
                setup.climate,
                setup.in_flight,
                setup.doubling,
                setup.share == 1,
                self.seeds,
                self.host,
            )
        )
        self.layout = Layout(self.model.dest, JOB)

    def wrapped(self, *policies: Policy) -> Wrapped:
        """Return the store with the wrappers that every store has; ``policies`` go innermost."""
        options = self.setup.options
        settings = StoreSettings(
            self.seeds.rng("store"),
            rate=options.rate,
            attempts=options.attempts,
            clock=self.host.clock,
        )
        store = self.model.store
        return wrap(Wrapped(store, *policies) if policies else store, settings)

    def committer(self, store: Wrapped) -> ManifestCommitter:
        """Return the committer of the job."""
        asked = next(policy for policy in store.policies if isinstance(policy, Stats))
        return ManifestCommitter(
            store,
            self.layout,
            self.setup.options,
            self.host,
            counted=asked.counts,
            traffic=lambda: traffic_of(store),
        )

    async def commit(
        self,
        tasks: Sequence[TaskCommit],
        on_progress: OnProgress | None = None,
        policies: Sequence[Policy] = (),
    ) -> JobReport:
        """Commit the job; ``policies`` see every request that is sent."""
        store = self.wrapped(*policies)
        try:
            committer = self.committer(store)
            return await committer.commit_job(tasks, strict=True, on_progress=on_progress)
        finally:
            await store.aclose()


def run_commit(setup: Setup, on_progress: OnProgress | None = None) -> Figures:
    """Simulate one commit from its beginning to its end.

    Args:
        setup: what to simulate.
        on_progress: told how far it is, in real seconds.

    Raises:
        OptionError: an option of the commit leads out of the simulation.
        CommitError: the commit failed, as it would in such weather.
    """
    if setup.options.report_directory is not None:
        raise OptionError("a simulated job has no report: leave out the summary.report.directory")
    begin = time.perf_counter()
    tell = _ProgressReporter(on_progress, begin, setup.files)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf)) as runner:
        world = World(setup, runner.get_loop())
        tasks = Placed(world.model, world.layout, setup).all_tasks(tell.placed)
        size, growth = world.model.size(), MemoryGrowth()
        gc.freeze()  # A million nodes that stay need not be looked at again and again.
        try:
            report = runner.run(world.commit(tasks, tell.committed if on_progress else None))
        finally:
            gc.unfreeze()
        grown = growth.bytes()
        own = max(0, world.model.size() - size)
    memory = Memory(setup.files, grown, own, growth.how)
    return _figures(world, report, memory, time.perf_counter() - begin)


def _figures(world: World, report: JobReport, memory: Memory, real: float) -> Figures:
    setup, model = world.setup, world.model
    there = visible(model, setup)
    if not there == report.files == setup.files:
        raise AssertionError(f"{there} of {setup.files} files are there, {report.files} reported")
    struck = Counter({"limit": model.refused} if model.refused else {})
    for name, number in model.weather.struck.items():
        struck[name.partition(" ")[0]] += number
    return Figures(
        files=setup.files,
        tasks=setup.tasks,
        partitions=setup.partitions,
        seconds=report.seconds,
        stages=report.stages,
        requests=dict(model.weather.requests),
        struck=dict(struck),
        refused=report.refused,
        recovered=report.recovered,
        waited=report.waited,
        warnings=report.warnings,
        memory=memory,
        real=real,
    )


class _ProgressReporter:
    """Tells how far a simulation is: for who waits, real seconds count."""

    def __init__(self, on_progress: OnProgress | None, begin: float, files: int) -> None:
        self._on_progress = on_progress
        self._begin = begin
        self._files = files

    def placed(self, files: int) -> None:
        """Tell that so many files are in the model."""
        if self._on_progress is not None:
            self._on_progress(Progress(JOB, "place_files", files, self._files, self._seconds()))

    def committed(self, progress: Progress) -> None:
        """Tell how far the commit is."""
        if self._on_progress is not None:
            self._on_progress(replace(progress, seconds=self._seconds()))

    def _seconds(self) -> float:
        return time.perf_counter() - self._begin
