"""Spark's streaming sink log: read, write, verify and repair it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.errors import (
    SinkLogCorruptError,
    SinkLogError,
    SinkLogForeignError,
    SinkLogGapError,
    SinkLogRaceError,
)
from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.streaming.api import open_sink_log
    from asynccommit.streaming.entries import SinkFile
    from asynccommit.streaming.expire import Discarded
    from asynccommit.streaming.log import Added, SinkLog
    from asynccommit.streaming.settings import SinkLogSettings
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "api": ["open_sink_log"],
            "entries": ["SinkFile"],
            "expire": ["Discarded"],
            "log": ["Added", "SinkLog"],
            "settings": ["SinkLogSettings"],
        },
    )

__all__ = [
    "Added",
    "Discarded",
    "SinkFile",
    "SinkLog",
    "SinkLogCorruptError",
    "SinkLogError",
    "SinkLogForeignError",
    "SinkLogGapError",
    "SinkLogRaceError",
    "SinkLogSettings",
    "open_sink_log",
]
