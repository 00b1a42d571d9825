"""Run the demo on an emulated directory bucket of S3: renames, a killed driver, lost responses.

Tasks in Python write the files. A process commits them and is killed among its renames; another
one finishes what it began.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from asynccommit.api import Job, JobRef
from asynccommit.demo.emulated import RunningEmulator, serving
from asynccommit.demo.flights import Say
from asynccommit.demo.outcome import Findings, StoreBehaviour
from asynccommit.errors import AsyncCommitError
from asynccommit.inspect.text import check_list
from asynccommit.runtime.cells import facts_table
from asynccommit.stores.opening import open_store
from asynccommit.stores.tree import walk

EXPRESS_WEATHER = StoreBehaviour(latency="5ms", limit=3500, lost="5%")
BUCKET = "flights--use1-az4--x-s3"
URL = f"s3://{BUCKET}/table"
_JOB = "demo-0001"
_TASKS, _FILES = 20, 50
_KILLED_AT = _TASKS * _FILES // 4  # renames
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class ExpressOutcome(Findings):
    """The findings of a commit whose driver was killed.

    Attributes:
        files: files that the tasks have written.
        renamed: renames that the emulator had received when the driver was killed.
        visible: files that readers saw then.
        committed: files of the table in the end.
        lost: responses that were lost.
        leftovers: what is left of the job.
        seconds: time that the process took that finished the commit.
        logs: directory of the log.
    """

    files: int
    renamed: int
    visible: int
    committed: int
    lost: int
    leftovers: int
    seconds: float
    logs: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """See ``Findings.checks``."""
        return {
            "the driver was killed among its renames": 0 < self.visible < self.files,
            "another process finished the commit": self.committed == self.files,
            "nothing of the job is left": self.leftovers == 0,
        }

    def table(self) -> RenderableType:
        """See ``Findings.table``."""
        rows = {
            "files of the tasks": f"{self.files:,}",
            "visible when the driver was killed": f"{self.visible:,}",
            "visible after resume": f"{self.committed:,}, in {self.seconds:.1f} s",
            "responses lost and settled": f"{self.lost:,}",
        }
        return Group(facts_table(rows), Text(), check_list(self.checks), Text(f"log: {self.logs}"))


def run_on_s3_express(
    keep: Path | None = None,
    *,
    weather: StoreBehaviour = EXPRESS_WEATHER,
    say: Say = print,
) -> ExpressOutcome:
    """Commit to an emulated directory bucket, kill the driver, and resume.

    Args:
        keep: directory for the log; ``demo-out`` by default.
        weather: behaviour of the emulated store; responses are lost of renames only.
        say: called with progress messages.

    Raises:
        AsyncCommitError: the emulator or a process failed.
    """
    directory = keep or Path("demo-out")
    directory.mkdir(parents=True, exist_ok=True)
    arguments = ["-b", BUCKET, "--latency", weather.latency, "--limit", str(weather.limit)]
    log = directory / "s3-express.log"
    with serving("s3-express", [*arguments, "--lost", weather.lost], log) as emulator:
        say(f"an emulator serves {emulator.endpoint}: {weather.latency} a response")
        storage = {"endpoint_url": emulator.endpoint, "key": "test", "secret": "test"}
        asyncio.run(_write(storage))
        say(f"{_TASKS} tasks have written {_TASKS * _FILES:,} files; a driver commits them")
        renamed = _killed(emulator, storage)
        visible, _ = asyncio.run(_look(storage))
        say(f"it was killed, and readers see {visible:,} files; another process resumes")
        began = time.monotonic()
        with _committing(storage, "resume") as child:
            if child.wait(_PATIENCE):
                raise AsyncCommitError("the commit could not be resumed")
        seconds = time.monotonic() - began
        committed, leftovers = asyncio.run(_look(storage))
        lost = sum(emulator.stats()["struck"].values())
    files = _TASKS * _FILES
    return ExpressOutcome(
        files, renamed, visible, committed, lost, leftovers, seconds, str(directory)
    )


async def _write(storage: Mapping[str, Any]) -> None:
    """Let the tasks write and commit."""
    async with JobRef(URL, _JOB, storage_options=dict(storage)).open() as made:
        await made.setup_job()
        job = Job(made)

        async def run(number: int) -> None:
            async with job.task(number) as task:
                for file in range(_FILES):
                    await task.put(f"day={file % 7}/part-{number}-{file}.csv", b"AA,JFK\n")

        await asyncio.gather(*map(run, range(_TASKS)))


def _killed(emulator: RunningEmulator, storage: Mapping[str, Any]) -> int:
    """Kill a process that commits, among its renames; return how many it has sent."""
    end = time.monotonic() + _PATIENCE
    with _committing(storage, "commit", "--trust-manifests") as child:
        while time.monotonic() < end and child.poll() is None:
            sent: int = emulator.stats()["requests"].get("rename", 0)
            if sent >= _KILLED_AT:
                child.kill()
                return sent
            time.sleep(0.02)
    raise AsyncCommitError("the driver ended before it could be killed")


@contextmanager
def _committing(
    storage: Mapping[str, Any], verb: str, *more: str
) -> Iterator[subprocess.Popen[bytes]]:
    words = [word for name, value in storage.items() for word in ("-s", f"{name}={value}")]
    # So slow that it can be killed among its renames.
    rate = () if verb == "resume" else ("-o", "asynccommit.rate=400")
    command = [sys.executable, "-m", "asynccommit", verb, URL, "--job-id", _JOB, "--quiet"]
    with subprocess.Popen([*command, *words, *more, *rate]) as child:
        try:
            yield child
        finally:
            child.kill()


async def _look(storage: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of files that readers see, and of those of the job."""
    async with open_store(URL, storage_options=dict(storage)) as store:
        paths = [info.path async for info in walk(store, "/table") if not info.is_dir]
    of_job = sum("/_temporary/" in path for path in paths)
    visible = sum(path.endswith(".csv") and "/_temporary/" not in path for path in paths)
    return visible, of_job
