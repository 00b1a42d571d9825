"""Run one simulated commit in virtual time.

The committer and the policies are the real ones; the processor's time is a policy.
"""

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
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.meter import OnProgress, Progress
from asynccommit.errors import OptionError
from asynccommit.results import JobReport
from asynccommit.runtime.host import Host
from asynccommit.simulate.memory import Memory, MemoryGrowth
from asynccommit.simulate.model import Site
from asynccommit.simulate.placed import ModelTaskWriter, visible
from asynccommit.simulate.setup import Setup, kind_of_setup
from asynccommit.stores.policies.funnel import Call, Op, Policy, Wrapped
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
    """The figures of one commit.

    Attributes:
        files: number of files of the job.
        tasks: number of tasks that wrote them.
        partitions: number of partitions that they belong to.
        seconds: virtual seconds, from the call to its return.
        stages: stage -> virtual seconds, by Hadoop's names; outer stages include inner ones.
        requests: store operation -> number of requests, retries included.
        struck: kind of fault, or ``limit`` -> number of strikes.
        refused: number of requests that the store rejected for their rate, or because it was busy.
        recovered: method -> number of requests found done although no response said so.
        waited: reason -> total seconds that requests waited before they were sent.
        warnings: warnings of the commit.
        memory: memory use.
        real: wall-clock seconds of the simulation.
        renamed_directories: number of the renames that were of directories.
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
    renamed_directories: int = 0

    @property
    def rate(self) -> float:
        """Files per second, from beginning to end."""
        return self.files / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "memory": self.memory.to_json()}


class World:
    """A model store with everything for a commit, determined by a seed.

    Args:
        setup: job and store to simulate.
        loop: event loop that provides the time.
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
        self.model = kind_of_setup(setup).make(
            Site(
                setup.climate,
                setup.in_flight * setup.workers,
                setup.doubling,
                setup.share == 1,
                self.seeds,
                self.host,
            )
        )
        self.layout = Layout(self.model.dest, JOB)

    def wrapped(self, *policies: Policy) -> Wrapped:
        """Return the store with the usual policies; ``policies`` are innermost."""
        options = self.setup.options
        settings = StoreSettings(
            self.seeds.rng("store"),
            rate=options.rate,
            attempts=options.attempts,
            clock=self.host.clock,
            connected=False,
        )
        store = self.model.store
        if self.setup.cpu:
            policies = (*policies, Processor(self.setup.cpu / self.setup.workers))
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
        setup: job and store to simulate.
        on_progress: called with the progress, in wall-clock time.

    Raises:
        OptionError: an option of the commit leads out of the simulation.
        CommitError: the commit failed, as it would with such faults.
    """
    if setup.options.report_directory is not None:
        raise OptionError("a simulated job has no report: leave out summary.report.directory")
    begin = time.perf_counter()
    tell = _ProgressReporter(on_progress, begin, setup.files)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf)) as runner:
        world = World(setup, runner.get_loop())
        tasks = ModelTaskWriter(world.model, world.layout, setup).all_tasks(tell.placed)
        size, growth = world.model.size(), MemoryGrowth()
        gc.freeze()  # A million permanent nodes need not be scanned repeatedly.
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
        raise AssertionError(f"{there} of {setup.files} files exist, {report.files} reported")
    struck = Counter({"limit": model.refused} if model.refused else {})
    for name, number in model.weather.struck.items():
        struck[name.partition(" ")[0]] += number
    return Figures(
        files=setup.files,
        tasks=setup.tasks,
        partitions=setup.partitions,
        seconds=report.seconds + planning_seconds(setup),
        stages=_with_planning(report.stages, setup),
        requests=dict(model.weather.requests),
        struck=dict(struck),
        refused=report.refused,
        recovered=report.recovered,
        waited=report.waited,
        warnings=report.warnings,
        memory=memory,
        real=real,
        renamed_directories=model.renamed_directories,
    )


def _with_planning(stages: Mapping[str, float], setup: Setup) -> Mapping[str, float]:
    """Add the processor's time for planning to the first stage."""
    return {**stages, LOAD_STAGE: stages.get(LOAD_STAGE, 0.0) + planning_seconds(setup)}


class _ProgressReporter:
    """A progress reporter that reports in wall-clock time."""

    def __init__(self, on_progress: OnProgress | None, begin: float, files: int) -> None:
        self._on_progress = on_progress
        self._begin = begin
        self._files = files

    def placed(self, files: int) -> None:
        """Report the number of files in the model."""
        if self._on_progress is not None:
            self._on_progress(Progress(JOB, "place_files", files, self._files, self._seconds()))

    def committed(self, progress: Progress) -> None:
        """Report the progress of the commit."""
        if self._on_progress is not None:
            self._on_progress(replace(progress, seconds=self._seconds()))

    def _seconds(self) -> float:
        return time.perf_counter() - self._begin


LOAD_STAGE = "job_stage_load_manifests"
"""The stage to which the planning's time is added."""

PLANNING = 0.21
"""Processor time to plan a file, in that of a request.

Reading, checking and recording a file took 20 us where a rename took 95.
"""


class Processor:
    """A policy under which requests take a processor, one after another.

    Args:
        seconds: time of one request; with several processors a part of it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = 0.0

    def __repr__(self) -> str:
        return f"Processor({self._seconds})"

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def processed(op: Op) -> Any:
            now = asyncio.get_running_loop().time()
            self._free = max(now, self._free) + self._seconds
            await asyncio.sleep(self._free - now)
            return await call(op)

        return processed


def planning_seconds(setup: Setup) -> float:
    """Return the processor's time to plan the job, shared by the workers.

    A simulation runs that work itself, in no time of its clock.
    """
    return PLANNING * setup.cpu * setup.files / setup.workers
