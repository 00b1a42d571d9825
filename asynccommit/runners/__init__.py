"""Other processes that do slices of a commit, here or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.commit.orders import Order, Runner, Slice, Tally, WorkerLostError
    from asynccommit.runners.dask import DaskWorkers
    from asynccommit.runners.processes import Processes
    from asynccommit.runners.ray import RayWorkers
    from asynccommit.runners.spark import SparkWorkers
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "asynccommit.commit.orders": ["Order", "Runner", "Slice", "Tally", "WorkerLostError"],
            "dask": ["DaskWorkers"],
            "processes": ["Processes"],
            "ray": ["RayWorkers"],
            "spark": ["SparkWorkers"],
        },
    )

__all__ = [
    "DaskWorkers",
    "Order",
    "Processes",
    "RayWorkers",
    "Runner",
    "Slice",
    "SparkWorkers",
    "Tally",
    "WorkerLostError",
]
