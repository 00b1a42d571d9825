"""Files are written aside and moved: what that costs, and what is left when it fails."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from uuid import UUID

import pytest

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.runtime.host import this_host
from asynccommit.stores.adls import objects
from asynccommit.stores.adls.client import AdlsClient
from asynccommit.stores.adls.errors import AdlsRequest
from asynccommit.stores.adls.objects import AdlsObjects, pieces_of
from asynccommit.stores.adls.options import read_settings
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.adls.wire import parse_date
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.fault_rules import (
    AFTER,
    AGAIN,
    BEFORE,
    CUT,
    CUT_BEFORE,
    LATE,
    TWICE,
    Fault,
)
from asynccommit.testing.models.latency import Latency
from tests.support.servers import RawServer, Seen, answer

FS = "data"
ADDRESS = parse_url(f"abfs://{FS}@devstoreaccount1.dfs.core.windows.net/")
TOKEN = str(UUID(int=1))
LIMIT = 1 << 20
NAMESPACE = {"fs.azure.account.hns.enabled": "true"}
DATE = "Tue, 05 Mar 2024 17:09:08 GMT"


@pytest.fixture
async def emulator() -> AsyncIterator[AdlsEmulator]:
    """An emulator with one container."""
    async with AdlsEmulator() as running:
        running.model.create_filesystem(FS)
        yield running


@pytest.fixture
async def store(emulator: AdlsEmulator) -> AsyncIterator[AdlsStore]:
    """The store of that container, which was asked already about its namespace."""
    options = {"connection_string": emulator.connection_string}
    opened = AdlsStore(ADDRESS, options, environ={})
    await opened.mkdir("/t")
    emulator.weather.requests.clear()
    yield opened
    await opened.aclose()


def held(emulator: AdlsEmulator) -> list[str]:
    """Return the names in the directory, hidden ones too."""
    return [name.removeprefix("t/") for name, _ in emulator.model.list(FS, "t").entries]


# --- put -------------------------------------------------------------------------------------


async def test_a_put_is_four_requests(store: AdlsStore, emulator: AdlsEmulator) -> None:
    """One looks for the directory, one makes the file, one fills it, one moves it."""
    await store.put("/t/f", b"data")

    assert emulator.weather.requests == {"head": 1, "create": 1, "append": 1, "rename": 1}
    assert sum(emulator.weather.requests.values()) == store.traits.costs["put"]


async def test_a_put_at_the_root_looks_for_no_directory(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """Nor does an empty file need filling."""
    await store.put("/f", b"")

    assert emulator.weather.requests == {"create": 1, "rename": 1}


async def test_a_large_put_goes_in_pieces(
    store: AdlsStore, emulator: AdlsEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last piece makes all of them visible."""
    monkeypatch.setattr(objects, "PIECE", 10)
    for size in (9, 10, 11, 20, 95):
        data = bytes(range(size))
        emulator.weather.requests.clear()
        info = await store.put("/t/f", data)
        assert emulator.weather.requests["append"] == -(-size // 10)
        assert info == await store.head("/t/f")
        assert await store.get("/t/f", LIMIT) == data


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 21])
async def test_pieces_make_up_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last one is said to be the last."""
    monkeypatch.setattr(objects, "PIECE", 10)
    data = bytes(range(size))
    pieces = [piece async for piece in pieces_of(data)]

    assert b"".join(piece.data for piece in pieces) == data
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True] * bool(pieces)


@pytest.mark.parametrize("op", ["head", "create", "append"])
@pytest.mark.parametrize(
    "fault, code, expected",
    [
        (CUT, "", UnavailableError),
        (CUT_BEFORE, "", UnavailableError),
        (AFTER, "InternalError", UnavailableError),
        (AFTER, "OperationTimedOut", ThrottledError),
        (BEFORE, "ServerBusy", ThrottledError),
        (BEFORE, "AuthorizationFailure", DeniedError),
    ],
)
async def test_what_fails_before_the_move_has_changed_nothing(
    store: AdlsStore,
    emulator: AdlsEmulator,
    op: str,
    fault: str,
    code: str,
    expected: type[StoreError],
) -> None:
    """The put can be sent again, whatever was lost; the temporary file is not left behind."""
    await store.put("/t/f", b"old")
    emulator.weather.add(Fault(fault, op, code=code, times=1))
    with pytest.raises(expected):
        await store.put("/t/f", b"new", token=TOKEN)
    assert held(emulator) == ["f"]
    assert await store.get("/t/f", LIMIT) == b"old"
    await store.put("/t/f", b"new", token=TOKEN)
    assert await store.get("/t/f", LIMIT) == b"new"


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("fault", [CUT, AFTER])
async def test_a_move_that_happened_unheard_is_found_out(
    store: AdlsStore, emulator: AdlsEmulator, fault: str, overwrite: bool
) -> None:
    """The temporary file is gone, and the destination has its etag."""
    emulator.weather.add(Fault(fault, "rename", times=1))
    info = await store.put("/t/f", b"data", overwrite=overwrite, token=TOKEN)

    assert info == await store.head("/t/f")
    assert held(emulator) == ["f"]


@pytest.mark.parametrize(
    "fault, code, expected",
    [
        (CUT_BEFORE, "", UnavailableError),
        (BEFORE, "InternalError", UnavailableError),
        (BEFORE, "OperationTimedOut", ThrottledError),
        (LATE, "", UnavailableError),
    ],
)
async def test_a_move_that_did_not_happen_never_will(
    store: AdlsStore, emulator: AdlsEmulator, fault: str, code: str, expected: type[StoreError]
) -> None:
    """What is put next is not overtaken by it."""
    delay = Latency(first=0.05)
    emulator.weather.add(Fault(fault, "rename", code=code, times=1, delay=delay))
    with pytest.raises(expected):
        await store.put("/t/f", b"old", token=TOKEN)
    await store.put("/t/f", b"new", token=TOKEN)
    await asyncio.sleep(0.1)

    assert await store.get("/t/f", LIMIT) == b"new"
    assert held(emulator) == ["f"]


@pytest.mark.parametrize("fault", [CUT, CUT_BEFORE, AFTER])
async def test_a_lost_deletion_is_asked_again(
    store: AdlsStore, emulator: AdlsEmulator, fault: str
) -> None:
    """Whether the temporary file went with it or is still there."""
    emulator.weather.add(Fault(CUT_BEFORE, "rename", times=1))
    emulator.weather.add(Fault(fault, "delete", times=2))
    emulator.weather.add(Fault(CUT, "head", path="t/f", times=2))
    with pytest.raises(UnavailableError):
        await store.put("/t/f", b"data")
    assert held(emulator) == []


async def test_a_move_of_which_nothing_can_be_learned_is_unknown(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """No answer to it, and none to what is asked then."""
    emulator.weather.add(Fault(AFTER, "rename", code="OperationTimedOut"))
    emulator.weather.add(Fault(BEFORE, "delete", code="AuthorizationFailure"))
    with pytest.raises(OutcomeUnknownError) as caught:
        await store.put("/t/f", b"data", overwrite=False, token=TOKEN)

    assert caught.value.busy
    assert (await store.head("/t/f")).token == TOKEN


async def test_a_refused_move_leaves_no_temporary_file(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """Something is there, a directory is there, or the name cannot be."""
    await store.put("/t/f", b"old")
    await store.mkdir("/t/d")
    with pytest.raises(ExistsError):
        await store.put("/t/f", b"new", overwrite=False)
    with pytest.raises(PreconditionError):
        await store.put("/t/d", b"new")
    with pytest.raises(RejectedError):
        await store.put(f"/t/{'n' * 2000}", b"new")
    assert held(emulator) == ["d", "f"]


async def test_a_temporary_file_that_cannot_be_deleted_hides_no_error(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """The error is that of the put; listings leave the file out."""
    await store.put("/t/f", b"old")
    emulator.weather.add(Fault(BEFORE, "delete", code="ServerBusy"))
    with pytest.raises(ExistsError):
        await store.put("/t/f", b"new", overwrite=False)
    assert len(held(emulator)) == 2
    assert [info.path for info in (await store.list("/t")).entries] == ["/t/f"]


async def test_a_put_makes_no_directory(store: AdlsStore, emulator: AdlsEmulator) -> None:
    """Neither where none is, nor below a file."""
    await store.put("/t/f", b"")
    for path in ("/gone/f", "/t/gone/f", "/t/f/g"):
        with pytest.raises(NotFoundError, match="there is no directory"):
            await store.put(path, b"data")
    assert held(emulator) == ["f"]
    assert emulator.weather.requests["create"] == 1


async def test_what_is_moved_is_what_was_written(store: AdlsStore, emulator: AdlsEmulator) -> None:
    """A temporary file that somebody else wrote to is not moved; the put may be sent again."""
    files, client = files_of(emulator)
    request = AdlsRequest("put", "/t/f", writes=True, new=True)

    async def meddled() -> AsyncIterator[objects.Piece]:
        yield objects.Piece(b"data", True)
        hidden = held(emulator)[0]
        emulator.model.create(FS, f"t/{hidden}")

    with pytest.raises(UnavailableError, match="SourceConditionNotMet"):
        await files.place(request, "/t/f", meddled())
    await client.aclose()
    assert held(emulator) == []


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("kind", [TWICE, AGAIN])
@pytest.mark.parametrize("op, most", [("create", 4), ("append", 6), ("rename", 5), ("*", 6)])
async def test_every_request_of_a_put_is_executed_twice(
    emulator: AdlsEmulator, op: str, most: int, kind: str, overwrite: bool
) -> None:
    """The put ends with the true facts, after two more requests at most."""
    emulator.model.create(FS, "t", directory=True)
    emulator.weather.add(Fault(kind, op, delay=Latency(first=0.0)))
    options = {"connection_string": emulator.connection_string, **NAMESPACE}
    store = open_store(ADDRESS, StoreSettings(random.Random(1), options=options))
    info = await store.put("/t/f", b"data", overwrite=overwrite)
    sent = emulator.weather.requests.total()

    assert await store.get("/t/f", LIMIT) == b"data"
    assert (await store.head("/t/f"))._replace(token=info.token) == info
    assert held(emulator) == ["f"]
    assert sent <= most
    await store.aclose()


async def test_a_file_that_is_created_again_late_keeps_its_content(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """The second creation comes when the file is written, and may not replace it."""
    emulator.weather.add(Fault(AGAIN, "create", times=1, delay=Latency(first=0.05)))
    path = await store.reserve("/t")
    info = await store.fill(path, b"data")
    await asyncio.sleep(0.1)
    await store.rename(path, "/t/f", etag=info.etag)

    assert await store.get("/t/f", LIMIT) == b"data"


async def test_a_service_that_tells_no_etag_is_asked_for_it() -> None:
    """What a put returns is what a status would say."""

    async def sparing(seen: Seen, writer: asyncio.StreamWriter) -> None:
        status = {b"PUT": "201 Created", b"PATCH": "202 Accepted"}.get(
            seen.line.split()[0], "200 OK"
        )
        known = ["x-ms-request-id: 1"]
        if status == "200 OK":
            kind = "file" if b".tmp" in seen.line else "directory"
            known += ['ETag: "0x8D"', f"Last-Modified: {DATE}", f"x-ms-resource-type: {kind}"]
        writer.write(answer(status, headers=known))

    async with RawServer(sparing) as server:
        options = {"account_host": server.url()[:-1], "account_key": "a2V5"}
        store = AdlsStore(ADDRESS, options, environ={})
        info = await store.put("/t/f", b"data")
        await store.aclose()
    assert info == Info("/t/f", Kind.FILE, 4, "0x8D", parse_date(DATE))


# --- get -------------------------------------------------------------------------------------


async def test_a_refusal_is_read_whatever_the_limit(store: AdlsStore) -> None:
    """A limit of nothing is about the file, not about what the service says."""
    with pytest.raises(NotFoundError):
        await store.get("/t/gone", 0)
    await store.put("/t/f", b"")
    assert await store.get("/t/f", 0) == b""


@pytest.mark.parametrize("limit", [10, 100_000])
async def test_a_large_file_is_refused(store: AdlsStore, limit: int) -> None:
    """One byte more than the limit, whether it is small or large."""
    await store.put("/t/f", bytes(limit))
    assert await store.get("/t/f", limit) == bytes(limit)
    await store.put("/t/f", bytes(limit + 1))
    with pytest.raises(RejectedError, match=r"larger|more than"):
        await store.get("/t/f", limit)


# --- copy ------------------------------------------------------------------------------------


def files_of(emulator: AdlsEmulator) -> tuple[AdlsObjects, AdlsClient]:
    """Return the files of the container, and the client to be closed."""
    host = this_host()
    options = {"connection_string": emulator.connection_string}
    settings = read_settings(ADDRESS, options, environ={}, now=host.now)
    client = AdlsClient(settings, host, open_transport(settings.http))
    return AdlsObjects(client, host.new_id), client


@pytest.mark.parametrize("size", [0, 1, 10, 11, 35])
async def test_a_copy_goes_in_pieces(
    store: AdlsStore, emulator: AdlsEmulator, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """No more than one piece is in memory at a time."""
    data = bytes(range(size))
    await store.put("/t/f", data)
    monkeypatch.setattr(objects, "PIECE", 10)
    emulator.weather.requests.clear()
    await store.copy("/t/f", "/t/g")

    assert await store.get("/t/g", LIMIT) == data
    assert emulator.weather.requests["append"] == -(-size // 10)


async def test_a_copy_of_a_small_file_costs_what_it_says(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """One request more than a put: the data comes from somewhere."""
    await store.put("/t/f", b"data")
    emulator.weather.requests.clear()
    await store.copy("/t/f", "/t/g")

    assert sum(emulator.weather.requests.values()) == store.traits.costs["copy"]


async def test_a_copy_is_of_one_version(
    store: AdlsStore, emulator: AdlsEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is replaced while it is read is not copied half and half."""
    monkeypatch.setattr(objects, "PIECE", 10)
    await store.put("/t/f", b"1" * 25)
    files, client = files_of(emulator)
    async with aclosing(files.pieces(AdlsRequest("copy", "/t/f"), "/t/f")) as pieces:
        assert (await anext(pieces)).data == b"1" * 10
        await store.put("/t/f", b"2" * 25)
        with pytest.raises(PreconditionError, match="ConditionNotMet"):
            await anext(pieces)
    await client.aclose()


@pytest.mark.parametrize("op", ["read", "append"])
async def test_a_copy_that_is_cut_short_has_changed_nothing(
    store: AdlsStore, emulator: AdlsEmulator, op: str
) -> None:
    """It can be sent again."""
    await store.put("/t/f", b"data")
    emulator.weather.add(Fault(CUT, op, times=1))
    with pytest.raises(UnavailableError):
        await store.copy("/t/f", "/t/g")
    assert held(emulator) == ["f"]
    await store.copy("/t/f", "/t/g")


async def test_the_errors_of_a_copy_name_both_ends(store: AdlsStore) -> None:
    """The path is the source's, as of a rename."""
    await store.put("/t/f", b"")
    await store.put("/t/g", b"")
    with pytest.raises(ExistsError, match="to /t/g") as caught:
        await store.copy("/t/f", "/t/g")
    assert caught.value.path == "/t/f"
    with pytest.raises(NotFoundError, match="there is no directory /gone"):
        await store.copy("/t/f", "/gone/f")


# --- answers that the emulator does not give -------------------------------------------------


@pytest.mark.parametrize(
    "status, headers, expected",
    [
        ("200 OK", ["x-ms-resource-type: directory"], PreconditionError),
        ("206 Partial Content", ["Content-Range: bytes 0-9/10"], RejectedError),
        ("416 Range", ["x-ms-error-code: InvalidRange", "x-ms-resource-type: directory"],
         PreconditionError),
        ("416 Range", ["x-ms-error-code: InvalidRange"], UnavailableError),
    ],
)  # fmt: skip
async def test_what_cannot_be_copied_is_told(
    status: str, headers: list[str], expected: type[StoreError]
) -> None:
    """A directory, an answer without data, a file that is empty and then is not."""
    known = ["x-ms-request-id: 1", 'ETag: "0x8D"', *headers]

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if seen.line.startswith(b"GET"):
            writer.write(answer(status, headers=known))
        elif b"/t/f" in seen.line:
            writer.write(answer(headers=[*known, "Content-Length: 5"], length=False))
        else:
            writer.write(answer(headers=[*known, "x-ms-resource-type: directory"]))

    async with RawServer(script) as server:
        options = {"account_host": server.url()[:-1], "account_key": "a2V5", **NAMESPACE}
        store = AdlsStore(ADDRESS, options, environ={})
        found = AdlsObjects(store._client, str).pieces(AdlsRequest("copy", "/t/f"), "/t/f")
        with pytest.raises(expected):
            await anext(found)
        await store.aclose()


async def test_a_rename_in_part_is_unknown() -> None:
    """No account with directories was seen to do so; if one does, it is no success."""
    known = ["x-ms-request-id: 1", "x-ms-continuation: abc"]

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(answer("201 Created", headers=known))

    async with RawServer(script) as server:
        options = {"account_host": server.url()[:-1], "account_key": "a2V5", **NAMESPACE}
        store = AdlsStore(ADDRESS, options, environ={})
        with pytest.raises(OutcomeUnknownError, match="only partly renamed"):
            await store.rename("/d", "/e")
        await store.aclose()


async def test_what_must_be_new_does_not_bring_its_directory_back(
    adls_emulator: AdlsEmulator,
) -> None:
    """An abort that moves the directory away in the middle of a write makes the write fail."""
    adls_emulator.model.create_filesystem("data")
    adls_emulator.model.create("data", "t/job/00", directory=True)
    options = {"connection_string": adls_emulator.connection_string}
    store = AdlsStore(parse_url("abfs://data@devstoreaccount1.dfs.core.windows.net/"), options)
    moved = adls_emulator.model.rename
    head = store._files.head

    async def then_moved(request: Any, path: str) -> Info:
        found = await head(request, path)
        moved("data", "t/job/00.aborted", "data", "t/job/00")
        return found

    store._files.head = then_moved  # type: ignore[method-assign]
    with pytest.raises(NotFoundError):
        await store.put("/t/job/00/record", b"{}", overwrite=False)
    await store.aclose()

    listing = adls_emulator.model.list("data", "t/job", recursive=True)
    assert [name for name, _ in listing.entries] == ["t/job/00.aborted"]
