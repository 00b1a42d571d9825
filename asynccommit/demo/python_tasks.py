"""The scenario without Spark: tasks in Python write, a driver is killed, its commit is resumed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from asynccommit.api import Job, JobRef
from asynccommit.demo.buckets import is_left
from asynccommit.demo.emulated import RunningEmulator
from asynccommit.demo.flights import Say
from asynccommit.demo.outcome import Findings
from asynccommit.errors import AsyncCommitError
from asynccommit.inspect.open_uploads import list_open
from asynccommit.inspect.text import check_list
from asynccommit.runtime.cells import facts_table
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.opening import open_store
from asynccommit.stores.tree import walk

_JOB = "demo-0001"
_TASKS, _FILES = 20, 50
_ROOT = "/table"
_KILLED_AT = _TASKS * _FILES // 4  # requests that make a file visible
_SLOW = ("-o", "asynccommit.rate=400")  # so that a driver can be killed in its commit
_LOOK = 0.02
_PATIENCE = 300.0  # Seconds; the machine may be busy.

_WRITTEN: Mapping[str, bytes] = {
    f"{_ROOT}/day={file % 7}/part-{task}-{file}.csv": f"AA,{task},{file}\n".encode()
    for task in range(_TASKS)
    for file in range(_FILES)
}


@dataclass(frozen=True, slots=True)
class ResumedOutcome(Findings):
    """The findings of a commit whose driver was killed.

    Attributes:
        files: files that the tasks have written.
        visible: files that readers saw when the driver was killed.
        committed: files of the table in the end.
        exact: whether each of them holds what its task wrote.
        changes: the requests that make files visible, in messages.
        lost: number of these whose response was lost.
        leftovers: what is left of the job, uploads included.
        seconds: time that the process took that finished the commit.
        requests: number of requests by operation: of the tasks, the killed driver, the resume.
        log: log file of the emulator.
    """

    files: int
    visible: int
    committed: int
    exact: bool
    changes: str
    lost: int
    leftovers: int
    seconds: float
    requests: Mapping[str, Mapping[str, int]]
    log: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """See ``Findings.checks``."""
        return {
            f"the driver was killed among its {self.changes}": 0 < self.visible < self.files,
            "another process finished the commit": self.committed == self.files,
            "each file holds what its task wrote": self.exact,
            "nothing of the job is left": self.leftovers == 0,
        }

    def table(self) -> RenderableType:
        """See ``Findings.table``."""
        facts = {
            "files of the tasks": self.files,
            "visible when the driver was killed": self.visible,
            "visible after resume": f"{self.committed:,}, in {self.seconds:.1f} s",
            f"{self.changes} whose response was lost": self.lost,
        }
        checks = Padding(check_list(self.checks), (0, 0, 1, 0))
        log = facts_table({"log": self.log})
        return Group(facts_table(facts), Padding(self._requests(), (1, 0)), checks, log)

    def _requests(self) -> Table:
        shown = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
        shown.add_column("requests")
        for who in self.requests:
            shown.add_column(who, justify="right")
        sides = self.requests.values()
        for op in sorted({op for side in sides for op in side}):
            shown.add_row(op, *(f"{side.get(op, 0):,}" for side in sides))
        shown.add_row("in all", *(f"{sum(side.values()):,}" for side in sides))
        return shown


@dataclass(frozen=True, slots=True)
class KilledAndResumed:
    """A job of Python tasks on an emulated store.

    Attributes:
        emulator: what counts requests and loses responses.
        url: URL of the table, whose path is ``/table``.
        storage: storage options.
        op: the request that makes a file visible, as the emulator counts it.
        changes: these requests in messages.
        names: the service's names of the requests that the emulator counts, if they differ.
    """

    emulator: RunningEmulator
    url: str
    storage: Mapping[str, str] = field(repr=False)
    op: str
    changes: str
    names: Mapping[str, str] = field(default_factory=dict)

    def go(self, log: str, say: Say) -> ResumedOutcome:
        """Write, kill the driver that commits, and resume. Raises ``AsyncCommitError``."""
        asyncio.run(self._write())
        stats = {"tasks": self._counted()}
        say(f"{_TASKS} tasks have written {len(_WRITTEN):,} files; a driver commits them")
        self._kill()
        stats["killed driver"] = self._counted()
        seen, _ = asyncio.run(self._look())
        say(f"it was killed, and readers see {len(seen):,} files; another process resumes")
        seconds = self._resume()
        stats["resume"] = self._counted()
        committed, leftovers = asyncio.run(self._look())
        return ResumedOutcome(
            files=len(_WRITTEN),
            visible=len(seen),
            committed=len(committed),
            exact=committed == _WRITTEN,
            changes=self.changes,
            lost=sum(struck for _, struck in stats.values()),
            leftovers=leftovers,
            seconds=seconds,
            requests={who: requests for who, (requests, _) in stats.items()},
            log=log,
        )

    async def _write(self) -> None:
        """Let the tasks write and commit."""
        async with JobRef(self.url, _JOB, storage_options=dict(self.storage)).open() as made:
            await made.setup_job()
            job = Job(made)

            async def run(number: int) -> None:
                async with job.task(number) as task:
                    for path, data in [*_WRITTEN.items()][number * _FILES :][:_FILES]:
                        await task.put(path.removeprefix(f"{_ROOT}/"), data)

            await asyncio.gather(*map(run, range(_TASKS)))

    def _counted(self) -> tuple[Mapping[str, int], int]:
        """Return the requests by name, and the lost responses of those that change a file."""
        stats = self.emulator.stats()
        named = {self.names.get(op, op): count for op, count in stats["requests"].items()}
        return named, stats["struck"].get(f"cut {self.op}", 0)

    def _kill(self) -> None:
        """Kill a process that commits, among its changes."""
        end = time.monotonic() + _PATIENCE
        with self._process("commit", "--trust-manifests", *_SLOW) as child:
            while time.monotonic() < end and child.poll() is None:
                if self.emulator.stats()["requests"].get(self.op, 0) >= _KILLED_AT:
                    return
                time.sleep(_LOOK)
        raise AsyncCommitError("the driver ended before it could be killed")

    def _resume(self) -> float:
        """Finish the commit in another process; return the seconds."""
        began = time.monotonic()
        with self._process("resume") as child:
            try:
                code = child.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                code = -1
        if code:
            raise AsyncCommitError("the commit could not be resumed")
        return time.monotonic() - began

    @contextmanager
    def _process(self, verb: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command on the job, of which requests are counted; kill it on leaving."""
        self.emulator.forget_stats()
        words = [word for name, value in self.storage.items() for word in ("-s", f"{name}={value}")]
        command = [sys.executable, "-m", "asynccommit", verb, self.url, "--job-id", _JOB, "--quiet"]
        with subprocess.Popen([*command, *words, *more]) as child:
            try:
                yield child
            finally:
                child.kill()

    async def _look(self) -> tuple[Mapping[str, bytes], int]:
        """Return the files that readers see, and the number of files and uploads of the job."""
        visible: dict[str, bytes] = {}
        async with open_store(self.url, storage_options=dict(self.storage)) as store:
            files = [info async for info in walk(store, _ROOT) if not info.is_dir]
            left = [info for info in files if is_left(info.path)]

            async def read(info: Info) -> None:
                visible[info.path] = await store.get(info.path, 1 << 10)

            found = (it for it in files if it.path.endswith(".csv") and not is_left(it.path))
            await for_each(found, read, workers=store.traits.workers)
            if store.traits.multipart is None:
                return visible, len(left)
            uploads = await list_open(cast("MultipartStore", store), _ROOT)
        return visible, len(left) + len(uploads)
