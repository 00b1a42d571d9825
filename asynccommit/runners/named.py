"""The runners that options name."""

from __future__ import annotations

import os

from asynccommit.commit.orders import Runner
from asynccommit.runners.cluster import MOST, Cluster
from asynccommit.runners.dask import DaskWorkers
from asynccommit.runners.processes import Processes
from asynccommit.runners.ray import RayWorkers
from asynccommit.runners.spark import SparkWorkers

_FILES = 700_000
"""Number of files from which processes save more time than their start takes."""
_CORES = 4
_CLUSTERS: dict[str, type[Cluster]] = {
    "dask": DaskWorkers,
    "ray": RayWorkers,
    "spark": SparkWorkers,
}


def runner_named(name: str) -> Runner | None:
    """Return the runner that ``asynccommit.workers`` names; ``None`` for none.

    The name is as ``options.values.runner`` returns it.
    """
    cores = os.cpu_count() or 1
    kind, _, number = name.partition(":")
    if kind in _CLUSTERS:
        return _CLUSTERS[kind](workers=int(number) if number else None)
    if kind == "processes":
        return Processes(int(number) if number else min(MOST, cores))
    if kind == "auto" and cores >= _CORES:
        return Processes(min(MOST, cores // 2), _FILES)
    return None
