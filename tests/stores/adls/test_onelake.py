"""OneLake, by the emulator's mode of that name: places, credentials, what Fabric manages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from azure.core.credentials import AzureSasCredential
from azure.storage.filedatalake.aio import DataLakeServiceClient

from asynccommit.api import open_job
from asynccommit.errors import (
    CommitError,
    ExistsError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
)
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.base import Store, Streaming
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.stores.tree import list_all
from asynccommit.stores.urls import decode_uri, parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.adls.onelake import guid_of
from asynccommit.testing.models.fault_rules import AFTER, Fault
from tests.support import contract
from tests.support.contract import RULES, Rule, name_of
from tests.support.contract_streaming import STREAMING_RULES, StreamingRule
from tests.support.servers import RawServer, Seen, answer

WORKSPACE = "My Work_Space"
ITEM = "Sales.Lakehouse"
FILES = f"/{ITEM}/Files"
HOST = "onelake.dfs.fabric.microsoft.com"
URL = f"abfss://{WORKSPACE}@{HOST}"
KEY = "a2V5IG9mIGFuIGFjY291bnQ="
TOKEN = str(UUID(int=1))


class Tokens:
    """A credential that gives one token."""

    def get_token(self, *_: str) -> Any:
        """Return it."""
        return SimpleNamespace(token="token", expires_on=4e9)


def options(emulator: AdlsEmulator) -> dict[str, Any]:
    """Return the options that lead to the emulator."""
    host = emulator.endpoint.partition("://")[2]
    return {"credential": Tokens(), "account_host": host, "use_ssl": False}


@pytest.fixture
async def emulator() -> AsyncIterator[AdlsEmulator]:
    """OneLake with one workspace and one item."""
    async with AdlsEmulator(onelake={WORKSPACE: [ITEM]}) as running:
        yield running


@pytest.fixture(params=TRANSPORTS)
async def store(request: pytest.FixtureRequest, emulator: AdlsEmulator) -> AsyncIterator[AdlsStore]:
    """The store of that workspace."""
    settings = {**options(emulator), "http_library": request.param}
    opened = AdlsStore(parse_url(URL), settings, environ={})
    yield opened
    await opened.aclose()


@pytest.mark.rotate("store", keep=1)
@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store keeps the rule; names that end in a dot apart, which the service does not keep."""
    monkeypatch.setattr(contract, "NAMES", [name for name in contract.NAMES if name[-1] != "."])
    await store.mkdir(f"{FILES}/root")
    await rule(store, f"{FILES}/root")


@pytest.mark.rotate("store", keep=1)
@pytest.mark.parametrize("rule", STREAMING_RULES, ids=name_of)
async def test_streams(rule: StreamingRule, store: AdlsStore) -> None:
    """Files that are sent in blocks keep their rules."""
    store.traits = replace(store.traits, streaming=Streaming(1 << 10, at_once=4))
    await rule(store, f"{FILES}/root")


# --- addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url, path",
    [
        (URL, f"{FILES}/a"),
        (URL.replace(" ", "%20"), f"{FILES}/a"),
        (f"abfss://{WORKSPACE}@westus-{HOST}", f"{FILES}/a"),
        (f"abfss://{WORKSPACE}@{HOST.replace('.dfs.', '.blob.')}", f"{FILES}/a"),
        (
            f"abfss://{guid_of(WORKSPACE)}@{HOST}",
            f"/{guid_of(f'{WORKSPACE}/{ITEM}')}/Files/a",
        ),
    ],
)
async def test_every_address_leads_to_the_same_file(
    url: str, path: str, emulator: AdlsEmulator
) -> None:
    """By name or GUID, in a region or by the global host."""
    emulator.model.create(WORKSPACE, f"{ITEM}/Files/a")
    store = AdlsStore(parse_url(url), options(emulator), environ={})
    assert (await store.head(path)).path == path
    assert [info.path for info in await list_all(store, path.rpartition("/")[0])] == [path]
    await store.aclose()


def test_requests_go_to_the_host_of_the_url() -> None:
    """The region is kept, and the blob endpoint becomes the other one."""
    settings = {"credential": Tokens()}
    region = AdlsStore(parse_url(f"abfss://W_1@WestUS-{HOST}/"), settings, environ={})
    assert region.traits.account == f"adls:westus-{HOST}"
    blob = f"https://{HOST.replace('.dfs.', '.blob.')}"
    adlfs = {"account_name": "onelake", "account_host": blob, **settings}
    assert AdlsStore(parse_url("az://W_1/"), adlfs, environ={}).traits.account == f"adls:{HOST}"


def test_a_space_of_a_workspace_is_encoded_in_manifests() -> None:
    """As Hadoop writes it, so that the same place has one name."""
    there = parse_url(f"{URL}{FILES}/a b")
    assert there.encode() == f"abfss://My%20Work_Space@{HOST}{FILES}/a%20b"
    assert decode_uri(there.encode()) == there


def test_capitals_and_spaces_are_of_onelake_alone() -> None:
    """A container of a storage account has neither."""
    with pytest.raises(OptionError, match="has no container"):
        AdlsStore(parse_url("abfss://My Data@acct.dfs.core.windows.net/"), {"account_key": KEY})


# --- credentials -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, named",
    [
        ({"account_key": KEY}, "account_key"),
        ({"sas_token": "sv=1&sig=c2ln"}, "sas_token"),
        ({"connection_string": f"AccountName=onelake;AccountKey={KEY}"}, "connection_string"),
        ({"credential": KEY}, "credential"),
        ({"anon": True}, "anon"),
        ({"fs.azure.account.key": KEY}, "fs.azure.account.key"),
        ({f"fs.azure.account.key.{HOST}": KEY}, "fs.azure.account.key"),
        ({"fs.azure.sas.fixed.token": "sig=c2ln"}, "fs.azure.sas.fixed.token"),
    ],
)
def test_keys_and_signatures_are_refused_by_name(given: dict[str, Any], named: str) -> None:
    """Before any request, and with what may be given instead."""
    with pytest.raises(OptionError, match=rf"^{named} is given, but OneLake takes only tokens"):
        AdlsStore(parse_url(URL), given, environ={})


def test_a_key_in_the_environment_is_of_an_account() -> None:
    """OneLake is reached by the identity of the machine then."""
    told = AdlsStore(parse_url(URL), {}, environ={"AZURE_STORAGE_ACCOUNT_KEY": KEY})
    assert type(told._client._credential).__name__ == "AzureTokens"


async def test_a_client_with_a_signature_is_refused() -> None:
    """A pipeline would send what OneLake refuses."""
    client = DataLakeServiceClient(f"https://{HOST}", credential=AzureSasCredential("sig=x"))
    with pytest.raises(OptionError, match="client has no token credential"):
        AdlsStore(parse_url(URL), {"http_library": "sdk", "client": client}, environ={})
    await client.close()


# --- what Fabric manages ---------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", f"/{ITEM}", FILES])
async def test_managed_directories_are_there(path: str, store: AdlsStore) -> None:
    """They are seen, made again without a change, and never new."""
    assert (await store.head(path)).is_dir
    await store.mkdir(path)
    with pytest.raises(ExistsError):
        await store.mkdir_new(path)


@pytest.mark.parametrize("path", ["/Other.Lakehouse", f"/{ITEM}/Other", "/Other.Lakehouse/Files"])
async def test_managed_directories_are_not_made(path: str, store: AdlsStore) -> None:
    """The error says who makes them, and where one may write."""
    for make in (store.mkdir, store.mkdir_new):
        with pytest.raises(RejectedError, match=r"Fabric makes and deletes .*below one of those"):
            await make(path)


async def test_managed_directories_are_neither_moved_nor_deleted(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """Nor is anything put beside them; no request is sent for it."""
    await store.put(f"{FILES}/a", b"")
    emulator.weather.requests.clear()
    for refused in (
        store.delete_tree(FILES),
        store.delete(f"/{ITEM}"),
        store.rename(FILES, f"{FILES}/b/c"),
        store.rename(f"{FILES}/a", f"/{ITEM}/Other"),
        store.put(f"/{ITEM}/a", b""),
        store.copy(f"{FILES}/a", f"/{ITEM}/a"),
    ):
        with pytest.raises(RejectedError, match="Fabric makes"):
            await refused
    assert emulator.weather.requests["read"] == emulator.weather.requests.total()


async def test_a_new_file_may_be_the_first_in_a_managed_folder(store: AdlsStore) -> None:
    """Its temporary file is beside it, since nothing may be beside the folder."""
    await store.put(f"{FILES}/a", b"one", overwrite=False)
    with pytest.raises(ExistsError):
        await store.put(f"{FILES}/a", b"two", overwrite=False)
    assert [info.path for info in await list_all(store, FILES)] == [f"{FILES}/a"]


async def test_a_job_above_the_managed_folders_is_told_where_to_write(
    emulator: AdlsEmulator,
) -> None:
    """Its own directory is refused by the service, which tells no reason."""
    with pytest.raises(CommitError, match=r"403 .* below ITEM\.Lakehouse/Files or Tables"):
        async with open_job(f"{URL}/{ITEM}", storage_options=options(emulator), mode="append"):
            raise AssertionError("no task runs")


async def test_a_workspace_is_asked_for_its_properties() -> None:
    """HEAD of them is documented, an ETag in the answer is not."""

    async def answers(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(headers=["x-ms-request-id: 1"]))

    async with RawServer(answers) as server:
        settings = {"account_host": server.url()[:-1], "credential": Tokens()}
        store = AdlsStore(parse_url(URL), settings, environ={})
        assert (await store.head("/")).is_dir
        await store.aclose()
    line = b"HEAD /onelake/My%20Work_Space?resource=filesystem HTTP/1.1"
    assert [seen.line for seen in server.seen] == [line]


# --- what is ignored -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ignored, act",
    [
        ("if-none-match", lambda it: it.mkdir_new(f"{FILES}/new")),
        ("if-none-match", lambda it: it.put(f"{FILES}/new", b"x")),
        ("if-none-match", lambda it: it.rename(f"{FILES}/a", f"{FILES}/b")),
        ("x-ms-source-if-match", lambda it: it.put(f"{FILES}/new", b"x")),
        ("x-ms-client-transaction-id", lambda it: it.put(f"{FILES}/new", b"x", token=TOKEN)),
        (
            "x-ms-client-transaction-id",
            lambda it: it.rename(f"{FILES}/a", f"{FILES}/b", token=TOKEN),
        ),
    ],
)
async def test_an_ignored_condition_or_token_is_a_refusal(
    ignored: str, act: Any, store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """The request was done without it, so its success means nothing."""
    emulator.model.create(WORKSPACE, f"{ITEM}/Files/a")
    emulator.ignored = (ignored,)
    with pytest.raises(RejectedError, match=rf"has ignored {ignored} \(x-ms-rejected-headers\)"):
        await act(store)


async def test_an_ignored_condition_ends_a_job_before_its_tasks(emulator: AdlsEmulator) -> None:
    """Its first write is in the job's own directory."""
    emulator.ignored = ("if-none-match",)
    with pytest.raises((CommitError, RejectedError), match="has ignored if-none-match"):
        async with open_job(f"{URL}{FILES}/t", storage_options=options(emulator)):
            raise AssertionError("no task runs")


# --- lost responses --------------------------------------------------------------------------


async def test_a_lost_answer_to_a_rename_is_unknown(
    store: AdlsStore, emulator: AdlsEmulator
) -> None:
    """It has happened, with its token, by which it is recognised."""
    await store.put(f"{FILES}/a", b"x")
    emulator.weather.add(Fault(AFTER, op="rename", times=1))
    with pytest.raises(OutcomeUnknownError):
        await store.rename(f"{FILES}/a", f"{FILES}/b", token=TOKEN)
    assert (await store.head(f"{FILES}/b")).token == TOKEN
    with pytest.raises(NotFoundError):
        await store.head(f"{FILES}/a")


async def test_a_lost_answer_to_a_put_is_settled(store: AdlsStore, emulator: AdlsEmulator) -> None:
    """By the temporary file, which the move has taken away."""
    emulator.weather.add(Fault(AFTER, op="rename", times=1))
    info = await store.put(f"{FILES}/a", b"x", overwrite=False)
    assert (await store.head(f"{FILES}/a")).etag == info.etag
    with pytest.raises(PreconditionError):
        await store.rename(f"{FILES}/a", f"{FILES}/b", etag="0x1")
