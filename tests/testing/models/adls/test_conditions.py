"""Conditional headers: each alone and together, on what is there and on what is not."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.adls.account import Conditions
from asynccommit.testing.models.adls.conditions import (
    NO_CONDITIONS,
    check_place,
    check_read,
    check_write,
)
from asynccommit.testing.models.adls.nodes import Node
from tests.testing.models.adls.model import FS, A, Bench, refused

NODE = Node(None, 0x8D1, 1000.7)
OWN, OTHER = '"0x8D1"', '"0x8D2"'
MET = [
    NO_CONDITIONS,
    Conditions(if_match=OWN),
    Conditions(if_match="*"),
    Conditions(if_match=f"{OTHER}, {OWN}"),
    Conditions(if_match=""),
    Conditions(if_none_match=OTHER),
    Conditions(if_none_match=""),
    Conditions(if_modified_since=999.0),
    Conditions(if_unmodified_since=1000.0),
    Conditions(if_match=OWN, if_none_match=OTHER, if_unmodified_since=2000.0),
]
CHANGED = [  # 412 on a read as well
    Conditions(if_match=OTHER),
    Conditions(if_unmodified_since=999.0),
]
SAME = [  # 304 on a read
    Conditions(if_none_match=OWN),
    Conditions(if_none_match=f"{OTHER}, {OWN}"),
    Conditions(if_modified_since=1000.0),
]


@pytest.mark.parametrize("conditions", MET)
def test_met(conditions: Conditions) -> None:
    """Nothing is said against what meets its conditions."""
    check_place(NODE, conditions)
    check_write(NODE, conditions)
    check_read(NODE, conditions)


@pytest.mark.parametrize("conditions", [*CHANGED, *SAME])
def test_not_met_by_a_write(conditions: Conditions) -> None:
    """412, with the code for source or destination."""
    with refused(412, "ConditionNotMet"):
        check_place(NODE, conditions)
    with refused(412, "ConditionNotMet"):
        check_write(NODE, conditions)
    with refused(412, "SourceConditionNotMet"):
        check_write(NODE, conditions, "SourceConditionNotMet")


@pytest.mark.parametrize("conditions", CHANGED)
def test_not_met_by_a_read(conditions: Conditions) -> None:
    """What is not what was expected is 412."""
    with refused(412, "ConditionNotMet"):
        check_read(NODE, conditions)


@pytest.mark.parametrize("conditions", [*SAME, Conditions(if_none_match="*")])
def test_nothing_new_for_a_read(conditions: Conditions) -> None:
    """What is known already is 304."""
    with refused(304, "ConditionNotMet"):
        check_read(NODE, conditions)


def test_a_free_place() -> None:
    """Only ``If-Match`` asks for something to be there."""
    check_place(None, Conditions(if_none_match="*", if_unmodified_since=1.0))
    with refused(412, "ConditionNotMet"):
        check_place(None, Conditions(if_match="*"))


def test_conditions_of_every_operation() -> None:
    """Each operation that takes conditions keeps to them, and changes nothing if they fail."""
    account = Bench()
    etag = account.file("f", b"data")
    wrong = Conditions(if_match="0x1")
    for act in (
        lambda: account.create(FS, "f", conditions=wrong),
        lambda: account.create(FS, "new/f", conditions=wrong),
        lambda: account.append(FS, "f", 4, b"x", conditions=wrong),
        lambda: account.flush(FS, "f", 4, conditions=wrong),
        lambda: account.head(FS, "f", wrong),
        lambda: account.read(FS, "f", conditions=wrong),
        lambda: account.delete(FS, "f", conditions=wrong),
        lambda: account.set_properties(FS, "f", {"a": "b"}, conditions=wrong),
        lambda: account.access_control(FS, "f", wrong),
        lambda: account.set_access_control(FS, "f", owner="me", conditions=wrong),
        lambda: account.set_filesystem_properties(FS, {"a": "b"}, wrong),
        lambda: account.delete_filesystem(FS, wrong),
    ):
        with refused(412, "ConditionNotMet"):
            act()

    assert account.names() == ["f"]
    assert account.head(FS, "f").etag == etag


def test_create_with_a_lease_that_is_not_there() -> None:
    """A create that names a lease makes neither file nor parents where there is none."""
    account = Bench()
    for path in ("f", "d/f"):
        with refused(412, "LeaseNotPresent"):
            account.create(FS, path, conditions=Conditions(lease=A))

    assert account.names() == []
