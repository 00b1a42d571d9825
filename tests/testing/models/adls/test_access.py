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


@pytest.mark.parametrize("text", ["0888", "rwx", "rwxrwxrwz", "07777777", "4755", "rwsr-xr-x"])
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

    acl = "user::rwx,user:me:rwx,group::r-x,mask::rwx,other::---"
    node = account.set_access_control(FS, "d", acl=acl)

    assert (node.permissions, node.acl) == ("rwxrwx---+", acl)
    assert account.set_access_control(FS, "d", permissions="0700").acl == (
        "user::rwx,user:me:rwx,group::r-x,mask::---,other::---"
    )


def test_acl_is_completed_and_put_in_order() -> None:
    """Missing entries come from the permissions or the access entries; masks are made."""
    account = Bench()
    account.dir("d")

    node = account.set_access_control(FS, "d", acl="default:user:me:rwx,group:us:-wx")

    assert node.acl == (
        "user::rwx,group::r-x,group:us:-wx,mask::rwx,other::---,"
        "default:user::rwx,default:user:me:rwx,default:group::r-x,default:mask::rwx,"
        "default:other::---"
    )
    assert node.permissions == "rwxrwx---+"


def test_acl_of_defaults_alone_keeps_the_access_entries() -> None:
    """Named access entries stay; a list without defaults removes the defaults."""
    account = Bench()
    account.dir("d")
    access = "user::rwx,user:me:r--,group::r-x,mask::r-x,other::---"
    account.set_access_control(FS, "d", acl=access)

    node = account.set_access_control(FS, "d", acl="default:mask::--x")

    assert node.acl == (
        f"{access},default:user::rwx,default:group::r-x,default:mask::--x,default:other::---"
    )
    assert account.set_access_control(FS, "d", acl=access).acl == access


@pytest.mark.parametrize(
    "acl",
    ["user::rwx,user::r--", "user:me:rwx,user:me:rwx", "default:user::rwx,default:user::rwx"],
)
def test_acl_with_an_entry_twice(acl: str) -> None:
    """A duplicate is refused, and changes nothing."""
    account = Bench()
    account.dir("d")
    with refused(400, "InvalidAclEntries"):
        account.set_access_control(FS, "d", acl=acl)

    assert account.head(FS, "d").acl == "user::rwx,group::r-x,other::---"


def test_default_entries_on_a_file() -> None:
    """They are refused: only directories have children that inherit."""
    account = Bench()
    account.file("f")
    with refused(400, "InvalidAclEntries"):
        account.set_access_control(FS, "f", acl="default:user:me:rwx")


def test_defaults_are_inherited() -> None:
    """Children get them, reduced by their permissions; directories as defaults too."""
    account = Bench()
    account.dir("d")
    account.set_access_control(FS, "d", acl="default:user:me:rwx")
    wanted = Attributes(permissions="0644", umask="0077")

    file = account.create(FS, "d/f", attributes=wanted)
    account.file("d/e/f")
    below = account.head(FS, "d/e")

    assert file.acl == "user::rw-,user:me:rwx,group::r-x,mask::r--,other::---"
    assert file.permissions == "rw-r-----+"
    assert below.acl == account.head(FS, "d").acl.replace(
        "group::r-x,other", "user:me:rwx,group::r-x,mask::rwx,other", 1
    )
    assert account.head(FS, "d/e/f").acl.startswith("user::rw-,user:me:rwx,group::r-x,mask::rw-")


def test_a_rename_inherits_nothing() -> None:
    """A path that is moved keeps its list, as Hadoop's tests expect."""
    account = Bench()
    account.dir("d")
    account.set_access_control(FS, "d", acl="default:user:me:rwx")
    account.file("f")

    assert account.rename(FS, "d/f", FS, "f").acl == "user::rw-,group::r--,other::---"


def test_sticky_bit_is_kept() -> None:
    """It is set by the permissions alone, and no ACL shows or removes it."""
    account = Bench()
    account.create(FS, "d", directory=True, attributes=Attributes(permissions="1750"))
    made = account.head(FS, "d").permissions

    node = account.set_access_control(FS, "d", acl="user:me:rwx,other::--x")

    assert made == "rwxr-x--T"
    assert node.permissions == "rwxrwx--t+"
    assert node.acl == "user::rwx,user:me:rwx,group::r-x,mask::rwx,other::--x"
    assert account.set_access_control(FS, "d", permissions="0700").permissions == "rwx------+"


def test_acl_is_modified_and_reduced() -> None:
    """Entries are added or replaced, named ones removed; the mask is computed anew."""
    account = Bench()
    account.dir("d")
    account.set_access_control(FS, "d", acl="user:me:rwx", mode="modify")
    node = account.set_access_control(FS, "d", acl="user:me:r--,user:you:r--", mode="modify")
    assert node.acl == "user::rwx,user:me:r--,user:you:r--,group::r-x,mask::r-x,other::---"

    node = account.set_access_control(FS, "d", acl="user:me", mode="remove")
    assert node.acl == "user::rwx,user:you:r--,group::r-x,mask::r-x,other::---"
    with refused(400, "InvalidHeaderValue"):
        account.set_access_control(FS, "d", acl="group:", mode="remove")


@pytest.mark.parametrize(
    "acl", ["", "user:rwx,group::r-x,other::---", "mask:me:rwx", "user::rws", "nonsense"]
)
def test_acl_that_is_none(acl: str) -> None:
    """An empty list, or one with a malformed entry, is refused, and makes nothing."""
    account = Bench()
    with refused(400, "InvalidHeaderValue"):
        account.create(FS, "f", attributes=Attributes(acl=acl or ","))

    assert account.names() == []


def test_acl_and_permissions_exclude_each_other() -> None:
    """One request sets one of them."""
    account = Bench()
    account.file("f")
    with refused(400, "InvalidHeaderValue"):
        account.set_access_control(
            FS, "f", acl="user::rwx,group::r-x,other::---", permissions="0700"
        )
    with refused(400, "InvalidHeaderValue"):
        account.create(FS, "g", attributes=Attributes(acl="user:me:rwx", permissions="0700"))


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
