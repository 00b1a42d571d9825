"""Permissions and access control lists as text."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.adls.access import permissions_of
from asynccommit.testing.models.adls.account import Attributes
from tests.testing.models.adls.model import FS, Bench, refused


@pytest.mark.parametrize(
    "text,umask,shown",
    [
        ("0777", None, "rwxrwxrwx"),
        ("777", "0027", "rwxr-x---"),
        ("0666", "0022", "rw-r--r--"),
        ("0000", None, "---------"),
        ("rwxr-x--t", None, "rwxr-x--t"),
        ("rwxrw-r--", "0077", "rwxrw-r--"),
    ],
)
def test_permissions_in_either_form(text: str, umask: str | None, shown: str) -> None:
    """Octal becomes symbols and loses what the umask takes; symbols stay."""
    assert permissions_of(text, umask) == shown


@pytest.mark.parametrize("text", ["0888", "rwx", "rwxrwxrwz", "07777777"])
def test_permissions_that_are_none(text: str) -> None:
    """What is neither octal nor symbols is refused, and makes nothing."""
    account = Bench()
    with refused(400, "InvalidHeaderValue"):
        account.create(FS, "f", attributes=Attributes(permissions=text))

    assert account.names() == []


def test_defaults() -> None:
    """A file and a directory that say nothing have the service's permissions."""
    account = Bench()
    account.file("d/f")

    assert account.access_control(FS, "d").permissions == "rwxr-x---"
    assert account.access_control(FS, "d/f").permissions == "rw-r-----"
    assert account.access_control(FS, "d/f").acl == "user::rw-,group::r--,other::---"


def test_create_says_whose_it_is() -> None:
    """Owner, group, permissions and properties come with the create."""
    account = Bench()
    given = Attributes(
        properties={"k": "v"},
        permissions="0777",
        umask="0007",
        owner="me",
        group="us",
        headers={"content-type": "text/plain"},
    )

    node = account.create(FS, "f", attributes=given)

    assert (node.owner, node.group, node.permissions) == ("me", "us", "rwxrwx---")
    assert (dict(node.properties), dict(node.headers)) == (
        {"k": "v"},
        {"content-type": "text/plain"},
    )
    assert account.create(FS, "f").owner == "$superuser"


def test_acl_sets_the_permissions() -> None:
    """Plain entries show in the permissions, others as a plus; the mask stands for the group."""
    account = Bench()
    account.dir("d")
    node = account.set_access_control(FS, "d", acl="user::rwx,group::r-x,other::--x")
    assert (node.permissions, node.acl) == ("rwxr-x--x", "user::rwx,group::r-x,other::--x")

    acl = "user::rwx,user:me:rwx,group::r-x,mask::rwx,other::---,default:user::rwx"
    node = account.set_access_control(FS, "d", acl=acl)

    assert (node.permissions, node.acl) == ("rwxrwx---+", acl)
    assert account.set_access_control(FS, "d", permissions="0700").acl == (
        "user::rwx,group::---,other::---"
    )


@pytest.mark.parametrize("acl", ["", "user::rwx", "user:rwx,group::r-x,other::---", "nonsense"])
def test_acl_that_is_none(acl: str) -> None:
    """A list without the three plain entries, or with a malformed one, is refused."""
    with refused(400, "InvalidHeaderValue"):
        Bench().create(FS, "f", attributes=Attributes(acl=acl or ","))


def test_acl_and_permissions_exclude_each_other() -> None:
    """One request sets one of them."""
    account = Bench()
    account.file("f")
    with refused(400, "InvalidHeaderValue"):
        account.set_access_control(
            FS, "f", acl="user::rwx,group::r-x,other::---", permissions="0700"
        )


def test_owner_and_group_are_set_apart() -> None:
    """What is not given stays."""
    account = Bench()
    account.file("f")
    account.set_access_control(FS, "f", owner="me")
    node = account.set_access_control(FS, "f", group="us")

    assert (node.owner, node.group, node.permissions) == ("me", "us", "rw-r-----")


def test_flat_account_has_none() -> None:
    """The probe for directories is answered 400 by a flat account."""
    account = Bench(hns=False)
    account.file("f")
    with refused(400, "HierarchicalNamespaceNotEnabled"):
        account.access_control(FS, "")
    with refused(400, "HierarchicalNamespaceNotEnabled"):
        account.set_access_control(FS, "f", owner="me")


def test_flat_account_renames_with_a_new_etag() -> None:
    """There a rename makes another blob."""
    account = Bench(hns=False)
    etag = account.file("f")

    assert account.rename(FS, "g", FS, "f").etag != etag
