"""The messages between the owner of a commit and its workers.

They are plain values.

A worker gets an order, which is the same for all slices of a commit, and slices of it one after the
other. It answers each with a tally, or with the error that ended it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from asynccommit.commit.layouts.layout import Layout

GRANT = 20.0
"""Seconds for which a worker may send requests after its owner was seen alive."""
RENEWAL = 2.0
"""Seconds from one renewal of the grants to the next."""
REQUEST = 120.0
"""Seconds that one request over a network may take."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of a plan for one worker: a chunk.

    Attributes:
        chunk: number of the chunk.
        digest: of the chunk, as the index of the plan has it.
        attempt: how often it was handed out before.
    """

    chunk: int
    digest: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """The part of the work that all slices of a commit have in common.

    Attributes:
        layout: destination and job; where directories fence nothing, of the commit.
        version: of the owner's package, which a worker must have as well.
        storage: options of the store that the caller gave; credentials may be among them.
        options: options of the commit that change how files are moved.
        parts: number of workers that share the rate of the account.
        commit_id: names the commit; empty before it has begun.
        epoch: the number of the owner that gives the order.
        plan_id: names the plan.
        outside: places outside of the destination that the commit changes.
        carried: directories of tasks that were moved as a whole.
    """

    layout: Layout
    version: str
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: int = 1
    commit_id: str = ""
    epoch: int = 1
    plan_id: str = ""
    outside: tuple[str, ...] = ()
    carried: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Tally:
    """The result of a slice.

    Attributes:
        chunk: number of the slice.
        worker: the process that did it.
        rows: number of its rows.
        done: files that were moved one by one, by this worker or an earlier one.
        seconds: how long it took.
        refused: requests that the store refused for their rate.
        warnings: as of a commit.
    """

    chunk: int
    worker: str
    rows: int
    done: int
    seconds: float = 0.0
    refused: int = 0
    warnings: tuple[str, ...] = ()


class WorkerLostError(Exception):
    """Raised by a runner when a worker has died or is silent.

    A part of its slice may be done, and requests of it may still be sent.
    """


class Runner(Protocol):
    """Other processes that do slices of a commit.

    Attributes:
        name: of the runner, for messages.
        workers: number of slices that are done at once.
        least: number of files from which the workers are used.
        kills: whether a worker has ended for certain once it is lost or its answer is given up.
    """

    name: str
    workers: int
    least: int
    kills: bool

    async def open(self, order: Order) -> None:
        """Start the workers, and have one of them look at the destination.

        Raises ``AsyncCommitError`` if they cannot do the order: the version is another, or the
        store does not let them in.
        """

    async def submit(self, order: Order, piece: Slice) -> Tally:
        """Have a slice done, once or more often.

        Raises ``WorkerLostError``, and the error that ended the slice.
        """
        ...

    async def aclose(self) -> None:
        """End the workers."""
