"""The door to the account: who is let in, what is asked first, and every bad input at once."""

from __future__ import annotations

import asyncio
import base64
import re
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import pytest
from azure.storage.filedatalake import (
    AccountSasPermissions,
    FileSystemSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_file_system_sas,
)

from asynccommit.errors import (
    DeniedError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.adls import store as adls
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.clients import SDK
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.fault_rules import BEFORE, CUT, Fault
from tests.support.servers import RawServer, Seen, answer

FS = "data"
ACCOUNT = "devstoreaccount1"
URL = f"abfs://{FS}@{ACCOUNT}.dfs.core.windows.net/"
OTHER_KEY = base64.b64encode(b"the key of another account, or an old one").decode()
NAMESPACE = {"fs.azure.account.hns.enabled": "true"}

Open = Callable[..., AdlsStore]


@pytest.fixture
async def emulator() -> AsyncIterator[AdlsEmulator]:
    """An emulator with one container."""
    async with AdlsEmulator() as running:
        running.model.create_filesystem(FS)
        yield running


@pytest.fixture(params=[*TRANSPORTS, pytest.param(SDK, marks=pytest.mark.full)])
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Opens stores over each HTTP library, and closes them."""
    stores = []

    def open_store(url: str = URL, host: Host | None = None, **options: Any) -> AdlsStore:
        options = {"http_library": request.param, **options}
        found = {name.replace("__", "."): value for name, value in options.items()}
        stores.append(AdlsStore(parse_url(url), found, environ={}, host=host))
        return stores[-1]

    yield open_store
    for store in stores:
        await store.aclose()


def here(emulator: AdlsEmulator) -> dict[str, Any]:
    """Return the options that lead to an emulator, without a credential."""
    return {"account_host": f"127.0.0.1:{emulator.port}", "use_ssl": False}


def calls(store: AdlsStore) -> list[Callable[[], Awaitable[object]]]:
    """Return a call of each method."""
    return [
        partial(store.head, "/p"),
        partial(store.list, "/p"),
        partial(store.get, "/p", 10),
        partial(store.put, "/p", b"data"),
        partial(store.delete, "/p"),
        partial(store.delete_tree, "/p"),
        partial(store.copy, "/p", "/q"),
        partial(store.rename, "/p", "/q"),
        partial(store.mkdir, "/p"),
    ]


async def errors(store: AdlsStore) -> list[StoreError]:
    """Call every method and return what it raises."""
    found = []
    for call in calls(store):
        with pytest.raises(StoreError) as caught:
            await call()
        found.append(caught.value)
    return found


def shown(error: BaseException) -> str:
    """Return all that can be seen of an error: its text, causes, notes and the calls' arguments."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


def serves(page: bytes) -> RawServer:
    """Return a server with one page for everything, and its head for HEAD."""
    head = page.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(head if seen.line.startswith(b"HEAD") else page)

    return RawServer(script)


class Token(NamedTuple):
    """What a credential object gives."""

    token: str
    expires_on: int


class Tokens:
    """A credential object that gives these tokens one after the other, the last for ever."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.asked = 0

    async def get_token(self, *scopes: str) -> Token:
        """Give the next one."""
        self.asked += 1
        name = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        return Token(name, int(time.time()) + 3600)


# --- credentials that are good ---------------------------------------------------------------


_ALL = dict.fromkeys(("read", "create", "write", "delete", "list"), True)


def _account_sas(emulator: AdlsEmulator) -> dict[str, Any]:
    token = generate_account_sas(
        ACCOUNT,
        emulator.key,
        ResourceTypes(file_system=True, object=True),
        AccountSasPermissions(**_ALL),
        datetime.now(UTC) + timedelta(hours=1),
    )
    return {"sas_token": token}


def _container_sas(emulator: AdlsEmulator) -> dict[str, Any]:
    permission = FileSystemSasPermissions.from_string("racwdlmeop")
    expiry = datetime.now(UTC) + timedelta(hours=1)
    token = generate_file_system_sas(ACCOUNT, FS, emulator.key, permission, expiry)
    return {"sas_token": f"?{token}"}


CREDENTIALS: dict[str, Callable[[AdlsEmulator], dict[str, Any]]] = {
    "key": lambda emulator: {"account_key": emulator.key},
    "account sas": _account_sas,
    "container sas": _container_sas,
    "token": lambda emulator: {"credential": Tokens("good")},
    "connection string": lambda emulator: {"connection_string": emulator.connection_string},
}


@pytest.mark.parametrize("kind", CREDENTIALS)
async def test_every_credential_opens_every_method(
    opened: Open, emulator: AdlsEmulator, kind: str
) -> None:
    """What each method sends is authorised, hostile names included."""
    store = opened(**here(emulator), **CREDENTIALS[kind](emulator))
    await store.mkdir("/a b+c%/é")
    info = await store.put("/a b+c%/f=1", b"data", token="6f0e1d9c-0000-4000-8000-000000000001")
    await store.copy("/a b+c%/f=1", "/a b+c%/g&h")
    await store.rename("/a b+c%/g&h", "/a b+c%/é/ü?#", etag=None)
    await store.rename("/a b+c%/f=1", "/a b+c%/é/f=2", etag=info.etag)
    assert {_.path for _ in (await store.list("/a b+c%/é")).entries} == {
        "/a b+c%/é/ü?#",
        "/a b+c%/é/f=2",
    }
    assert await store.get("/a b+c%/é/f=2", 10) == b"data"
    assert (await store.head("/a b+c%/é/f=2")).etag == info.etag
    await store.delete("/a b+c%/é/f=2")
    await store.delete_tree("/a b+c%")
    assert (await store.list("/")).entries == ()


async def test_an_expired_token_is_renewed_in_mid_job(opened: Open, emulator: AdlsEmulator) -> None:
    """The requests that it was refused to were not done, and go through when sent again."""
    source = Tokens("first-token", "second-token")
    emulator.keyring.tokens = {"first-token", "second-token"}
    store = opened(**here(emulator), credential=source)
    for number in range(8):
        await store.put(f"/f{number}", b"")
    emulator.keyring.expired.add("first-token")

    moves = [store.rename(f"/f{number}", f"/g{number}") for number in range(8)]
    found = await asyncio.gather(*moves, return_exceptions=True)
    if not any(found):  # the pipeline of Azure's client has sent them again itself
        assert source.asked > 1
        return
    assert {type(error) for error in found} == {UnavailableError}
    await asyncio.gather(*(store.rename(f"/f{number}", f"/g{number}") for number in range(8)))
    assert source.asked == 2


async def test_a_token_may_expire_twice_within_a_moment(emulator: AdlsEmulator) -> None:
    """Each new one has been accepted before, so that its refusal is for its age."""
    source = Tokens("token-0", "token-1", "token-2", "token-3")
    emulator.keyring.tokens = {f"token-{number}" for number in range(4)}
    store = AdlsStore(parse_url(URL), {**here(emulator), "credential": source}, environ={})
    await store.put("/f", b"")

    for number in range(3):
        emulator.keyring.expired.add(f"token-{number}")
        with pytest.raises(UnavailableError):
            await store.head("/f")
        await store.head("/f")
    assert source.asked == 4
    await store.aclose()


# --- the namespace ---------------------------------------------------------------------------


async def test_the_account_is_asked_once_about_its_namespace(
    opened: Open, emulator: AdlsEmulator
) -> None:
    """However many requests come first at the same time."""
    store = opened(connection_string=emulator.connection_string)
    await asyncio.gather(*(store.mkdir(f"/d{number}") for number in range(20)))
    await store.list("/")

    assert emulator.weather.requests["access"] == 1


async def test_an_account_that_is_said_to_have_directories_is_not_asked(
    opened: Open, emulator: AdlsEmulator
) -> None:
    """Hadoop's option says so."""
    await opened(connection_string=emulator.connection_string, **NAMESPACE).mkdir("/d")

    assert emulator.weather.requests["access"] == 0


@pytest.mark.parametrize("said", [{}, {"fs.azure.account.hns.enabled": "false"}])
async def test_a_flat_account_is_refused(opened: Open, said: dict[str, str]) -> None:
    """At the first use of any method, with what is needed; it is asked once at most."""
    async with AdlsEmulator(hns=False) as flat:
        flat.model.create_filesystem(FS)
        found = await errors(opened(connection_string=flat.connection_string, **said))

        assert {type(error) for error in found} == {RejectedError}
        assert all("hierarchical namespace" in error.detail for error in found)
        assert sum(flat.weather.requests.values()) == (0 if said else 1)


async def test_a_failed_question_is_asked_again(opened: Open, emulator: AdlsEmulator) -> None:
    """That the account cannot be reached is no answer; all who wait share one attempt."""
    emulator.weather.add(Fault(BEFORE, "access", code="ServerBusy", times=1))
    store = opened(connection_string=emulator.connection_string)

    found = await asyncio.gather(
        *(store.mkdir(f"/d{number}") for number in range(5)), return_exceptions=True
    )
    assert [type(error).__name__ for error in found] == ["ThrottledError"] * 5
    await store.mkdir("/d")
    assert emulator.weather.requests["access"] == 2


async def test_a_write_that_waits_for_the_question_has_not_been_sent(
    opened: Open, emulator: AdlsEmulator
) -> None:
    """That the question is not answered leaves nothing unknown."""
    emulator.weather.add(Fault(CUT, "access"))

    with pytest.raises(UnavailableError):
        await opened(connection_string=emulator.connection_string).rename("/f", "/g")


async def test_whoever_may_not_ask_about_access_asks_for_the_container(
    opened: Open, emulator: AdlsEmulator
) -> None:
    """A second question tells the same."""
    emulator.weather.add(Fault(BEFORE, "access", code="AuthorizationPermissionMismatch"))
    await opened(connection_string=emulator.connection_string).mkdir("/d")

    assert emulator.weather.requests["filesystem"] == 1


async def test_whoever_may_ask_neither_is_told_what_helps(
    opened: Open, emulator: AdlsEmulator
) -> None:
    """A permission, or an option."""
    for op in ("access", "filesystem"):
        emulator.weather.add(Fault(BEFORE, op, code="AuthorizationPermissionMismatch"))
    store = opened(connection_string=emulator.connection_string)

    with pytest.raises(DeniedError, match=r"SAS: e.*fs\.azure\.account\.hns\.enabled=true"):
        await store.mkdir("/d")


# --- bad input -------------------------------------------------------------------------------


async def test_a_wrong_key_is_told(opened: Open, emulator: AdlsEmulator) -> None:
    """By every method, and the key is in none of the errors."""
    store = opened(**here(emulator), account_name=ACCOUNT, account_key=OTHER_KEY)
    found = await errors(store)

    assert {type(error) for error in found} == {DeniedError}
    assert all("account key does not belong to the account" in error.detail for error in found)
    assert not any(OTHER_KEY in shown(error) for error in found)
    assert OTHER_KEY not in repr(store)


async def test_an_expired_sas_is_told(opened: Open, emulator: AdlsEmulator) -> None:
    """With the time, and without the signature."""
    expiry = datetime.now(UTC) - timedelta(minutes=1)
    permission = FileSystemSasPermissions.from_string("racwdlmeop")
    token = generate_file_system_sas(ACCOUNT, FS, emulator.key, permission, expiry)
    signature = re.search("sig=([^&]+)", token)
    assert signature
    store = opened(**here(emulator), sas_token=token)

    for error in await errors(store):
        assert type(error) is DeniedError
        assert f"expired at {expiry:%Y-%m-%d}" in error.detail
        assert signature[1] not in shown(error)
    assert signature[1] not in repr(store)


async def test_a_sas_of_another_container_is_told(opened: Open, emulator: AdlsEmulator) -> None:
    """It is not signed for this one."""
    expiry = datetime.now(UTC) + timedelta(hours=1)
    permission = FileSystemSasPermissions.from_string("racwdlmeop")
    token = generate_file_system_sas(ACCOUNT, "other", emulator.key, permission, expiry)

    with pytest.raises(DeniedError, match="is the token complete, and of this account"):
        await opened(**here(emulator), sas_token=token).head("/p")


async def test_a_sas_that_permits_too_little_is_told(opened: Open, emulator: AdlsEmulator) -> None:
    """With the letters that a commit needs."""
    expiry = datetime.now(UTC) + timedelta(hours=1)
    token = generate_file_system_sas(
        ACCOUNT, FS, emulator.key, FileSystemSasPermissions.from_string("rle"), expiry
    )

    with pytest.raises(DeniedError, match="the letters racwdlme"):
        await opened(**here(emulator), sas_token=token, **NAMESPACE).mkdir("/p")


async def test_a_token_that_is_not_accepted_is_told(opened: Open, emulator: AdlsEmulator) -> None:
    """And is in no error; asking the credential again brings the same."""
    emulator.keyring.tokens = {"another"}
    store = opened(**here(emulator), credential=Tokens("eyJ0eXAi.secret"))

    for error in await errors(store):
        assert type(error) is DeniedError
        assert "is it from the account's tenant" in error.detail
        assert "eyJ0eXAi.secret" not in shown(error)


async def test_a_token_that_is_refused_twice_is_told(
    opened: Open, emulator: AdlsEmulator, request: pytest.FixtureRequest
) -> None:
    """The error has the kind of the identity, and no token."""
    if request.node.callspec.params["opened"] == SDK:
        pytest.skip("Azure's client keeps the token that was refused")

    class ManagedIdentityCredential(Tokens):
        """Is named like the one of azure.identity."""

    emulator.keyring.tokens = {"another"}
    identity = ManagedIdentityCredential("eyJ0eXAi.first", "eyJ0eXAi.second")
    store = opened(**here(emulator), credential=identity)
    with pytest.raises(UnavailableError):
        await store.head("/p")

    for error in await errors(store):
        assert type(error) is DeniedError
        assert re.search(
            r"the token of the managed identity was refused twice within \d+ s", error.detail
        )
        assert "eyJ0eXAi." not in shown(error)


async def test_no_credential_at_all_is_told(opened: Open, emulator: AdlsEmulator) -> None:
    """With the names of options."""
    with pytest.raises(DeniedError, match="account_key, sas_token or credential"):
        await opened(**here(emulator), anon=True).head("/p")


@pytest.mark.parametrize("skew, said", [(3600, "60 min ahead of"), (-86_400 * 3, "3 days behind")])
async def test_a_wrong_clock_is_told(
    opened: Open, emulator: AdlsEmulator, skew: float, said: str, request: pytest.FixtureRequest
) -> None:
    """With the difference, because the service's message is about the signature."""
    if request.node.callspec.params["opened"] == SDK:
        pytest.skip("Azure's client signs with the clock of the system, which is right here")
    host = this_host()
    late = Host(lambda: time.time() + skew, host.new_id, host.rng)
    store = opened(host=late, connection_string=emulator.connection_string)

    with pytest.raises(DeniedError, match=f"clock is {said} the service's: set it"):
        await store.head("/p")


async def test_a_missing_container_is_told(opened: Open, emulator: AdlsEmulator) -> None:
    """It is no missing path, which some callers take for a yes."""
    url = URL.replace("data@", "gone@")
    found = await errors(opened(url, connection_string=emulator.connection_string))

    assert {type(error) for error in found} == {RejectedError}
    assert all("no container 'gone'" in error.detail for error in found)


async def test_a_missing_account_is_told(opened: Open) -> None:
    """Its host is not known anywhere."""
    store = opened("abfss://data@nosuchaccount.dfs.core.invalid/", account_key=OTHER_KEY)

    with pytest.raises(UnavailableError, match="is nosuchaccount the account's name"):
        await store.head("/p")


async def test_a_closed_port_is_told(opened: Open, unused_tcp_port: int) -> None:
    """Nothing was done."""
    store = opened(account_host=f"http://127.0.0.1:{unused_tcp_port}", account_key=OTHER_KEY)

    for error in await errors(store):
        assert type(error) is UnavailableError
        assert "cannot connect" in error.detail


def test_an_account_that_is_none_is_told() -> None:
    """Before anything is sent."""
    with pytest.raises(OptionError, match="'my_account' is not the name of a storage account"):
        AdlsStore(parse_url("abfss://data@my_account.dfs.core.windows.net/"), environ={})


@pytest.mark.parametrize("known", [{}, NAMESPACE])
async def test_a_redirect_is_told_and_not_followed(opened: Open, known: dict[str, str]) -> None:
    """Credentials are for one host."""
    there = answer("302 Found", headers=["Location: http://elsewhere.example/login?back=1"])
    async with serves(there) as server:
        store = opened(account_host=server.url()[:-1], account_key=OTHER_KEY, **known)
        for error in await errors(store):
            assert type(error) in (RejectedError, OutcomeUnknownError)
            assert "a redirect to elsewhere.example, which is not followed" in error.detail


@pytest.mark.parametrize(
    "page",
    [
        answer(body=b"<html>Sign in</html>", headers=["Content-Type: text/html"]),
        answer("404 Not Found", b"<html>no such page</html>", ["Content-Type: text/html"]),
        answer("201 Created", b"<html>hello</html>", ["Content-Type: text/html"]),
    ],
    ids=["200", "404", "201"],
)
async def test_an_answer_that_is_none_of_the_service_is_told(opened: Open, page: bytes) -> None:
    """A portal that says yes, or that nothing is there, is not believed."""
    async with serves(page) as server:
        found = await errors(opened(account_host=server.url()[:-1], account_key=OTHER_KEY))

    assert {type(error) for error in found} == {RejectedError}
    assert all("unlike a Data Lake endpoint (text/html)" in error.detail for error in found)


async def test_a_listing_that_is_no_json_is_told(opened: Open) -> None:
    """Although it comes with all that the service's answers have."""
    page = answer(body=b"<html>", headers=["x-ms-request-id: 1"])
    async with serves(page) as server:
        store = opened(account_host=server.url()[:-1], account_key=OTHER_KEY, **NAMESPACE)
        with pytest.raises(RejectedError, match=r"not a listing.*a Data Lake endpoint"):
            await store.list("/p")


async def test_a_listing_that_is_cut_short_is_asked_again(opened: Open) -> None:
    """Its length is right, and its end is missing: the next answer may be whole."""
    page = answer(body=b'{"paths":[{"name":"p/', headers=["x-ms-request-id: 1"])
    async with serves(page) as server:
        store = opened(account_host=server.url()[:-1], account_key=OTHER_KEY, **NAMESPACE)
        with pytest.raises(UnavailableError, match="cut short"):
            await store.list("/p")


async def test_a_status_without_etag_is_told(opened: Open) -> None:
    """It says nothing of a file."""
    async with serves(answer(headers=["x-ms-request-id: 1"])) as server:
        store = opened(account_host=server.url()[:-1], account_key=OTHER_KEY, **NAMESPACE)
        with pytest.raises(RejectedError, match="has no ETag"):
            await store.head("/p")


@pytest.mark.parametrize("known", [{}, NAMESPACE])
async def test_an_answer_of_a_gigabyte_is_not_read(opened: Open, known: dict[str, str]) -> None:
    """Whatever was asked; a write that is answered so may have been done."""
    head = answer(headers=["x-ms-request-id: 1", f"Content-Length: {1 << 30}"], length=False)
    async with serves(head + b"{" * 100_000) as server:
        store = opened(account_host=server.url()[:-1], account_key=OTHER_KEY, **known)
        for call in calls(store)[1:]:
            with pytest.raises((RejectedError, OutcomeUnknownError)):
                await call()


@pytest.mark.parametrize(
    "bad", ["a\nb", "a\r\nx-ms-version: 1", "é\ud800", "\0"], ids=["lf", "crlf", "surrogate", "nul"]
)
async def test_a_header_that_cannot_be_sent_is_refused(
    opened: Open, emulator: AdlsEmulator, bad: str
) -> None:
    """An etag comes from a manifest, which others write."""
    store = opened(connection_string=emulator.connection_string)
    await store.put("/f", b"")
    for options in ({"etag": bad}, {"token": bad}):
        with pytest.raises(RejectedError):
            await store.rename("/f", "/g", **options)  # type: ignore[arg-type]
    assert (await store.head("/f")).path == "/f"


async def test_a_name_with_a_dot_at_its_end_is_refused(
    opened: Open, emulator: AdlsEmulator
) -> None:
    """Before anything is sent, by every method."""
    store = opened(connection_string=emulator.connection_string)
    for name in ("/a.", "/a./b", "/..."):
        for call in (store.head, store.list, store.mkdir, store.delete, store.delete_tree):
            with pytest.raises(RejectedError, match="ends in a dot, which ADLS removes"):
                await call(name)
        with pytest.raises(RejectedError, match="ends in a dot"):
            await store.put(name, b"")
        for source, dest in ((name, "/f"), ("/f", name)):
            with pytest.raises(RejectedError, match="ends in a dot"):
                await store.rename(source, dest)
    assert not emulator.weather.requests


async def test_a_closed_store_refuses(opened: Open, emulator: AdlsEmulator) -> None:
    """Nothing is asked afterwards; it may be closed twice."""
    store = opened(connection_string=emulator.connection_string)
    with pytest.raises(NotFoundError):
        await store.head("/p")
    await store.aclose()

    with pytest.raises(UnavailableError, match="closed"):
        await store.head("/p")


async def test_an_account_that_the_host_does_not_have_is_told(
    opened: Open, emulator: AdlsEmulator
) -> None:
    """It is not taken for a path where nothing is."""
    options = {**here(emulator), "account_name": "anotheraccount", "account_key": OTHER_KEY}
    found = await errors(opened("az://data/t", **options))

    assert NotFoundError not in {type(error) for error in found}


async def test_a_deletion_without_an_end_is_given_up(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that always has one part more is not asked for ever."""
    monkeypatch.setattr(adls, "_PARTS", 5)
    page = answer(headers=["x-ms-request-id: 1", "x-ms-continuation: more"])
    async with serves(page) as server:
        store = opened(account_host=server.url()[:-1], account_key=OTHER_KEY, **NAMESPACE)
        with pytest.raises(RejectedError, match="not deleted after 5 requests"):
            await store.delete_tree("/t")
        assert len(server.seen) == 5
