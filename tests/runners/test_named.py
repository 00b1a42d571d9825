"""Runners by their names: which one an option means, and what is said where there is no cluster."""

from __future__ import annotations

import os

import pytest

from asynccommit.errors import UnsupportedError
from asynccommit.runners import DaskWorkers, Processes, RayWorkers, SparkWorkers
from asynccommit.runners.cluster import Cluster, in_a_line
from asynccommit.runners.named import runner_named


@pytest.mark.parametrize(
    "name,kind,workers",
    [
        ("processes:3", Processes, 3),
        ("dask", DaskWorkers, 1),
        ("dask:8", DaskWorkers, 8),
        ("ray:2", RayWorkers, 2),
        ("spark:16", SparkWorkers, 16),
    ],
)
def test_a_name_and_a_number(name: str, kind: type, workers: int) -> None:
    """A cluster without a number is asked when it is used."""
    runner = runner_named(name)

    assert runner is not None
    assert type(runner) is kind
    assert runner.workers == workers


def test_none_is_no_runner() -> None:
    """The owner moves the files itself."""
    assert runner_named("none") is None


@pytest.mark.parametrize("cores,workers", [(2, 0), (4, 2), (32, 4)])
def test_auto_is_processes_for_many_files(
    cores: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the cores may be used, and nothing is started for few files."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    runner = runner_named("auto")

    assert (runner.workers if runner else 0) == workers
    assert runner is None or (runner.name == "processes" and runner.least > 0)


@pytest.mark.full
@pytest.mark.parametrize(
    "package,kind,why",
    [
        ("distributed", DaskWorkers, "no Client of Dask is open in this program"),
        ("ray", RayWorkers, "this program is not connected to a Ray: call ray.init first"),
    ],
)
async def test_a_cluster_that_is_not_there(package: str, kind: type[Cluster], why: str) -> None:
    """The reason says what to do."""
    pytest.importorskip(package)
    with pytest.raises(UnsupportedError, match=why):
        await kind().connect()


@pytest.mark.parametrize(
    "error,line",
    [
        (KeyError("x"), "KeyError: 'x'"),
        (
            RuntimeError(
                "the job failed\n  File x\nModuleNotFoundError: No module named 'a'\n  at"
            ),
            "ModuleNotFoundError: No module named 'a'",
        ),
        (OSError("https://host/?sig=abc"), "OSError: https://host/?sig=..."),
    ],
)
def test_an_error_of_a_cluster_is_a_line(error: Exception, line: str) -> None:
    """Its last cause is what the user needs, and secrets are left out."""
    told = in_a_line(error)

    assert told == line or ("sig" in line and "abc" not in told)
