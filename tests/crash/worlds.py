"""The stores on which jobs die in memory, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.crashes import ModelWorld, OneLakeWorld, SimWorld, Watch
from tests.support.express_crashes import KINDS as EXPRESS_KINDS
from tests.support.express_crashes import ExpressWorld
from tests.support.gcs_crashes import GcsWorld
from tests.support.hdfs_crashes import BatchWorld, HdfsWorld

GCS = ("flat", "hns", "steps")
"""Buckets: flat, with folders, and on a server that knows no moves."""
EXPRESS = tuple(EXPRESS_KINDS)
"""Directory buckets of S3, which answer the undocumented questions in both ways."""
HDFS: Mapping[str, type[HdfsWorld]] = {"hdfs": HdfsWorld, "batches": BatchWorld}
"""HDFS, and with directories that are listed and moved several in a call."""
ACCOUNTS: Mapping[str, type[SimWorld]] = {"adls": SimWorld, "onelake": OneLakeWorld}
"""An account of ADLS, and a managed folder of OneLake."""
FLAT = (*GCS, *EXPRESS)
"""Those without directories of their own."""
KINDS = ("adls", "hdfs", *FLAT)
SETTLING = ("adls", *FLAT)
"""Those that tell whose a directory is whose creation had no response; HDFS does not."""


def new_world(kind: str = "adls", seed: int = 0, watch: Watch | None = None) -> ModelWorld:
    """Return an empty world of one of ``KINDS``, ``ACCOUNTS`` or ``HDFS``.

    ``watch`` looks at it after every change.
    """
    if kind in ACCOUNTS:
        return ACCOUNTS[kind].new(seed, watch)
    if kind in HDFS:
        return HDFS[kind].new(seed, watch)
    if kind in EXPRESS:
        return ExpressWorld.new(kind, seed, watch)
    return GcsWorld.new(kind, seed, watch)
