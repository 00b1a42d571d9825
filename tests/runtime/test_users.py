"""The names of users in messages."""

from __future__ import annotations

import pytest

from asynccommit.runtime.users import own_name, user_name


@pytest.mark.parametrize(
    "owner, name", [("alice", "alice"), (0, "root, uid 0"), (987_654_321, "uid 987654321")]
)
def test_a_user_has_a_name_and_a_number(owner: int | str, name: str) -> None:
    """The number is told on local disks, and stands alone where it has no name."""
    assert user_name(owner) == name


def test_a_process_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run as a user that the machine does not know."""
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])

    assert own_name() == ""


def test_a_process_has_the_name_of_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable with another name, as YARN's containers have it, changes nothing."""
    before = own_name()
    monkeypatch.setenv("LOGNAME", f"not-{before}")

    assert own_name() == before != ""
