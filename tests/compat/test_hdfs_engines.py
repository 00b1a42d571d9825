"""Tables of every engine on a real NameNode."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import count

import pyarrow as pa
import pytest

from asynccommit.errors import PreflightError
from asynccommit.parallel import partition_directory
from tests.support.engine_places import tables_at, values_at
from tests.support.engine_writers import WRITERS, by_ray
from tests.support.engines import VALUES, running_ray
from tests.support.mini_hdfs import MiniHdfs

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.full,
    pytest.mark.timeout(180),
    # The writer of Dask calls pandas in a way that its newest version deprecates.
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
    # What Ray itself does, in its newest version with the newest Python packages.
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KEYS = [VALUES[number % len(VALUES)] for number in range(12)]
TABLE = pa.table({"k": pa.array(KEYS, pa.string()), "v": range(12)})
FOLDERS = {partition_directory({"k": value}) for value in VALUES}
_numbers = count()


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what pools leave here, and not on the event loop, which may not block."""
    yield
    gc.collect()


@pytest.fixture
def url(hdfs: MiniHdfs) -> str:
    """Return the URL of a table of this test's own, which does not exist."""
    return f"{hdfs.url}/engines-{next(_numbers)}/out"


@pytest.mark.parametrize("engine", sorted(WRITERS))
def test_hdfs_takes_a_table(url: str, engine: str) -> None:
    """Each engine writes through the task's filesystem, and each row is there once."""
    report = WRITERS[engine](TABLE, url, by=["k"])

    found = tables_at(url)
    assert {name.rpartition("/")[0] for name in found} == FOLDERS
    assert report.files == len(found)
    assert values_at(url) == [*range(12)]


@pytest.mark.parametrize("engine", ["arrow", "dask"])
def test_modes_of_a_second_write(url: str, engine: str) -> None:
    """Appended files have other names; the other modes replace, or refuse."""
    write = WRITERS[engine]
    for _ in range(2):
        write(TABLE, url, by=["k"])
    assert values_at(url) == sorted([*range(12)] * 2)

    plain = pa.table({"k": ["plain"], "v": [99]})
    with pytest.raises(PreflightError):
        write(plain, url, by=["k"], mode="fail")
    write(plain, url, by=["k"], mode="replace_partitions")
    left = [v for v in range(12) if KEYS[v] != "plain"]
    assert values_at(url) == sorted([*left, *left, 99])
    write(plain, url, mode="overwrite")
    assert values_at(url) == [99]


@pytest.mark.every(3, 0)
def test_workers_of_ray_write_to_hdfs(url: str) -> None:
    """Each write task opens the store in its worker; the driver commits."""
    pytest.importorskip("ray.data", reason="ray[data] is not installed", exc_type=ImportError)
    with running_ray():
        report = by_ray(TABLE, url, by=["k"])

    assert {name.rpartition("/")[0] for name in tables_at(url)} == FOLDERS
    assert len(report.tasks) == 2
    assert values_at(url) == [*range(12)]
