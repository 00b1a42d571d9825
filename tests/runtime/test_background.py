"""A commit returns when readers see the job, and its clean-up goes on in the background."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from asynccommit import sync
from asynccommit.api import JobRef
from asynccommit.results import JobReport
from asynccommit.runtime.background import MAX_RUNNING, is_busy, wait_for_all
from asynccommit.runtime.loop_thread import Early, Engine, submit
from asynccommit.testing.emulators.adls.emulator import (
    AdlsEmulator,
    EmulatorThread,
    running_emulator,
)
from asynccommit.testing.models.fault_rules import Fault
from asynccommit.testing.pytest_plugin import adls_emulator_thread
from tests.support.held import Held, HeldAccount, held_account

__all__ = ["adls_emulator_thread"]

PROGRAM = """
import json, sys
from asynccommit import sync

with sync.open_job(sys.argv[1], job_id="held", storage_options=json.loads(sys.argv[2])) as job:
    with job.task(0) as task:
        task.put("part", b"x")
print("committed", flush=True)
"""


@pytest.fixture
def account(adls_emulator_thread: EmulatorThread) -> Iterator[HeldAccount]:
    """Return an account that refuses the clean-up of the job ``held``."""
    with held_account(adls_emulator_thread) as account:
        account.hold("held")
        yield account
        account.release()
        wait_for_all(60)


def commit(account: HeldAccount, job_id: str = "held", **options: object) -> sync.BlockingJob:
    """Run a job of one file to its visible end."""
    conf = {f"asynccommit.{name}": str(value) for name, value in options.items()}
    with (
        sync.open_job(
            account.url, job_id=job_id, storage_options=account.options, options=conf
        ) as job,
        job.task(0) as task,
    ):
        task.put(f"part-{job_id}", b"x")
    return job


def test_a_job_returns_before_its_clean_up(account: HeldAccount) -> None:
    """The block is left when ``_SUCCESS`` is visible, with a report; the clean-up follows."""
    job = commit(account)

    assert account.names() == {"_SUCCESS", "_temporary", "part-held"}
    assert job.report.files == 1
    with pytest.raises(TimeoutError, match="clean-up of a commit still runs"):
        sync.wait_for_cleanup(0)
    account.release()
    sync.wait_for_cleanup()
    assert account.names() == {"_SUCCESS", "part-held"}


def test_a_commit_of_a_job_returns_before_its_clean_up(account: HeldAccount) -> None:
    """So does ``commit_job``, and it calls the caller's ``on_visible``."""
    told: list[JobReport] = []

    async def prepare() -> None:
        opened = JobRef(account.url, "held", storage_options=account.options).open()
        async with opened as committer:
            await committer.setup_job()

    submit(prepare())
    with sync.job(account.url, "held", storage_options=account.options).task(0) as task:
        task.put("part", b"x")
    assert task.commit is not None
    report = sync.job(account.url, "held", storage_options=account.options).commit(
        [task.commit], on_visible=told.append
    )

    assert report.files == 1
    assert report.success is not None
    assert [early.dest for early in told] == [report.dest]
    assert "_temporary" in account.names()


def test_the_next_call_waits_for_the_clean_up(account: HeldAccount) -> None:
    """A call of this process for the same destination sees no job that is being cleaned up."""
    commit(account)
    found: list[int] = []
    later = threading.Thread(
        target=lambda: found.append(
            len(sync.job_statuses(account.url, storage_options=account.options))
        )
    )
    later.start()
    later.join(0.2)

    assert later.is_alive()
    account.release()
    later.join()
    assert found == [0]


def test_another_process_need_not_wait(account: HeldAccount) -> None:
    """A job of another process runs beside the clean-up, which leaves it alone."""
    commit(account)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace('"held"', '"other"'), account.url, options(account)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "committed\n", "")
    account.release()
    sync.wait_for_cleanup()
    assert account.names() == {"_SUCCESS", "part-held", "part"}


def test_the_end_of_a_program_waits_for_the_clean_up(account: HeldAccount) -> None:
    """A program whose job is committed ends when nothing is left to clean up."""
    with committed_by_program(account) as program:
        assert "_temporary" in account.names()
        account.release()
        _, errors = program.communicate()

    assert (program.returncode, errors) == (0, "")
    assert account.names() == {"_SUCCESS", "part"}


def test_the_end_of_a_program_does_not_wait_for_a_store_that_is_gone(account: HeldAccount) -> None:
    """A program ends, and says what is left, if nothing can be cleaned up any more."""
    with committed_by_program(account) as program:
        account.emulator.stop()
        try:
            _, errors = program.communicate(timeout=60)
        finally:
            program.kill()

    assert program.returncode == 0
    assert "cannot connect" in errors
    assert f"Finish it: asynccommit resume {account.url} --job-id held" in errors


def test_an_emulator_stops_after_the_clean_ups_of_its_jobs() -> None:
    """A job's clean-up ends in the emulator of the test that ran it."""
    with running_emulator() as emulator:
        emulator.do(lambda running: running.model.create_filesystem("data"))
        emulator.do(lambda running: running.weather.add(Fault("slow", "delete")))
        commit(HeldAccount(emulator, Held(random.Random(0), time.monotonic)))
        assert is_busy()
        stopped = emulator.do(lambda running: running)

    assert not is_busy()
    assert [path for path, _ in stopped.model.list("data", "out").entries] == [
        "out/_SUCCESS",
        "out/part-held",
    ]


async def test_an_emulator_on_a_loop_stops_after_the_clean_ups_of_its_jobs() -> None:
    """So does an emulator of an asynchronous test."""
    async with AdlsEmulator() as emulator:
        emulator.model.create_filesystem("data")
        emulator.weather.add(Fault("slow", "delete"))
        options = {"connection_string": emulator.connection_string}
        url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"

        def run() -> None:
            with sync.open_job(url, storage_options=options) as job, job.task(0) as task:
                task.put("part", b"x")

        await asyncio.to_thread(run)
        assert is_busy()

    assert not is_busy()
    assert "out/_temporary" not in dict(emulator.model.list("data", "out").entries)


def test_a_clean_up_that_fails_is_logged(
    account: HeldAccount, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller has its report by then, so the log is where the warning goes."""
    account.weather.code = "AuthorizationPermissionMismatch"
    with caplog.at_level(logging.WARNING, "asynccommit"):
        commit(account)
        sync.wait_for_cleanup()

    assert any("job held" in record.getMessage() for record in caplog.records)
    assert "_temporary" in account.names()


def test_an_option_makes_the_commit_wait(account: HeldAccount) -> None:
    """With ``asynccommit.cleanup=wait`` nothing is left when the block is left."""
    account.release()
    commit(account, cleanup="wait")

    assert account.names() == {"_SUCCESS", "part-held"}


def test_only_so_many_go_on_at_once() -> None:
    """A call beyond the limit ends before its caller has the result."""
    engine, pool, go = Engine(), ThreadPoolExecutor(MAX_RUNNING + 1), threading.Event()

    async def work(early: Early[int]) -> int:
        early.give(1, "place")
        await asyncio.get_running_loop().run_in_executor(pool, go.wait)
        return 2

    try:
        for _ in range(MAX_RUNNING):
            early: Early[int] = Early()
            assert engine.submit(work(early), early) == 1
        threading.Timer(0.1, go.set).start()
        last: Early[int] = Early()
        assert engine.submit(work(last), last) == 2
    finally:
        go.set()
        wait_for_all(60)
        engine.close()
        pool.shutdown()


@contextmanager
def committed_by_program(account: HeldAccount) -> Iterator[subprocess.Popen[str]]:
    """Start a program, and yield it once it has committed its job."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, account.url, options(account)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "committed\n"
        yield program


def options(account: HeldAccount) -> str:
    """Return the storage options as a program's argument."""
    return json.dumps(account.options)
