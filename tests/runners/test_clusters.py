"""Commits whose files the workers of a Dask cluster or of a Ray rename."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from asynccommit.commit.slices import hand_out
from asynccommit.runners import DaskWorkers, RayWorkers
from tests.support.engines import running_ray
from tests.support.struck_commits import StruckCommit, struck_commit

psutil = pytest.importorskip("psutil", reason="psutil comes with Dask")

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.timeout(300),
    pytest.mark.full,
    pytest.mark.every(4),
]


@pytest.fixture(params=["dask", "ray"], scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Yield the name of a cluster of two processes, and a function that lists them."""
    with {"dask": _dask, "ray": _ray}[request.param]() as workers:
        yield request.param, workers


@contextmanager
def _dask() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    arguments = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **arguments) as made,
        distributed.Client(made) as client,
    ):
        yield lambda: [*client.run(os.getpid).values()]


@contextmanager
def _ray() -> Iterator[Any]:
    pytest.importorskip("ray", reason="Ray is not installed")
    with running_ray():
        yield lambda: [
            each.pid
            for each in psutil.process_iter(["cmdline"])
            if (each.info["cmdline"] or [""])[0].startswith("ray::do")
        ]


@pytest.fixture
def commit() -> Iterator[StruckCommit]:
    """Yield a commit on an emulator."""
    with struck_commit() as made:
        yield made


def test_workers_rename_the_files(cluster: Any, commit: StruckCommit) -> None:
    """Nobody warns, and the cluster is the one that is current."""
    report = commit.committed(runner=cluster[0])

    assert commit.problems(report) == []
    assert list(report.warnings) == []


def test_a_worker_that_is_killed_is_replaced(cluster: Any, commit: StruckCommit) -> None:
    """Its slice is done again, by the cluster or as the driver hands it out again."""
    report = commit.committed(cluster[1], runner=f"{cluster[0]}:2")

    assert len(commit.killed) == 1
    assert commit.problems(report) == []
    assert list(report.warnings) == []


def test_a_cluster_of_another_version_is_told(
    cluster: Any, commit: StruckCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver goes on alone, and says why in a line."""
    monkeypatch.setattr(hand_out, "__version__", "0.0.1")
    runner = DaskWorkers(workers=1) if cluster[0] == "dask" else RayWorkers(workers=1)
    report = commit.committed(runner=runner)

    assert commit.problems(report) == []
    (warning,) = report.warnings
    assert warning.startswith(f"asynccommit.workers={cluster[0]}: a worker has asynccommit ")
    assert warning.endswith(", not 0.0.1; this process moves all files")
