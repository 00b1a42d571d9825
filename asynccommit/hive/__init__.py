"""Hive: find duplicate task output, and publish the rest to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.hive.deduplication import Dedup, dedup
    from asynccommit.hive.empty_files import Format
    from asynccommit.hive.names import HiveRules
    from asynccommit.hive.places import Published
    from asynccommit.hive.publishing import discard, publish
    from asynccommit.hive.scan import Reading
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "deduplication": ["Dedup", "dedup"],
            "empty_files": ["Format"],
            "names": ["HiveRules"],
            "places": ["Published"],
            "publishing": ["discard", "publish"],
            "scan": ["Reading"],
        },
    )

__all__ = ["Dedup", "Format", "HiveRules", "Published", "Reading", "dedup", "discard", "publish"]
