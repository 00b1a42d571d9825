"""The model of the NameNode keeps the rules that the tests of a real one keep."""

from __future__ import annotations

import pytest

from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.hdfs.client import SimHdfsClient
from asynccommit.testing.models.hdfs.namenode import HdfsNameNode, HdfsWriteOptions
from tests.support.contract import RULES, Rule, name_of


def namenode() -> HdfsNameNode:
    """Return an empty one, at a fixed time."""
    return HdfsNameNode(lambda: 1_795_000_000.0)


@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule) -> None:
    """The store that users have keeps the rule on the model."""
    store = HdfsStore(parse_url("hdfs://sim"), environ={}, client=SimHdfsClient(namenode(), {}))
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
