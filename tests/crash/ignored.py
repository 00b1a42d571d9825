"""OneLake begins to ignore a header in the middle of a job: a condition, or a rename's token.

It names the header in its answer and does the rest of the request. So no job may end well that has
had such an answer; and once the service looks at the header again, every job can be ended.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from asynccommit import JobReport, JobState, Mode, api
from asynccommit.errors import AsyncCommitError
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.support.strikes import strike

HEADERS = ("if-none-match", "x-ms-source-if-match", "x-ms-client-transaction-id")
ACTORS = frozenset(f"ignored {header}" for header in HEADERS)
WORKSPACE, ITEM = "work", "Sales.Lakehouse"
TABLE = f"{ITEM}/Files/table"
URL = f"abfss://{WORKSPACE}@onelake.dfs.fabric.microsoft.com/{TABLE}"
JOB = "job_202601010000_0001"
OLD = {"day=0/old": b"old"}
NEW = {f"day={day}/new": b"new" for day in range(3)}
_MOST = 90  # requests of a job, about


class Forgotten:
    """A header that is ignored from one request on.

    Args:
        header: its name.
        first: number of requests that are answered before.
    """

    def __init__(self, header: str, first: int) -> None:
        self.header = header
        self._left = first

    def __iter__(self) -> Iterator[str]:
        self._left -= 1
        return iter([self.header] if self._left < 0 else [])

    def __contains__(self, name: object) -> bool:
        return name == self.header

    def __len__(self) -> int:
        return 1


class Story:
    """One job that meets a service which forgets a header, to its end.

    Args:
        emulator: OneLake.
        seed: draws everything.
    """

    def __init__(self, emulator: AdlsEmulator, seed: int) -> None:
        rng = self._rng = random.Random(f"ignored {seed}")
        self._model, self._emulator, self._seed = emulator.model, emulator, seed
        token = SimpleNamespace(token="token", expires_on=4e9)
        host = emulator.endpoint.partition("://")[2]
        self._storage: dict[str, Any] = {
            "credential": SimpleNamespace(get_token=lambda *_: token),
            "account_host": host,
            "use_ssl": False,
        }
        self._mode = rng.choice([Mode.APPEND, Mode.REPLACE_PARTITIONS])
        self._header = rng.choice(HEADERS)
        self._first = rng.choice([0, rng.randrange(_MOST)])

    async def run(self) -> list[str]:
        """Return what was found wrong."""
        for name, data in OLD.items():
            self._model.create(WORKSPACE, f"{TABLE}/{name}")
            self._model.append(WORKSPACE, f"{TABLE}/{name}", 0, data, flush=True)
        self._emulator.ignored = Forgotten(self._header, self._first)
        report, error = await self._commit()
        struck = self._emulator.weather.struck[f"ignored {self._header}"]
        for _ in range(struck):
            strike(f"ignored {self._header}")
        self._emulator.ignored = ()
        problems = []
        if struck and report is not None and not report.warnings:
            problems.append("a job ended well, though a header was ignored")
        if not struck and report is None:
            problems.append(f"nothing was ignored, and the job failed: {error!r}")
        if report is None:
            await self._end()
        return [
            f"seed {self._seed}, {self._header} from request {self._first} on: {problem}"
            for problem in problems + self._wrong(report)
        ]

    async def _commit(self) -> tuple[JobReport | None, AsyncCommitError | None]:
        try:
            async with api.open_job(
                URL, job_id=JOB, mode=self._mode, storage_options=self._storage
            ) as job:
                for number, (name, data) in enumerate(NEW.items()):
                    async with job.task(number) as task:
                        await task.put(name, data)
        except AsyncCommitError as error:
            return None, error
        return job.report, None

    async def _end(self) -> None:
        """Finish, undo or abort what the job has left, as its state allows."""
        for job in await api.job_statuses(URL, storage_options=self._storage):
            left = api.job(URL, job.job_id, storage_options=self._storage)
            decided = job.state is JobState.COMMITTED
            end = left.resume if decided or self._rng.random() < 0.5 else left.rollback
            await (end(force=True) if job.begun else left.abort(force=True))

    def _wrong(self, report: JobReport | None) -> list[str]:
        """Return what is wrong with the table."""
        kept = {} if self._mode is Mode.REPLACE_PARTITIONS else OLD
        whole, found = {**kept, **NEW}, self._visible()
        if found == whole or (report is None and found == OLD):
            return []
        return [f"the table has {sorted(found)}"]

    def _visible(self) -> dict[str, bytes]:
        start = f"{TABLE}/"
        return {
            name[len(start) :]: node.read()
            for name, node in self._model.list(WORKSPACE, recursive=True).entries
            if name.startswith(f"{start}day") and not node.is_dir
        }


async def violations(seed: int) -> list[str]:
    """Return what one seed finds."""
    async with AdlsEmulator(onelake={WORKSPACE: [ITEM]}) as emulator:
        return await Story(emulator, seed).run()
