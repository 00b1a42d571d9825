"""One Spark session for all tests of a kind, in the one JVM of this process."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asynccommit.spark import configure
from tests.support.spark import ENVIRONMENT, builder, cluster

if importlib.util.find_spec("pyspark") is None:
    collect_ignore_glob = ["test_[!bu]*.py"]  # all but those of bridge and undo need it

HERE = Path(__file__).parent
# PySpark and Py4J leave sockets to the garbage collector.
THIRD_PARTY = (
    "ignore:distutils Version classes are deprecated:DeprecationWarning",
    "ignore:is_datetime64tz_dtype is deprecated:DeprecationWarning",
    "ignore:unclosed <socket:ResourceWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test of this folder its filters, more time, and its marker."""
    for item in items:
        if HERE not in item.path.parents:
            continue
        for text in THIRD_PARTY:
            item.add_marker(pytest.mark.filterwarnings(text))
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(180))
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def _environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for key, value in ENVIRONMENT.items():
            patch.setenv(key, value)
        yield


_ON_CLUSTER = [pytest.mark.cluster, pytest.mark.full, pytest.mark.every(3)]


@pytest.fixture(
    scope="session",
    params=["local", pytest.param("cluster", marks=_ON_CLUSTER)],
)
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _environment: None
) -> Iterator[Any]:
    """Yield a configured session: two local threads, then a cluster of two workers."""
    scratch = tmp_path_factory.mktemp("spark")
    if request.param == "local":
        session = configure(builder(scratch)).getOrCreate()
        yield session
        session.stop()
        return
    with cluster(scratch) as master:
        prepared = configure(builder(scratch, master))
        for key, value in CLUSTER.items():
            prepared.config(key, value)
        session = prepared.getOrCreate()
        yield session
        session.stop()


CLUSTER = {
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": "4",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "2",
    "spark.speculation.minTaskRuntime": "2s",
    "spark.speculation.quantile": "0.4",
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return where a test writes, in a directory with a space and a percent sign."""
    os.makedirs(tmp_path / "ta ble%20")
    return tmp_path / "ta ble%20" / "t"


@pytest.fixture
def frame(spark: Any) -> Any:
    """Return twenty rows in two tasks, three values of ``p`` in each."""
    return spark.range(20).selectExpr("id", "id % 3 as p", "cast(id as string) as s").repartition(2)
