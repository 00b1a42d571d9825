"""Our own ways to move files of a bucket: the whole stack, and its layers one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol

from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.base import Store
from asynccommit.stores.gcs.wire import encode_raw
from asynccommit.stores.http.base import HttpSettings
from asynccommit.stores.http.client import open_transport
from bench.gcs import account
from bench.gcs.account import WORKERS, Pair
from bench.gcs.peers import Aio, Cloud, Gcsfs

OURS = "ours"


class Mover(Protocol):
    """A client that moves files."""

    def move(self, pairs: Sequence[Pair]) -> None:
        """Bring every file to its place."""

    def close(self) -> None:
        """Close connections."""


class Sender:
    """Moves by one coroutine a file, ``WORKERS`` at a time, on the loop that the engine has."""

    def __init__(
        self, rename: Callable[[Pair], Awaitable[object]], aclose: Callable[[], Awaitable[object]]
    ) -> None:
        self._rename = rename
        self._aclose = aclose

    def move(self, pairs: Sequence[Pair]) -> None:
        """See ``Mover``."""
        submit(for_each(pairs, self._rename, workers=WORKERS))

    def close(self) -> None:
        """See ``Mover``."""

        async def closed() -> None:
            await self._aclose()

        submit(closed())


def of_store(store: Store) -> Sender:
    """Move through a store, as a job commit does."""

    async def rename(pair: Pair) -> None:
        await store.rename(pair.source, pair.dest, etag=pair.etag)

    return Sender(rename, store.aclose)


def stack(library: str) -> Callable[[str], Sender]:
    """Return how to open our store with all its wrappers."""
    return _opener(lambda host: account.open_bucket(host, **_options(library)))


def store_alone(library: str) -> Callable[[str], Sender]:
    """Return how to open our store without any wrapper."""
    return _opener(lambda host: account.bare_store(host, **_options(library)))


def _options(library: str) -> dict[str, Any]:
    # A null server could not answer whether it has folders.
    return {"http_library": library, "hns": False}


def _opener(make: Callable[[str], Store]) -> Callable[[str], Sender]:
    async def opened(host: str) -> Sender:
        return of_store(make(host))

    return lambda host: submit(opened(host))


def transport_alone(library: str) -> Callable[[str], Sender]:
    """Return how to send what our store would, made beforehand."""

    async def opened(host: str) -> Sender:
        transport = open_transport(HttpSettings(connections=128, proxy=""), prefer=library)
        root = f"http://{host}/storage/v1/b/{account.BUCKET}/o"
        query = "fields=generation&ifGenerationMatch=0&ifSourceGenerationMatch=1732190400000000"

        async def rename(pair: Pair) -> None:
            source, dest = encode_raw(pair.source[1:]), encode_raw(pair.dest[1:])
            url = f"{root}/{source}/moveTo/o/{dest}?{query}"
            answer = await transport.send("POST", url, {}, limit=1 << 16)
            assert answer.status == 200

        return Sender(rename, transport.aclose)

    return lambda host: submit(opened(host))


MOVERS: dict[str, Callable[[str], Mover]] = {
    OURS: stack("pyreqwest"),
    "ours, aiohttp": stack("aiohttp"),
    "ours, gcloud-aio": stack("sdk"),
    "store alone": store_alone("pyreqwest"),
    "transport alone": transport_alone("pyreqwest"),
    "transport alone, aiohttp": transport_alone("aiohttp"),
    "gcsfs.mv, batch_size=64": partial(Gcsfs, in_flight=WORKERS),
    "google move_blob": partial(Cloud, verb="move_blob"),
    "google copy + delete": partial(Cloud, verb="rename_blob"),
    "gcloud-aio copy + delete": Aio,
}
"""Name -> how to open it against a host."""
