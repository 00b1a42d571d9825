"""Encryption zones and quotas of a real NameNode: refused before anything has changed.

The key is in a file, so that no key server is needed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from asynccommit import CommitError, Mode, open_job
from asynccommit.errors import RejectedError
from asynccommit.spark.hadoop_store.opening import facts_of
from asynccommit.spark.hadoop_store.store import HadoopStore
from asynccommit.stores import elsewhere
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from tests.support import mini_hdfs
from tests.support.mini_hdfs import MiniHdfs, start_mini_hdfs
from tests.support.spark import run_script

pytestmark = [pytest.mark.every(3, 2), pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(300)]

Zoned = HdfsStore | HadoopStore
INSERT = """
import json

root = (scratch / "root").read_text()
spark = configure(builder(scratch)).getOrCreate()
spark.sql(f"create table t (id long, p int) using parquet partitioned by (p) location '{root}/t'")
spark.sql(f"alter table t add partition (p=1) location '{root}/zone/p1'")
spark.sql(f"alter table t add partition (p=2) location '{root}/full'")
told = []
for number in (0, 1, 2):
    try:
        spark.sql(f"insert into t partition (p={number}) values (1), (2)")
        told.append("")
    except Exception as error:
        told.append(str(error))
(scratch / "told.json").write_text(json.dumps(told))
spark.stop()
"""


def children(zoned: MiniHdfs, *paths: str) -> list[str]:
    """Return the names that Hadoop's client lists in directories."""
    found = [each for path in paths for each in zoned.filesystem.listStatus(zoned.path(path))]
    return [str(each.getPath().getName()) for each in found]


@pytest.fixture(scope="module")
def zoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniHdfs]:
    """Run a cluster with an encryption zone ``/zone`` and a directory ``/full``."""
    if reason := mini_hdfs.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("zoned")
    conf = {"hadoop.security.key.provider.path": f"jceks://file{folder}/keys.jceks"}
    with start_mini_hdfs(folder / "hdfs", "-Xmx512m", conf=conf) as started:
        _make_key(started, conf)
        for name in ("zone", "zone2", "full", "jobs", "free"):
            started.mkdirs(f"/{name}")
        for name in ("zone", "zone2"):
            started.filesystem.createEncryptionZone(started.path(f"/{name}"), "key")
        started.mkdirs("/zone/d")
        # The directory counts as a name; the second number is the quota of space.
        started.filesystem.setQuota(started.path("/full"), 1, 2**63 - 1)
        yield started


def _make_key(started: MiniHdfs, conf: dict[str, str]) -> None:
    made = started.hadoop.configuration(conf)
    with started.hadoop.errors():  # the NameNode remembers which keys there are
        provider = started.cluster.getNameNode().getNamesystem().getProvider()
        options = started.hadoop.java("org.apache.hadoop.crypto.key.KeyProvider").options(made)
        provider.createKey("key", options)
        provider.flush()


@pytest.fixture(scope="module")
def through_jvm(zoned: MiniHdfs) -> Callable[[], HadoopStore]:
    """Open the cluster through Hadoop's client; return what makes a store of it."""
    files = zoned.hadoop.new("org.asynccommit.spark.Filesystems")
    with zoned.hadoop.errors():
        files.open(f"{zoned.url}/", zoned.hadoop.configuration())
        facts = facts_of(files, zoned.url)
    return lambda: HadoopStore(lambda: files.calls(zoned.url), facts)


@pytest.fixture(params=["native", "jvm"])
async def store(
    zoned: MiniHdfs, through_jvm: Callable[[], HadoopStore], request: pytest.FixtureRequest
) -> AsyncIterator[Zoned]:
    """Open each store of HDFS."""
    opened: Zoned
    if request.param == "native":
        opened = HdfsStore(parse_url(zoned.url), environ={})
    else:
        opened = through_jvm()
    yield opened
    await opened.aclose()


async def test_a_place_in_another_zone_is_refused(store: Zoned, zoned: MiniHdfs) -> None:
    """A probe names the place and its zone, and changes nothing."""
    before = await asyncio.to_thread(times, zoned)
    for path, place in (("/jobs", "/zone"), ("/zone/d", "/zone2"), ("/zone/d", "/free")):
        with pytest.raises(RejectedError, match="another encryption zone") as caught:
            await store.probe(path, place)
        assert caught.value.path == place
    assert await asyncio.to_thread(children, zoned, "/jobs", "/free", "/zone2") == []
    assert await asyncio.to_thread(times, zoned) == before


async def test_a_place_without_borders_passes(store: Zoned, zoned: MiniHdfs) -> None:
    """A probe of an ordinary directory changes nothing, also if the directory is missing."""
    before = await asyncio.to_thread(times, zoned)
    await store.probe("/jobs", "/free")
    await store.probe("/jobs", "/missing/below")
    await store.probe("/zone/d", "/zone")
    assert await asyncio.to_thread(children, zoned, "/jobs", "/free") == []
    assert await asyncio.to_thread(times, zoned) == before


def times(zoned: MiniHdfs) -> dict[str, int]:
    """Return the modification times of the directories at the top."""
    found = zoned.filesystem.listStatus(zoned.path("/"))
    return {str(each.getPath().getName()): int(each.getModificationTime()) for each in found}


_numbers = count()


@pytest.fixture
def table(
    zoned: MiniHdfs, through_jvm: Callable[[], HadoopStore], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return the path of a table whose partition ``p=0`` is a zone of its own."""
    path = f"/nested-{next(_numbers)}"
    for name in ("p=0", "p=1"):
        zoned.mkdirs(f"{path}/{name}")
    with zoned.hadoop.errors():
        zoned.filesystem.createEncryptionZone(zoned.path(f"{path}/p=0"), "key")
    monkeypatch.setitem(elsewhere._OPENERS, "jvm", lambda *_: through_jvm())
    return path


async def write(zoned: MiniHdfs, table: str, kind: str, mode: Mode, *partitions: str) -> None:
    """Write a file into each of some partitions."""
    url, options = f"{zoned.url}{table}", {"asynccommit.store": kind}
    async with (
        open_job(url, mode=mode, storage_options=options) as job,
        job.task(0) as task,
    ):
        for name in partitions:
            await task.put(f"{name}/part-{mode}", b"x")


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS])
@pytest.mark.parametrize("kind", ["native", "jvm"])
async def test_zone_below_the_table_is_refused_before_a_change(
    zoned: MiniHdfs, table: str, kind: str, mode: Mode
) -> None:
    """A partition may be a zone of its own; it takes no file, and is not replaced."""
    with pytest.raises(CommitError, match="another encryption zone") as caught:
        await write(zoned, table, kind, mode, "p=2", "p=1", "p=0")

    assert f"{table}/p=0" in str(caught.value)
    shown = await asyncio.to_thread(children, zoned, table, f"{table}/p=0", f"{table}/p=1")
    assert [name for name in shown if not name.startswith("_")] == ["p=0", "p=1"]
    with zoned.hadoop.errors():
        assert zoned.filesystem.getEZForPath(zoned.path(f"{table}/p=0")) is not None
    await write(zoned, table, kind, mode, "p=2", "p=1")
    assert children(zoned, f"{table}/p=1", f"{table}/p=2") == [f"part-{mode}"] * 2


def test_partition_in_a_zone_is_refused_before_a_change(zoned: MiniHdfs, tmp_path: Path) -> None:
    """Spark's insert into a partition in another zone fails, and nothing of it is visible."""
    zoned.mkdirs("/zone/p1")
    (tmp_path / "root").write_text(zoned.url)
    done = run_script(tmp_path, INSERT)
    assert done.returncode == 0, done.stderr[-2000:]

    first, second, third = json.loads((tmp_path / "told.json").read_text())

    assert first == ""
    assert "/full" in third
    assert "its quota is 1 names, 1 are used, and the job adds " in third
    assert children(zoned, "/full") == []
    assert "/zone/p1" in second
    assert "encryption zone" in second
    assert not zoned.exists("/t/p=1")
    assert not zoned.exists("/t/_temporary")
    assert children(zoned, "/zone/p1") == []
