"""The rules of the contract, kept on buckets of both kinds, and where there are no moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.stores.base import Store, Streaming
from asynccommit.stores.clients import SDK
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.gcs.model import BucketOptions, GcsLimits
from tests.support.contract import RULES, Rule, name_of
from tests.support.contract_streaming import STREAMING_RULES, StreamingRule
from tests.support.gcs_store import BUCKET, URL, Direct, new_service, new_store

BUCKETS: dict[str, dict[str, Any]] = {
    "flat": {},
    "folders": {"hns": True},
    "versions": {"versioning": True, "soft_delete": 604_800.0},
    "no moves": {"moves": False},
    "small pages": {"limits": GcsLimits(page=7, empty_pages=True, rewrite_bytes=50_000)},
    "slow folders": {"hns": True, "limits": GcsLimits(operation_seconds=0.01)},
}


SERVERS = [f"{kind}, {library}" for library in (*TRANSPORTS, SDK) for kind in ("flat", "folders")]


@pytest.fixture(params=[*BUCKETS, *SERVERS])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[GcsStore]:
    """A store of each kind of bucket; of a server, by each HTTP library."""
    kind, _, library = str(request.param).partition(", ")
    if not library:
        opened = new_store(Direct(GcsApp(new_service(**BUCKETS[kind]))))
        yield opened
        await opened.aclose()
        return
    async with GcsEmulator(buckets={BUCKET: BucketOptions(**BUCKETS[kind])}) as emulator:
        options = {"endpoint_url": emulator.endpoint, "http_library": library}
        opened = GcsStore(parse_url(URL), options, environ={})
        yield opened
        await opened.aclose()


@pytest.mark.rotate("store", keep=4)
@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: Store) -> None:
    """The store keeps the rule."""
    await store.mkdir("/root")
    await rule(store, "/root")


@pytest.mark.rotate("store", keep=4)
@pytest.mark.parametrize("rule", STREAMING_RULES, ids=name_of)
async def test_streams(rule: StreamingRule, store: GcsStore) -> None:
    """Files that are sent in blocks keep their rules."""
    store.traits = replace(store.traits, streaming=Streaming(256 << 10, at_once=1))
    await rule(store, "/root")
