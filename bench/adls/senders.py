"""What can rename a file on the account: our stack, its layers one by one, and Azure's own SDK."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from asynccommit.commit.context import CommitContext, CommitIdentity, Environment
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.spill import Entry
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.rename_files import RenameFiles
from asynccommit.options.job import Options
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Store
from asynccommit.stores.http.base import HttpSettings, Transport
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.urls import parse_url
from bench import trees
from bench.adls import account
from bench.adls.account import Pair

T = TypeVar("T")


class Sender(NamedTuple):
    """A way to rename: ``rename`` once for each pair, ``aclose`` at the end.

    Or all of them at once by ``every``, with so many workers.
    """

    rename: Callable[[Pair], Awaitable[object]]
    aclose: Callable[[], Awaitable[object]]
    every: Callable[[Sequence[Pair], int], Awaitable[object]] | None = None


def stack(library: str) -> Callable[[str], Sender]:
    """Return how to open our store with all its wrappers."""
    return lambda host: of_store(account.open_account(host, library))


def commit(library: str) -> Callable[[str], Sender]:
    """Return how to rename as the step of a job commit, under a lease's check."""
    return lambda host: of_commit(account.open_account(host, library))


def of_commit(store: Store) -> Sender:
    """Rename through a store by the step of a job commit."""

    async def every(pairs: Sequence[Pair], workers: int) -> None:
        layout = Layout(parse_url(f"{account.URL}{account.DEST}"), trees.JOB_ID)
        environment = Environment(store, this_host(), store)
        run = CommitContext.new(environment, layout, Options(workers=workers))
        identity = CommitIdentity("8f3c1d5e-7b0a-4c58-9d3e-0123456789ab", epoch=1)
        run = replace(run, identity=identity)
        with LoadedManifests(run.options, store.traits) as loaded:
            entries = [Entry(pair.source, pair.dest, 1, pair.etag) for pair in pairs]
            await loaded.spill.append(entries)
            loaded.sources.update(entry.source.rpartition("/")[0] for entry in entries)
            plan = Plan(loaded)
            await RenameFiles().do(run, plan, Settled(run, plan))
        assert run.promise.renamed == len(pairs)

    return Sender(of_store(store).rename, store.aclose, every)


def store_alone(library: str) -> Callable[[str], Sender]:
    """Return how to open our store without any wrapper."""
    return lambda host: of_store(account.bare_store(host, library))


def of_store(store: Store) -> Sender:
    """Rename through a store, as a job commit does."""

    async def rename(pair: Pair) -> None:
        await store.rename(pair.source, pair.dest, etag=pair.etag, token=pair.token)

    return Sender(rename, store.aclose)


def transport_alone(library: str) -> Callable[[str], Sender]:
    """Return how to send what our store would, made beforehand."""

    def open_it(host: str) -> Sender:
        settings = HttpSettings(connections=128, proxy="")
        return _of_transport(open_transport(settings, prefer=library), host)

    return open_it


def _of_transport(transport: Transport, host: str) -> Sender:
    root = f"/{account.ACCOUNT}/{account.FILESYSTEM}"
    headers = {
        "x-ms-version": "2024-11-04",
        "x-ms-date": "Sat, 21 Nov 2026 12:00:00 GMT",
        "x-ms-source-if-match": f'"{account.ETAG}"',
        "x-ms-client-transaction-id": "8f3c1d5e-7b0a-4c58-9d3e-0123456789ab",
        "x-ms-client-request-id": "8f3c1d5e-7b0a-4c58-9d3e-0123456789ab",
        "if-none-match": "*",
        "authorization": f"SharedKey {account.ACCOUNT}:{'A' * 43}=",
    }

    async def rename(pair: Pair) -> None:
        answer = await transport.send(
            "PUT",
            f"http://{host}{root}{pair.dest}?mode=legacy",
            {**headers, "x-ms-rename-source": f"/{account.FILESYSTEM}{pair.source}"},
            limit=1 << 20,
        )
        assert answer.status == 201

    return Sender(rename, transport.aclose)


def sdk(host: str) -> Sender:
    """Open azure-storage-file-datalake's asynchronous client, its retries off."""
    from azure.core import MatchConditions
    from azure.storage.filedatalake.aio import DataLakeServiceClient

    client = DataLakeServiceClient(
        f"http://{host}/{account.ACCOUNT}",
        credential={"account_name": account.ACCOUNT, "account_key": account.KEY},
        retry_total=0,
    )

    async def rename(pair: Pair) -> None:
        file = client.get_file_client(account.FILESYSTEM, pair.source[1:])
        await file.rename_file(
            f"{account.FILESYSTEM}{pair.dest}",
            source_etag=pair.etag,
            source_match_condition=MatchConditions.IfNotModified,
            match_condition=MatchConditions.IfMissing,
        )

    return Sender(rename, client.close)


SENDERS: dict[str, Callable[[str], Sender]] = {
    "commit": commit("pyreqwest"),
    "ours": stack("pyreqwest"),
    "ours, aiohttp": stack("aiohttp"),
    "ours, azure sdk": stack("sdk"),
    "azure sdk": sdk,
    "store alone": store_alone("pyreqwest"),
    "transport alone": transport_alone("pyreqwest"),
    "transport alone, aiohttp": transport_alone("aiohttp"),
}
"""Name -> how to open it against a host."""
