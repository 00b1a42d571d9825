"""What permissions allow to a user."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.adls.account import Attributes
from asynccommit.testing.models.adls.nodes import Node
from asynccommit.testing.models.adls.permits import (
    allows,
    need_new,
    need_ownership,
    need_path,
    need_removal,
)
from tests.testing.models.adls.model import FS, A, B, Bench, refused

DENIED = (403, "AuthorizationPermissionMismatch")


def _root(account: Bench, acl: str = "user::rwx,group::--x,other::--x") -> Node:
    account.set_access_control(FS, "", acl=acl)
    return account.head_filesystem(FS).root


def _make(account: Bench, path: str, mode: str, *, owner: str = A, directory: bool = True) -> Node:
    given = Attributes(owner=owner, permissions=mode)
    return account.create(FS, path, directory=directory, attributes=given)


@pytest.mark.parametrize(
    "acl,user,wanted,allowed",
    [
        ("user::r--,group::rwx,other::rwx", A, "r", True),
        ("user::r--,group::rwx,other::rwx", A, "w", False),
        ("user::---,group::---,other::r-x", B, "rx", True),
        ("user::---,group::---,other::r-x", B, "rw", False),
        (f"user::---,user:{B}:rw-,group::---,mask::rw-,other::---", B, "rw", True),
        (f"user::---,user:{B}:rwx,group::---,mask::r--,other::rwx", B, "rw", False),
        (f"user::rwx,user:{B}:rwx,group::---,mask::---,other::---", A, "rwx", True),
        (f"user::---,user:{A}:r--,group::---,mask::r--,other::rwx", B, "w", False),
    ],
)
def test_entries_are_looked_at_in_turn(acl: str, user: str, wanted: str, allowed: bool) -> None:
    """The owner's, then the named one, then that of others; the mask limits all but the first."""
    account = Bench()
    node = _make(account, "d", "0777")
    account.set_access_control(FS, "d", acl=acl)

    assert allows(node, user, wanted) == allowed


def test_every_directory_above_must_be_passed() -> None:
    """A file that everyone may read is not reached through a directory that is closed."""
    account = Bench()
    root = _root(account)
    _make(account, "d", "0700")
    _make(account, "d/f", "0777", directory=False)

    need_path(root, "d/f", A, "r")
    with refused(*DENIED):
        need_path(root, "d/f", B, "r")


def test_new_path_needs_its_directory() -> None:
    """It needs to write and pass there; a file that is there needs to be writable itself."""
    account = Bench()
    root = _root(account)
    _make(account, "open", "0777")
    _make(account, "closed", "0755")
    _make(account, "closed/f", "0666", directory=False)

    need_new(root, "open/new/deep", B)
    need_new(root, "closed/f", B)
    with refused(*DENIED):
        need_new(root, "closed/new", B)


def test_removal_needs_the_directory_and_not_the_file() -> None:
    """As documented; a recursive one needs every directory below."""
    account = Bench()
    root = _root(account)
    _make(account, "d", "0777")
    _make(account, "d/f", "0000", directory=False)
    _make(account, "d/e", "0755")

    need_removal(root, "d/f", B)
    need_removal(root, "d/e", B)
    with refused(*DENIED):
        need_removal(root, "d/e", B, recursive=True)


def test_sticky_bit_leaves_removal_to_owners() -> None:
    """Those of the directory and of the path."""
    account = Bench()
    root = _root(account)
    _make(account, "d", "1777", owner="other")
    _make(account, "d/a", "0777", owner=A, directory=False)

    need_removal(root, "d/a", A)
    need_removal(root, "d/a", "other")
    with refused(*DENIED):
        need_removal(root, "d/a", B)


def test_access_control_is_the_owners() -> None:
    """Permissions do not replace ownership."""
    account = Bench()
    root = _root(account)
    _make(account, "d", "0777")

    need_ownership(root, "d", A)
    with refused(*DENIED):
        need_ownership(root, "d", B)
