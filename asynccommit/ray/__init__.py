"""Ray Data: a sink whose write tasks are the tasks of one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.ray.datasink import Sink
else:
    __getattr__, __dir__ = lazy_names(__name__, {"datasink": ["Sink"]})

__all__ = ["Sink"]
