"""Model the states of a lease and the effect of each action in each state.

A lease is *leased* until it expires or is broken, *breaking* while a break waits for its period,
then *expired* or *broken*; after a release there is none (*available*). While leased or breaking it
blocks changes that do not name it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf

from asynccommit.testing.models.adls.refusals import refusal

AVAILABLE = "available"
LEASED = "leased"
EXPIRED = "expired"
BREAKING = "breaking"
BROKEN = "broken"

_SHORTEST, _LONGEST = 15, 60  # seconds of a lease that is not infinite
FOREVER = -1


@dataclass(slots=True)
class PathLease:
    """A lease on one path.

    Attributes:
        id: a UUID that its holder knows.
        duration: seconds, or -1.
        expires: expiry by the server's clock.
        breaks: time at which it is broken, after a break was requested.
    """

    id: str
    duration: int
    expires: float
    breaks: float | None = None


def state_of(lease: PathLease | None, now: float) -> str:
    """Return the state of a lease: one of the five words above."""
    if lease is None:
        return AVAILABLE
    if lease.breaks is not None:
        return BREAKING if now < lease.breaks else BROKEN
    return LEASED if now < lease.expires else EXPIRED


def check_held(lease: PathLease | None, given: str | None, now: float) -> None:
    """Check that a change of a leased path gives this lease id."""
    if lease is None:
        if given:
            raise refusal("LeaseNotPresent")
        return
    active = state_of(lease, now) in (LEASED, BREAKING)
    if not given:
        if active:
            raise refusal("LeaseIdMissing")
    elif given.lower() != lease.id.lower():
        raise refusal("LeaseIdMismatch")
    elif not active:
        raise refusal("LeaseLost")


def check_named(lease: PathLease | None, given: str | None, now: float) -> None:
    """Check the lease id of a read; a read without one is allowed."""
    if given:
        check_held(lease, given, now)


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A request about a lease.

    Attributes:
        id: present lease id.
        proposed: requested lease id.
        duration: seconds, 15 to 60, or -1.
        period: seconds that a broken lease continues, 0 to 60.
        new_id: creates an id if none is proposed.
        now: time by the server's clock.
    """

    id: str | None
    proposed: str | None
    duration: int | None
    period: int | None
    new_id: Callable[[], str]
    now: float


def acquire(lease: PathLease | None, asked: LeaseRequest) -> tuple[PathLease, int]:
    """Return the acquired lease, whose holder may acquire it for another duration."""
    duration = asked.duration
    if duration is None:
        raise refusal("MissingRequiredHeader")
    if duration != FOREVER and not _SHORTEST <= duration <= _LONGEST:
        raise refusal("InvalidHeaderValue")
    state = state_of(lease, asked.now)
    if lease is not None and state in (LEASED, BREAKING):
        if not asked.proposed or not _same(lease.id, asked.proposed):
            raise refusal("LeaseAlreadyPresent")
        if state == BREAKING:
            raise refusal("LeaseIsBreakingAndCannotBeAcquired")
    return PathLease(asked.proposed or asked.new_id(), duration, _end(duration, asked.now)), 0


def renew(lease: PathLease | None, asked: LeaseRequest) -> tuple[PathLease, int]:
    """Return the lease with its full duration; an expired one may be renewed."""
    lease = _own(lease, asked)
    if state_of(lease, asked.now) in (BREAKING, BROKEN):
        raise refusal("LeaseIsBrokenAndCannotBeRenewed")
    return PathLease(lease.id, lease.duration, _end(lease.duration, asked.now)), 0


def change(lease: PathLease | None, asked: LeaseRequest) -> tuple[PathLease, int]:
    """Return the lease with the proposed id.

    Repeating the request is harmless.
    """
    if not asked.proposed:
        raise refusal("MissingRequiredHeader")
    state = state_of(lease, asked.now)
    if lease is None or state in (EXPIRED, BROKEN):
        raise refusal("LeaseNotPresentWithLeaseOperation")
    if not _same(lease.id, asked.proposed):
        lease = _own(lease, asked)
    if state == BREAKING:
        raise refusal("LeaseIsBreakingAndCannotBeChanged")
    return PathLease(asked.proposed, lease.duration, lease.expires), 0


def release(lease: PathLease | None, asked: LeaseRequest) -> tuple[PathLease | None, int]:
    """Release the lease."""
    _own(lease, asked)
    return None, 0


def break_(lease: PathLease | None, asked: LeaseRequest) -> tuple[PathLease, int]:
    """Return the breaking lease, and the seconds until it is broken.

    Anybody may break a lease. It continues for its remaining time, or for ``period`` if that is
    shorter; an infinite one for ``period``, at most 60 seconds.
    """
    if asked.period is not None and not 0 <= asked.period <= _LONGEST:
        raise refusal("InvalidHeaderValue")
    state = state_of(lease, asked.now)
    if lease is None:
        raise refusal("LeaseNotPresentWithLeaseOperation")
    if state == BROKEN:
        raise refusal("LeaseIsAlreadyBroken")
    left = max(0.0, (lease.breaks or lease.expires) - asked.now)
    if asked.period is not None:
        left = min(left, asked.period)
    elif left == inf:
        left = 0.0
    return PathLease(lease.id, lease.duration, lease.expires, asked.now + left), ceil(left)


Action = Callable[[PathLease | None, LeaseRequest], tuple[PathLease | None, int]]

ACTIONS: dict[str, Action] = {
    "acquire": acquire,
    "renew": renew,
    "change": change,
    "release": release,
    "break": break_,
}
"""``x-ms-lease-action`` -> its effect."""


def _own(lease: PathLease | None, asked: LeaseRequest) -> PathLease:
    """Return the lease if the request names it."""
    if not asked.id:
        raise refusal("MissingRequiredHeader")
    if lease is None:
        raise refusal("LeaseNotPresentWithLeaseOperation")
    if not _same(lease.id, asked.id):
        raise refusal("LeaseIdMismatchWithLeaseOperation")
    return lease


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _end(duration: int, now: float) -> float:
    return inf if duration == FOREVER else now + duration
