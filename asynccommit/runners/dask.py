"""Workers of a Dask cluster, by its client."""

from __future__ import annotations

import asyncio
from typing import Any

from asynccommit.errors import UnsupportedError
from asynccommit.runners.cluster import Cluster, missing
from asynccommit.runners.desk import Parcel, do


class DaskWorkers(Cluster):
    """Workers of a Dask cluster for a commit.

    Args:
        client: the cluster's; by default the client that is current.
        workers: number of slices at once; by default that of the workers, at most 4.
    """

    name = "dask"

    def __init__(self, client: Any = None, workers: int | None = None) -> None:
        super().__init__(workers)
        self._client = client

    async def connect(self) -> int:
        """See ``Cluster.connect``."""
        try:
            from distributed import default_client
        except ImportError as error:
            raise missing("dask", error) from None
        try:
            self._client = self._client or default_client()  # type: ignore[no-untyped-call]
        except ValueError:
            raise UnsupportedError("no Client of Dask is open in this program") from None
        if self._client.asynchronous:
            raise UnsupportedError("the Client is asynchronous: open one with asynchronous=False")
        return len(await asyncio.to_thread(self._client.nthreads))

    async def _run(self, parcel: Parcel) -> bytes:
        """See ``Cluster._run``."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        future = self._client.submit(do, parcel, pure=False, retries=0)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
        try:
            await ended.wait()
        except asyncio.CancelledError:
            future.cancel()
            raise
        answer: bytes = await asyncio.to_thread(future.result)
        return answer
