"""``python -m bench.bulk.client``: one client process, told what to do by ``bench.child.Child``."""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from asynccommit.engine import FileRename, list_tree, rename_files
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from bench import noop, trees
from bench.adls import account as adls
from bench.child import serve
from bench.gcs import account as gcs
from bench.gcs.peers import Gcsfs
from bench.memory import memory

_IN_FLIGHT = 64


def move(
    kind: str, name: str, host: str, shape: list[int], rate: float | None = None
) -> dict[str, Any]:
    """Rename all files that the tasks of a job have left, one by one."""
    tasks, files, partitions = shape
    pairs = list(_pairs(trees.Shape(tasks, files, partitions)))
    mover = _MOVERS[kind, name]
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    counted = mover(host, pairs, rate)
    taken = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    return taken | counted


def _pairs(shape: trees.Shape) -> Iterator[tuple[str, str]]:
    for task in range(shape.tasks):
        work = trees.work_dir(adls.DEST, task)
        for name in shape.names(task):
            yield f"{work}/{name}", f"{adls.DEST}/{name}"


def _ours(store: Wrapped, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Rename with the etags of a listing, which make a lost response known."""
    dests = dict(pairs)

    async def listed() -> AsyncIterator[FileRename]:
        async for info in list_tree(store, trees.job_attempt_dir(adls.DEST)):
            if info.path in dests:
                yield FileRename(info.path, dests[info.path], info.etag, info.size)

    async def renamed() -> dict[str, Any]:
        report = await rename_files(store, listed())
        await store.aclose()
        assert report.done == len(pairs)
        return {"requests": report.requests, "refused": report.refused}

    return submit(renamed())


def _ours_adls(host: str, pairs: list[tuple[str, str]], rate: float | None) -> dict[str, Any]:
    settings = StoreSettings(random.Random(1), rate=rate, options=adls.storage_options(host))
    return _ours(open_store(parse_url(adls.URL), settings), pairs)


def _ours_gcs(host: str, pairs: list[tuple[str, str]], rate: float | None) -> dict[str, Any]:
    return _ours(gcs.open_bucket(host), pairs)


def _adlfs(host: str, pairs: list[tuple[str, str]], rate: float | None) -> dict[str, Any]:
    """``mv`` of adlfs: it copies all files and then deletes them."""
    from adlfs import AzureBlobFileSystem

    text = (
        f"DefaultEndpointsProtocol=http;AccountName={adls.ACCOUNT};AccountKey={adls.KEY};"
        f"BlobEndpoint=http://{host}/{adls.ACCOUNT};"
    )
    files = AzureBlobFileSystem(connection_string=text, max_concurrency=_IN_FLIGHT)
    files.mv(
        [adls.FILESYSTEM + source for source, _ in pairs],
        [adls.FILESYSTEM + dest for _, dest in pairs],
        batch_size=_IN_FLIGHT,
    )
    return {}


def _gcsfs(host: str, pairs: list[tuple[str, str]], rate: float | None) -> dict[str, Any]:
    """``mv`` of gcsfs by ``moveTo``, at its best number in flight."""
    peer = Gcsfs(host, _IN_FLIGHT)
    peer.move([gcs.Pair(source, dest, "") for source, dest in pairs])
    peer.close()
    return {}


_MOVERS: dict[
    tuple[str, str], Callable[[str, list[tuple[str, str]], float | None], dict[str, Any]]
] = {
    ("adls", "ours"): _ours_adls,
    ("adls", "adlfs"): _adlfs,
    ("gcs", "ours"): _ours_gcs,
    ("gcs", "gcsfs"): _gcsfs,
}


def renamed_nowhere(count: int) -> dict[str, Any]:
    """Rename pairs from a generator over a store that does nothing; return memory and time."""

    def pairs(wanted: int) -> Iterator[FileRename]:
        for number in range(wanted):
            parent = f"day={number % 1_000}"
            yield FileRename(f"/in/{parent}/part-{number}", f"/out/{parent}/part-{number}", "etag")

    nowhere = noop.NoopStore(trees.Shape(1, 1, 1), keep=False)
    submit(rename_files(nowhere, pairs(1_000)))
    gc.collect()
    before, began = memory("VmRSS"), time.perf_counter()
    report = submit(rename_files(nowhere, pairs(count)))
    seconds = time.perf_counter() - began
    assert report.done == count
    return {
        "pairs": count,
        "peak_growth_megabytes": memory("VmHWM") - before,
        "seconds": seconds,
        "microseconds": seconds / count * 1e6,
    }


if __name__ == "__main__":
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    serve({"move": move, "renamed_nowhere": renamed_nowhere})
