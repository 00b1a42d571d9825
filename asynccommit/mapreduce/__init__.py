"""MapReduce: the markers of its application master's commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.mapreduce.commit_window import Heartbeat, MarkerSettings
    from asynccommit.mapreduce.committer import CommitMarkers
    from asynccommit.mapreduce.marker_store import Committed
    from asynccommit.mapreduce.markers import Action, Markers, start_up
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "commit_window": ["Heartbeat", "MarkerSettings"],
            "committer": ["CommitMarkers"],
            "marker_store": ["Committed"],
            "markers": ["Action", "Markers", "start_up"],
        },
    )

__all__ = [
    "Action",
    "CommitMarkers",
    "Committed",
    "Heartbeat",
    "MarkerSettings",
    "Markers",
    "start_up",
]
