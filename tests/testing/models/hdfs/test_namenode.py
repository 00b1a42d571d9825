"""The model of the NameNode keeps the rules that the tests of a real one keep."""

from __future__ import annotations

import pytest

from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.hdfs.client import SimHdfsClient
from asynccommit.testing.models.hdfs.namenode import HdfsNameNode, HdfsWriteOptions
from tests.support.contract import RULES, Rule, name_of

ALICE = {"HADOOP_USER_NAME": "alice"}


def namenode() -> HdfsNameNode:
    """Return an empty one, at a fixed time."""
    return HdfsNameNode(lambda: 1_795_000_000.0)


@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule) -> None:
    """The store that users have keeps the rule on the model."""
    store = HdfsStore(parse_url("hdfs://sim"), environ=ALICE, client=SimHdfsClient(namenode(), {}))
    await store.mkdir("/root")
    await rule(store, "/root")


def test_number_and_time_survive_a_rename() -> None:
    """A file keeps its number, its time and its content; a new one of its name has others."""
    model = namenode()
    model.create("/a", HdfsWriteOptions()).close()
    before, known = model.get_file_info("/a"), model.root.children
    assert known is not None
    number = known["a"].number
    model.rename("/a", "/b", False)
    model.create("/a", HdfsWriteOptions()).close()

    assert model.get_file_info("/b") == before._replace(path="/b")
    assert known["b"].number == number != known["a"].number
    assert model.get_file_info("/a").modification_time > before.modification_time


def test_zones_are_left_by_no_rename() -> None:
    """Zones are compared before the destination is looked for; a zone itself can be renamed."""
    model = namenode()
    for path in ("/jobs/file", "/zone", "/other"):
        model.mkdirs(path, 0o755, True)
    model.create_zone("/zone")
    model.mkdirs("/zone/deep", 0o755, True)

    with pytest.raises(RuntimeError, match="can't be moved into an encryption zone"):
        model.rename("/jobs/file", "/zone/deep/missing/file", False)
    with pytest.raises(RuntimeError, match="can't be moved from an encryption zone"):
        model.rename("/zone/deep", "/other/deep", False)
    with pytest.raises(FileNotFoundError, match="Parent directory"):
        model.rename("/jobs/file", "/other/missing/file", False)
    with pytest.raises(RuntimeError, match="non-empty directory"):
        model.create_zone("/jobs")
    model.rename("/zone", "/other/zone", False)
    assert model.get_file_info("/other/zone/deep").isdir


def test_quota_of_names() -> None:
    """Whatever makes names below a directory is refused; a rename inside of it makes none."""
    model = namenode()
    model.mkdirs("/full/a", 0o755, True)
    model.mkdirs("/free/b/c", 0o755, True)
    model.set_quota("/full", 3)
    model.create("/full/a/file", HdfsWriteOptions()).close()

    assert model.get_content_summary("/full").quota == 3
    with pytest.raises(RuntimeError, match=r"NSQuotaExceeded.*/full is exceeded.*count=4"):
        model.mkdirs("/full/x", 0o755, True)
    with pytest.raises(RuntimeError, match="NSQuotaExceeded"):
        model.create("/full/x", HdfsWriteOptions())
    model.create("/full/a/file", HdfsWriteOptions(overwrite=True)).close()
    with pytest.raises(RuntimeError, match="count=5"):
        model.rename("/free/b", "/full/b", False)
    model.rename("/full/a/file", "/full/file", False)
    model.set_quota("/full", None)
    model.rename("/free/b", "/full/b", False)
    assert model.get_file_info("/full/b/c").isdir
