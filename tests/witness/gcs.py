"""Google's clients for tests: of an emulator, without waits between their attempts."""

from __future__ import annotations

import asyncio
import gc
import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest

from asynccommit.testing.emulators.gcs.emulator import GcsEmulator, GcsEmulatorThread
from asynccommit.testing.models.fault_rules import Fault
from asynccommit.testing.models.gcs.bucket import WEEK, BucketOptions
from asynccommit.testing.models.gcs.model import GcsLimits
from asynccommit.testing.models.gcs.refusals import GCS

BUCKETS = {
    "data": BucketOptions(soft_delete=WEEK),
    "tree": BucketOptions(hns=True, soft_delete=WEEK),
    "versions": BucketOptions(versioning=True),
}
"""What the fixture ``gcs`` begins with: flat, with folders, and with versions."""

Folders = tuple[Any, list[str]]
"""A client of folders, and the methods that were asked for."""

# Not "a\nb": the service has no such names.
HARD_NAMES = (
    *("a b/c", "é/日本", "100% or/50%", "x+y=z&w", "#?[x]{y}|^`<>", "~!$&'()*,;@:", "😀", "a%2Fb"),
    *('"quoted"', "back\\slash", "p=a b%25/x"),
)


def sdk(module: str = "", package: str = "google.cloud.storage") -> Any:
    """Return the SDK or one of its modules, which have no types."""
    return importlib.import_module(f"{package}.{module}" if module else package)


def gcsfs(module: str) -> Any:
    """Return a module of gcsfs, which has none either."""
    return importlib.import_module(f"gcsfs.{module}")


@contextmanager
def open_client(endpoint: str, **options: Any) -> Iterator[Any]:
    """Yield the SDK's client of a server; it has no credentials, and waits for nothing."""
    anonymous = sdk("auth.credentials", "google").AnonymousCredentials()
    chosen = {"project": "project", "credentials": anonymous, **options}
    retry = sdk("retry.retry_unary", "google.api_core")
    cache = sdk("_bucket_metadata_cache").BucketMetadataCache
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "exponential_sleep_generator", lambda *_, **__: repeat(0.0))
        # It would ask about the bucket on a thread of its own, also when it has been closed.
        patch.setattr(cache, "get_or_queue_fetch", lambda *_: None)
        with sdk().Client(client_options={"api_endpoint": endpoint}, **chosen) as client:
            # It leaves the answers to downloads that were refused open.
            answers: list[Any] = []
            client._http.hooks["response"].append(lambda answer, **_: answers.append(answer))
            yield client
            for answer in answers:
                answer.close()


def start_again(emulator: GcsEmulator) -> None:
    """Let an emulator be as it was at its start."""
    emulator.reset()
    emulator.keyring.tokens, emulator.keyring.expired = None, set()
    emulator.set_pages(GcsLimits()._asdict())


def fault_of(kind: str, op: str, **more: Any) -> Fault:
    """Return a fault that strikes once, unless told otherwise."""
    return Fault.from_json({"kind": kind, "op": op, "times": 1, **more}, dialect=GCS)


def strike(emulator: GcsEmulatorThread, kind: str, op: str, **more: Any) -> None:
    """Let the next request of a kind meet a fault."""
    found = fault_of(kind, op, **more)
    emulator.do(lambda running: running.weather.add(found))


def asked(emulator: GcsEmulatorThread) -> dict[str, int]:
    """Return how many requests there were, by operation."""
    return emulator.do(lambda running: dict(running.weather.requests))


def names(bucket: Any, prefix: str = "") -> list[str]:
    """Return the names of a bucket's objects."""
    return [blob.name for blob in bucket.list_blobs(prefix=prefix)]


def answer_of(error: Any) -> tuple[int, str]:
    """Return status and reason of the answer that an error of the SDK stands for."""
    return int(error.code), str(error.errors[0]["reason"])


def write(bucket: Any, name: str, data: bytes = b"1") -> Any:
    """Upload a small object, and return its blob."""
    blob = bucket.blob(name)
    blob.upload_from_string(data)
    return blob


@contextmanager
def open_files(emulator: GcsEmulatorThread, folders: Any = None, **options: Any) -> Iterator[Any]:
    """Yield gcsfs, which waits for nothing: its older class, or the newer one.

    The newer one asks ``folders``, a client, what kind a bucket is, and for folders.
    """
    newer = folders is not None
    kind = gcsfs("extended_gcsfs").ExtendedGcsFileSystem if newer else gcsfs("core").GCSFileSystem

    async def client(_: Any) -> Any:
        return folders

    place = {"endpoint_url": emulator.endpoint, "project": "project", "token": "anon"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gcsfs("retry"), "asyncio", SimpleNamespace(sleep=_no_wait))
        patch.setattr(kind, "_get_control_plane_client", client, raising=newer)
        files = kind(skip_instance_cache=True, **{**place, **options})
        try:
            yield files
        finally:
            asyncio.run_coroutine_threadsafe(_close(files), files.loop).result(10)


async def _no_wait(_: float) -> None:
    await asyncio.sleep(0)


async def _close(files: Any) -> None:
    if hasattr(files, "_close_resources"):
        await files._close_resources()
    if files._session is not None:
        await files._session.close()


@contextmanager
def open_folders(address: str) -> Iterator[Any]:
    """Yield Google's client of folders, without TLS, on the loop where gcsfs does its work."""
    loop = importlib.import_module("fsspec.asyn").get_loop()
    client = sdk("storage_control_v2", "google.cloud").StorageControlAsyncClient

    async def open_one() -> Any:
        channel = sdk("aio", "grpc").insecure_channel(address)
        return client(transport=client.get_transport_class("grpc_asyncio")(channel=channel))

    opened = asyncio.run_coroutine_threadsafe(open_one(), loop).result(10)
    yield opened
    asyncio.run_coroutine_threadsafe(opened.transport.close(), loop).result(10)
    del opened
    with warnings.catch_warnings(action="ignore"):  # gRPC leaves a socket of its own open
        gc.collect()


def tree(files: Any, root: str, *, dirs: bool = False) -> list[str]:
    """Return what is in a bucket, as gcsfs finds it now."""
    files.invalidate_cache()
    return [name.removeprefix(f"{root}/") for name in files.find(root, withdirs=dirs)]
