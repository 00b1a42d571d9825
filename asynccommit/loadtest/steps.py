"""The steps of a load test, each with its time and its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from asynccommit.api import Job
from asynccommit.engine.deletes import delete_files
from asynccommit.engine.operation import workers_of
from asynccommit.engine.pairs import FileRename
from asynccommit.engine.renames import rename_files
from asynccommit.engine.verification import verify
from asynccommit.errors import CommitError
from asynccommit.loadtest.measure import RequestBudget
from asynccommit.loadtest.press import Turn, press, reads_of, writes_of
from asynccommit.loadtest.report import RateFound, StepTimes
from asynccommit.loadtest.scratch import LoadPlace
from asynccommit.loadtest.settings import LoadPlan
from asynccommit.options.job import Mode
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.policies.traffic import traffic_of
from asynccommit.stores.urls import Address

_TASKS_AT_ONCE = 16
_FILES_AT_ONCE = 8
_CONTENT = b"1"


class LoadSteps:
    """The steps of one load test.

    Args:
        place: the store.
        data: the directory for all files.
        plan: amounts.
        budget: counts the requests.

    Attributes:
        files: number of files that the job has made visible.
        times: step -> its figures.
        rates: kind of request -> the rate found.
        step: name of the current step.
    """

    def __init__(
        self,
        place: LoadPlace,
        data: Address,
        plan: LoadPlan,
        budget: RequestBudget,
    ) -> None:
        self.files = 0
        self.times: dict[str, StepTimes] = {}
        self.rates: dict[str, RateFound] = {}
        self.step = ""
        self._place = place
        self._data = data
        self._plan = plan
        self._budget = budget
        self._paths: list[str] = []

    async def run(self) -> None:
        """Run all steps.

        Raises ``AsyncCommitError`` for what fails; ``times`` and ``rates`` have what was measured.
        """
        store, traits = self._place.store, self._place.store.traits
        table = self._data.child("table")
        job = Job(self._place.committer(table, self._place.host.new_id()))
        async with self._timed("write"):
            await self._write(job)
        async with self._timed("commit"):
            await job.committer.commit_job(job.commits, mode=Mode.APPEND, strict=True)
            self.files = len(self._paths)
        await self._press("reads", *reads_of(store, self._paths))
        if traits.atomic_rename:
            async with self._timed("move"):
                await self._move()
        press_directory = self._data.child("press").path
        if traits.directories:
            await store.mkdir(press_directory)
        await self._press("writes", *writes_of(store, press_directory, self._paths))
        async with self._timed("verify"):
            await self._verify()
        async with self._timed("delete"):
            await delete_files(store, self._paths)
        self._keep_rate_of_deletes()

    async def _write(self, job: Job) -> None:
        """Write files until all are there, or until the time for it is over."""
        committer, plan, clock = job.committer, self._plan, asyncio.get_running_loop().time
        end = clock() + plan.write_seconds
        await committer.setup_job(mode=Mode.APPEND)
        table = committer.layout.dest

        async def task(number: int) -> None:
            async def put(name: str) -> None:
                if clock() < end or not self._paths:
                    await running.put(name, _CONTENT)
                    self._paths.append(table.child(name).path)

            if clock() >= end and self._paths:
                return
            async with job.task(number) as running:
                names = [f"part-{one:07}" for one in range(number, plan.files, plan.tasks)]
                await for_each(names, put, workers=_FILES_AT_ONCE)

        async with committer.living():
            await for_each(range(plan.tasks), task, workers=_TASKS_AT_ONCE)
            job.end()

    async def _move(self) -> None:
        moved = self._data.child("moved")
        dests = [moved.child(path.rpartition("/")[2]).path for path in self._paths]
        pairs = [FileRename(*pair) for pair in zip(self._paths, dests, strict=True)]
        await rename_files(self._place.store, pairs)
        self._paths = dests

    async def _verify(self) -> None:
        expected: Sequence[tuple[str, int]] = [(path, len(_CONTENT)) for path in self._paths]
        found = await verify(self._place.store, expected)
        if not found.ok:
            text = f"{found.missing:,} files are missing and {found.changed:,} are changed"
            raise CommitError("loadtest", "verify", (), text)

    async def _press(self, kind: str, method: str, turn: Turn) -> None:
        store = self._place.store
        workers = min(workers_of(store), len(self._paths))
        async with self._timed(f"press {kind}", files=workers):
            self.rates[kind] = await press(
                store,
                turn,
                self._budget,
                method=method,
                workers=workers,
                seconds=self._plan.press_seconds,
                requests=self._plan.press,
            )

    @asynccontextmanager
    async def _timed(self, step: str, files: int | None = None) -> AsyncIterator[None]:
        """Keep the figures of a step, also of one that is cut short."""
        clock, store = asyncio.get_running_loop().time, self._place.store
        begin, sent, refused = clock(), self._budget.sent, traffic_of(store).refused
        self.step = step
        try:
            yield
        finally:
            self.times[step] = StepTimes(
                len(self._paths) if files is None else files,
                clock() - begin,
                self._budget.sent - sent,
                traffic_of(store).refused - refused,
            )

    def _keep_rate_of_deletes(self) -> None:
        took = self.times["delete"]
        if took.seconds > 0:
            rate = took.files / took.seconds
            limited = took.refused > 0
            self.rates["deletes"] = RateFound(rate, limited, took.files, took.seconds, "delete")
