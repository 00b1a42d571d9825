"""The rules of the contract, kept on directory buckets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from asynccommit.stores.base import Store, Streaming
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.stores.s3.renaming_store import S3RenamingStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing import ExpressEmulator
from tests.support.contract import RULES, Rule, name_of
from tests.support.contract_streaming import STREAMING_RULES, StreamingRule
from tests.support.express import SWITCHES, URL, new_service, new_store

SERVERS = [f"server, {library}" for library in TRANSPORTS]


@pytest.fixture(params=[*SWITCHES, "small pages", *SERVERS])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[S3RenamingStore]:
    """A store of each kind of bucket; of a server, by each HTTP library."""
    kind, _, library = str(request.param).partition(", ")
    if not library:
        page = 7 if kind == "small pages" else 1000
        opened = new_store(new_service(SWITCHES.get(kind), page=page))
        yield opened
        await opened.aclose()
        return
    async with ExpressEmulator() as emulator:
        options = {"endpoint_url": emulator.endpoint, "http_library": library}
        keys = {"key": "test", "secret": "test"}
        opened = S3RenamingStore(parse_url(URL), {**options, **keys}, environ={})
        yield opened
        await opened.aclose()


@pytest.mark.rotate("store", keep=4)
@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: Store) -> None:
    """The store keeps the rule."""
    await store.mkdir("/root")
    await rule(store, "/root")


@pytest.mark.parametrize("rule", STREAMING_RULES, ids=name_of)
@pytest.mark.parametrize("kind", SWITCHES)
async def test_streams(rule: StreamingRule, kind: str) -> None:
    """Files that are sent in blocks keep their rules."""
    store = new_store(new_service(SWITCHES[kind]))
    store.traits = replace(store.traits, streaming=Streaming(256 << 10, at_once=4))
    await rule(store, "/root")
    await store.aclose()
