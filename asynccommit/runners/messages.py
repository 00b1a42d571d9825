"""The messages between a runner and its workers, as JSON.

Both ends are processes of one user, and no store lies between them. An error travels as its type
and its texts, of which secrets are no part.
"""

from __future__ import annotations

from typing import Any

import orjson

from asynccommit import errors
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.orders import Order, Slice, Tally, WorkerLostError
from asynccommit.errors import (
    AsyncCommitError,
    LeaseLostError,
    ManifestError,
    StoreError,
    UnsupportedError,
)
from asynccommit.redact import redact
from asynccommit.stores.urls import decode_uri

Message = dict[str, Any]


def encode(message: Message) -> bytes:
    """Return a message as one line.

    Raises ``UnsupportedError`` for values that JSON does not have, such as objects with
    credentials.
    """
    try:
        return orjson.dumps(message) + b"\n"
    except TypeError as error:
        text = "the storage options have objects, which cannot be sent to another process: use text"
        raise UnsupportedError(f"{text} ({error})") from None


def order_message(order: Order) -> Message:
    """Return an order as a message."""
    layout = order.layout
    return {
        "version": order.version,
        "dest": layout.dest.encode(),
        "job": layout.job_id,
        "attempt": layout.attempt,
        "prefix": layout.prefix,
        "commit": layout.commit,
        "storage": dict(order.storage),
        "options": dict(order.options),
        "parts": order.parts,
        "id": order.commit_id,
        "epoch": order.epoch,
        "plan": order.plan_id,
        "outside": list(order.outside),
        "carried": list(order.carried),
    }


def order_of(message: Message) -> Order:
    """Return the order in a message."""
    dest = decode_uri(message["dest"])
    return Order(
        Layout(dest, message["job"], message["attempt"], message["prefix"], message["commit"]),
        message["version"],
        message["storage"],
        message["options"],
        message["parts"],
        message["id"],
        message["epoch"],
        message["plan"],
        tuple(message["outside"]),
        frozenset(message["carried"]),
    )


def slice_message(piece: Slice) -> Message:
    """Return a slice as a message."""
    return {"chunk": piece.chunk, "digest": piece.digest, "attempt": piece.attempt}


def slice_of(message: Message) -> Slice:
    """Return the slice in a message."""
    return Slice(message["chunk"], message["digest"], message["attempt"])


def tally_message(tally: Tally) -> Message:
    """Return a tally as a message."""
    return {
        "chunk": tally.chunk,
        "worker": tally.worker,
        "rows": tally.rows,
        "done": tally.done,
        "seconds": tally.seconds,
        "refused": tally.refused,
        "warnings": list(tally.warnings),
    }


def tally_of(message: Message) -> Tally:
    """Return the tally in a message."""
    return Tally(**{**message, "warnings": tuple(message["warnings"])})


def error_message(error: Exception) -> Message:
    """Return an error as a message."""
    texts = [str(error)]
    if isinstance(error, StoreError):
        texts = [error.op, error.path, error.detail]
    elif isinstance(error, ManifestError):
        texts = [error.path, error.reason]
    elif not isinstance(error, AsyncCommitError):
        texts = [f"{type(error).__name__}: {redact(str(error))}"]
    return {"type": type(error).__name__, "texts": texts}


def error_of(message: Message) -> Exception:
    """Return the error in a message; an unexpected one is a lost worker."""
    kind, texts = getattr(errors, message["type"], None), message["texts"]
    if not (isinstance(kind, type) and issubclass(kind, AsyncCommitError)):
        return WorkerLostError(*texts)
    if issubclass(kind, StoreError | ManifestError):
        return kind(*texts)
    if issubclass(kind, LeaseLostError):
        return WorkerLostError(*texts)
    return UnsupportedError(*texts)
