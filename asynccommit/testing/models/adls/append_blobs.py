"""Files that grow by whole blocks at their end: append blobs.

A block is visible when its request is answered; there is nothing to flush.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from asynccommit.testing.models.adls.nodes import AppendBlob, Node
from asynccommit.testing.models.adls.refusals import refusal

MOST_BLOCKS = 50_000


class AppendLimits(NamedTuple):
    """The conditions of an append on the blob's size; ``None`` means absent.

    Attributes:
        position: size before the append.
        most: largest size after it.
    """

    position: int | None = None
    most: int | None = None


NO_LIMITS = AppendLimits()


def append_blob_of(node: Node) -> AppendBlob:
    """Return the attributes of an append blob.

    Raises ``Refusal`` for any other path.
    """
    if node.append_blob is None:
        raise refusal("InvalidBlobType")
    return node.append_blob


def append_block(node: Node, data: bytes, md5: bytes | None, limits: AppendLimits) -> None:
    """Add a block to the end of an append blob."""
    if not data:
        raise refusal("InvalidHeaderValue")
    if md5 is not None and hashlib.md5(data, usedforsecurity=False).digest() != md5:
        raise refusal("Md5Mismatch")
    found = append_blob_of(node)
    _check_open(node, found, limits)
    if limits.most is not None and node.size + len(data) > limits.most:
        raise refusal("MaxBlobSizeConditionNotMet")
    if found.blocks >= MOST_BLOCKS:
        raise refusal("BlockCountExceedsLimit")
    node.chunks = (*node.chunks, bytes(data))
    node.size += len(data)
    node.more().append_blob = found._replace(blocks=found.blocks + 1)


def seal(node: Node, limits: AppendLimits) -> None:
    """Make an append blob read-only; one that is sealed stays so."""
    found = append_blob_of(node)
    if not found.sealed:
        _check_open(node, found, limits)
        node.more().append_blob = found._replace(sealed=True)


def _check_open(node: Node, found: AppendBlob, limits: AppendLimits) -> None:
    if found.sealed:
        raise refusal("BlobIsSealed")
    if limits.position is not None and node.size != limits.position:
        raise refusal("AppendPositionConditionNotMet")
