"""Renames without an etag, whose responses are lost: the model of a NameNode."""

from __future__ import annotations

import asyncio
import random

import pytest

from asynccommit.errors import NotFoundError, OutcomeUnknownError, ThrottledError
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.fault_rules import Climate, Fault, FaultInjector
from asynccommit.testing.models.hdfs.client import HDFS, SimHdfsClient
from asynccommit.testing.models.hdfs.namenode import HdfsNameNode
from asynccommit.testing.models.virtual_loop import run_virtual

_LOST = Fault("cut", "rename", times=1)


def _rename(*faults: Fault) -> HdfsNameNode:
    """Rename /a/old to /b/new under faults, and return the NameNode."""
    namenode = HdfsNameNode(lambda: 1_795_000_000.0)
    namenode.mkdirs("/a/old/x", 0o755, True)
    namenode.mkdirs("/b", 0o755, True)

    async def run() -> None:
        clock = asyncio.get_running_loop().time
        weather = FaultInjector(random.Random(0), clock, Climate(faults), HDFS)
        client = SimHdfsClient(namenode, {"weather": weather, "patience": 1.0})
        store = HdfsStore(parse_url("hdfs://sim"), environ={}, client=client)
        await store.rename("/a/old", "/b/new")

    try:
        run_virtual(run())
    finally:
        assert (namenode.find("/a/old/x") is None) != (namenode.find("/b/new/x") is None)
    return namenode


@pytest.mark.parametrize("look", ["before", "cut"])
@pytest.mark.parametrize("times", [1, 3, 5])
def test_looks_that_fail_are_repeated(look: str, times: int) -> None:
    """A busy NameNode does not make a rename that was done look like a missing source."""
    namenode = _rename(_LOST, Fault(look, "head", skip=1, times=times))

    assert namenode.find("/b/new/x") is not None


def test_nothing_is_claimed_without_a_look() -> None:
    """Without a response to any look the outcome is unknown: nobody sends the rename again."""
    with pytest.raises(OutcomeUnknownError):
        _rename(_LOST, Fault("before", "head", skip=1))


@pytest.mark.parametrize("lost", ["cut_before", "late"])
def test_lost_rename_is_sent_again(lost: str) -> None:
    """It may also come late, while a busy NameNode refuses the second one."""
    busy = Fault("before", "rename", skip=1, times=2)

    assert _rename(Fault(lost, "rename", times=1), busy).find("/b/new/x") is not None


def test_refused_rename_is_not_done() -> None:
    """The error of a busy NameNode is passed on: the policies of a store wait and send again."""
    with pytest.raises(ThrottledError):
        _rename(Fault("before", "rename"))


def test_missing_source() -> None:
    """It is told, if no request for it was lost."""

    async def run() -> None:
        client = SimHdfsClient(HdfsNameNode(lambda: 1.0), {})
        store = HdfsStore(parse_url("hdfs://sim"), environ={}, client=client)
        await store.rename("/a/old", "/b/new")

    with pytest.raises(NotFoundError):
        run_virtual(run())
