"""Hooks at the begin and the end of jobs and stages.

An observer is called on the event loop, between the requests of a commit: it must not block,
because no lease is renewed meanwhile. One that does is logged. An observer that raises is logged
too, and the commit goes on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from asynccommit.redact import redact
from asynccommit.results import AbortReport, JobReport

log = logging.getLogger(__name__)

BLOCKS = 1.0
"""Seconds from which a call of an observer is logged."""
_COST = "no lease was renewed meanwhile. Let it hand over what takes time to a thread"

T = TypeVar("T")
R = TypeVar("R")

Operation = Literal["commit", "dry run", "rollback", "abort", "batch"]


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """The requests of a job operation so far.

    Attributes:
        sent: number of requests sent, every attempt counted.
        refused: number of those that the store refused for their rate.
        recovered: store method -> number of requests whose response was lost although they were
            done.
        waited: reason -> seconds that requests waited before they were sent, added up.
    """

    sent: int = 0
    refused: int = 0
    recovered: Mapping[str, int] = field(default_factory=dict)
    waited: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedWork:
    """A job, an operation on one, or a stage that begins.

    Attributes:
        kind: ``run`` for a job that one program sets up and commits; ``job`` for a whole operation
            on a job; ``stage`` for a part of one, or of a task.
        name: the operation, see ``Operation``; for a stage its Hadoop statistic name.
        job_id: id of the job.
        dest: the destination, without credentials; empty for a stage.
        store: the scheme of the destination; empty for a stage.
        counts: returns the requests so far, until the work ends; may be called on any thread.
        since: seconds since it began, for work that observers hear of when it has ended.
    """

    kind: Literal["run", "job", "stage"]
    name: str
    job_id: str
    dest: str = ""
    store: str = ""
    counts: Callable[[], RequestCounts] = field(default=RequestCounts, compare=False, repr=False)
    since: float = 0.0


@dataclass(slots=True)
class WorkEnd:
    """The end of a job operation or a stage.

    Attributes:
        seconds: the duration.
        error: the error that ended it, if any.
        report: the result of a job operation.
        counts: its requests; none for a stage.
    """

    seconds: float = 0.0
    error: BaseException | None = None
    report: JobReport | AbortReport | None = None
    counts: RequestCounts = field(default_factory=RequestCounts)

    @property
    def outcome(self) -> str:
        """Return the outcome in one word or two.

        It is ``committed``, ``already committed``, ``rolled back``, ``aborted``, ``planned``,
        ``done`` for a stage, ``failed`` or ``cancelled``.
        """
        if self.error is not None:
            return "failed" if isinstance(self.error, Exception) else "cancelled"
        if isinstance(self.report, AbortReport):
            return "rolled back" if self.report.rolled_back else "aborted"
        if self.report is None:
            return "done"
        if self.report.dry_run:
            return "planned"
        if self.report.already_committed:
            return "already committed"
        return "rolled back" if self.report.rolled_back else "committed"


OnEnd = Callable[[WorkEnd], object]
Observer = Callable[[ObservedWork], OnEnd | None]
"""A function that takes the work that begins, and returns what is called at its end."""

_observers: list[Observer] = []


def add_observer(observer: Observer) -> None:
    """Call ``observer`` for all work that begins from now on."""
    if observer not in _observers:
        _observers.append(observer)


def remove_observer(observer: Observer) -> None:
    """Call ``observer`` no more for work that begins."""
    if observer in _observers:
        _observers.remove(observer)


@contextmanager
def observed(work: ObservedWork, clock: Callable[[], float]) -> Iterator[WorkEnd]:
    """Call the observers for the work in the block.

    Args:
        work: the work.
        clock: a monotonic clock in seconds.
    """
    ended = WorkEnd()
    if not _observers:
        yield ended
        return
    called = [_called(observer, work, clock) for observer in list(_observers)]
    ends = [end for end in called if end is not None]
    began = clock()
    try:
        yield ended
    except BaseException as error:
        ended.error = error
        raise
    finally:
        ended.seconds = clock() - began
        for end in reversed(ends):
            _called(end, ended, clock)
        ended.error = None  # would keep its own frame alive


def observe_ended(work: ObservedWork, ended: WorkEnd, clock: Callable[[], float]) -> None:
    """Call the observers for work that has ended elsewhere.

    Args:
        work: the work, with ``since``.
        ended: its end.
        clock: a monotonic clock in seconds.
    """
    for observer in _observers:
        end = _called(observer, work, clock)
        if end is not None:
            _called(end, ended, clock)


def _called(function: Callable[[T], R], value: T, clock: Callable[[], float]) -> R | None:
    begun = clock()
    try:
        return function(value)
    except Exception as error:  # what is observed goes on
        log.warning("an observer failed: %s: %s", type(error).__name__, redact(str(error)))
        return None
    finally:
        if (took := clock() - begun) >= BLOCKS:
            log.warning("an observer blocked the event loop for %.1f s: %s", took, _COST)
