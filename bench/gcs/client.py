"""``python -m bench.gcs.client``: one client process, told what to do by ``bench.child.Child``."""

from __future__ import annotations

import gc
import time
from typing import Any

from asynccommit import sync
from asynccommit.formats.manifest import decode_manifest
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.base import BulkStore, Info
from asynccommit.stores.tree import tree_pages
from bench import trees
from bench.child import serve
from bench.gcs import account
from bench.gcs.account import Pair
from bench.gcs.movers import MOVERS, OURS, Mover
from bench.gcs.peers import PEERS, Peer
from bench.meter import Meter

_MANIFESTS = f"{trees.job_attempt_dir(account.DEST)[1:]}/manifests/"


class Client:
    """What the process holds open between two commands."""

    def __init__(self) -> None:
        self._peer: Peer | None = None
        self._mover: Mover | None = None
        self._pairs: list[Pair] = []

    def open_mover(self, name: str, host: str, count: int) -> None:
        """Open one of ``MOVERS``, and have ``count`` renames ready."""
        self._mover = MOVERS[name](host)
        self._pairs = account.pairs(count)

    def move(self) -> dict[str, Any]:
        """Send the renames that are ready; return what they took."""
        assert self._mover is not None
        gc.collect()
        meter = Meter()
        self._mover.move(self._pairs)
        return meter.read(len(self._pairs))

    def close(self) -> None:
        """Close what is open."""
        for opened in (self._mover, self._peer):
            if opened is not None:
                opened.close()
        self._mover = self._peer = None

    def commit(self, name: str, host: str, options: dict[str, Any]) -> dict[str, float]:
        """Commit the job that is at the destination; return what it took.

        By ours with these options of the store, or by hand with one of ``PEERS``.
        """
        if name != OURS and self._peer is None:
            self._peer = PEERS[name](host)
        gc.collect()
        cpu, begin = time.process_time(), time.perf_counter()
        if self._peer is not None:
            moving = _by_hand(self._peer)
        else:
            told = account.storage_options(host, **options)
            report = sync.job(
                f"{account.URL}{account.DEST}", trees.JOB_ID, storage_options=told
            ).commit()
            sync.wait_for_cleanup()
            moving = report.stages["job_stage_rename_files"]
        return {
            "seconds": time.perf_counter() - begin,
            "moving_seconds": moving,
            "cpu": time.process_time() - cpu,
        }

    def delete(self, host: str, folder: str, size: int, in_flight: int) -> dict[str, float]:
        """Delete the files of a folder, ``size`` in a request; return what it took."""
        return submit(_delete(host, folder, size, in_flight))


def _by_hand(peer: Peer) -> float:
    """Commit as one does who has such a client; return the seconds of the moves."""
    manifests = [decode_manifest(data, "manifest") for data in peer.load(_MANIFESTS)]
    skip = len(account.URL)
    pairs = [
        Pair(entry.source[skip:], entry.dest[skip:], entry.etag or "")
        for manifest in manifests
        for entry in manifest.files
    ]
    begin = time.perf_counter()
    peer.move(pairs)
    moving = time.perf_counter() - begin
    peer.put(f"{account.DEST[1:]}/_SUCCESS", b"{}")
    peer.clear(f"{account.DEST[1:]}/_temporary/")
    return moving


async def _delete(host: str, folder: str, size: int, in_flight: int) -> dict[str, float]:
    store = account.open_bucket(host, max_concurrency=in_flight)
    try:
        found = [info async for page in tree_pages(store, f"/{folder}") for info in page]
        sets = [found[begin : begin + size] for begin in range(0, len(found), size)]
        gc.collect()
        meter = Meter()
        await for_each(sets, lambda some: _delete_set(store, some), workers=in_flight)
        return meter.read(len(found))
    finally:
        await store.aclose()


async def _delete_set(store: BulkStore, entries: list[Info]) -> None:
    left = entries
    while left:
        said = await store.delete_many(left)
        left = [info for info, error in zip(left, said, strict=True) if error is not None]


if __name__ == "__main__":
    client = Client()
    serve(
        {
            "open_mover": client.open_mover,
            "move": client.move,
            "commit": client.commit,
            "delete": client.delete,
            "close": client.close,
        }
    )
