"""The door to the bucket: who is let in, what is asked first, and every bad input at once."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from asynccommit.errors import (
    DeniedError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.stores.clients import SDK
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.fault_rules import AFTER, BEFORE, CUT, CUT_BEFORE, LATE, Fault
from asynccommit.testing.models.gcs.model import BucketOptions
from tests.support.servers import RawServer, Script, Seen, answer, reset

BUCKET = "my_data.example.com"
URL = f"gs://{BUCKET}/"
WRITES = ("put", "delete", "delete_many", "copy", "rename", "mkdir")

Open = Callable[..., GcsStore]


@pytest.fixture
async def emulator() -> AsyncIterator[GcsEmulator]:
    """An emulator with one bucket."""
    async with GcsEmulator(buckets=[BUCKET]) as running:
        yield running


@pytest.fixture(params=[*TRANSPORTS, pytest.param(SDK, marks=pytest.mark.full)])
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Opens stores over each HTTP library, and closes them."""
    stores = []

    def open_store(endpoint: str, url: str = URL, **options: Any) -> GcsStore:
        options = {"token": "anon", "http_library": request.param, **options}
        options["endpoint_url"] = endpoint.removesuffix("/")
        stores.append(GcsStore(parse_url(url), options, environ={}))
        return stores[-1]

    yield open_store
    for store in stores:
        await store.aclose()


def calls(store: GcsStore) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return a call of each method."""
    return {
        "head": partial(store.head, "/p"),
        "list": partial(store.list, "/p"),
        "list_tree": partial(store.list_tree, "/p"),
        "get": partial(store.get, "/p", 10),
        "put": partial(store.put, "/p", b"data"),
        "delete": partial(store.delete, "/p"),
        "copy": partial(store.copy, "/p", "/q"),
        "rename": partial(store.rename, "/p", "/q"),
        "mkdir": partial(store.mkdir, "/p"),
    }


async def errors(store: GcsStore) -> dict[str, StoreError]:
    """Call every method and return what it raises."""
    found = {}
    for name, call in calls(store).items():
        with pytest.raises(StoreError) as caught:
            await call()
        found[name] = caught.value
    return found


def shown(error: BaseException) -> str:
    """Return all that can be seen of an error: its text, causes, notes and the calls' arguments."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


def serves(page: bytes) -> RawServer:
    """Return a server with one page for everything."""

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(page)

    return RawServer(script)


class Credentials:
    """What google.auth's credentials are like: these tokens one after the other."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.token: str | None = None
        self.expiry: datetime | None = None
        self.asked = 0

    @property
    def valid(self) -> bool:
        """Whether it has a token."""
        return False

    def refresh(self, request: object) -> None:
        """Get the next one, or the last one again."""
        self.asked += 1
        self.token = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        self.expiry = (datetime.now(UTC) + timedelta(hours=1)).replace(tzinfo=None)


# --- credentials -----------------------------------------------------------------------------


async def test_a_token_opens_every_method(opened: Open, emulator: GcsEmulator) -> None:
    """What each method sends is authorised, batches and hostile names included."""
    emulator.keyring.tokens = {"good"}
    store = opened(emulator.endpoint, token=Credentials("good"))
    await store.mkdir("/a b+c%/é")
    info = await store.put("/a b+c%/f=1", b"data", token="6f0e1d9c-0000-4000-8000-000000000001")
    await store.copy("/a b+c%/f=1", "/a b+c%/g&h")
    await store.rename("/a b+c%/g&h", "/a b+c%/é/ü?#[]'!$(),;:@~*", etag=None)
    await store.rename("/a b+c%/f=1", "/a b+c%/é/f=2", etag=info.etag)
    assert {_.path for _ in (await store.list("/a b+c%/é")).entries} == {
        "/a b+c%/é/ü?#[]'!$(),;:@~*",
        "/a b+c%/é/f=2",
    }
    assert await store.get("/a b+c%/é/f=2", 10) == b"data"
    found = await store.head("/a b+c%/é/f=2")
    assert store.traits.lasting(found.etag) == store.traits.lasting(info.etag)
    tree = (await store.list_tree("/a b+c%")).entries
    assert list(await store.delete_many(tree)) == [None] * 3
    assert (await store.list_tree("/")).entries == ()


async def test_an_expired_token_is_renewed_in_mid_job(opened: Open, emulator: GcsEmulator) -> None:
    """The requests that it was refused to were not done, and go through when sent again."""
    source = Credentials("first-token", "second-token")
    emulator.keyring.tokens = {"first-token", "second-token"}
    store = opened(emulator.endpoint, token=source)
    for number in range(8):
        await store.put(f"/f{number}", b"")
    emulator.keyring.expired.add("first-token")

    moves = [store.rename(f"/f{number}", f"/g{number}") for number in range(8)]
    found = await asyncio.gather(*moves, return_exceptions=True)
    assert {type(error) for error in found} == {UnavailableError}
    await asyncio.gather(*(store.rename(f"/f{number}", f"/g{number}") for number in range(8)))
    assert source.asked == 2


async def test_a_token_may_expire_twice_within_a_moment(
    opened: Open, emulator: GcsEmulator
) -> None:
    """Each new one has been accepted before, so that its refusal is for its age."""
    source = Credentials("token-0", "token-1", "token-2", "token-3")
    emulator.keyring.tokens = {f"token-{number}" for number in range(4)}
    store = opened(emulator.endpoint, token=source)
    await store.put("/f", b"")

    for number in range(3):
        emulator.keyring.expired.add(f"token-{number}")
        with pytest.raises(UnavailableError):
            await store.head("/f")
        await store.head("/f")
    assert source.asked == 4


async def test_a_token_that_is_not_accepted_is_told(opened: Open, emulator: GcsEmulator) -> None:
    """And is in no error; asking the credential again brings the same."""
    emulator.keyring.tokens = {"another"}
    store = opened(emulator.endpoint, token=Credentials("ya29.secret"))

    for error in (await errors(store)).values():
        assert type(error) is DeniedError
        assert "was refused, and its renewal gave the same one" in error.detail
        assert "ya29.secret" not in shown(error)


async def test_a_token_that_is_refused_twice_is_told(opened: Open, emulator: GcsEmulator) -> None:
    """The error has the kind of the credential, and no token."""
    emulator.keyring.tokens = {"another"}
    store = opened(emulator.endpoint, token=Credentials("ya29.first", "ya29.second"))
    with pytest.raises(UnavailableError):
        await store.head("/p")

    for error in (await errors(store)).values():
        assert type(error) is DeniedError
        assert re.search(
            r"the token of the credentials object Credentials was refused twice within \d+ s",
            error.detail,
        )
        assert "ya29." not in shown(error)


async def test_no_credential_at_all_is_told(opened: Open, emulator: GcsEmulator) -> None:
    """With the option that gives one."""
    emulator.keyring.tokens = {"another"}
    with pytest.raises(DeniedError, match="no credential was given: see the option token"):
        await opened(emulator.endpoint).head("/p")


@pytest.mark.parametrize(
    "permission, name",
    [
        ("storage.objects.get", "head"),
        ("storage.objects.get", "get"),
        ("storage.objects.get", "copy"),
        ("storage.objects.list", "list"),
        ("storage.objects.list", "list_tree"),
        ("storage.objects.create", "put"),
        ("storage.objects.create", "copy"),
        ("storage.objects.create", "rename"),
        ("storage.objects.move", "rename"),
        ("storage.objects.delete", "delete"),
    ],
)
async def test_a_missing_permission_is_named(
    opened: Open, emulator: GcsEmulator, permission: str, name: str
) -> None:
    """Each method that needs it says so."""
    store = opened(emulator.endpoint)
    await store.put("/p", b"data")
    emulator.service.denied.add(permission)
    with pytest.raises(DeniedError, match=permission.replace(".", r"\.")):
        await calls(store)[name]()


# --- the layout ------------------------------------------------------------------------------


async def test_the_bucket_is_asked_once_about_its_folders(
    opened: Open, emulator: GcsEmulator
) -> None:
    """However many requests come first at the same time."""
    store = opened(emulator.endpoint)
    await asyncio.gather(*(store.mkdir(f"/d{number}") for number in range(20)))
    await store.list("/")

    assert emulator.weather.requests["layout"] == 1


@pytest.mark.parametrize("hns", [False, True])
async def test_traits_are_right_after_the_first_request(opened: Open, hns: bool) -> None:
    """Before, the bucket counts as flat."""
    options = {BUCKET: BucketOptions(hns=hns)}
    async with GcsEmulator(buckets=options) as emulator:
        store = opened(emulator.endpoint, ramp="true")
        before = store.traits
        assert not before.atomic_directory_rename
        await store.list("/")
        after = store.traits
        assert after.atomic_directory_rename is hns
        assert after.ramp is not None
        assert after.ramp.writes == (8000 if hns else 1000)


@pytest.mark.parametrize("hns", [False, True])
async def test_a_bucket_whose_kind_is_said_is_not_asked(
    opened: Open, emulator: GcsEmulator, hns: bool
) -> None:
    """An option says so; its traits are right at once."""
    store = opened(emulator.endpoint, hns=hns)
    assert store.traits.atomic_directory_rename is hns
    await store.put("/f", b"")
    assert emulator.weather.requests["layout"] == 0


async def test_a_zonal_bucket_is_refused_before_anything_is_sent(opened: Open) -> None:
    """The question about folders tells; a bucket of the class is refused whatever is asked."""
    options = {BUCKET: BucketOptions(hns=True, location="US-CENTRAL1", storage_class="RAPID")}
    async with GcsEmulator(buckets=options) as emulator:
        store = opened(emulator.endpoint)
        for request in (store.put("/f", b""), store.list("/"), store.rename("/a", "/b")):
            with pytest.raises(
                UnsupportedError, match=r"is zonal .* write to a bucket in a region"
            ):
                await request
        assert set(emulator.weather.requests) == {"layout"}

        told = opened(emulator.endpoint, hns=True)
        with pytest.raises(RejectedError, match="requires appendable objects"):
            await told.put("/f", b"")


async def test_a_failed_question_is_asked_again(opened: Open, emulator: GcsEmulator) -> None:
    """That the bucket cannot be reached is no answer; all who wait share one attempt."""
    emulator.weather.add(Fault(BEFORE, "layout", times=1))
    store = opened(emulator.endpoint)

    found = await asyncio.gather(
        *(store.mkdir(f"/d{number}") for number in range(5)), return_exceptions=True
    )
    assert [type(error).__name__ for error in found] == ["ThrottledError"] * 5
    await store.mkdir("/d")
    assert emulator.weather.requests["layout"] == 2


async def test_a_write_that_waits_for_the_question_has_not_been_sent(
    opened: Open, emulator: GcsEmulator
) -> None:
    """That the question is not answered leaves nothing unknown."""
    emulator.weather.add(Fault(CUT, "layout"))

    with pytest.raises(UnavailableError):
        await opened(emulator.endpoint).rename("/f", "/g")


async def test_whoever_may_not_ask_may_still_write(opened: Open, emulator: GcsEmulator) -> None:
    """The bucket counts as flat; the listing says what is missing."""
    emulator.service.denied |= {"storage.objects.list", "storage.buckets.get"}
    store = opened(emulator.endpoint)
    await store.put("/f", b"data")
    with pytest.raises(DeniedError, match=r"storage\.objects\.list"):
        await store.list("/")


# --- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [CUT, CUT_BEFORE, AFTER, LATE])
async def test_a_write_without_an_answer_is_unknown(
    opened: Open, emulator: GcsEmulator, fault: str
) -> None:
    """It may have been done; a read that gets none changed nothing."""
    store = opened(emulator.endpoint)
    info = await store.put("/f", b"data")
    for op in ("insert", "move", "rewrite", "delete", "batch"):
        emulator.weather.add(Fault(fault, op))
    writes: list[Callable[[], Awaitable[object]]] = [
        partial(store.put, "/g", b""),
        partial(store.rename, "/f", "/h", etag=info.etag),
        partial(store.copy, "/f", "/i"),
        partial(store.delete, "/f"),
        partial(store.delete_many, [info, info]),
    ]
    for write in writes:
        with pytest.raises(OutcomeUnknownError):
            await write()


async def test_throttling_is_told_with_nothing_done(opened: Open, emulator: GcsEmulator) -> None:
    """429 is refused before anything happens."""
    store = opened(emulator.endpoint, hns=False)
    for op in ("insert", "move", "rewrite", "delete", "get", "read", "list"):
        emulator.weather.add(Fault(BEFORE, op))
    assert {type(error) for error in (await errors(store)).values()} == {ThrottledError}


# --- bad input -------------------------------------------------------------------------------


async def test_a_missing_bucket_is_told(opened: Open, emulator: GcsEmulator) -> None:
    """It is no missing path, which some callers take for a yes; with and without the question."""
    for options in ({}, {"hns": False}):
        found = await errors(opened(emulator.endpoint, "gs://no_such_bucket/", **options))
        assert {type(error) for error in found.values()} == {RejectedError}
        assert all("no bucket 'no_such_bucket'" in error.detail for error in found.values())


async def test_a_missing_host_is_told(opened: Open) -> None:
    """It is not known anywhere."""
    store = opened("https://storage.nosuchhost.invalid")
    with pytest.raises(UnavailableError, match=r"storage\.nosuchhost\.invalid the right host"):
        await store.head("/p")


async def test_a_closed_port_is_told(opened: Open, unused_tcp_port: int) -> None:
    """Nothing was done."""
    for error in (await errors(opened(f"http://127.0.0.1:{unused_tcp_port}"))).values():
        assert type(error) is UnavailableError
        assert "cannot connect" in error.detail


def test_a_bucket_that_is_none_is_told() -> None:
    """Before anything is sent."""
    with pytest.raises(OptionError, match="names no bucket"):
        GcsStore(parse_url("gs:/path"), environ={})
    with pytest.raises(OptionError, match="'MyBucket' is not the name of a bucket"):
        GcsStore(parse_url("gs://MyBucket/path"), environ={})


KNOWN: list[dict[str, Any]] = [{}, {"hns": False}, {"hns": True}]


@pytest.mark.parametrize("known", KNOWN)
async def test_a_redirect_is_told_and_not_followed(opened: Open, known: dict[str, Any]) -> None:
    """Credentials are for one host."""
    there = answer("302 Found", headers=["Location: http://elsewhere.example/login?back=1"])
    async with serves(there) as server:
        for error in (await errors(opened(server.url(), **known))).values():
            assert type(error) is RejectedError
            assert "a redirect to elsewhere.example, which is not followed" in error.detail


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "403 Forbidden", "400 Bad Request"])
async def test_a_page_of_a_portal_is_not_believed(
    opened: Open, status: str, known: dict[str, Any]
) -> None:
    """Whether it says yes, or that nothing is there; after a yes a write is unknown."""
    page = answer(status, b"<html>Sign in</html>", ["Content-Type: text/html"])
    async with serves(page) as server:
        found = await errors(opened(server.url(), **known))
    for name, error in found.items():
        expected = (RejectedError, OutcomeUnknownError) if name in WRITES else (RejectedError,)
        assert type(error) in expected
        assert "endpoint" in error.detail


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"kind":7}', b'{"items":{}}', b"\xff\xfe"])
async def test_json_that_is_none_of_the_service_is_not_believed(opened: Open, body: bytes) -> None:
    """Whatever it says."""
    page = answer(body=body, headers=["Content-Type: application/json"])
    async with serves(page) as server:
        store = opened(server.url(), hns=True)
        for name, call in calls(store).items():
            if name in ("delete", "list_tree") and body == b"null":
                continue
            with pytest.raises((RejectedError, OutcomeUnknownError)):
                await call()


@pytest.mark.parametrize("known", KNOWN)
async def test_an_answer_of_a_gigabyte_is_not_read(opened: Open, known: dict[str, Any]) -> None:
    """Whatever was asked; a write that is answered so may have been done."""
    head = answer(headers=[f"Content-Length: {1 << 30}"], length=False)
    async with serves(head + b"{" * 100_000) as server:
        store = opened(server.url(), **known)
        for call in calls(store).values():
            with pytest.raises((RejectedError, OutcomeUnknownError)):
                await call()


async def _reset(seen: Seen, writer: asyncio.StreamWriter) -> None:
    reset(writer)


async def _half(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(headers=["Content-Length: 100"], length=False) + b'{"kind":')
    await writer.drain()
    writer.close()


async def _nonsense(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    await writer.drain()
    writer.close()


async def _drip(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(headers=["Content-Length: 60000"], length=False))
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("script", [_reset, _half, _nonsense])
async def test_a_connection_that_breaks_leaves_a_write_unknown(
    opened: Open, script: Script
) -> None:
    """Reset, in the middle of an answer, or with another protocol."""
    async with RawServer(script) as server:
        found = await errors(opened(server.url(), hns=False))
    assert {name for name, error in found.items() if isinstance(error, OutcomeUnknownError)} == {
        *("put", "delete", "copy", "rename")
    }
    others = {name: error for name, error in found.items() if name not in WRITES}
    assert {type(error) for error in others.values()} == {UnavailableError}


async def test_an_answer_without_an_end_is_given_up(opened: Open) -> None:
    """After the time for a whole request."""
    async with RawServer(_drip) as server:
        store = opened(server.url(), hns=False, timeout=0.2)
        with pytest.raises(UnavailableError):
            await store.head("/p")
        with pytest.raises(OutcomeUnknownError):
            await store.rename("/p", "/q")


@pytest.mark.parametrize("name", ["/a\nb", "/a\rb", "/..", "/a/./b", "/" + "n" * 1025, "/a\ud800"])
async def test_a_name_that_cannot_be_is_refused(
    opened: Open, emulator: GcsEmulator, name: str
) -> None:
    """Before anything is sent, by every method."""
    store = opened(emulator.endpoint)
    asked: list[Callable[[], Awaitable[object]]] = [
        partial(store.head, name),
        partial(store.list, name),
        partial(store.list_tree, name),
        partial(store.get, name, 10),
        partial(store.put, name, b""),
        partial(store.delete, name),
        partial(store.mkdir, name),
        partial(store.copy, name, "/f"),
        partial(store.copy, "/f", name),
        partial(store.rename, name, "/f"),
        partial(store.rename, "/f", name),
    ]
    for call in asked:
        with pytest.raises(RejectedError, match=r"not a valid|bytes|not Unicode|not allowed"):
            await call()
    assert not emulator.weather.requests


async def test_a_token_that_cannot_be_sent_is_refused(opened: Open, emulator: GcsEmulator) -> None:
    """Or kept as it is: nothing of it gets into a header."""
    store = opened(emulator.endpoint)
    info = await store.put("/f", b"", token="a\r\nx-evil: 1")
    assert info.token == "a\r\nx-evil: 1"


async def test_an_object_under_a_hold_says_so(opened: Open) -> None:
    """It cannot be moved or deleted before it is released."""
    options = {BUCKET: BucketOptions(default_event_based_hold=True)}
    async with GcsEmulator(buckets=options) as emulator:
        store = opened(emulator.endpoint)
        info = await store.put("/f", b"data")
        for call in (store.delete("/f"), store.rename("/f", "/g", etag=info.etag)):
            with pytest.raises(RejectedError, match=r"objectUnderActiveHold.*release it"):
                await call
        assert await store.get("/f", 10) == b"data"


async def test_an_object_under_retention_says_until_when(opened: Open) -> None:
    """And a put does not replace it."""
    async with GcsEmulator(buckets={BUCKET: BucketOptions(retention=3600.0)}) as emulator:
        store = opened(emulator.endpoint)
        await store.put("/f", b"data")
        for call in (store.delete("/f"), store.put("/f", b"new")):
            with pytest.raises(RejectedError, match=r"retentionPolicyNotMet.*until 20\d\d-"):
                await call


async def test_a_closed_store_refuses(opened: Open, emulator: GcsEmulator) -> None:
    """Nothing is asked afterwards; it may be closed twice."""
    store = opened(emulator.endpoint)
    with pytest.raises(NotFoundError):
        await store.head("/p")
    await store.aclose()

    with pytest.raises(UnavailableError, match="closed"):
        await store.head("/p")
