"""Answers of the service, and the one function that makes errors of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
)


class Answer(NamedTuple):
    """What the service answers: a code, empty for success, and a value."""

    code: str = ""
    value: Any = None


_KINDS: dict[str, type[StoreError]] = {
    "exists": ExistsError,
    "missing": NotFoundError,
    "mismatch": PreconditionError,
}


def translate(op: str, path: str, answer: Answer) -> StoreError:
    """Return the error of an answer whose code is not empty."""
    return _KINDS.get(answer.code, RejectedError)(op, path, answer.code)
