"""``python -m bench.adls.client``: one client process, told what to do by ``bench.child.Child``.

Coroutines run on the loop of ``asynccommit.runtime.loop_thread``, as those of a driver program do.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from asynccommit import sync
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.stats import Stats
from bench import trees
from bench.adls import account, senders
from bench.adls.account import Pair
from bench.child import serve
from bench.meter import Meter

_SAMPLE = 0.25


class Client:
    """What the process holds open between two commands."""

    def __init__(self) -> None:
        self._sender: senders.Sender | None = None
        self._store: Wrapped | None = None
        self._pairs: list[Pair] = []

    def open_sender(self, name: str, host: str, count: int) -> None:
        """Open one of ``senders.SENDERS``, and have ``count`` renames ready."""

        async def opened() -> senders.Sender:
            return senders.SENDERS[name](host)

        self._sender = submit(opened())
        self._pairs = account.pairs(count)

    def open_store(
        self,
        host: str,
        count: int = 0,
        library: str | None = None,
        ca_file: str | None = None,
        in_flight: int | None = None,
    ) -> None:
        """Open the account with all that is around its requests."""

        async def opened() -> Wrapped:
            return account.open_account(host, library, ca_file, in_flight)

        self._store = submit(opened())
        self._sender = senders.of_store(self._store)
        self._pairs = account.pairs(count)

    def rename(self, workers: int) -> dict[str, Any]:
        """Send the renames that are ready; return what they took."""
        assert self._sender is not None
        gc.collect()
        return submit(_rename_all(self._sender, self._pairs, workers))

    def press(self, name: str, workers: int, seconds: float) -> list[list[float]]:
        """Send for ``seconds`` as much as the store lets through; return samples.

        Each of ``workers`` moves a file of its own to and fro. A sample is: the time, renames
        done, requests refused, the rate that the store asks at.
        """
        assert self._store is not None
        return submit(_press(self._store, name, workers, seconds))

    def move(self, name: str, workers: int, count: int) -> dict[str, Any]:
        """Rename ``count`` times, each worker a file of its own to and fro; return the time."""
        assert self._store is not None
        gc.collect()
        return submit(_move(self._store, name, workers, count))

    def make_files(self, name: str, workers: int) -> None:
        """Make the files that ``press`` moves."""
        assert self._store is not None
        submit(_make_files(self._store, name, workers))

    def commit(self, host: str) -> dict[str, float]:
        """Commit the job that is at the destination; return what it took.

        ``returned`` are the seconds after which the caller may go on, ``seconds`` those until the
        clean-up has ended.
        """
        options = account.storage_options(host)
        gc.collect()
        cpu, begin = time.process_time(), time.perf_counter()
        sync.job(f"{account.URL}{account.DEST}", trees.JOB_ID, storage_options=options).commit()
        returned = time.perf_counter() - begin
        sync.wait_for_cleanup()
        whole = time.perf_counter() - begin
        return {"seconds": whole, "cpu": time.process_time() - cpu, "returned": returned}

    def close(self) -> None:
        """Close what is open."""
        if self._sender is not None:
            submit(_close(self._sender))
        self._sender = self._store = None


async def _close(sender: senders.Sender) -> None:
    await sender.aclose()


async def _rename_all(
    sender: senders.Sender, pairs: Sequence[Pair], workers: int
) -> dict[str, Any]:
    meter = Meter()
    if sender.every is None:
        await for_each(pairs, sender.rename, workers=workers)
    else:
        await sender.every(pairs, workers)
    return meter.read(len(pairs))


def _file(name: str, number: int) -> str:
    return f"{account.DEST}/{name}/part-{number:05d}.parquet"


async def _make_files(store: Wrapped, name: str, workers: int) -> None:
    await store.mkdir(f"{account.DEST}/{name}")
    files = [_file(name, number) for number in range(workers)]
    await for_each(files, lambda path: store.put(path, b"1"), workers=16)


async def _move(store: Wrapped, name: str, workers: int, count: int) -> dict[str, Any]:
    each = 2 * (count // workers // 2)  # every file ends where it began

    async def to_and_fro(number: int) -> None:
        here, there = _file(name, number), _file(name, number) + ".moved"
        for _ in range(each):
            await store.rename(here, there)
            here, there = there, here

    meter = Meter()
    await for_each(range(workers), to_and_fro, workers=workers)
    return meter.read(each * workers)


async def _press(store: Wrapped, name: str, workers: int, seconds: float) -> list[list[float]]:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    sent = next(_ for _ in store.policies if isinstance(_, Stats) and _.name == "sent")
    pace = next(_ for _ in store.policies if isinstance(_, Adaptive))
    done = 0

    async def move(number: int) -> None:
        nonlocal done
        here, there = _file(name, number), _file(name, number) + ".moved"
        while loop.time() < end:
            await store.rename(here, there)
            here, there = there, here
            done += 1

    samples: list[list[float]] = []

    async def sample(_: int) -> None:
        while loop.time() < end:
            samples.append([loop.time(), done, sent.waits, pace.rate])
            await asyncio.sleep(_SAMPLE)

    work = [partial(move, number) for number in range(workers)] + [partial(sample, 0)]
    await for_each(work, lambda one: one(), workers=len(work))
    return samples


if __name__ == "__main__":
    client = Client()
    serve(
        {
            "open_sender": client.open_sender,
            "open_store": client.open_store,
            "make_files": client.make_files,
            "rename": client.rename,
            "move": client.move,
            "press": client.press,
            "commit": client.commit,
            "close": client.close,
        }
    )
