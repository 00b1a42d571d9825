"""A process sleeps in mid-commit until another run has its job's id; then it wakes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asynccommit.api import Job, JobRef
from tests.crash_real.places import (
    JOB,
    LocalPlace,
    new_files,
    prepare,
    table_before,
    tree_of,
    visible,
)
from tests.crash_real.processes import command, environment, run, wait_until
from tests.support.selection import amount

pytestmark = [pytest.mark.more, pytest.mark.timeout(240)]

LEASE = "asynccommit.lease=2"
TASKS, FILES = 10, 600
ROUNDS = amount("ASYNCCOMMIT_REAL_WAKES", quick=1, full=2)
KINDS = ("manifest", "file_v1")


def again(written: Mapping[int, Mapping[str, bytes]]) -> dict[int, dict[str, bytes]]:
    """Return the same names with another content."""
    return {
        task: {name: b"of the next run: " + data for name, data in files.items()}
        for task, files in written.items()
    }


class NextRun:
    """The next run of a job: its tasks write what the last one's wrote, and are not committed."""

    def __init__(self, place: LocalPlace, kind: str) -> None:
        self.place = place
        self.written = again(new_files(TASKS, FILES))
        self._kind = kind
        self._attempts: list[tuple[str, str]] = []

    async def write(self, committer: Any) -> None:
        """Set the job up and write; the tasks stay open."""
        await committer.setup_job()
        for task, files in self.written.items():
            task_id, attempt_id = committer.layout.ids(task)
            self._attempts.append((task_id, attempt_id))
            directory = Path(await committer.setup_task(attempt_id))
            for name, data in files.items():
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                (directory / name).write_bytes(data)

    async def commit_tasks(self, committer: Any) -> None:
        """Commit the tasks; where that puts them in the last run's place, the job is not yet."""
        for task_id, attempt_id in self._attempts:
            await committer.commit_task(task_id, attempt_id)

    def do(self, *steps: str) -> None:
        """Take some steps of the run."""
        asyncio.run(self._do(steps))

    async def _do(self, steps: tuple[str, ...]) -> None:
        async with JobRef(self.place.url, JOB, committer=self._kind).open() as committer:
            for step in steps:
                await getattr(self, step)(committer)

    async def commit(self, committer: Any) -> None:
        """Commit the job."""
        await Job(committer).committer.commit_job()


@contextmanager
def asleep(place: LocalPlace, kind: str, some: int) -> Iterator[subprocess.Popen[str]]:
    """Start a commit that falls asleep once so many of its files are visible."""
    named = ("--committer", kind) if kind == "file_v1" else ()
    words = command(place, "commit", "--trust-manifests", *named, "-o", LEASE)
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    ) as child:
        try:
            wait_until(lambda: _seen(place) >= some or child.poll() is not None)
            child.send_signal(signal.SIGSTOP)
            assert child.poll() is None, child.communicate()
            yield child
        finally:
            child.kill()


def _seen(place: LocalPlace) -> int:
    found = Path(place.url)
    return sum(
        sum(entry.name.startswith("part-") for entry in os.scandir(folder))
        for folder in found.glob("p=*")
    )


def undo(place: LocalPlace) -> None:
    """Roll back as soon as the lease is over."""
    code, said = run(place, "abort", "--rollback")
    while code == 3:
        code, said = run(place, "abort", "--rollback")
    assert code == 0, said


@pytest.mark.every(2)
@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_wakes_in_the_next_run_of_its_id(tmp_path: Path, kind: str) -> None:
    """What the next run has written and not committed stays unseen, and is whole when it is."""
    for number in range(ROUNDS):
        place = LocalPlace(tmp_path / f"{number}")
        prepare(place, TASKS, FILES, committer=kind)
        with asleep(place, kind, 200 + 400 * number) as child:
            undo(place)
            assert visible(place.tree()) == table_before()
            following = NextRun(place, kind)
            following.do("write", *(["commit_tasks"] if kind == "file_v1" else []))
            child.send_signal(signal.SIGCONT)
            said, _ = child.communicate(timeout=120)
            assert child.returncode == 1, said
            assert "another process may continue the commit" in " ".join(said.split()), said

        tree = visible(place.tree())
        assert {path for path in tree if "part-" in path} == set()
        assert tree == table_before()
        following.do(*(["commit_tasks"] if kind != "file_v1" else []), "commit")
        written = {p: d for files in following.written.values() for p, d in files.items()}
        after = place.tree()
        after.pop("_SUCCESS")
        assert after == {
            **{k: v for k, v in table_before().items() if k != "_SUCCESS"},
            **tree_of(written),
        }
