"""Filesystems, paths, properties and what no other module of the model owns."""

from __future__ import annotations

import tracemalloc

import pytest

from asynccommit.testing.models.adls.account import IF_ABSENT, AdlsLimits, Conditions
from tests.testing.models.adls.model import FS, Bench, refused


@pytest.fixture
def account() -> Bench:
    """An account with one filesystem."""
    return Bench()


@pytest.mark.parametrize("name", ["abc", "a1-b2", "0" * 63, "$root", "$web"])
def test_name_of_a_filesystem(account: Bench, name: str) -> None:
    """Three to 63 lower-case letters, digits and single hyphens."""
    assert account.create_filesystem(name).name == name


@pytest.mark.parametrize("name", ["", "ab", "Abc", "a--b", "-ab", "ab-", "a_b", "0" * 64, "$logs1"])
def test_name_of_no_filesystem(account: Bench, name: str) -> None:
    """Others are refused."""
    with refused(400, "InvalidResourceName"):
        account.create_filesystem(name)


def test_filesystem_that_is_not_there(account: Bench) -> None:
    """Every operation in it says so."""
    for act in (
        lambda: account.head_filesystem("gone"),
        lambda: account.delete_filesystem("gone"),
        lambda: account.set_filesystem_properties("gone", {}),
        lambda: account.create("gone", "f"),
        lambda: account.append("gone", "f", 0, b"x"),
        lambda: account.flush("gone", "f", 0),
        lambda: account.head("gone", "f"),
        lambda: account.read("gone", "f"),
        lambda: account.list("gone"),
        lambda: account.rename("gone", "g", FS, "f"),
        lambda: account.rename(FS, "g", "gone", "f"),
        lambda: account.delete("gone", "f"),
        lambda: account.lease("gone", "f", "break"),
        lambda: account.access_control("gone", ""),
    ):
        with refused(404, "FilesystemNotFound"):
            act()


def test_filesystem_is_deleted_with_all_it_holds(account: Bench) -> None:
    """Its name is not free at once, if the limits say so; then it is empty."""
    account.file("f")
    account.limits = AdlsLimits(filesystem_delete=30.0)
    account.delete_filesystem(FS)
    with refused(409, "FilesystemBeingDeleted"):
        account.create_filesystem(FS)
    account.clock.now += 30

    account.create_filesystem(FS)

    assert account.names() == []


def test_filesystem_properties(account: Bench) -> None:
    """They are replaced, with a new etag."""
    made = account.create_filesystem("other", {"a": "1"})
    etag = made.etag
    assert made.properties == {"a": "1"}

    changed = account.set_filesystem_properties("other", {"b": "2"})

    assert (changed.properties, changed.etag != etag) == ({"b": "2"}, True)


def test_list_of_filesystems(account: Bench) -> None:
    """By name, by prefix, in pages."""
    for name in ("beta", "alpha", "alpine"):
        account.create_filesystem(name)
    found, token = account.list_filesystems(limit=3)
    rest, end = account.list_filesystems(limit=3, token=token)

    assert [_.name for _ in found + rest] == ["alpha", "alpine", "beta", FS]
    assert end is None
    assert [_.name for _ in account.list_filesystems("alp")[0]] == ["alpha", "alpine"]


@pytest.mark.parametrize("mode", ["legacy", "posix"])
def test_rename_between_filesystems(account: Bench, mode: str) -> None:
    """Files and directories move to another filesystem of the account, with their etags."""
    account.create_filesystem("other")
    account.file("d/f", b"data")
    etag = account.head(FS, "d").etag

    account.rename("other", "d", FS, "d", mode=mode, conditions=IF_ABSENT)

    assert account.names() == []
    assert account.read("other", "d/f")[1] == b"data"
    assert account.head("other", "d").etag == etag


def test_rename_of_a_file_onto_itself(account: Bench) -> None:
    """It stays, unless nothing may be there."""
    account.file("f", b"data")
    account.rename(FS, "f", FS, "f")
    with refused(409, "PathAlreadyExists"):
        account.rename(FS, "f", FS, "f", conditions=IF_ABSENT)

    assert account.data("f") == b"data"


def test_rename_below_a_file(account: Bench) -> None:
    """A file is no parent."""
    account.file("f")
    account.file("g")
    with refused(409, "InvalidDestinationPath"):
        account.rename(FS, "g/f", FS, "f")


def test_rename_in_no_mode(account: Bench) -> None:
    """There are two modes."""
    account.file("f")
    with refused(400, "InvalidQueryParameterValue"):
        account.rename(FS, "g", FS, "f", mode="windows")


def test_the_root_stays(account: Bench) -> None:
    """It is not made, moved, replaced or deleted."""
    account.dir("d")
    with refused(409, "PathAlreadyExists"):
        account.dir("")
    with refused(400, "InvalidSourceUri"):
        account.rename(FS, "e", FS, "")
    with refused(400, "InvalidRenameDestinationPath"):
        account.rename(FS, "", FS, "d", mode="legacy")
    with refused(400, "InvalidUri"):
        account.delete(FS, "", recursive=True)

    assert account.head(FS, "").is_dir
    assert account.names() == ["d"]


@pytest.mark.parametrize(
    "path", ["n" * 256, "d/" + "n" * 256, "d/" * 512 + "f", "a//b", "/a", "a/"]
)
def test_paths_that_nothing_can_be_made_at(account: Bench, path: str) -> None:
    """Names over 255 characters, paths over 1,024, and empty names are refused."""
    account.file("f")
    with refused(400, "InvalidUri"):
        account.create(FS, path)
    with refused(400, "InvalidUri"):
        account.rename(FS, path, FS, "f")

    assert account.names() == ["f"]


def test_longest_names(account: Bench) -> None:
    """A name of 255 and a path of 1,024 characters are taken."""
    account.file("n" * 255)
    account.file("/".join(["n" * 204] * 5))


def test_properties_are_replaced(account: Bench) -> None:
    """With a new etag and time; ``None`` leaves what is there."""
    etag = account.file("f")
    account.clock.now += 1
    account.set_properties(FS, "f", {"a": "1"}, headers={"content-type": "text/plain"})
    account.set_properties(FS, "f", {"b": "2"})

    node = account.head(FS, "f")

    assert dict(node.properties) == {"b": "2"}
    assert dict(node.headers) == {"content-type": "text/plain"}
    assert (node.etag != etag, node.modified) == (True, account.clock.now)
    assert account.set_properties(FS, "f", {}).properties == {}
    assert account.set_properties(FS, "f", headers={}).headers == {}


def test_directory_times_are_its_own(account: Bench) -> None:
    """What happens in a directory changes neither its etag nor its time."""
    etag = account.dir("d")
    modified = account.head(FS, "d").modified
    account.clock.now += 5
    account.file("d/f")
    account.delete(FS, "d/f")

    assert (account.head(FS, "d").etag, account.head(FS, "d").modified) == (etag, modified)


def test_etags_grow_while_the_clock_goes_back(account: Bench) -> None:
    """An etag is never given twice."""
    first = account.file("f")
    account.clock.now -= 3600

    assert int(account.file("f"), 16) > int(first, 16)


def test_paths_below_a_file_are_not_there(account: Bench) -> None:
    """Head and delete find nothing below a file."""
    account.file("f")
    for act in (
        lambda: account.head(FS, "f/x"),
        lambda: account.delete(FS, "f/x"),
        lambda: account.delete(FS, "gone/x"),
    ):
        with refused(404, "PathNotFound"):
            act()


def test_directory_rename_takes_one_step(account: Bench) -> None:
    """The nodes below are the same objects before and after, whatever there is of them."""
    account.file("a/b/c/f", b"data")
    below = account.head(FS, "a/b/c/f")

    account.rename(FS, "z", FS, "a", conditions=IF_ABSENT)

    assert account.head(FS, "z/b/c/f") is below


def test_files_are_small() -> None:
    """A plain file costs a few hundred bytes of memory, not a kilobyte."""
    account = Bench()
    tracemalloc.start()
    try:
        for number in range(2000):
            account.create(FS, f"d/part-{number:05d}-{'x' * 40}")
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert size / 2000 < 500


def test_nodes_are_shown() -> None:
    """An account, a file and a directory say what they are."""
    account = Bench()
    account.file("d/f", b"four")

    assert "file of 4 bytes" in repr(account.head(FS, "d/f"))
    assert "directory" in repr(account.head(FS, "d"))
    assert repr(account) == "Account('acct', hns=True)"
    assert account.head_filesystem(FS).etag.startswith("0x8D")
    assert Conditions() == Conditions(None, None, None, None, None)


def test_file_expires() -> None:
    """It is deleted at its time, and not before; a time can be taken back."""
    account = Bench()
    later = account.clock.now + 60
    for name in ("d/a", "d/b", "d/c"):
        account.file(name)
    account.set_expiry(FS, "d/a", later)
    account.set_expiry(FS, "d/b", later)
    account.set_expiry(FS, "d/c", later + 1)
    account.set_expiry(FS, "d/b", None)
    account.rename(FS, "a", FS, "d/a")

    account.clock.now = later - 0.5
    assert account.names() == ["a", "d", "d/b", "d/c"]
    account.clock.now = later
    assert account.names() == ["d", "d/b", "d/c"]
    account.clock.now = later + 1
    assert account.names() == ["d", "d/b"]


def test_expiry_that_cannot_be() -> None:
    """A time that has passed, a directory and a flat account are refused."""
    account, flat = Bench(), Bench(hns=False)
    account.file("d/f")
    flat.file("f")
    with refused(400, "InvalidHeaderValue"):
        account.set_expiry(FS, "d/f", account.clock.now)
    with refused(400, "InvalidHeaderValue"):
        account.set_expiry(FS, "d", account.clock.now + 1)
    with refused(400, "HierarchicalNamespaceNotEnabled"):
        flat.set_expiry(FS, "f", account.clock.now + 1)


def test_root_has_no_properties() -> None:
    """They are refused there, as Hadoop's tests expect."""
    with refused(400, "InvalidUri"):
        Bench().set_properties(FS, "", {"k": "v"})
