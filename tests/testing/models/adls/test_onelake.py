"""OneLake's workspaces, items and managed folders stay as Fabric has made them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from asynccommit.testing.models.adls.account import Refusal
from asynccommit.testing.models.adls.onelake import OneLakeAccount, guid_of

WORKSPACE = "My Work_Space"
ITEM = "Sales.Lakehouse"
FILE = f"{ITEM}/Files/t/a"


@pytest.fixture
def account() -> OneLakeAccount:
    """A tenant with one workspace, one item and one file."""
    made = OneLakeAccount("onelake", now=lambda: 1_795_000_000.0, new_id=lambda: "id")
    made.add_workspace(WORKSPACE, [ITEM])
    made.create(WORKSPACE, FILE)
    return made


def paths(account: OneLakeAccount, fs: str = WORKSPACE, directory: str = "") -> list[str]:
    """Return all paths below a directory."""
    return [path for path, _ in account.list(fs, directory, recursive=True).entries]


REFUSED: dict[str, Callable[[OneLakeAccount], Any]] = {
    "a workspace is made": lambda it: it.create_filesystem("other"),
    "a workspace is deleted": lambda it: it.delete_filesystem(WORKSPACE),
    "a workspace is changed": lambda it: it.set_filesystem_properties(WORKSPACE, {}),
    "workspaces are listed": lambda it: it.list_filesystems(),
    "an item is made": lambda it: it.create(WORKSPACE, "Other.Lakehouse", directory=True),
    "an item is made on the way": lambda it: it.create(WORKSPACE, "Other.Lakehouse/Files/a"),
    "a managed folder is made": lambda it: it.create(WORKSPACE, f"{ITEM}/Other", directory=True),
    "a file is made beside them": lambda it: it.create(WORKSPACE, f"{ITEM}/a"),
    "a managed folder is made on the way": lambda it: it.create(WORKSPACE, f"{ITEM}/Other/a"),
    "an item is renamed": lambda it: it.rename(WORKSPACE, "Other", WORKSPACE, ITEM),
    "a managed folder is renamed": lambda it: it.rename(
        WORKSPACE, f"{ITEM}/Files/x", WORKSPACE, f"{ITEM}/Tables"
    ),
    "a file becomes a managed folder": lambda it: it.rename(
        WORKSPACE, f"{ITEM}/Other", WORKSPACE, FILE, mode="legacy"
    ),
    "an item is deleted": lambda it: it.delete(WORKSPACE, ITEM, recursive=True),
    "a managed folder is deleted": lambda it: it.delete(WORKSPACE, f"{ITEM}/Tables"),
    "a managed folder is changed": lambda it: it.set_properties(WORKSPACE, f"{ITEM}/Files", {}),
    "a managed folder is leased": lambda it: it.lease(WORKSPACE, f"{ITEM}/Files", "acquire"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_changes_of_what_fabric_manages_are_refused(what: str, account: OneLakeAccount) -> None:
    """And nothing has changed then."""
    before = paths(account)
    with pytest.raises(Refusal):
        REFUSED[what](account)
    assert paths(account) == before


def test_permissions_are_refused_as_a_parameter(account: OneLakeAccount) -> None:
    """A parameter changes what a request does, so it is not ignored as a header is."""
    with pytest.raises(Refusal, match="UnsupportedQueryParameter"):
        account.set_access_control(WORKSPACE, FILE, acl="user::rwx")


def test_files_below_managed_folders_are_the_users(account: OneLakeAccount) -> None:
    """They are made, renamed and deleted as on any account."""
    account.create(WORKSPACE, f"{ITEM}/Tables/t", directory=True)
    account.rename(WORKSPACE, f"{ITEM}/Tables/t/b", WORKSPACE, FILE, mode="legacy")
    assert f"{ITEM}/Tables/t/b" in paths(account)
    account.delete(WORKSPACE, f"{ITEM}/Tables/t", recursive=True)
    assert paths(account, directory=f"{ITEM}/Tables") == []


def test_a_workspace_and_its_items_have_guids(account: OneLakeAccount) -> None:
    """Both name the same files, and an address has two GUIDs or none."""
    workspace, item = guid_of(WORKSPACE), guid_of(f"{WORKSPACE}/{ITEM}")
    assert paths(account, workspace, f"{item}/Files/t") == [f"{item}/Files/t/a"]
    account.delete(workspace, f"{item}/Files/t/a")
    assert paths(account, directory=f"{ITEM}/Files/t") == []
    with pytest.raises(Refusal):
        account.head(workspace, f"{ITEM}/Files")
    with pytest.raises(Refusal):
        account.head(WORKSPACE, f"{item}/Files")


def test_an_item_that_is_there_keeps_its_files(account: OneLakeAccount) -> None:
    """An emulator that starts from saved data adds what is missing alone."""
    account.add_workspace(WORKSPACE, [ITEM, "New.Warehouse"])
    assert {FILE, "New.Warehouse/Tables"} <= {*paths(account)}
