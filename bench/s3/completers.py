"""Clients that complete uploads: ours, its layers one by one, and those of others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Protocol

from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.multipart import MultipartStore
from bench.s3 import account
from bench.s3.account import BUCKET, KEY, REGION, SECRET, WORKERS, Pending

OURS = "ours"


class Completer(Protocol):
    """A client that completes uploads."""

    def complete(self, uploads: Sequence[Pending]) -> None:
        """Complete them all."""

    def close(self) -> None:
        """Close connections."""


class Sender:
    """Completes by one coroutine an upload, ``WORKERS`` at a time, on the loop of the engine."""

    def __init__(
        self, one: Callable[[Pending], Awaitable[object]], aclose: Callable[[], Awaitable[object]]
    ) -> None:
        self._one = one
        self._aclose = aclose

    def complete(self, uploads: Sequence[Pending]) -> None:
        """See ``Completer``."""
        submit(for_each(uploads, self._one, workers=WORKERS))

    def close(self) -> None:
        """See ``Completer``."""

        async def closed() -> None:
            await self._aclose()

        submit(closed())


def of_store(store: MultipartStore) -> Sender:
    """Complete through a store, as a job commit does."""

    async def complete(upload: Pending) -> None:
        await store.complete_upload(f"/{upload.key}", upload.upload_id, upload.parts)

    return Sender(complete, store.aclose)


def _opener(make: Callable[[str], MultipartStore]) -> Callable[[str], Sender]:
    async def opened(host: str) -> Sender:
        return of_store(make(host))

    return lambda host: submit(opened(host))


def stack(library: str) -> Callable[[str], Sender]:
    """Return how to open our store with all its wrappers."""
    return _opener(lambda host: account.open_bucket(host, http_library=library))


def store_alone(library: str) -> Callable[[str], Sender]:
    """Return how to open our store without any wrapper."""
    return _opener(lambda host: account.bare_store(host, http_library=library))


def aiobotocore(host: str) -> Sender:
    """Complete by aiobotocore, with as many connections as there are requests in flight."""

    async def opened() -> Sender:
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session

        stack = AsyncExitStack()
        config = AioConfig(max_pool_connections=WORKERS, s3={"addressing_style": "path"})
        made = get_session().create_client("s3", config=config, **_client(host))
        client: Any = await stack.enter_async_context(made)

        async def complete(upload: Pending) -> None:
            await client.complete_multipart_upload(**_request(upload))

        return Sender(complete, stack.aclose)

    return submit(opened())


class Boto3:
    """boto3, in as many threads as there are requests in flight."""

    def __init__(self, host: str) -> None:
        import botocore.session
        from botocore.config import Config

        config = Config(max_pool_connections=WORKERS, s3={"addressing_style": "path"})
        self._client = botocore.session.get_session().create_client(
            "s3", config=config, **_client(host)
        )
        self._pool = ThreadPoolExecutor(WORKERS)

    def complete(self, uploads: Sequence[Pending]) -> None:
        """See ``Completer``."""
        for done in self._pool.map(self._one, uploads):
            assert done["ETag"]

    def _one(self, upload: Pending) -> Any:
        return self._client.complete_multipart_upload(**_request(upload))

    def close(self) -> None:
        """See ``Completer``."""
        self._pool.shutdown()
        self._client.close()


def _client(host: str) -> dict[str, Any]:
    return {
        "endpoint_url": f"http://{host}",
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "region_name": REGION,
    }


def _request(upload: Pending) -> dict[str, Any]:
    parts = [
        {"PartNumber": number, "ETag": part.etag} for number, part in enumerate(upload.parts, 1)
    ]
    return {
        "Bucket": BUCKET,
        "Key": upload.key,
        "UploadId": upload.upload_id,
        "MultipartUpload": {"Parts": parts},
    }


COMPLETERS: dict[str, Callable[[str], Completer]] = {
    OURS: stack("pyreqwest"),
    "ours, aiohttp": stack("aiohttp"),
    "store alone": store_alone("pyreqwest"),
    "aiobotocore": aiobotocore,
    "botocore, 64 threads": partial(Boto3),
}
"""Name -> how to open it against a host."""
