"""Each lease action in each state a lease can be in."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.adls.account import Conditions
from asynccommit.testing.models.adls.leases import (
    ACTIONS,
    LeaseRequest,
    PathLease,
    check_held,
    check_named,
    state_of,
)
from tests.testing.models.adls.model import FS, A, B, Bench, refused

NOW = 1000.0
STATES: dict[str, PathLease | None] = {
    "available": None,
    "leased": PathLease(A, 60, NOW + 30),
    "expired": PathLease(A, 60, NOW - 1),
    "breaking": PathLease(A, 60, NOW + 30, NOW + 10),
    "broken": PathLease(A, 60, NOW + 30, NOW),
}
MISMATCH = "LeaseIdMismatchWithLeaseOperation"
ABSENT = "LeaseNotPresentWithLeaseOperation"
BREAKING = "LeaseIsBreakingAndCannotBeAcquired"
UNCHANGED = "LeaseIsBreakingAndCannotBeChanged"
UNRENEWED = "LeaseIsBrokenAndCannotBeRenewed"
TABLE = {
    # action and whose id -> what it does to each state, in the order of STATES
    ("acquire", A): ("leased", "leased", "leased", BREAKING, "leased"),
    ("acquire", B): ("leased", "LeaseAlreadyPresent", "leased", "LeaseAlreadyPresent", "leased"),
    ("renew", A): (ABSENT, "leased", "leased", UNRENEWED, UNRENEWED),
    ("renew", B): (ABSENT, MISMATCH, MISMATCH, MISMATCH, MISMATCH),
    ("change", A): (ABSENT, "leased", ABSENT, UNCHANGED, ABSENT),
    ("change", B): (ABSENT, MISMATCH, ABSENT, MISMATCH, ABSENT),
    ("release", A): (ABSENT, "available", "available", "available", "available"),
    ("release", B): (ABSENT, MISMATCH, MISMATCH, MISMATCH, MISMATCH),
    ("break", A): (ABSENT, "breaking", "broken", "breaking", "LeaseIsAlreadyBroken"),
}
CASES = [
    (action, given, state, result)
    for (action, given), results in TABLE.items()
    for state, result in zip(STATES, results, strict=True)
]


def ask(
    action: str, lease: PathLease | None, **given: str | int | None
) -> tuple[PathLease | None, int]:
    """Do one action at ``NOW``."""
    fields = {"id": None, "proposed": None, "duration": None, "period": None, **given}
    return ACTIONS[action](lease, LeaseRequest(**fields, new_id=lambda: "new", now=NOW))  # type: ignore[arg-type]


@pytest.mark.parametrize("action,given,state,result", CASES)
def test_action_in_each_state(action: str, given: str, state: str, result: str) -> None:
    """It leads to the state of the table, or is refused with the code of the table."""
    fields: dict[str, str | int] = {"id": given, "proposed": "another"}
    if action == "acquire":
        fields = {"proposed": given, "duration": 20}
    if result[0].isupper():
        with refused(409, result):
            ask(action, STATES[state], **fields)
        return

    lease, _ = ask(action, STATES[state], **fields)

    assert state_of(lease, NOW) == result
    if action == "acquire":
        assert lease == PathLease(given, 20, NOW + 20)
    if action == "renew":
        assert lease == PathLease(A, 60, NOW + 60)
    if action == "change":
        assert lease == PathLease("another", 60, NOW + 30)


def test_acquire_makes_an_id() -> None:
    """Without a proposed id the service makes one; a lease may have no end."""
    lease, _ = ask("acquire", None, duration=-1)

    assert lease is not None
    assert lease.id == "new"
    assert state_of(lease, NOW + 1e12) == "leased"


@pytest.mark.parametrize("duration", [14, 61, 0, -2])
def test_duration_has_bounds(duration: int) -> None:
    """15 to 60 seconds, or for ever."""
    with refused(400, "InvalidHeaderValue"):
        ask("acquire", None, duration=duration)


@pytest.mark.parametrize("action", ["acquire", "renew", "change", "release"])
def test_actions_need_their_headers(action: str) -> None:
    """Duration or ids that are missing are said to be so."""
    with refused(400, "MissingRequiredHeader"):
        ask(action, STATES["leased"])


def test_change_twice_is_change_once() -> None:
    """A change whose answer was lost may be sent again."""
    lease, _ = ask("change", STATES["leased"], id=A, proposed=B)

    assert ask("change", lease, id=A, proposed=B)[0] == lease


@pytest.mark.parametrize(
    "left,period,seconds,state",
    [
        (30.0, None, 30, "breaking"),
        (30.0, 10, 10, "breaking"),
        (5.5, 10, 6, "breaking"),
        (30.0, 0, 0, "broken"),
        (float("inf"), None, 0, "broken"),
        (float("inf"), 60, 60, "breaking"),
    ],
)
def test_break_takes_its_time(left: float, period: int | None, seconds: int, state: str) -> None:
    """The lease goes on for what it had left or for the period, whichever is less."""
    lease, told = ask("break", PathLease(A, 60, NOW + left), period=period)

    assert (told, state_of(lease, NOW)) == (seconds, state)
    assert state_of(lease, NOW + 61) == "broken"


def test_break_again_shortens() -> None:
    """A second break may make the first shorter, not longer."""
    assert ask("break", STATES["breaking"], period=2)[1] == 2
    assert ask("break", STATES["breaking"], period=50)[1] == 10


@pytest.mark.parametrize("period", [-1, 61])
def test_break_period_has_bounds(period: int) -> None:
    """0 to 60 seconds."""
    with refused(400, "InvalidHeaderValue"):
        ask("break", STATES["leased"], period=period)


@pytest.mark.parametrize(
    "state,given,code",
    [
        ("available", None, ""),
        ("available", A, "LeaseNotPresent"),
        ("leased", None, "LeaseIdMissing"),
        ("leased", A, ""),
        ("leased", A.upper(), ""),
        ("leased", B, "LeaseIdMismatch"),
        ("breaking", None, "LeaseIdMissing"),
        ("breaking", A, ""),
        ("broken", None, ""),
        ("broken", A, "LeaseLost"),
        ("expired", None, ""),
        ("expired", A, "LeaseLost"),
        ("expired", B, "LeaseIdMismatch"),
    ],
)
def test_changes_under_a_lease(state: str, given: str | None, code: str) -> None:
    """A change must name an active lease, and must not name one that is none."""
    if code:
        with refused(412, code):
            check_held(STATES[state], given, NOW)
    else:
        check_held(STATES[state], given, NOW)


def test_reads_under_a_lease() -> None:
    """Whoever reads need not name the lease; a name that is given must be right."""
    check_named(STATES["leased"], None, NOW)
    check_named(STATES["leased"], "", NOW)
    check_named(STATES["leased"], A, NOW)
    with refused(412, "LeaseIdMismatch"):
        check_named(STATES["leased"], B, NOW)


def test_lease_of_an_account_runs_out() -> None:
    """The life of a lease by the server's clock; no action changes the etag."""
    account = Bench()
    etag = account.file("f")
    taken = account.lease(FS, "f", "acquire", duration=15)
    assert taken.id == "id-1"
    account.clock.now += 10
    account.lease(FS, "f", "renew", id=taken.id)
    account.clock.now += 14
    with refused(412, "LeaseIdMissing"):
        account.delete(FS, "f")
    account.clock.now += 1

    assert account.lease_state(account.head(FS, "f")) == "expired"
    assert account.head(FS, "f").etag == etag
    account.delete(FS, "f")


def test_lease_of_a_directory() -> None:
    """A directory may be leased too; what is below it is not."""
    account = Bench()
    account.file("d/f")
    account.lease(FS, "d", "acquire", proposed=A, duration=-1)
    with refused(412, "LeaseIdMissing"):
        account.rename(FS, "e", FS, "d")
    with refused(412, "LeaseIdMissing"):
        account.delete(FS, "d", recursive=True)

    account.delete(FS, "d/f")


def test_lease_request_on_the_wrong_path() -> None:
    """Conditions, path and action are looked at first."""
    account = Bench()
    account.file("f")
    with refused(404, "PathNotFound"):
        account.lease(FS, "gone", "acquire", duration=15)
    with refused(400, "InvalidHeaderValue"):
        account.lease(FS, "f", "steal")
    with refused(412, "ConditionNotMet"):
        account.lease(FS, "f", "acquire", duration=15, conditions=Conditions(if_match="0x1"))

    assert account.lease_state(account.head(FS, "f")) == "available"


def test_overwriting_keeps_the_lease() -> None:
    """Who holds the lease may create over the file, and still holds it."""
    account = Bench()
    account.file("f", b"old")
    account.lease(FS, "f", "acquire", proposed=A, duration=-1)

    node = account.create(FS, "f", conditions=Conditions(lease=A))

    assert (node.size, account.lease_state(node)) == (0, "leased")
