"""The contract of the stores, kept by both stores of HDFS on a real NameNode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import count

import pytest

from asynccommit.spark.hadoop_store.opening import facts_of
from asynccommit.spark.hadoop_store.store import HadoopStore
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from tests.support.contract import RULES, Rule, name_of
from tests.support.mini_hdfs import MiniHdfs

pytestmark = [pytest.mark.jvm, pytest.mark.full]

_numbers = count()


@pytest.fixture
async def store(hdfs: MiniHdfs) -> AsyncIterator[HdfsStore]:
    """Open the store of the running NameNode."""
    opened = HdfsStore(parse_url(hdfs.url), environ={})
    yield opened
    await opened.aclose()


@pytest.fixture(scope="session")
def opened(hdfs: MiniHdfs) -> Callable[[], HadoopStore]:
    """Open the same through Hadoop's client; return what makes a store of it."""
    files = hdfs.hadoop.new("org.asynccommit.spark.Filesystems")
    with hdfs.hadoop.errors():
        files.open(f"{hdfs.url}/", hdfs.hadoop.configuration())
        facts = facts_of(files, hdfs.url)
    return lambda: HadoopStore(lambda: files.calls(hdfs.url), facts)


@pytest.fixture
async def through_jvm(opened: Callable[[], HadoopStore]) -> AsyncIterator[HadoopStore]:
    """Return a store of the running NameNode, through Hadoop's client."""
    store = opened()
    yield store
    await store.aclose()


@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: HdfsStore) -> None:
    """The store keeps the rule."""
    root = f"/contract-{next(_numbers)}"
    await store.mkdir(root)
    await rule(store, root)


@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract_through_the_jvm(rule: Rule, through_jvm: HadoopStore) -> None:
    """The store over Hadoop's client keeps the rule."""
    root = f"/contract-{next(_numbers)}"
    await through_jvm.mkdir(root)
    await rule(through_jvm, root)
