"""What the local store does beyond the contract: sidecars, links, hidden files, system errors."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.stores.base import Kind, Page
from asynccommit.stores.filesystem_names import is_unlisted
from asynccommit.stores.local import files, moves
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.tree import list_all
from tests.support.contract import RULES, Rule, name_of, names_in


@pytest.fixture
async def store() -> AsyncIterator[LocalStore]:
    """The local store."""
    store = LocalStore()
    yield store
    await store.aclose()


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A fresh directory."""
    return str(tmp_path)


@pytest.fixture
def without_kernel_rename(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move as where the kernel has no rename that refuses to replace."""
    monkeypatch.setattr(moves, "move_new", moves.move_by_link)


@pytest.mark.usefixtures("without_kernel_rename")
@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract_without_renameat2(rule: Rule, store: LocalStore, root: str) -> None:
    """The rules hold where hard links must stand in for the kernel's own rename."""
    await rule(store, root)


@pytest.mark.usefixtures("without_kernel_rename")
async def test_without_links_a_rename_is_checked_first(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a filesystem without hard links a file still moves, and still does not replace."""

    def link(source: str, dest: str, *, follow_symlinks: bool) -> None:
        raise PermissionError(errno.EPERM, "no links here", source, None, dest)

    monkeypatch.setattr(os, "link", link)
    await store.put(f"{root}/f", b"")
    await store.put(f"{root}/g", b"")
    with pytest.raises(ExistsError):
        await store.rename(f"{root}/f", f"{root}/g")
    await store.rename(f"{root}/f", f"{root}/h")
    assert await names_in(store, root) == ["g", "h"]


HADOOP = b"crc\0\0\0\2\0"
"""How a checksum file of Hadoop begins."""

# --- sidecars and temporary files ------------------------------------------------------------


async def test_checksums_and_temporary_files_are_not_listed(store: LocalStore, root: str) -> None:
    """Hadoop's checksum files and our temporary ones are hidden, other dot files are shown."""
    for name in ("f", ".f.crc", ".asynccommit-1-1.tmp", ".f", "f.crc", ".tmp", "crc"):
        Path(root, name).write_bytes(b"")
    assert await names_in(store, root) == [".f", ".tmp", "crc", "f", "f.crc"]


async def test_what_only_has_the_name_of_a_checksum_is_listed(store: LocalStore, root: str) -> None:
    """A file or directory named as a checksum is shown, unless it is one; those are told apart."""
    Path(root, ".note.crc").write_bytes(b"mine")
    Path(root, ".crc").write_bytes(b"")
    Path(root, ".d.crc").mkdir()
    Path(root, ".gone.crc").write_bytes(HADOOP)
    Path(root, ".link.crc").symlink_to("nowhere")
    page = await store.list(root)
    assert sorted(info.path for info in page.entries) == [
        f"{root}/{name}" for name in (".crc", ".d.crc", ".link.crc", ".note.crc")
    ]
    assert page.stale == (f"{root}/.gone.crc",)


async def _delete(store: LocalStore, root: str) -> None:
    await store.delete(f"{root}/f")


async def _put(store: LocalStore, root: str) -> None:
    await store.put(f"{root}/f", b"new")


async def _rename(store: LocalStore, root: str) -> None:
    await store.put(f"{root}/g", b"new")
    await store.rename(f"{root}/g", f"{root}/f", replace=True)


async def _copy(store: LocalStore, root: str) -> None:
    await store.put(f"{root}/g", b"new")
    await store.copy(f"{root}/g", f"{root}/f", overwrite=True)


@pytest.mark.parametrize("change", [_delete, _put, _rename, _copy])
async def test_a_stale_checksum_goes_with_its_file(
    store: LocalStore, root: str, change: Callable[[LocalStore, str], asyncio.Future[None]]
) -> None:
    """What deletes or replaces NAME removes .NAME.crc, and no other checksum."""
    for name in ("f", ".f.crc", ".other.crc"):
        Path(root, name).write_bytes(HADOOP)
    await change(store, root)
    assert not os.path.lexists(f"{root}/.f.crc")
    assert os.path.lexists(f"{root}/.other.crc")


@pytest.mark.parametrize("change", [_delete, _put, _rename, _copy])
@pytest.mark.parametrize("notes", [b"", b"notes", b"crc\0", HADOOP + b"1", b"crc\0\0\0\0\0"])
async def test_what_only_has_the_name_of_a_checksum_stays(
    store: LocalStore,
    root: str,
    change: Callable[[LocalStore, str], asyncio.Future[None]],
    notes: bytes,
) -> None:
    """A file is Hadoop's checksum if its header and its length say so."""
    Path(root, "f").write_bytes(b"old")
    Path(root, ".f.crc").write_bytes(notes)
    await change(store, root)
    assert Path(root, ".f.crc").read_bytes() == notes


async def test_directories_of_a_page_are_listed_in_one_call(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories that fail, have more pages or follow a full page are left to ``list``."""
    monkeypatch.setattr(files, "PAGE", 4)
    for name, count in {"a": 2, "b": 9, "c": 0, "d": 3, "e": 1}.items():
        (tmp_path / name).mkdir()
        for number in range(count):
            (tmp_path / name / str(number)).touch()
    (tmp_path / "file").touch()

    async def counts(*names: str) -> list[int | None]:
        found = await store.list_many([f"{tmp_path}/{name}" for name in names])
        return [None if page is None else len(page.entries) for page in found]

    assert await counts("a", "gone", "file", "b", "c", "d") == [2, *[None] * 5]
    assert await counts("a", "c", "d", "e") == [2, 0, 3, None]


async def test_slow_listings_are_left_to_single_calls(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that waits for each listing, the others are asked for beside each other."""
    monkeypatch.setattr("asynccommit.stores.local.store._WHILE", -1.0)
    (tmp_path / "a").mkdir()
    assert await store.list_many([f"{tmp_path}/a", f"{tmp_path}/a"]) == [Page(()), None]


@pytest.mark.parametrize("how", ["rename", "rename_many", "put", "copy"])
async def test_a_checksum_at_a_free_name_stays(store: LocalStore, root: str, how: str) -> None:
    """What replaces nothing removes nobody's checksum: it is not known whose it is."""
    Path(root, ".f.crc").write_bytes(HADOOP)
    await store.put(f"{root}/g", b"new")
    if how == "rename":
        await store.rename(f"{root}/g", f"{root}/f")
    elif how == "rename_many":
        await store.rename_many([(f"{root}/g", f"{root}/f", None)])
    elif how == "put":
        await store.put(f"{root}/f", b"new", overwrite=False)
    else:
        await store.copy(f"{root}/g", f"{root}/f")
    assert Path(root, ".f.crc").read_bytes() == HADOOP


async def test_a_directory_of_checksums_alone_is_empty(store: LocalStore, root: str) -> None:
    """A directory that shows nothing can be deleted, or replaced by another directory."""
    await store.mkdir(f"{root}/d")
    Path(root, "d", ".f.crc").write_bytes(HADOOP)
    Path(root, "d", ".asynccommit-1-1.tmp").write_bytes(b"")
    await store.mkdir(f"{root}/e/inner")
    await store.rename(f"{root}/e", f"{root}/d", replace=True)
    assert await names_in(store, f"{root}/d") == ["inner"]
    Path(root, "d", "inner", ".f.crc").write_bytes(HADOOP)
    await store.delete(f"{root}/d/inner")
    assert await names_in(store, f"{root}/d") == []


async def test_a_checksum_stays_in_a_directory_that_is_not_empty(
    store: LocalStore, root: str
) -> None:
    """A refused delete of a directory removes nothing, hidden files neither."""
    await store.mkdir(f"{root}/d")
    for name in ("f", ".f.crc"):
        Path(root, "d", name).write_bytes(b"")
    with pytest.raises(ExistsError):
        await store.delete(f"{root}/d")
    assert sorted(os.listdir(f"{root}/d")) == [".f.crc", "f"]


@pytest.mark.parametrize("overwrite", [True, False])
async def test_a_failed_write_leaves_no_temporary_file(
    store: LocalStore, root: str, overwrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up leaves the old file and nothing else, and is named."""
    await store.put(f"{root}/f", b"old")

    def full(fd: int) -> os.stat_result:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", full)
        with pytest.raises(RejectedError, match=f"no space left on the disk of {root}/f"):
            await store.put(f"{root}/f", b"new", overwrite=overwrite)
    assert os.listdir(root) == ["f"]
    assert Path(root, "f").read_bytes() == b"old"


async def test_a_temporary_name_that_is_taken_is_left_alone(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A temporary file of another host's process is not written to."""
    monkeypatch.setattr(files, "_serial", iter(range(10)))
    taken = Path(root, f".asynccommit-0-{os.getpid()}-0.tmp")
    taken.write_bytes(b"theirs")
    await store.put(f"{root}/f", b"ours")
    assert (taken.read_bytes(), Path(root, "f").read_bytes()) == (b"theirs", b"ours")


_IN_THE_TUPLE = {f"st_{name}" for name in ("mode", "ino", "dev", "nlink", "uid", "gid", "size")}


async def test_an_etag_is_the_same_on_every_host(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number that one host gives to a mounted filesystem is the volume, not in the etag."""
    here = await store.put(f"{root}/f", b"data")
    lstat = os.lstat

    def elsewhere(path: str) -> os.stat_result:
        found = lstat(path)
        names = [
            name for name in dir(found) if name.startswith("st_") and name not in _IN_THE_TUPLE
        ]
        more = {name: getattr(found, name) for name in names}
        return os.stat_result((*found[:2], found.st_dev + 1, *found[3:]), more)

    monkeypatch.setattr(os, "lstat", elsewhere)
    there = await store.head(f"{root}/f")
    assert there._replace(made=0) == here._replace(volume=here.volume + 1)


async def test_directories_are_made_though_others_remove_their_parents(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job that removes an empty parent in between delays a mkdir, and fails none."""
    mkdir, removed = os.mkdir, 0

    def race(path: str, mode: int, dir_fd: int | None = None) -> None:
        nonlocal removed
        mkdir(path, mode, dir_fd=dir_fd)
        if removed < 4:
            removed += 1
            os.rmdir(path)

    monkeypatch.setattr(os, "mkdir", race)
    await store.mkdir(f"{root}/a/b/c")
    assert await names_in(store, f"{root}/a/b") == ["c"]
    assert removed == 4


async def test_directories_that_cannot_be_made_are_given_up(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parent that is gone again each time is reported as missing."""

    def race(path: str, mode: int, dir_fd: int | None = None) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    monkeypatch.setattr(os, "mkdir", race)
    with pytest.raises(NotFoundError):
        await store.mkdir(f"{root}/a/b")


# --- links and other things ------------------------------------------------------------------


@pytest.fixture
def linked(root: str) -> str:
    """A directory with a file and a directory, and a link to each and to nothing."""
    os.makedirs(f"{root}/out/d")
    Path(root, "out", "f").write_bytes(b"out")
    os.mkdir(f"{root}/in")
    for name, target in (("tofile", "f"), ("todir", "d"), ("tonothing", "gone")):
        os.symlink(f"{root}/out/{target}", f"{root}/in/{name}")
    return f"{root}/in"


async def test_links_are_shown_as_what_they_are(store: LocalStore, linked: str) -> None:
    """Head and list call a link neither file nor directory, wherever it leads."""
    found = await list_all(store, linked)
    assert [info.kind for info in found] == [Kind.OTHER] * 3
    for info in found:
        assert await store.head(info.path) == info


async def test_a_linked_file_is_not_read(store: LocalStore, linked: str) -> None:
    """Neither get nor copy reads through a link at the end of a path."""
    for name in ("tofile", "tonothing"):
        with pytest.raises(PreconditionError):
            await store.get(f"{linked}/{name}", 100)
        with pytest.raises(PreconditionError):
            await store.copy(f"{linked}/{name}", f"{linked}/x")


async def test_a_pipe_is_not_waited_for(store: LocalStore, root: str) -> None:
    """A named pipe has no content and nobody waits for one."""
    os.mkfifo(f"{root}/pipe")
    with pytest.raises(PreconditionError):
        await store.get(f"{root}/pipe", 100)
    assert (await store.head(f"{root}/pipe")).kind is Kind.OTHER


async def test_writing_takes_the_place_of_a_link(store: LocalStore, linked: str) -> None:
    """Put, rename and copy replace the link itself and leave what it leads to."""
    await store.put(f"{linked}/tofile", b"new")
    await store.put(f"{linked}/g", b"newer")
    await store.rename(f"{linked}/g", f"{linked}/todir", replace=True)
    with pytest.raises(ExistsError):
        await store.put(f"{linked}/tonothing", b"", overwrite=False)
    assert Path(linked, "tofile").read_bytes() == b"new"
    assert Path(linked, "todir").read_bytes() == b"newer"
    assert Path(linked, "../out/f").read_bytes() == b"out"
    assert not os.path.lexists(f"{linked}/../out/gone")


async def test_deleting_takes_the_link_alone(store: LocalStore, linked: str) -> None:
    """A link is not deleted in a directory's or file's place, and no tree is behind one."""
    for name in ("tofile", "todir", "tonothing"):
        with pytest.raises(PreconditionError, match="a symbolic link"):
            await store.delete(f"{linked}/{name}")
        assert os.path.islink(f"{linked}/{name}")
    await store.delete_tree(f"{linked}/todir")
    await store.delete_tree(linked)
    assert sorted(os.listdir(f"{linked}/../".replace("/in/..", ""))) == ["out"]
    assert sorted(os.listdir(f"{os.path.dirname(linked)}/out")) == ["d", "f"]


async def test_a_table_may_be_a_link(store: LocalStore, linked: str) -> None:
    """A link to a directory, asked for by name, is listed and is a directory for mkdir."""
    await store.mkdir(f"{linked}/todir")
    await store.put(f"{linked}/todir/f", b"")
    assert await names_in(store, f"{linked}/todir") == ["f"]


async def test_nothing_is_below_a_loop_of_links(store: LocalStore, root: str) -> None:
    """What a loop is in place of is not there, as below a file; a listing calls it no directory."""
    os.symlink(f"{root}/b", f"{root}/a")
    os.symlink(f"{root}/a", f"{root}/b")
    with pytest.raises(NotFoundError):
        await store.head(f"{root}/a/x")
    with pytest.raises(PreconditionError, match="not a directory"):
        await store.list(f"{root}/a")
    with pytest.raises(PreconditionError, match="link to itself"):
        await store.mkdir(f"{root}/a/x")


# --- sync ------------------------------------------------------------------------------------


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the disk was told to keep, as the paths of what was open then."""
    told: list[str] = []
    fsync = os.fsync

    def note(fd: int) -> None:
        told.append(os.readlink(f"/proc/self/fd/{fd}"))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note)
    return told


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc of Linux")
async def test_sync_tells_the_disk(store: LocalStore, root: str, synced: list[str]) -> None:
    """A file is synced by its content, a directory by its entries, a link as what it leads to."""
    os.mkdir(f"{root}/d")
    os.symlink(f"{root}/d", f"{root}/link")
    await store.put(f"{root}/d/f", b"data")
    assert synced == []

    for path in ("d/f", "d", "link"):
        await store.sync(f"{root}/{path}")

    assert synced == [f"{root}/d/f", f"{root}/d", f"{root}/d"]


async def test_sync_leaves_nothing_open(store: LocalStore, root: str) -> None:
    """However it ends, a sync gives its file back."""
    await store.put(f"{root}/f", b"data")
    await store.sync(f"{root}/f")
    before = len(os.listdir("/dev/fd"))
    for path in (f"{root}/f", root, f"{root}/f", root):
        await store.sync(path)
    assert len(os.listdir("/dev/fd")) == before


async def test_sync_refuses_what_is_neither_file_nor_directory(
    store: LocalStore, linked: str
) -> None:
    """A link to a file or to nothing is not followed, and a pipe is not waited for."""
    os.mkfifo(f"{linked}/pipe")
    for name in ("tofile", "pipe"):
        with pytest.raises(PreconditionError):
            await store.sync(f"{linked}/{name}")
    with pytest.raises(NotFoundError):
        await store.sync(f"{linked}/tonothing")


async def test_what_the_disk_has_lost_is_not_asked_for_again(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that could not write says yes to the second sync: there must be none."""
    asked = []

    def lost_once(fd: int) -> None:
        asked.append(fd)
        if len(asked) == 1:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", lost_once)
    async with aclosing(Wrapped(LocalStore(), Retry(random.Random(1)))) as store:
        for path in (f"{root}/f", root):
            asked.clear()
            await store.put(f"{root}/f", b"data")
            with pytest.raises(RejectedError, match="the data did not reach the disk"):
                await store.sync(path)
            assert len(asked) == 1


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
async def test_a_filesystem_that_syncs_no_directories_is_fine(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Where there is nothing to do for a directory, nothing is; a file must be synced."""

    def refuse(fd: int) -> None:
        raise OSError(code, os.strerror(code))

    await store.put(f"{root}/f", b"data")
    monkeypatch.setattr(os, "fsync", refuse)
    await store.sync(root)
    with pytest.raises(RejectedError):
        await store.sync(f"{root}/f")


# --- names -----------------------------------------------------------------------------------


async def test_names_that_are_no_text_do_not_break_a_listing(store: LocalStore, root: str) -> None:
    """A name of bytes that are no UTF-8 is listed and can be asked for again."""
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9")).write_bytes(b"x")
    (info,) = await list_all(store, root)
    assert (await store.head(info.path)).size == 1
    await store.rename(info.path, f"{root}/café")
    assert await names_in(store, root) == ["café"]


@pytest.mark.parametrize("name", ["a\0b", "a\ud83d"])
async def test_a_name_that_no_filesystem_takes_is_refused(
    store: LocalStore, root: str, name: str
) -> None:
    """A null byte or half a surrogate pair is refused by every request, and cuts no name off."""
    path = f"{root}/{name}"
    await store.put(f"{root}/a", b"")
    for request in (store.head, store.list, store.delete, store.delete_tree, store.mkdir):
        with pytest.raises(RejectedError):
            await request(path)
    for source, dest in ((path, f"{root}/c"), (f"{root}/a", path)):
        for replace in (False, True):
            with pytest.raises(RejectedError):
                await store.rename(source, dest, replace=replace)
    with pytest.raises(RejectedError):
        await store.put(path, b"")
    assert os.listdir(root) == ["a"]


_NAME = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60
).filter(lambda name: name not in (".", "..") and not is_unlisted(name))


@given(source=_NAME, dest=_NAME)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_any_name_can_be_renamed_to_any_other(source: str, dest: str, tmp_path: Path) -> None:
    """Whatever the two names, the file ends at the second, once."""
    store = LocalStore()
    root = str(tmp_path)
    await store.put(f"{root}/{source}", source.encode())
    await store.rename(f"{root}/{source}", f"{root}/in-{dest}"[: len(root) + 60])
    (info,) = await list_all(store, root)
    assert await store.get(info.path, 1000) == source.encode()
    await store.delete(info.path)
    await store.aclose()


# --- listings --------------------------------------------------------------------------------


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three names a page."""
    monkeypatch.setattr(files, "PAGE", 3)


@pytest.mark.usefixtures("small_pages")
async def test_a_listing_goes_on_when_its_names_were_dropped(store: LocalStore, root: str) -> None:
    """Many long listings at once, more than are kept, all show everything once."""
    for number in range(20):
        await store.mkdir(f"{root}/{number}")
        for name in range(10):
            await store.put(f"{root}/{number}/{name}", b"")
    found = await asyncio.gather(*(names_in(store, f"{root}/{number}") for number in range(20)))
    assert found == [[str(name) for name in range(10)]] * 20


@pytest.mark.usefixtures("small_pages")
async def test_what_vanishes_while_listed_is_left_out(store: LocalStore, root: str) -> None:
    """Files deleted between two pages are not shown, and the others are."""
    for name in "abcdefghij":
        await store.put(f"{root}/{name}", b"")
    first = await store.list(root)
    for name in "cdef":
        await store.delete(f"{root}/{name}")
    second = await store.list(root, first.token)
    third = await store.list(root, second.token)
    fourth = await store.list(root, third.token)
    shown = [info.path[-1] for page in (first, second, third, fourth) for info in page.entries]
    assert shown == list("abcghij")
    assert fourth.token is None


# --- errors ----------------------------------------------------------------------------------

CODES: dict[type[StoreError], list[int]] = {
    NotFoundError: [errno.ENOENT, errno.ENOTDIR, errno.ELOOP],
    ExistsError: [errno.EEXIST, errno.ENOTEMPTY],
    PreconditionError: [errno.EISDIR],
    DeniedError: [errno.EACCES, errno.EPERM, errno.EROFS],
    UnavailableError: [errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENOMEM],
    OutcomeUnknownError: [errno.EIO, errno.ESTALE, errno.ETIMEDOUT],
    RejectedError: [errno.ENAMETOOLONG, errno.EINVAL, errno.EXDEV, errno.EFBIG, 9999],
}


@pytest.mark.parametrize(
    "code, kind", [(code, kind) for kind, codes in CODES.items() for code in codes]
)
def test_system_errors_have_one_meaning_each(code: int, kind: type[StoreError]) -> None:
    """Each code becomes the error that says what to do next, with both paths named."""
    error = files.translate("rename", "/a", OSError(code, os.strerror(code), "/a", None, "/b"))
    assert type(error) is kind
    assert (error.op, error.path) == ("rename", "/a")
    assert "/b" in error.detail


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named(code: int) -> None:
    """No space, or none left of a quota, says so with the path."""
    error = files.translate("put", "/disk/f", OSError(code, "x"))
    assert isinstance(error, RejectedError)
    assert error.detail == "no space left on the disk of /disk/f"


@pytest.fixture
def locked(root: str) -> Iterator[str]:
    """A directory that may not be written to."""
    if os.geteuid() == 0:
        pytest.skip("the superuser may do everything")
    os.mkdir(f"{root}/locked")
    Path(root, "locked", "f").write_bytes(b"")
    os.chmod(f"{root}/locked", 0o500)
    yield f"{root}/locked"
    os.chmod(f"{root}/locked", 0o700)


async def test_what_is_not_permitted_is_denied(store: LocalStore, locked: str) -> None:
    """Writing where one may not write is denied, and changes nothing."""
    for request in (store.delete, store.delete_tree):
        with pytest.raises(DeniedError):
            await request(f"{locked}/f")
    with pytest.raises(DeniedError):
        await store.put(f"{locked}/g", b"")
    with pytest.raises(DeniedError):
        await store.rename(f"{locked}/f", f"{locked}/g")
    with pytest.raises(DeniedError):
        await store.mkdir(f"{locked}/d")
    assert os.listdir(locked) == ["f"]


async def test_the_superuser_is_denied_what_the_kernel_keeps(store: LocalStore) -> None:
    """A refusal of the kernel is a denial, not a missing file, for the superuser too."""
    if not os.path.isdir("/sys/kernel"):
        pytest.skip("there is no /sys")
    for request in (store.mkdir, lambda path: store.put(path, b"")):
        with pytest.raises(DeniedError):
            await request("/sys/asynccommit")


@pytest.mark.parametrize("replace", [False, True])
async def test_another_filesystem_is_refused_by_name(
    store: LocalStore, root: str, replace: bool
) -> None:
    """A rename across filesystems is refused and names both ends; nothing is copied."""
    other = "/dev/shm"
    if not os.path.isdir(other) or os.stat(other).st_dev == os.stat(root).st_dev:
        pytest.skip("there is one filesystem only")
    await store.put(f"{root}/f", b"")
    dest = f"{other}/asynccommit-test-{os.getpid()}"
    with pytest.raises(RejectedError) as caught:
        await store.rename(f"{root}/f", dest, replace=replace)
    assert f"{root}/f" in str(caught.value)
    assert f"{dest} is on another filesystem" in str(caught.value)
    assert not os.path.exists(dest)


async def test_the_root_is_not_deleted(store: LocalStore) -> None:
    """Nobody means to delete everything."""
    with pytest.raises(RejectedError):
        await store.delete_tree("/")


# --- cancelling ------------------------------------------------------------------------------


async def test_nothing_happens_after_a_cancelled_caller_has_returned(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename that is under way is over when its caller returns; one behind it is not made."""
    hold, begun = threading.Event(), threading.Event()
    move = moves.move_new

    def slow(source: str, dest: str, *at: int) -> None:
        begun.set()
        hold.wait(30)
        move(source, dest)

    for name in ("f", "g"):
        await store.put(f"{root}/{name}", b"")
    monkeypatch.setattr(moves, "move_new", slow)
    first, second = (
        asyncio.ensure_future(store.rename(f"{root}/{name}", f"{root}/{name}{name}"))
        for name in ("f", "g")
    )
    while not begun.is_set():  # noqa: ASYNC110 - set by a thread
        await asyncio.sleep(0.001)
    for task in (first, second, first):
        task.cancel()
        await asyncio.wait([second], timeout=0.01)
    assert second.cancelled()
    assert not first.done()
    hold.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert sorted(os.listdir(root)) == ["ff", "g"]


# --- speed that can be counted ---------------------------------------------------------------


async def test_a_slow_call_delays_no_rename(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renames of the same turn are done while a delete of a tree still runs."""
    hold = threading.Event()
    monkeypatch.setattr(files, "delete_tree", lambda path: hold.wait(30))
    await store.put(f"{root}/f", b"")
    slow = asyncio.ensure_future(store.delete_tree(root))
    await asyncio.gather(store.rename(f"{root}/f", f"{root}/g"))
    assert not slow.done()
    hold.set()
    await slow


async def test_many_slow_calls_leave_threads_for_renames(
    store: LocalStore, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with every thread for slow calls in use a rename is done."""
    hold = threading.Event()
    monkeypatch.setattr(files, "put", lambda path, *more: hold.wait(30))
    os.mkdir(f"{root}/f")
    slow = [asyncio.ensure_future(store.put(f"{root}/p", b"")) for _ in range(50)]
    await store.rename(f"{root}/f", f"{root}/g")

    assert os.path.isdir(f"{root}/g")
    assert not any(call.done() for call in slow)
    hold.set()
    await asyncio.gather(*slow)


def test_seed_of_the_suite_is_not_shared() -> None:
    """The suite draws nothing from the shared generator, so that runs repeat."""
    state = random.getstate()
    LocalStore()
    assert random.getstate() == state
