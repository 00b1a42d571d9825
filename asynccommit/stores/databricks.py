"""Paths that Databricks maps to objects of a cloud, which are refused.

Databricks documents that files of a volume are written from beginning to end only, without appends,
and that a move by its utilities is a copy and a delete. Nothing says that a rename below
``/Volumes`` or ``/dbfs`` is atomic, or that it never replaces.
"""

from __future__ import annotations

from collections.abc import Mapping

from asynccommit.errors import UnsupportedError
from asynccommit.stores.urls import Address

VARIABLE = "DATABRICKS_RUNTIME_VERSION"
"""The variable that Databricks sets in the processes of its clusters."""

_SCHEME = "dbfs"
_MOUNTED = ("/Volumes/", "/dbfs/")


def refuse_mapped(address: Address, environ: Mapping[str, str]) -> None:
    """Refuse ``dbfs:`` and, on a cluster of Databricks, paths it maps.

    Elsewhere the same paths are those of a disk, as on macOS. Raises ``UnsupportedError``.
    """
    mapped = address.scheme == "file" and f"{address.path}/".startswith(_MOUNTED)
    if address.scheme == _SCHEME or (mapped and VARIABLE in environ):
        raise UnsupportedError(
            f"{address} is mapped by Databricks to objects of a cloud, and nothing documents that "
            "its renames are atomic and never replace: write to the URL of the storage behind it "
            "(abfss://, s3://, gs://), that of an external location or an external volume"
        )
