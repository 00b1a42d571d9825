"""``asynccommit loadtest`` on every kind of store, killed, and on an account that costs money."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.cli.support import Command
from tests.support.s3_servers import KEY, REGION, SECRET, ask, moto_url, new_bucket

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url"]

FEW = ("--files", "40", "--max-requests", "4000", "--no-forecast")
PREFIX = "_asynccommit-loadtest-"


def _adls(emulator: EmulatorThread) -> tuple[str, ...]:
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/top"
    return url, "-s", f"connection_string={emulator.connection_string}"


def _listed(command: Command, place: tuple[str, ...]) -> list[str]:
    url, *options = place
    found = command.json("ls", "-r", url.rpartition("/")[0] + "/", *options)
    return [entry["name"] for entry in found["entries"]]


def test_a_disk_is_tested(command: Command, tmp_path: Path) -> None:
    """As JSON with every step; nothing is left, not even the directory that it made."""
    found = command.json("loadtest", tmp_path / "new", *FEW)

    assert found["code"] == 0
    assert list(found["steps"])[:2] == ["write", "commit"]
    assert found["files"] == 40
    assert found["requests"] <= 4000
    assert list(tmp_path.iterdir()) == []


def test_an_emulated_account_is_tested(
    command: Command, adls_emulator_thread: EmulatorThread
) -> None:
    """Over HTTP, without a question, as it is on this machine."""
    place = _adls(adls_emulator_thread)
    sent = adls_emulator_thread.do(lambda running: sum(running.weather.requests.values()))

    assert command("loadtest", *place, *FEW) == 0
    assert "rename/s" in command.out
    total = adls_emulator_thread.do(lambda running: sum(running.weather.requests.values()))
    assert total - sent <= 4000 + 1  # and one that asks what the account is
    assert _listed(command, place) == []


def test_an_emulated_bucket_is_tested(
    command: Command, gcs_emulator_thread: GcsEmulatorThread
) -> None:
    """Where directories are implied, files are deleted in batches."""
    emulator = gcs_emulator_thread
    emulator.do(lambda running: running.service.create_bucket("data"))
    place = ("gs://data/top", "-s", f"endpoint_url={emulator.endpoint}")

    found = command.json("loadtest", *place, *FEW)

    assert found["code"] == 0
    assert {"reads", "writes", "deletes"} == found["rates"].keys()
    assert _listed(command, place) == []


@pytest.mark.full
def test_a_bucket_without_renames_is_tested(command: Command, moto_url: str) -> None:
    """On S3 the job uploads, nothing is moved, and no upload stays open."""
    bucket = new_bucket(moto_url)
    options = {"endpoint_url": moto_url, "key": KEY, "secret": SECRET, "region": REGION}
    given = [word for name, value in options.items() for word in ("-s", f"{name}={value}")]

    found = command.json("loadtest", f"s3a://{bucket}/top", *given, *FEW)

    assert found["code"] == 0
    assert "move" not in found["steps"]
    assert found["rates"]["writes"]["method"] == "put"
    assert b"<Key>" not in ask(moto_url, "GET", f"/{bucket}?list-type=2")
    assert b"<UploadId>" not in ask(moto_url, "GET", f"/{bucket}?uploads")


def test_a_real_account_needs_consent(command: Command) -> None:
    """Without ``--yes`` nothing is sent, and the message says how much it would be."""
    url = "abfs://data@account.dfs.core.windows.net/top"
    found = command.json("loadtest", url, "-s", "account_key=a2V5", "--max-requests", "5000")

    assert (found["code"], found["error"]) == (3, "refused")
    assert "up to 5,000 requests" in found["message"]
    assert "add --yes" in found["message"]


def test_amounts_that_allow_nothing_are_usage(command: Command, tmp_path: Path) -> None:
    """The message names the least."""
    found = command.json("loadtest", tmp_path, "--max-requests", "10")

    assert found["code"] == 2
    assert "expected at least" in found["message"]


def _killed(place: tuple[str, ...], until: Callable[[], bool], how: int) -> int:
    words = ("loadtest", *place, "--files", "500", "--no-forecast", "--max-seconds", "600")
    with subprocess.Popen(
        [sys.executable, "-m", "asynccommit", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NO_PROXY": "*"},
    ) as running:
        while not until() and running.poll() is None:
            time.sleep(0.01)
        running.send_signal(how)
        return running.wait(60)


def _counter(emulator: EmulatorThread, op: str) -> Callable[[], int]:
    def count(running: Any) -> int:
        return int(running.weather.requests[op])

    return lambda: emulator.do(count)


@pytest.mark.parametrize(
    "op, number",
    [
        ("create", 20),
        pytest.param("rename", 60, marks=pytest.mark.full),
        pytest.param("rename", 700, marks=pytest.mark.full),
    ],
)
def test_a_killed_run_is_cleaned_up_by_the_next(
    command: Command, adls_emulator_thread: EmulatorThread, op: str, number: int
) -> None:
    """While it writes, commits or moves; the report names its directory."""
    place, sent = _adls(adls_emulator_thread), _counter(adls_emulator_thread, op)
    slow = Climate.from_json({"latency": 0.005})
    adls_emulator_thread.do(lambda running: setattr(running.weather, "climate", slow))

    assert _killed(place, lambda: sent() >= number, signal.SIGKILL) == -signal.SIGKILL
    left = [name for name in _listed(command, place) if PREFIX in name]
    assert left
    found = command.json("loadtest", *place, *FEW)

    assert found["code"] == 0
    assert [PREFIX in name for name in found["removed"]] == [True]
    assert _listed(command, place) == ["top"]  # whoever has made it is dead


@pytest.mark.full
def test_an_interrupted_run_cleans_up_itself(
    command: Command, adls_emulator_thread: EmulatorThread
) -> None:
    """SIGTERM ends it with 143, and nothing is left."""
    place, sent = _adls(adls_emulator_thread), _counter(adls_emulator_thread, "rename")

    assert _killed(place, lambda: sent() >= 60, signal.SIGTERM) == 143
    assert _listed(command, place) == []
