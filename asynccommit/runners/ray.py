"""Tasks of Ray."""

from __future__ import annotations

import asyncio
from typing import Any

from asynccommit.errors import UnsupportedError
from asynccommit.runners.cluster import Cluster, missing
from asynccommit.runners.desk import Parcel, do


class RayWorkers(Cluster):
    """Tasks of the Ray that this program is connected to, for a commit.

    Args:
        workers: number of slices at once; by default that of the CPUs, at most 4.
        options: of the tasks, such as ``num_cpus`` or ``resources``.
    """

    name = "ray"

    def __init__(self, workers: int | None = None, **options: Any) -> None:
        super().__init__(workers)
        self._options = {**options, "max_retries": 0}
        self._remote: Any = None

    async def connect(self) -> int:
        """See ``Cluster.connect``."""
        try:
            import ray
        except ImportError as error:
            raise missing("ray", error) from None
        if not ray.is_initialized():
            raise UnsupportedError("this program is not connected to a Ray: call ray.init first")
        self._remote = ray.remote(do).options(**self._options)
        resources = await asyncio.to_thread(ray.cluster_resources)
        return int(resources.get("CPU", 1))

    async def _run(self, parcel: Parcel) -> bytes:
        """See ``Cluster._run``."""
        import ray

        task = self._remote.remote(parcel)
        try:
            answer: bytes = await asyncio.wrap_future(task.future())
        except asyncio.CancelledError:
            ray.cancel(task, force=False)
            raise
        return answer
