"""What was recorded from the real service, and what other emulators get wrong, fact by fact."""

from __future__ import annotations

import base64
import re
from itertools import product

import pytest

from asynccommit.testing.models.adls.account import IF_ABSENT, AdlsLimits, Conditions
from tests.testing.models.adls.model import FS, A, B, Bench, refused

MODES = pytest.mark.parametrize("mode", ["legacy", "posix"])


@pytest.fixture
def account() -> Bench:
    """An account with nothing but a filesystem."""
    return Bench()


# --- what other emulators get wrong ----------------------------------------------------------


def test_filesystem_is_made_once(account: Bench) -> None:
    """A second create of a filesystem is refused, and head finds the first."""
    with refused(409, "FilesystemAlreadyExists"):
        account.create_filesystem(FS)

    assert account.head_filesystem(FS).name == FS
    assert account.hns


def test_root_has_access_control(account: Bench) -> None:
    """The probe for a hierarchical namespace finds owner, group, permissions and ACL."""
    root = account.access_control(FS, "")

    assert root.is_dir
    assert (root.owner, root.group, root.permissions) == ("$superuser", "$superuser", "rwxr-x---")
    assert root.acl == "user::rwx,group::r-x,other::---"


def test_create_makes_parents(account: Bench) -> None:
    """A nested directory and a file bring their parents along."""
    account.dir("a/b/c")
    account.file("d/e/f")

    assert account.names() == ["a", "a/b", "a/b/c", "d", "d/e", "d/e/f"]
    assert account.head(FS, "d/e").is_dir
    assert not account.head(FS, "d/e/f").is_dir


def test_create_if_none_match_refuses_an_existing_file(account: Bench) -> None:
    """The file stays, and the refusal says what is there."""
    etag = account.file("f", b"data")

    with refused(409, "PathAlreadyExists") as caught:
        account.create(FS, "f", conditions=IF_ABSENT)

    assert caught.value.headers == {"x-ms-existing-resource-type": "file"}
    assert account.head(FS, "f").etag == etag


def test_create_without_conditions_empties_a_file(account: Bench) -> None:
    """A file is overwritten by one of no bytes, with another etag."""
    etag = account.file("f", b"data")

    node = account.create(FS, "f")

    assert (node.size, account.data("f")) == (0, b"")
    assert node.etag != etag


def test_mkdir_over_a_file_is_refused(account: Bench) -> None:
    """A directory does not take a file's place."""
    account.file("f")

    with refused(409, "PathAlreadyExists") as caught:
        account.dir("f")

    assert caught.value.headers["x-ms-existing-resource-type"] == "file"


def test_mkdir_of_an_existing_directory_keeps_what_it_holds(account: Bench) -> None:
    """It succeeds without a condition and is told of the directory with one."""
    account.file("d/f")
    account.dir("d")
    assert account.names() == ["d", "d/f"]

    with refused(409, "PathAlreadyExists") as caught:
        account.create(FS, "d", directory=True, conditions=IF_ABSENT)

    assert caught.value.headers["x-ms-existing-resource-type"] == "directory"


@pytest.mark.parametrize("directory", [False, True])
@pytest.mark.parametrize("path", ["f/x", "f/x/y"])
def test_nothing_is_made_below_a_file(account: Bench, path: str, directory: bool) -> None:
    """An ancestor that is a file is a conflict."""
    account.file("f", b"data")

    with refused(409, "PathConflict"):
        account.create(FS, path, directory=directory)

    assert account.names() == ["f"]


def test_flush_needs_the_right_position(account: Bench) -> None:
    """A position beyond what was appended is refused, and nothing is duplicated."""
    account.create(FS, "f")
    account.append(FS, "f", 0, b"four")
    with refused(400, "InvalidFlushPosition"):
        account.flush(FS, "f", 5)
    with refused(400, "InvalidFlushPosition"):
        account.flush(FS, "f", 3)

    account.flush(FS, "f", 4)

    assert account.data("f") == b"four"


def test_etag_changes_on_flush(account: Bench) -> None:
    """Create and flush give different etags, and an append none."""
    created = account.create(FS, "f").etag
    appended = account.append(FS, "f", 0, b"data").etag

    flushed = account.flush(FS, "f", 4).etag

    assert created == appended != flushed


def test_rename_checks_the_source_etag(account: Bench) -> None:
    """A wrong etag of the source is a source condition that was not met."""
    etag = account.file("f", b"data")
    with refused(412, "SourceConditionNotMet"):
        account.rename(FS, "g", FS, "f", source_conditions=Conditions(if_match='"0x8D1"'))

    account.rename(FS, "g", FS, "f", source_conditions=Conditions(if_match=f'"{etag}"'))

    assert account.names() == ["g"]


@pytest.mark.parametrize(
    "kinds, mode",
    [*product(["ff", "fd", "df", "dd"], ["legacy"]), ("ff", "posix"), ("df", "posix")],
)
def test_rename_if_none_match_refuses_whatever_is_there(
    account: Bench, kinds: str, mode: str
) -> None:
    """Nothing is replaced; without ``posix`` nothing is moved into a directory either."""
    for kind, path in zip(kinds, ("source", "dest"), strict=True):
        account.create(FS, path, directory=kind == "d")

    with refused(409, "PathAlreadyExists"):
        account.rename(FS, "dest", FS, "source", mode=mode, conditions=IF_ABSENT)

    assert account.names() == ["dest", "source"]


def test_rename_if_match_is_about_the_destination(account: Bench) -> None:
    """The destination is replaced only if it is the one that was meant."""
    account.file("f", b"new")
    etag = account.file("g", b"old")
    with refused(412, "ConditionNotMet"):
        account.rename(FS, "g", FS, "f", conditions=Conditions(if_match="0x8D1"))
    with refused(412, "ConditionNotMet"):
        account.rename(FS, "none", FS, "f", conditions=Conditions(if_match=etag))

    account.rename(FS, "g", FS, "f", conditions=Conditions(if_match=etag))

    assert account.data("g") == b"new"


def test_rename_needs_the_parent_of_its_destination(account: Bench) -> None:
    """Unlike a create, a rename makes no directories."""
    account.file("f")

    with refused(404, "RenameDestinationParentPathNotFound"):
        account.rename(FS, "d/f", FS, "f")

    assert account.names() == ["f"]


def test_rename_of_nothing(account: Bench) -> None:
    """A missing source has a code of its own, whatever the destination is."""
    account.file("there")
    for dest in ("there", "new", "no/parent"):
        with refused(404, "SourcePathNotFound"):
            account.rename(FS, dest, FS, "gone", conditions=IF_ABSENT)
    with refused(404, "SourcePathNotFound"):
        account.rename(FS, "new", FS, "there/below")


@pytest.mark.parametrize("dest", ["d", "d/e", "d/e/f"])
@MODES
def test_rename_of_a_directory_into_itself(account: Bench, dest: str, mode: str) -> None:
    """It is refused, and the tree stays whole."""
    account.file("d/e/g")

    with refused(409, "InvalidRenameSourcePath"):
        account.rename(FS, dest, FS, "d", mode=mode)

    assert account.names() == ["d", "d/e", "d/e/g"]


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("dest", ["dest", ""])
def test_posix_rename_moves_into_a_directory_in_spite_of_a_condition(
    account: Bench, kind: str, dest: str
) -> None:
    """``If-None-Match: *`` is about the path inside the directory, as Hadoop's client needs it."""
    account.create(FS, "dest", directory=True)
    account.create(FS, "other/source", directory=kind == "d")
    account.rename(FS, dest, FS, "other/source", mode="posix", conditions=IF_ABSENT)
    inside = f"{dest}/source".strip("/")
    account.create(FS, "other/source", directory=kind == "d")

    with refused(409, "PathAlreadyExists"):
        account.rename(FS, dest, FS, "other/source", mode="posix", conditions=IF_ABSENT)

    assert account.head(FS, inside).is_dir == (kind == "d")


@pytest.mark.parametrize("kinds, mode", [("fd", "legacy"), ("df", "legacy"), ("df", "posix")])
def test_rename_keeps_to_its_kind(account: Bench, kinds: str, mode: str) -> None:
    """A file does not replace a directory, nor a directory a file."""
    for kind, path in zip(kinds, ("source", "dest"), strict=True):
        account.create(FS, path, directory=kind == "d")

    with refused(409, "InvalidSourceOrDestinationResourceType"):
        account.rename(FS, "dest", FS, "source", mode=mode)

    assert account.names() == ["dest", "source"]


def test_directory_onto_a_directory_that_holds_something(account: Bench) -> None:
    """Legacy refuses; posix moves the source inside."""
    account.file("a/x")
    account.file("b/y")
    with refused(409, "DirectoryNotEmpty"):
        account.rename(FS, "b", FS, "a", mode="legacy")

    account.rename(FS, "b", FS, "a", mode="posix")

    assert account.names() == ["b", "b/a", "b/a/x", "b/y"]


def test_directory_onto_an_empty_directory(account: Bench) -> None:
    """Legacy replaces it; posix, the default, moves the source inside."""
    account.file("a/x")
    etag = account.head(FS, "a").etag
    account.dir("b")
    account.rename(FS, "b", FS, "a", mode="legacy")
    assert account.names() == ["b", "b/x"]
    assert account.head(FS, "b").etag == etag

    account.dir("c")
    account.rename(FS, "c", FS, "b")

    assert account.names() == ["c", "c/b", "c/b/x"]


def test_posix_rename_inside_what_holds_that_name(account: Bench) -> None:
    """The name inside is replaced only if it is an empty directory."""
    account.file("a/x")
    account.file("b/a")
    account.file("c/a/y")
    account.dir("d/a")
    with refused(409, "InvalidSourceOrDestinationResourceType"):
        account.rename(FS, "b", FS, "a")
    with refused(409, "DirectoryNotEmpty"):
        account.rename(FS, "c", FS, "a")

    account.rename(FS, "d", FS, "a")

    assert account.names("d") == ["d/a", "d/a/x"]


def test_posix_rename_of_a_directory_onto_its_own_parent(account: Bench) -> None:
    """It is inside already, and stays."""
    account.file("a/b/x")

    account.rename(FS, "a", FS, "a/b")

    assert account.names() == ["a", "a/b", "a/b/x"]


def test_leases_bar_what_does_not_name_them(account: Bench) -> None:
    """Delete, append, flush, create and rename of a leased file need its lease."""
    account.file("f", b"data")
    account.lease(FS, "f", "acquire", proposed=A, duration=-1)
    for act in (
        lambda: account.delete(FS, "f"),
        lambda: account.append(FS, "f", 4, b"x"),
        lambda: account.flush(FS, "f", 4),
        lambda: account.create(FS, "f"),
        lambda: account.set_properties(FS, "f", {}),
        lambda: account.set_access_control(FS, "f", owner="me"),
        lambda: account.rename(FS, "g", FS, "f"),
    ):
        with refused(412, "LeaseIdMissing"):
            act()

    account.rename(FS, "g", FS, "f", source_conditions=Conditions(lease=A))
    account.append(FS, "g", 4, b"x", conditions=Conditions(lease=A), flush=True)
    account.delete(FS, "g", conditions=Conditions(lease=A))

    assert account.names() == []


def test_one_of_many_renames_of_one_source_succeeds(account: Bench) -> None:
    """The others find it gone."""
    account.file("f")
    account.rename(FS, "g0", FS, "f", conditions=IF_ABSENT)
    for number in range(1, 8):
        with refused(404, "SourcePathNotFound"):
            account.rename(FS, f"g{number}", FS, "f", conditions=IF_ABSENT)


def test_one_of_many_renames_to_one_destination_succeeds(account: Bench) -> None:
    """The others keep their source."""
    for number in range(8):
        account.file(f"f{number}")
    account.rename(FS, "g", FS, "f0", conditions=IF_ABSENT)
    for number in range(1, 8):
        with refused(409, "PathAlreadyExists"):
            account.rename(FS, "g", FS, f"f{number}", conditions=IF_ABSENT)

    assert len(account.names()) == 8


def test_list_of_a_missing_directory(account: Bench) -> None:
    """It is not found."""
    with refused(404, "PathNotFound"):
        account.list(FS, "gone")


def test_delete_of_a_directory(account: Bench) -> None:
    """One that holds something needs ``recursive``; what is deleted is not there again."""
    account.file("d/e/f")
    with refused(409, "DirectoryNotEmpty"):
        account.delete(FS, "d")
    assert account.delete(FS, "d", recursive=True) is None
    assert account.names() == []

    with refused(404, "PathNotFound"):
        account.delete(FS, "d", recursive=True)


def test_recursive_delete_may_need_more_requests(account: Bench) -> None:
    """A token says that there is more, until there is none."""
    for number in range(10):
        account.file(f"d/{number}/f")
    account.limits = AdlsLimits(delete=8)
    requests, token = 1, account.delete(FS, "d", recursive=True)
    while token is not None:
        left = len(account.names("d"))
        token = account.delete(FS, "d", recursive=True, token=token)
        requests += 1
        assert token is None or len(account.names("d")) == left - 8

    assert requests == 3
    assert account.names() == []


def test_transaction_id_is_remembered(account: Bench) -> None:
    """Create and rename leave their id on the path, for head to tell."""
    account.create(FS, "f", token=A)
    assert account.head(FS, "f").token == A

    account.rename(FS, "g", FS, "f", token=B)

    assert account.head(FS, "g").token == B


# --- recorded facts --------------------------------------------------------------------------


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("directory", [False, True])
def test_fact_1_rename_keeps_etag_and_times(
    account: Bench, directory: bool, replaced: bool
) -> None:
    """The destination has the source's etag and time, also where it replaced something."""
    before = account.create(FS, "a", directory=directory)
    etag, modified, created = before.etag, before.modified, before.created
    account.clock.now += 100
    if replaced:
        account.create(FS, "b", directory=directory)

    account.rename(FS, "b", FS, "a", mode="legacy")

    after = account.head(FS, "b")
    assert (after.etag, after.modified, after.created) == (etag, modified, created)


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(if_match="0x8D1"),
        Conditions(if_none_match="*"),
        Conditions(if_none_match="ETAG"),
        Conditions(if_modified_since=1_800_000_000),
        Conditions(if_unmodified_since=1_600_000_000),
    ],
)
def test_fact_2_source_conditions(account: Bench, conditions: Conditions) -> None:
    """Each failed condition on the source is ``SourceConditionNotMet``."""
    etag = account.file("f")
    if conditions.if_none_match == "ETAG":
        conditions = Conditions(if_none_match=etag)

    with refused(412, "SourceConditionNotMet"):
        account.rename(FS, "g", FS, "f", source_conditions=conditions)


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(if_match="0x8D1"),
        Conditions(if_none_match="ETAG"),
        Conditions(if_modified_since=1_800_000_000),
        Conditions(if_unmodified_since=1_600_000_000),
    ],
)
def test_fact_2_destination_conditions(account: Bench, conditions: Conditions) -> None:
    """Each failed condition on the destination is ``ConditionNotMet``."""
    account.file("f")
    etag = account.file("g")
    if conditions.if_none_match == "ETAG":
        conditions = Conditions(if_none_match=etag)

    with refused(412, "ConditionNotMet"):
        account.rename(FS, "g", FS, "f", conditions=conditions)


def test_fact_2_lease_ids_without_leases(account: Bench) -> None:
    """A lease id where there is no lease is refused, at the source and at the destination."""
    account.file("f")
    account.file("g")
    lease = Conditions(lease=A)
    for there in ("g", "new"):
        with refused(412, "LeaseNotPresent"):
            account.rename(FS, there, FS, "f", conditions=lease)
    with refused(412, "LeaseNotPresent"):
        account.rename(FS, "g", FS, "f", source_conditions=lease)
    with refused(412, "LeaseNotPresent"):
        account.append(FS, "f", 0, b"x", conditions=lease)


@pytest.mark.parametrize("form", ["{}", '"{}"', ' "0x1", "{}"'])
def test_fact_3_etags_come_quoted_or_not(account: Bench, form: str) -> None:
    """Both forms are understood, in every condition."""
    given = form.format(account.file("f"))
    account.head(FS, "f", Conditions(if_match=given))

    with refused(412, "SourceConditionNotMet"):
        account.rename(FS, "g", FS, "f", source_conditions=Conditions(if_none_match=given))


def test_fact_6_list_tokens_are_opaque(account: Bench) -> None:
    """A token is base64; entries have names from the root of the filesystem."""
    account.file("d/a")
    account.file("d/b")

    page = account.list(FS, "d", limit=1)

    assert [path for path, _ in page.entries] == ["d/a"]
    assert page.token is not None
    assert base64.b64decode(page.token, validate=True)


def test_fact_8_append_and_flush(account: Bench) -> None:
    """Appended bytes are not readable before the flush, which has a new etag and time."""
    before = account.create(FS, "f").modified
    account.clock.now += 5
    account.append(FS, "f", 0, b"da")
    account.append(FS, "f", 2, b"ta")
    assert account.data("f") == b""

    node = account.flush(FS, "f", 4)

    assert account.data("f") == b"data"
    assert node.modified == before + 5


def test_fact_8_flush_at_the_start_drops_what_was_appended(account: Bench) -> None:
    """Recorded: 1,024 bytes appended, flushed at 0, answered 200."""
    etag = account.create(FS, "f").etag
    account.append(FS, "f", 0, b"x" * 1024)

    node = account.flush(FS, "f", 0)

    assert node.etag != etag
    assert account.data("f") == b""
    with refused(400, "InvalidFlushPosition"):
        account.flush(FS, "f", 1024)


def test_fact_8_append_of_nothing(account: Bench) -> None:
    """Recorded: a Content-Length of 0 is refused."""
    account.create(FS, "f")

    with refused(400, "InvalidHeaderValue"):
        account.append(FS, "f", 0, b"")


def test_access_control_leaves_the_etag(account: Bench) -> None:
    """Recorded: the answer to setAccessControl has the etag of the create."""
    etag = account.file("f")

    assert account.set_access_control(FS, "f", permissions="rwxrwxrwx").etag == etag


def test_etags_look_like_the_service_s(account: Bench) -> None:
    """``0x8D`` and thirteen more hexadecimal digits, never the same twice, even in one moment."""
    etags = [account.file("f", b"x") for _ in range(50)]
    etags += [account.set_properties(FS, "f", {"n": str(n)}).etag for n in range(50)]

    assert all(re.fullmatch("0x8D[0-9A-F]{13}", etag) for etag in etags)
    assert len(set(etags)) == 100


def test_lease_of_an_overwritten_destination_is_broken(account: Bench) -> None:
    """It need not be named; whoever held it finds it lost."""
    account.file("f", b"new")
    account.file("g", b"old")
    account.lease(FS, "g", "acquire", proposed=A, duration=-1)

    account.rename(FS, "g", FS, "f")

    node = account.head(FS, "g")
    assert account.lease_state(node) == "broken"
    assert account.data("g") == b"new"
    with refused(412, "LeaseLost"):
        account.append(FS, "g", 3, b"x", conditions=Conditions(lease=A))


def test_wrong_lease_of_the_destination(account: Bench) -> None:
    """A lease that is named at the destination must be the right one."""
    account.file("f")
    account.file("g")
    account.lease(FS, "g", "acquire", proposed=A, duration=-1)
    with refused(412, "LeaseIdMismatch"):
        account.rename(FS, "g", FS, "f", conditions=Conditions(lease=B))

    account.rename(FS, "g", FS, "f", conditions=Conditions(lease=A))

    assert account.names() == ["g"]


def test_lease_goes_with_the_file(account: Bench) -> None:
    """A rename moves the source's lease along."""
    account.file("f")
    account.lease(FS, "f", "acquire", proposed=A, duration=-1)

    account.rename(FS, "g", FS, "f", source_conditions=Conditions(lease=A))

    assert account.lease_state(account.head(FS, "g")) == "leased"
