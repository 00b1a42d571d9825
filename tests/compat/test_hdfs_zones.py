"""Encryption zones and quotas of a real NameNode: refused before anything has changed.

The key is in a file, so that no key server is needed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from asynccommit.errors import NotFoundError, RejectedError
from asynccommit.spark.hadoop_store.opening import facts_of
from asynccommit.spark.hadoop_store.store import HadoopStore
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from tests.support import mini_hdfs
from tests.support.mini_hdfs import MiniHdfs, start_mini_hdfs
from tests.support.spark import run_script

pytestmark = [pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(300)]

Zoned = HdfsStore | HadoopStore
INSERT = """
import json

root = (scratch / "root").read_text()
spark = configure(builder(scratch)).getOrCreate()
spark.sql(f"create table t (id long, p int) using parquet partitioned by (p) location '{root}/t'")
spark.sql(f"alter table t add partition (p=1) location '{root}/zone/p1'")
told = []
for number in (0, 1):
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
    """A probe names the place and its zone, and leaves nothing behind."""
    with pytest.raises(RejectedError, match="another encryption zone") as caught:
        await store.probe("/jobs", "/zone")
    assert caught.value.path == "/zone"
    # Without a key server the client in Python writes nothing to a zone, and names what does.
    told = "another encryption zone" if isinstance(store, HadoopStore) else "asynccommit.store=jvm"
    with pytest.raises(RejectedError, match=told):
        await store.probe("/zone", "/zone2")
    assert await asyncio.to_thread(children, zoned, "/jobs", "/zone", "/zone2") == []


async def test_a_quota_that_is_used_up_is_refused(store: Zoned) -> None:
    """A probe tells the quota and the command that raises it."""
    with pytest.raises(RejectedError, match=r"quota of names is used up.*-setQuota") as caught:
        await store.probe("/jobs", "/full")
    assert caught.value.path == "/full"


async def test_a_place_without_borders_passes(store: Zoned, zoned: MiniHdfs) -> None:
    """A probe of an ordinary directory changes nothing; one that is missing is told."""
    await store.probe("/jobs", "/free")
    with pytest.raises(NotFoundError):
        await store.probe("/jobs", "/missing/below")
    assert await asyncio.to_thread(children, zoned, "/jobs", "/free") == []


def test_partition_in_a_zone_is_refused_before_a_change(zoned: MiniHdfs, tmp_path: Path) -> None:
    """Spark's insert into a partition in another zone fails, and nothing of it is visible."""
    zoned.mkdirs("/zone/p1")
    (tmp_path / "root").write_text(zoned.url)
    done = run_script(tmp_path, INSERT)
    assert done.returncode == 0, done.stderr[-2000:]

    first, second = json.loads((tmp_path / "told.json").read_text())

    assert first == ""
    assert "/zone/p1" in second
    assert "encryption zone" in second
    assert not zoned.exists("/t/p=1")
    assert not zoned.exists("/t/_temporary")
    assert children(zoned, "/zone/p1") == []
