"""Make text from elsewhere safe for a terminal, and numbers readable."""

from __future__ import annotations

import re

from asynccommit.redact import redact

# Control characters, marks that change the writing direction, and what cannot be encoded.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    r"""Return ``text`` such that a terminal shows it and executes nothing.

    Control characters are escaped as Python does (``\x1b``), credentials as ``***``.
    """
    return _UNSAFE.sub(_escape, redact(text))


def show_bytes(number: int) -> str:
    """Return a size for a reader: ``948 B``, ``1.2 MB``."""
    if number < 1000:
        return f"{number} B"
    units = ("kB", "MB", "GB", "TB", "PB")
    size, index = number / 1000, 0
    while size >= 999.5 and index < len(units) - 1:
        size, index = size / 1000, index + 1
    return f"{size:.1f} {units[index]}" if size < 99.95 else f"{size:.0f} {units[index]}"


def show_seconds(seconds: float) -> str:
    """Return a duration for a reader: ``48 ms``, ``3.21 s``, ``2 min 05 s``."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.5:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def show_short(seconds: float) -> str:
    """Return a duration that may be below a millisecond: ``240 us``."""
    if 0 < seconds < 0.001:
        return f"{max(1, round(seconds * 1e6))} us"
    return show_seconds(seconds)


def show_rate(rate: float) -> str:
    """Return a number of items a second for a reader: ``1,200/s``, ``0.5/s``."""
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: ``1 file``, ``1,460 files``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
