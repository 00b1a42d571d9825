"""The store of Azure Data Lake Storage against the emulator, over both HTTP libraries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import pytest

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    ThrottledError,
)
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.base import Kind, Store, Streaming
from asynccommit.stores.clients import SDK
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.stores.tree import list_all
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.adls.account import AdlsLimits
from asynccommit.testing.models.fault_rules import AFTER, BEFORE, CUT, CUT_BEFORE, Fault
from tests.support import contract
from tests.support.contract import RULES, Rule, name_of
from tests.support.contract_streaming import STREAMING_RULES, StreamingRule
from tests.support.servers import RawServer, Seen, answer

FS = "data"
URL = f"abfs://{FS}@devstoreaccount1.dfs.core.windows.net/"
KEY = "a2V5IG9mIGFuIGFjY291bnQ="
TOKEN = str(UUID(int=1))


LIBRARIES = (*TRANSPORTS, SDK)


@pytest.fixture(params=[*LIBRARIES, "small pages"])
async def emulator(request: pytest.FixtureRequest) -> AsyncIterator[AdlsEmulator]:
    """An emulator with one container; one for each way to reach it."""
    small = request.param == "small pages"
    limits = AdlsLimits(page=7, delete=2, empty_pages=True) if small else AdlsLimits()
    async with AdlsEmulator(pages=limits) as running:
        running.model.create_filesystem(FS)
        yield running


@pytest.fixture
async def store(request: pytest.FixtureRequest, emulator: AdlsEmulator) -> AsyncIterator[AdlsStore]:
    """The store of that container."""
    kind: str = request.node.callspec.params["emulator"]
    library = kind if kind in LIBRARIES else "aiohttp"
    options = {"connection_string": emulator.connection_string, "http_library": library}
    opened = AdlsStore(parse_url(URL), options, environ={})
    yield opened
    await opened.aclose()


@pytest.mark.rotate("emulator")
@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store keeps the rule; names that end in a dot apart, which the service does not keep."""
    monkeypatch.setattr(contract, "NAMES", [name for name in contract.NAMES if name[-1] != "."])
    await store.mkdir("/root")
    if rule.__name__ == "list_of_an_empty_directory_is_empty":
        assert await list_all(store, "/root") == []  # in one page or, as here, in two
        return
    await rule(store, "/root")


@pytest.mark.rotate("emulator")
@pytest.mark.parametrize("rule", STREAMING_RULES, ids=name_of)
async def test_streams(rule: StreamingRule, store: AdlsStore) -> None:
    """Files that are sent in blocks keep their rules."""
    store.traits = replace(store.traits, streaming=Streaming(1 << 10, at_once=4))
    await rule(store, "/root")


# --- what it says of itself ------------------------------------------------------------------


async def test_the_store_says_what_it_is(store: AdlsStore, emulator: AdlsEmulator) -> None:
    """Directories, atomic renames that keep the etag, tokens, and whose limit it shares."""
    traits = store.traits

    assert traits.tokens
    assert traits.etag_survives_rename
    assert traits.atomic_directory_rename
    assert traits.account == f"adls:127.0.0.1:{emulator.port}/devstoreaccount1"
    assert traits.costs["put"] == 4
    assert repr(store) == f"AdlsStore({FS}@devstoreaccount1.dfs.core.windows.net)"


# --- the root --------------------------------------------------------------------------------


async def test_the_root_is_a_directory(store: AdlsStore) -> None:
    """It has a status and children, and may be made again."""
    await store.mkdir("/")
    await store.put("/f", b"")
    info = await store.head("/")

    assert (info.path, info.kind, info.size) == ("/", Kind.DIRECTORY, 0)
    assert [info.path for info in await list_all(store, "/")] == ["/f"]


async def test_the_root_is_not_deleted(store: AdlsStore) -> None:
    """Whatever it holds."""
    for delete in (store.delete, store.delete_tree):
        with pytest.raises(RejectedError, match="the root cannot be deleted"):
            await delete("/")


# --- identity --------------------------------------------------------------------------------


async def test_a_token_stays_with_what_was_moved(store: AdlsStore) -> None:
    """The status tells it, the listing does not; the next rename has its own or none."""
    info = await store.put("/f", b"data", token=TOKEN)
    assert info.token == (await store.head("/f")).token == TOKEN
    assert [info.token for info in await list_all(store, "/")] == [None]
    await store.rename("/f", "/g", token=str(UUID(int=2)))
    assert (await store.head("/g")).token == str(UUID(int=2))


@pytest.mark.parametrize("quote", ["", '"'])
async def test_a_rename_depends_on_the_etag_of_its_source(store: AdlsStore, quote: str) -> None:
    """With quotes or without; another etag leaves all as it was."""
    info = await store.put("/f", b"data")
    with pytest.raises(PreconditionError, match="SourceConditionNotMet"):
        await store.rename("/f", "/g", etag="0x8D0000000000000")
    await store.rename("/f", "/g", etag=f"{quote}{info.etag}{quote}")
    assert (await store.head("/g")).etag == info.etag


async def test_directories_have_an_etag_that_survives_too(store: AdlsStore) -> None:
    """The listing says the same as the status, before and after."""
    await store.mkdir("/d")
    before = await store.head("/d")
    await store.rename("/d", "/e", etag=before.etag)

    assert before.etag
    assert [info.etag for info in await list_all(store, "/")] == [before.etag]


@pytest.mark.parametrize(
    "kind, code, moved, busy",
    [
        (AFTER, "OperationTimedOut", True, True),
        (AFTER, "InternalError", True, False),
        (BEFORE, "InternalError", False, False),
        (CUT, "", True, False),
        (CUT_BEFORE, "", False, False),
    ],
)
async def test_a_lost_answer_to_a_rename_is_unknown(
    store: AdlsStore, emulator: AdlsEmulator, kind: str, code: str, moved: bool, busy: bool
) -> None:
    """Whether it was done or not, nobody is told; identity tells. It is sent once."""
    info = await store.put("/f", b"data")
    emulator.weather.requests.clear()
    emulator.weather.add(Fault(kind, "rename", code=code, times=1))

    with pytest.raises(OutcomeUnknownError) as caught:
        await store.rename("/f", "/g", etag=info.etag, token=TOKEN)
    assert caught.value.busy is busy
    assert emulator.weather.requests == {"rename": 1}
    there = await store.head("/g" if moved else "/f")
    assert (there.etag, there.token) == (info.etag, TOKEN if moved else None)


async def test_a_busy_service_refuses(store: AdlsStore, emulator: AdlsEmulator) -> None:
    """Nothing was done, and the wait that it asks for is handed on."""
    await store.put("/f", b"")
    emulator.weather.add(Fault(BEFORE, "rename", code="ServerBusy", retry_after=3))

    with pytest.raises(ThrottledError, match="Operations per second") as caught:
        await store.rename("/f", "/g")
    assert caught.value.retry_after == 3.0
    assert (await store.head("/f")).kind is Kind.FILE


# --- on the wire -----------------------------------------------------------------------------


async def rename_on_the_wire(**options: object) -> Seen:
    """Return the request of a rename."""

    async def created(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(answer("201 Created"))

    async with RawServer(created) as server:
        settings = {
            "account_host": server.url()[:-1],
            "account_key": KEY,
            "fs.azure.account.hns.enabled": "true",
        }
        store = AdlsStore(parse_url(URL), settings, environ={})
        await store.rename("/t/a b", "/t/day=1/ü", **options)  # type: ignore[arg-type]
        await store.aclose()
    assert len(server.seen) == 1
    return server.seen[0]


async def test_a_rename_is_one_request_with_conditions() -> None:
    """It replaces nothing, moves only the object that is meant, and can be recognised."""
    seen = await rename_on_the_wire(etag="0x8D", token=TOKEN)

    path = "/devstoreaccount1/data/t/day%3D1/%C3%BC?mode=legacy"
    assert seen.line == f"PUT {path} HTTP/1.1".encode()
    assert seen.header(b"x-ms-rename-source") == [b"/data/t/a%20b"]
    assert seen.header(b"if-none-match") == [b"*"]
    assert seen.header(b"x-ms-source-if-match") == [b'"0x8D"']
    assert seen.header(b"x-ms-client-transaction-id") == [TOKEN.encode()]
    assert seen.header(b"x-ms-version") == [b"2024-11-04"]


async def test_a_rename_that_replaces_never_moves_into_a_directory() -> None:
    """The mode says so, because the condition cannot."""
    seen = await rename_on_the_wire(replace=True)

    assert seen.line.endswith(b"?mode=legacy HTTP/1.1")
    assert seen.header(b"if-none-match") == []
    assert seen.header(b"x-ms-source-if-match") == []
    assert seen.header(b"x-ms-client-transaction-id") == []


# --- directories -----------------------------------------------------------------------------


async def test_a_directory_that_is_there_is_left_as_it_is(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """Making it again neither changes it nor takes a second request."""
    await store.mkdir("/d")
    before = await store.head("/d")
    emulator.weather.requests.clear()
    await store.mkdir("/d")

    assert emulator.weather.requests == {"mkdir": 1}
    assert await store.head("/d") == before


@pytest.mark.parametrize("kind", ["directory", "file"])
async def test_a_service_that_does_not_say_what_is_there_is_asked(kind: str) -> None:
    """Older versions leave the kind out of the answer to a directory that is made again."""

    async def old(seen: Seen, writer: asyncio.StreamWriter) -> None:
        known = ["x-ms-request-id: 1"]
        if seen.line.startswith(b"PUT"):
            known.append("x-ms-error-code: PathAlreadyExists")
            writer.write(answer("409 Conflict", headers=known))
        else:
            known += [f"x-ms-resource-type: {kind}", 'ETag: "0x8D"']
            writer.write(answer(headers=known))

    async with RawServer(old) as server:
        settings = {"account_host": server.url()[:-1], "account_key": KEY}
        store = AdlsStore(parse_url(URL), settings, environ={})
        if kind == "directory":
            await store.mkdir("/d")
        else:
            with pytest.raises(PreconditionError, match="a file is there"):
                await store.mkdir("/d")
        await store.aclose()


async def test_a_directory_replaces_an_empty_one_when_asked(store: AdlsStore) -> None:
    """And one that holds something never."""
    await store.mkdir("/a/x")
    await store.mkdir("/b")
    await store.rename("/a", "/b", replace=True)
    assert [info.path for info in await list_all(store, "/b")] == ["/b/x"]
    await store.mkdir("/a")
    with pytest.raises(ExistsError, match="DirectoryNotEmpty"):
        await store.rename("/a", "/b", replace=True)


async def test_a_tree_is_deleted_in_parts(store: AdlsStore, emulator: AdlsEmulator) -> None:
    """As many requests as the service makes of it, each going on where the last one ended."""
    for number in range(10):
        await store.put(f"/d/e{number}", b"") if number else await store.mkdir("/d")
    emulator.weather.requests.clear()
    await store.delete_tree("/d")

    small = emulator.model.limits.delete == 2
    assert (emulator.weather.requests["delete"] > 1) is small
    with pytest.raises(NotFoundError):
        await store.head("/d")


async def test_a_tree_that_others_delete_as_well_is_deleted() -> None:
    """It is gone when the rest of it is asked for: that is what was wanted."""

    async def half(seen: Seen, writer: asyncio.StreamWriter) -> None:
        known = ["x-ms-request-id: 1"]
        if b"continuation=a%2B%2Fb%3D" in seen.line:
            known.append("x-ms-error-code: PathNotFound")
            writer.write(answer("404 Not Found", headers=known))
        else:
            writer.write(answer(headers=[*known, "x-ms-continuation: a+/b="]))

    async with RawServer(half) as server:
        settings = {"account_host": server.url()[:-1], "account_key": KEY}
        store = AdlsStore(parse_url(URL), settings, environ={})
        await store.delete_tree("/d")
        await store.aclose()
    assert len(server.seen) == 3


async def test_a_listing_of_a_file_is_refused_however_it_is_answered() -> None:
    """A service that lists the file itself says that it is no directory."""
    page = b'{"paths": [{"name": "t/f", "contentLength": "1", "etag": "0x8D"}]}'

    async def itself(seen: Seen, writer: asyncio.StreamWriter) -> None:
        body = b"" if seen.line.startswith(b"HEAD") else page
        writer.write(answer(body=body, headers=["x-ms-request-id: 1"]))

    async with RawServer(itself) as server:
        settings = {"account_host": server.url()[:-1], "account_key": KEY}
        store = AdlsStore(parse_url(URL), settings, environ={})
        with pytest.raises(PreconditionError, match="is a file"):
            await store.list("/t/f")
        await store.aclose()
