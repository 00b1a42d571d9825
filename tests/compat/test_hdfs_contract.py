"""The contract of the stores, kept by the store of HDFS on a real NameNode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest

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


@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: HdfsStore) -> None:
    """The store keeps the rule."""
    root = f"/contract-{next(_numbers)}"
    await store.mkdir(root)
    await rule(store, root)
