"""Frames between the driver's JVM and the engine that it has started.

A frame is a length, a kind, a number and a text. A request and its answer have the same number;
each side counts its own requests, so many may be under way in both directions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

LARGEST = 256 << 20
"""The most bytes of a text."""

_HEAD = struct.Struct(">IcQ")
_LENGTH = 4
_REST = _HEAD.size - _LENGTH


class FrameError(Exception):
    """Raised for bytes that are no frame, and for too long a text."""


class FrameKind(Enum):
    """The kind of a frame."""

    HELLO = b"H"
    REQUEST = b"R"
    ANSWER = b"A"
    FAILURE = b"F"
    BYE = b"B"


@dataclass(frozen=True, slots=True)
class Frame:
    """A message in one of the two directions."""

    kind: FrameKind
    number: int = 0
    text: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes of the frame.

        Raises ``FrameError`` if the text is too long.
        """
        if len(self.text) > LARGEST:
            raise FrameError(f"a message of {len(self.text)} bytes, and at most {LARGEST} are sent")
        return _HEAD.pack(_REST + len(self.text), self.kind.value, self.number) + self.text


def read_frame(read: Callable[[int], bytes]) -> Frame | None:
    """Read a frame; return ``None`` at the end, in the middle of one as well.

    Args:
        read: returns as many bytes as it is asked for; fewer only at the end.

    Raises ``FrameError``.
    """
    head = read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, kind, number = _HEAD.unpack(head)
    if not _REST <= length <= _REST + LARGEST:
        raise FrameError(f"a frame of {length} bytes")
    try:
        known = FrameKind(kind)
    except ValueError:
        raise FrameError(f"a frame of kind {kind!r}") from None
    text = read(length - _REST)
    return Frame(known, number, text) if len(text) == length - _REST else None
