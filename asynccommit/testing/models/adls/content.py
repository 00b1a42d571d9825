"""Append, flush and read the bytes of files."""

from __future__ import annotations

import hashlib

from asynccommit.testing.models.adls.nodes import Node
from asynccommit.testing.models.adls.refusals import refusal


def append(node: Node, position: int, data: bytes, md5: bytes | None) -> None:
    """Keep ``data`` for a flush, replacing earlier data at the position.

    Data below the committed end is accepted and has no effect: the Azure SDK's recorded tests
    append and flush at position 0 several times.
    """
    if not data:  # recorded: Content-Length 0 is rejected
        raise refusal("InvalidHeaderValue")
    if md5 is not None and hashlib.md5(data, usedforsecurity=False).digest() != md5:
        raise refusal("Md5Mismatch")
    if position < node.size:
        return
    if node.pending is None:
        node.pending = {}
    node.pending[position] = bytes(data)


def forget(node: Node, position: int) -> None:
    """Undo an append."""
    if node.pending:
        node.pending.pop(position, None)


def flush(node: Node, position: int, retain: bool) -> None:
    """Commit the data appended up to ``position``; drop the rest unless ``retain``.

    The appended data must reach from the committed end to ``position`` without a gap.
    """
    pending = node.pending or {}
    chunks, size = [], node.size
    while size < position and size in pending:
        chunks.append(pending[size])
        size += len(pending[size])
    if size != position:
        raise refusal("InvalidFlushPosition")
    if chunks:
        node.chunks = (*node.chunks, *chunks)
        node.size = size
    rest = {start: data for start, data in pending.items() if start >= size} if retain else {}
    node.pending = rest or None


def read(node: Node, start: int, end: int | None) -> bytes:
    """Return bytes of a file; a negative ``start`` counts from its end."""
    if node.is_dir:
        raise refusal("ResourceTypeMismatch")
    if start < 0:
        start = max(0, node.size + start)
    ranged = start > 0 or end is not None
    if ranged and (start >= node.size or (end is not None and end <= start)):
        raise refusal("InvalidRange", headers={"Content-Range": f"bytes */{node.size}"})
    return node.read(start, end)
