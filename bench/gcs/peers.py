"""Clients of others, each at its best, and what their users write around them to commit a job.

All run on uvloop where there is a loop, have as many connections as requests in flight, and send
again what was refused: by themselves if they can.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.loop_thread import submit
from bench.gcs.account import BUCKET, WORKERS, Pair

T = TypeVar("T")

_BATCH = 100
_PASSING = (408, 429, 500, 502, 503, 504)
_TRIES = 8


class Peer(Protocol):
    """A client, and all that a job commit by hand asks of it. Names are those of objects."""

    def load(self, prefix: str) -> list[bytes]:
        """Return the content of every file below ``prefix``."""
        ...

    def move(self, pairs: Sequence[Pair]) -> None:
        """Bring every file to its place."""

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""

    def clear(self, prefix: str) -> None:
        """Delete all that is below ``prefix``."""

    def close(self) -> None:
        """Close connections."""


class Gcsfs:
    """gcsfs: ``mv(list, list)`` by ``moveTo``, the number in flight as given."""

    def __init__(self, host: str, in_flight: int) -> None:
        # Else it asks Google's own gRPC endpoint whether the bucket has folders.
        os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
        from gcsfs import GCSFileSystem

        self._batch = in_flight

        async def opened() -> Any:
            from aiohttp import TCPConnector

            session = {"connector": TCPConnector(limit=in_flight)}
            files = GCSFileSystem(
                token="anon",
                endpoint_url=f"http://{host}",
                asynchronous=True,
                skip_instance_cache=True,
                use_listings_cache=False,
                session_kwargs=session,
            )
            await files._set_session()
            return files

        self._files = submit(opened())

    def load(self, prefix: str) -> list[bytes]:
        """See ``Peer``."""

        async def loaded() -> list[bytes]:
            names = await self._files._find(f"{BUCKET}/{prefix}")
            return list((await self._files._cat(names, batch_size=self._batch)).values())

        return submit(loaded())

    def move(self, pairs: Sequence[Pair]) -> None:
        """See ``Peer``."""
        sources = [BUCKET + pair.source for pair in pairs]
        dests = [BUCKET + pair.dest for pair in pairs]
        submit(self._files._mv(sources, dests, batch_size=self._batch))

    def put(self, name: str, data: bytes) -> None:
        """See ``Peer``."""
        submit(self._files._pipe_file(f"{BUCKET}/{name}", data))

    def clear(self, prefix: str) -> None:
        """See ``Peer``."""

        async def cleared() -> None:
            names = await self._files._find(f"{BUCKET}/{prefix}", withdirs=False)
            await self._files._rm(names, batchsize=_BATCH)

        submit(cleared())

    def close(self) -> None:
        """See ``Peer``."""
        submit(self._files.session.close())


class Aio:
    """gcloud-aio-storage: copy and delete, 64 in flight; it knows neither moves nor batches."""

    def __init__(self, host: str) -> None:
        self._rng = random.Random(3)

        async def opened() -> Any:
            from aiohttp import ClientSession, TCPConnector
            from gcloud.aio.storage import Storage

            self._session = ClientSession(connector=TCPConnector(limit=WORKERS))
            session: Any = self._session
            return Storage(session=session, api_root=f"http://{host}", api_is_dev=True)

        self._storage = submit(opened())

    def load(self, prefix: str) -> list[bytes]:
        """See ``Peer``."""
        found: list[bytes] = []

        async def read(name: str) -> None:
            found.append(await self._again(lambda: self._storage.download(BUCKET, name)))

        self._each(self._names(prefix), read)
        return found

    def move(self, pairs: Sequence[Pair]) -> None:
        """See ``Peer``."""

        async def move(pair: Pair) -> None:
            source, dest = pair.source[1:], pair.dest[1:]
            await self._again(lambda: self._storage.copy(BUCKET, source, BUCKET, new_name=dest))
            await self._again(lambda: self._storage.delete(BUCKET, source))

        self._each(pairs, move)

    def put(self, name: str, data: bytes) -> None:
        """See ``Peer``."""
        submit(self._again(lambda: self._storage.upload(BUCKET, name, data)))

    def clear(self, prefix: str) -> None:
        """See ``Peer``."""

        async def delete(name: str) -> None:
            await self._again(lambda: self._storage.delete(BUCKET, name))

        self._each(self._names(prefix), delete)

    def close(self) -> None:
        """See ``Peer``."""
        submit(self._session.close())

    def _names(self, prefix: str) -> list[str]:
        params = {"prefix": prefix, "maxResults": "5000"}

        async def listed() -> list[str]:
            page = await self._storage.list_objects(BUCKET, params=params)
            assert "nextPageToken" not in page
            return [item["name"] for item in page.get("items", ())]

        return submit(listed())

    def _each(self, items: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
        submit(for_each(items, work, workers=WORKERS))

    async def _again(self, send: Callable[[], Awaitable[T]]) -> T:
        from aiohttp import ClientResponseError

        for number in range(_TRIES):
            try:
                return await send()
            except ClientResponseError as error:
                if error.status not in _PASSING:
                    raise
            await asyncio.sleep(self._rng.random() * 0.1 * 2**number)
        return await send()


class Cloud:
    """google-cloud-storage: 64 threads, ``move_blob``, or copy and delete by ``rename_blob``."""

    def __init__(self, host: str, verb: str) -> None:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud.storage import Client
        from google.cloud.storage.retry import DEFAULT_RETRY
        from requests.adapters import HTTPAdapter

        credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]
        options = {"api_endpoint": f"http://{host}"}
        self._client: Any = Client("bench", credentials=credentials, client_options=options)
        self._client._http.mount("http://", HTTPAdapter(WORKERS, WORKERS))
        self._bucket = self._client.bucket(BUCKET)
        self._move = getattr(self._bucket, verb)
        self._retry = DEFAULT_RETRY  # its default is to give up, without generations
        self._threads = ThreadPoolExecutor(WORKERS)

    def load(self, prefix: str) -> list[bytes]:
        """See ``Peer``."""
        blobs = self._client.list_blobs(self._bucket, prefix=prefix)
        return self._each(lambda blob: blob.download_as_bytes(), blobs)

    def move(self, pairs: Sequence[Pair]) -> None:
        """See ``Peer``."""

        def move(pair: Pair) -> None:
            blob = self._bucket.blob(pair.source[1:])
            self._move(blob, pair.dest[1:], retry=self._retry)

        self._each(move, pairs)

    def put(self, name: str, data: bytes) -> None:
        """See ``Peer``."""
        self._bucket.blob(name).upload_from_string(data)

    def clear(self, prefix: str) -> None:
        """See ``Peer``."""

        def delete(blobs: Sequence[Any]) -> None:
            with self._client.batch():
                for blob in blobs:
                    blob.delete()

        blobs = list(self._client.list_blobs(self._bucket, prefix=prefix))
        self._each(delete, _batches(blobs))

    def close(self) -> None:
        """See ``Peer``."""
        self._threads.shutdown()
        self._client.close()

    def _each(self, work: Callable[[T], Any], items: Iterable[T]) -> list[Any]:
        return list(self._threads.map(work, items))


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[begin : begin + _BATCH] for begin in range(0, len(items), _BATCH))


PEERS: dict[str, Callable[[str], Peer]] = {
    "gcsfs.mv, batch_size=32": partial(Gcsfs, in_flight=32),
    "gcsfs.mv, batch_size=64": partial(Gcsfs, in_flight=64),
    "gcsfs.mv, batch_size=128": partial(Gcsfs, in_flight=128),
    "google move_blob": partial(Cloud, verb="move_blob"),
    "google copy + delete": partial(Cloud, verb="rename_blob"),
    "gcloud-aio copy + delete": Aio,
}
"""Name -> how to open it against a host."""
