"""One large file of a task, written in chunks: memory and time, beside the services' own clients.

``python -m bench.stream CLIENT ENDPOINT MEBIBYTES`` is one client, in a process of its own.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from asynccommit import open_job
from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from asynccommit.testing.models.gcs.model import BucketOptions

FULL, LARGE, QUICK = 1_000, 5_000, 256
"""Mebibytes of a file: beside others, of ours alone, and where the bench is to be quick."""
WHOLE = 64
"""Mebibytes of a client's file that it sends in one request, which the emulator has to take."""
MEMORY = 64
"""Mebibytes that ours may take."""
_CHUNK = bytes(range(256)) * 4096  # a MiB
_ACCOUNT = "devstoreaccount1"


async def _ours(url: str, options: dict[str, Any], mebibytes: int) -> None:
    async with (
        open_job(url, storage_options=options) as job,
        job.task(0) as task,
        await task.open("file") as file,
    ):
        for _ in range(mebibytes):
            await file.write(_CHUNK)


async def _ours_adls(endpoint: str, name: str, mebibytes: int) -> None:
    url = f"abfs://data@{_ACCOUNT}.dfs.core.windows.net/{name}"
    await _ours(url, {"connection_string": endpoint}, mebibytes)


async def _ours_gcs(endpoint: str, name: str, mebibytes: int) -> None:
    await _ours(f"gs://data/{name}", {"endpoint_url": endpoint, "token": "anon"}, mebibytes)


async def _azure(endpoint: str, name: str, mebibytes: int) -> None:
    from azure.storage.filedatalake.aio import DataLakeServiceClient

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(mebibytes):
            yield _CHUNK

    async with DataLakeServiceClient.from_connection_string(endpoint) as service:
        file = service.get_file_client("data", name)
        length = mebibytes * len(_CHUNK)
        await file.upload_data(chunks(), length=length, overwrite=True, max_concurrency=4)


async def _gcloud_aio(endpoint: str, name: str, mebibytes: int) -> None:
    from aiohttp import ClientSession
    from gcloud.aio.storage import Storage

    with tempfile.TemporaryFile() as file:  # it takes a file, not chunks
        for _ in range(mebibytes):
            file.write(_CHUNK)
        file.seek(0)
        async with ClientSession() as session:
            made: Any = session
            storage = Storage(session=made, api_root=endpoint, api_is_dev=True)
            await storage.upload("data", name, file, force_resumable_upload=True, timeout=600)


_CLIENTS: dict[str, Callable[[str, str, int], Awaitable[None]]] = {
    "ours, ADLS": _ours_adls,
    "azure-storage-file-datalake[aio]": _azure,
    "ours, GCS": _ours_gcs,
    "gcloud-aio-storage": _gcloud_aio,
}


def run(*, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure every client; return what each of them took."""
    rows = {}
    for name in _CLIENTS:
        size = WHOLE if name == "gcloud-aio-storage" else QUICK if quick else FULL
        rows[name] = _measure(name, size)
        say(f"stream: {name} {rows[name]['seconds']:.1f} s")
    if not quick:
        for name in ("ours, ADLS", "ours, GCS"):
            rows[f"{name}, large"] = _measure(name, LARGE)
    return {"memory": MEMORY, "rows": rows}


def _measure(name: str, mebibytes: int) -> dict[str, Any]:
    """Run one client in a process of its own, against an emulator of this one."""
    if name in ("ours, GCS", "gcloud-aio-storage"):
        with running_gcs_emulator(buckets={"data": BucketOptions()}) as gcs:
            return _child(name, gcs.endpoint, mebibytes)
    with running_emulator(filesystems=["data"]) as adls:
        return _child(name, adls.connection_string, mebibytes)


def _child(name: str, endpoint: str, mebibytes: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.stream", name, endpoint, str(mebibytes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "One large file of a task, written a MiB at a time, in a process of its own"
    for name, row in result["rows"].items():
        yield (
            f"  {name:34} {row['mebibytes']:6,} MiB {row['seconds']:8.1f} s, "
            f"CPU {row['cpu']:6.2f} s, {row['peak_mebibytes']:7.0f} MiB of memory"
        )
    yield f"  target of ours: {result['memory']} MiB of memory"


def measure(name: str, endpoint: str, mebibytes: int) -> dict[str, Any]:
    """Write a small file, then the large one, and return what the large one took."""
    client = _CLIENTS[name]
    asyncio.run(_one(client, endpoint, "warm", 1))
    gc.collect()
    before, begin, cpu = _memory("VmRSS"), time.perf_counter(), time.process_time()
    asyncio.run(_one(client, endpoint, "large", mebibytes))
    return {
        "mebibytes": mebibytes,
        "seconds": time.perf_counter() - begin,
        "cpu": time.process_time() - cpu,
        "peak_mebibytes": (_memory("VmHWM") - before) / (1 << 20),
    }


async def _one(
    client: Callable[[str, str, int], Awaitable[None]], endpoint: str, name: str, mebibytes: int
) -> None:
    await client(endpoint, name, mebibytes)


def _memory(field: str) -> int:
    """Return resident memory in bytes: as of now (``VmRSS``) or its peak (``VmHWM``)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    return 0


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
