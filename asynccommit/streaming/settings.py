"""Read the settings of a streaming sink log, under Spark's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from asynccommit.errors import OptionError
from asynccommit.options.checked import Within, check_fields, show
from asynccommit.options.values import Reader, boolean, count, within_bounds
from asynccommit.streaming.entries import MAX_BYTES

_PREFIX = "spark.sql.streaming.fileSink.log."
INTERVAL = f"{_PREFIX}compactInterval"
DELETION = f"{_PREFIX}deletion"
DELAY = f"{_PREFIX}cleanupDelay"
KEEP = "spark.sql.streaming.minBatchesToRetain"
RETENTION = "retention"
ADOPT = "asynccommit.sink.adopt"
ANYWHERE = "asynccommit.sink.begin.anywhere"

_TIME = re.compile(r"([0-9]{1,15})\s*([a-z]{0,3})", re.ASCII).fullmatch
_UNITS = {"": 1e-3, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


_AGE = Within(0, 100 * 365 * 86_400, "seconds")


@dataclass(frozen=True, slots=True)
class SinkLogSettings:
    """The settings of a log; the defaults are Spark's.

    Attributes:
        interval: batches from one compact file to the next, if the log itself does not determine
            it. Until there is a compact file, readers use their own setting, 10.
        deletion: delete obsolete log files after each batch.
        cleanup_delay: seconds to keep an obsolete file, for readers that have just listed it.
        keep: minimum number of batches to keep.
        retention: seconds after which a file of the table is removed from the log, at the next
            compaction; ``None`` for never.
        adopt: treat batches that do not name their writer, as Spark's own sink writes them, as this
            query's.
        begin_anywhere: a log without batches may begin with any batch number.
        max_bytes: maximum size of one log file.
    """

    interval: Annotated[int, Within(1, 1_000_000, "batches")] = 10
    deletion: bool = True
    cleanup_delay: Annotated[float, _AGE] = 600.0
    keep: Annotated[int, Within(1, 1_000_000_000, "batches")] = 100
    retention: Annotated[float | None, _AGE] = None
    adopt: bool = False
    begin_anywhere: bool = False
    max_bytes: Annotated[int, Within(1, 4 << 30, "bytes")] = MAX_BYTES

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def from_conf(cls, conf: Mapping[str, str]) -> SinkLogSettings:
        """Read settings under Spark's names; other keys are ignored.

        Args:
            conf: Spark's configuration, overridden by the options of the stream.

        Raises:
            OptionError: a value is invalid.
        """
        given: dict[str, Any] = {
            name: within_bounds(cls, name, key, read(key, _text(key, conf[key])))
            for key, (name, read) in _KEYS.items()
            if key in conf
        }
        return cls(**given)


def _text(key: str, value: object) -> str:
    """Return a value as text.

    Raises ``OptionError`` unless it is text or a number.
    """
    if isinstance(value, str | bool | int | float):
        return value if isinstance(value, str) else str(value).lower()
    raise OptionError(f"{key} is {show(value)}: expected text")


def _seconds(key: str, text: str) -> float:
    """Parse a time as Spark does: 90s, 10m, 12h, 7d.

    Milliseconds without unit.
    """
    found = _TIME(text.strip().lower())
    factor = _UNITS.get(found[2]) if found else None
    if found is None or factor is None:
        raise OptionError(f"{key} is {text[:40]!r}: expected 90s, 10m, 12h or 7d")
    return int(found[1]) * factor


_KEYS: Mapping[str, tuple[str, Reader]] = {
    INTERVAL: ("interval", count),
    DELETION: ("deletion", boolean),
    DELAY: ("cleanup_delay", _seconds),
    KEEP: ("keep", count),
    RETENTION: ("retention", _seconds),
    ADOPT: ("adopt", boolean),
    ANYWHERE: ("begin_anywhere", boolean),
}
