"""Define the fault dialect of Google Cloud Storage.

Pass it to ``Weather``, ``Climate.from_json`` and ``Fault.from_json``.
"""

from __future__ import annotations

from collections.abc import Mapping

from asynccommit.testing.models.fault_rules import Dialect
from asynccommit.testing.models.gcs.refusals import REASONS, GcsRefusal, refuse

OPS = (
    *("insert", "get", "read", "list", "patch", "delete", "rewrite", "move", "compose"),
    *("folder", "rename_folder", "operation", "layout", "bucket", "batch", "upload"),
)
"""The names of operations in rules, besides ``*``."""


def _refuse(
    code: str, message: str | None = None, headers: Mapping[str, str] | None = None
) -> GcsRefusal:
    return refuse(code, message, headers=headers)


GCS = Dialect(
    name="gcs",
    ops=OPS,
    codes=REASONS,
    busy="rateLimitExceeded",
    timed_out="backendError",
    refuse=_refuse,
)
