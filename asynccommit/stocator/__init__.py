"""Stocator: resolve which files of its tables belong to committed tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.stocator.resolution import Repair, Resolved, repair, resolve
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"resolution": ["Repair", "Resolved", "repair", "resolve"]}
    )

__all__ = ["Repair", "Resolved", "repair", "resolve"]
