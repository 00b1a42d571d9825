"""Mounts, layers and attributes below a table: what cannot be moved is refused before the record.

Each test commits where a rename would fail half-way, and sees that nothing has changed; then it
takes the obstacle away, and the same job commits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.errors import AsyncCommitError, CommitError, PreflightError
from asynccommit.hive.publishing import publish
from asynccommit.options.job import Mode, Options
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.urls import Address
from tests.support.jobs import HOST, committer, ids, run_task, visible, write
from tests.support.namespaces import as_nobody, bind, in_namespace, overlay, tmpfs, unmount

OLD = {"day=1/old": "1", "day=2/old": "2", "day=2/hour=3/old": "3"}
NEW = {"day=1/new": "n", "day=2/new": "m"}
MODES = (Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS)


async def job_of(dest: Path, files: dict[str, str], **options: Any) -> ManifestCommitter:
    """Return a job whose task has committed."""
    job = committer(dest, **options)
    await job.setup_job()
    await run_task(job, 0, files)
    return job


async def refusal(job: ManifestCommitter, dest: Path, **how: Any) -> str:
    """Return why a commit was refused; all that is visible is as before, and there is no record."""
    before = visible(dest)
    with pytest.raises(PreflightError) as failed:
        await job.commit_job(**how)
    assert visible(dest) == before
    assert not Path(job.layout.record).exists()
    return str(failed.value)


# --- mounts --------------------------------------------------------------------------------------


async def _append_to_bind(root: str) -> str:
    dest, other = Path(root, "table"), Path(root, "other")
    write(dest, {"day=1/": ""})
    write(other, {"old": "o"})
    bind(other, dest / "day=1")
    job = await job_of(dest, NEW)
    said = await refusal(job, dest)
    unmount(dest / "day=1")
    await job.commit_job()
    assert visible(dest) == NEW
    return said


def test_a_bind_mount_of_the_same_filesystem(tmp_path: Path) -> None:
    """Files are not renamed into a bind mount, whose device number is the table's own."""
    assert "day=1: on a different filesystem or mount from" in in_namespace(
        _append_to_bind, str(tmp_path)
    )


async def _replace_mounts(root: str, kind: str, mode: str, place: str) -> str:
    dest, other = Path(root, "table"), Path(root, "other")
    write(dest, OLD)
    write(other, {"theirs": "t"})
    if kind == "bind":
        bind(other, dest / place)
    else:
        tmpfs(dest / place)
        write(dest / place, {"theirs": "t"})
    job = await job_of(dest, NEW)
    said = await refusal(job, dest, mode=Mode(mode))
    unmount(dest / place)
    await job.commit_job(mode=Mode(mode))
    assert visible(dest) == NEW
    return said


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", ["day=2", "day=2/hour=3"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_mount_among_what_is_replaced(tmp_path: Path, kind: str, mode: Mode, place: str) -> None:
    """A partition that is a mount point, or holds one, is not replaced, nor is any other."""
    said = in_namespace(_replace_mounts, str(tmp_path), kind, mode.value, place)
    assert f"{place}: " in said
    assert "a mount point" in said or "on a different filesystem or mount" in said


async def _replace_other_places(root: str, how: str) -> str:
    dest, outside = Path(root, "table"), Path(root, "outside")
    write(dest, {"a/b/": "", "kept": "k"})
    outside.mkdir()
    if how == "overwrite":
        tmpfs(outside)
        job = await job_of(dest, {"new": "n"})
        return await refusal(job, dest, overwrite=[str(outside)])
    if how == "a file":
        write(dest.parent, {"theirs": "t"})
        bind(dest.parent / "theirs", dest / "kept")
        return await refusal(await job_of(dest, NEW), dest, mode=Mode.REPLACE_TABLE)
    if how == "the marker":
        write(dest, {"_SUCCESS": "{}"})
        bind(dest / "_SUCCESS", dest / "_SUCCESS")
        return await refusal(await job_of(dest, NEW), dest)
    tmpfs(dest / "a/b")
    job = await job_of(dest, {"a": "file"}, delete_target_files=True)
    return await refusal(job, dest)


@pytest.mark.sample(2)
@pytest.mark.parametrize("how", ["overwrite", "a file", "the marker", "in the way"])
def test_a_mount_wherever_something_is_moved_aside(tmp_path: Path, how: str) -> None:
    """So it is with other directories to overwrite, files, the marker, and what is in the way."""
    assert "a mount point" in in_namespace(_replace_other_places, str(tmp_path), how)


async def _source_mount(root: str) -> str:
    dest = Path(root, "table")
    job = await job_of(dest, {"day=1/new": "n"})
    tmpfs(Path(job.layout.task_attempt_dir(ids(0)[1]), "day=1"))
    return await refusal(job, dest)


def test_a_mount_over_what_a_task_has_written(tmp_path: Path) -> None:
    """Files of a task are not renamed out of another filesystem."""
    assert "on a different filesystem or mount" in in_namespace(_source_mount, str(tmp_path))


async def _linked_table(root: str) -> str:
    real, dest = Path(root, "real"), Path(root, "table")
    (real / "_temporary").mkdir(parents=True)
    dest.symlink_to(real)
    tmpfs(real / "_temporary")
    return await refusal(await job_of(dest, {"new": "n"}), dest)


def test_a_temporary_on_another_filesystem(tmp_path: Path) -> None:
    """A table that is a link is looked at behind the link."""
    assert "table/.: on a different filesystem or mount" in in_namespace(
        _linked_table, str(tmp_path)
    )


async def _file_committer(root: str) -> str:
    dest = Path(root, "table")
    write(dest, OLD | {"f": "old", "theirs": "t"})
    bind(dest / "theirs", dest / "f")
    layout = FileLayout(Address("file", "", str(dest)), "job_202601010000_0001")
    job = FileV1Committer(LocalStore(), layout, Options(), HOST)
    await job.setup_job()
    task_id, attempt_id = ids(0)
    write(await job.setup_task(attempt_id), {"f": "new"})
    await job.commit_task(task_id, attempt_id)
    said = await refusal(job, dest)
    unmount(dest / "f")
    await job.commit_job()
    assert visible(dest) == OLD | {"f": "new", "theirs": "t"}
    return said


def test_a_mounted_file_that_file_output_committer_replaces(tmp_path: Path) -> None:
    """FileOutputCommitter, which takes the place of files, refuses one that is mounted."""
    assert "f: a mount point" in in_namespace(_file_committer, str(tmp_path))


async def _hive(root: str, kind: str) -> str:
    place, store = Path(root), LocalStore()
    write(place, {"X/000000_0": "old", "_tmp.X/000000_0": "new", "linked/000000_0": "old"})
    if kind == "mount":
        tmpfs(place / "X")
        write(place / "X", {"000000_0": "mounted"})
    else:
        os.rename(place / "X", place / "real")
        (place / "X").symlink_to(place / "real")
    before = sorted(os.listdir(place))
    with pytest.raises(AsyncCommitError) as failed:
        await publish(store, str(place / "X"), replaces=True)
    assert sorted(os.listdir(place)) == before
    if kind == "mount":
        unmount(place / "X")
    else:
        (place / "X").unlink()
        os.rename(place / "real", place / "X")
    await publish(store, str(place / "X"), replaces=True)
    assert (place / "X/000000_0").read_text() == "new"
    return str(failed.value)


@pytest.mark.parametrize("kind, why", [("mount", "a mount point"), ("link", "a link")])
def test_hive_replaces_no_mount_and_no_link(tmp_path: Path, kind: str, why: str) -> None:
    """A directory that cannot be moved, or a link to one, is refused before anything is renamed."""
    assert why in in_namespace(_hive, str(tmp_path), kind)


# --- layers --------------------------------------------------------------------------------------


async def _overlay_replace(root: str, mode: str) -> str:
    lower, dest = Path(root, "lower"), Path(root, "table")
    write(lower, OLD)
    overlay(lower, dest, Path(root, "layers"))
    job = await job_of(dest, NEW)
    said = await refusal(job, dest, mode=Mode(mode))
    await job.abort_job()
    assert visible(dest) == OLD
    assert not (dest / "_temporary").exists()
    return said


@pytest.mark.parametrize("mode", MODES)
def test_a_directory_of_a_lower_layer_is_not_replaced(tmp_path: Path, mode: Mode) -> None:
    """What an overlay does not rename is refused, and the reason is said."""
    said = in_namespace(_overlay_replace, str(tmp_path), mode.value)
    assert "in a lower layer of an overlay filesystem" in said


async def _overlay_others(root: str) -> list[dict[str, str]]:
    lower, dest = Path(root, "lower"), Path(root, "table")
    write(lower, OLD | {"file": "old"})
    overlay(lower, dest, Path(root, "layers"))
    found = []
    job = await job_of(dest, NEW | {"day=3/new": "o"})
    await job.commit_job()
    found.append(visible(dest))
    job = await job_of(dest, {"day=3/newer": "p", "day=4/new": "q"})
    await job.commit_job(mode=Mode.REPLACE_PARTITIONS)
    found.append(visible(dest))
    job = await job_of(dest, {"file": "new"}, delete_target_files=True)
    await job.commit_job()
    found.append(visible(dest))
    return found


def test_what_an_overlay_does_rename(tmp_path: Path) -> None:
    """Files are added to lower directories and moved out; those of the upper layer are swapped."""
    appended, replaced, over = in_namespace(_overlay_others, str(tmp_path))
    assert appended == OLD | NEW | {"day=3/new": "o", "file": "old"}
    assert replaced == OLD | NEW | {"day=3/newer": "p", "day=4/new": "q", "file": "old"}
    assert over == replaced | {"file": "new"}


# --- attributes and permissions ------------------------------------------------------------------


@contextmanager
def attribute(letter: str, path: Path) -> Iterator[None]:
    """Give a file or directory an attribute while the block runs."""
    if shutil.which("chattr") is None:
        pytest.skip("there is no chattr")
    done = subprocess.run(
        ["chattr", f"+{letter}", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no attribute can be set: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["chattr", f"-{letter}", path], check=True)


@pytest.mark.parametrize("letter", ["i", "a"])
@pytest.mark.parametrize(
    "place, mode",
    [
        ("day=1", Mode.APPEND),
        ("day=1", Mode.REPLACE_TABLE),
        ("day=1", Mode.REPLACE_PARTITIONS),
        ("day=2/hour=3", Mode.REPLACE_TABLE),
        ("top", Mode.REPLACE_TABLE),
        ("_SUCCESS", Mode.APPEND),
    ],
)
async def test_an_attribute_that_forbids_the_commit(
    tmp_path: Path, letter: str, place: str, mode: Mode
) -> None:
    """What is immutable or append-only is refused where it would be moved, or filled."""
    write(tmp_path, OLD | {"top": "t", "_SUCCESS": "{}"})
    job = await job_of(tmp_path, NEW)
    with attribute(letter, tmp_path / place):
        said = await refusal(job, tmp_path, mode=mode)
    assert "immutable" in said or "append-only" in said or "no permission" in said

    await job.commit_job(mode=mode)
    assert {name: (tmp_path / name).read_text() for name in NEW} == NEW


async def test_an_append_only_table(tmp_path: Path) -> None:
    """A table that takes files and gives none back is refused: no rollback could end."""
    write(tmp_path, {"top": "t", "_temporary/": ""})
    job = await job_of(tmp_path, {"new": "n"})
    with attribute("a", tmp_path):
        assert "create and remove files" in await refusal(job, tmp_path)
    await job.commit_job()


async def test_an_immutable_directory_of_a_task(tmp_path: Path) -> None:
    """Files that nobody may take out of a task's directory are seen before any is renamed."""
    job = await job_of(tmp_path / "t", NEW)
    with attribute("i", Path(job.layout.task_attempt_dir(ids(0)[1]), "day=2")):
        assert "day=2: no permission" in await refusal(job, tmp_path / "t")
    await job.commit_job()


async def test_an_immutable_file_of_a_task(tmp_path: Path) -> None:
    """The rename of an immutable file is refused with the remedy, and ends once it is mended."""
    job = await job_of(tmp_path / "t", NEW)
    file = next(Path(job.layout.task_attempt_dir(ids(0)[1])).rglob("new"))
    with attribute("i", file), pytest.raises(CommitError, match="use chattr -ia"):
        await job.commit_job()
    await job.commit_job()
    assert {name: (tmp_path / "t" / name).read_text() for name in NEW} == NEW


async def _as_another(root: str) -> str:
    dest = Path(root, "table")
    return await refusal(await job_of(dest, NEW), dest, mode=Mode.REPLACE_PARTITIONS)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "table, partition, why",
    [
        (0o1777, 0o777, "users may move only their own files"),
        (0o777, 0o755, "no permission to write to this directory"),
        (0o755, 0o777, "no permission to create and remove files in this directory"),
    ],
)
def test_what_is_another_users(tmp_path: Path, table: int, partition: int, why: str) -> None:
    """A directory that this user may not move is refused, whichever of two modes forbids it."""
    write(tmp_path / "table", {"day=1/old": "1", "_temporary/": ""})
    for name, mode in (("", table), ("_temporary", 0o777), ("day=1", partition)):
        os.chmod(tmp_path / "table" / name, mode)
    for path in (tmp_path, *tmp_path.parents):
        if os.stat(path).st_mode & 0o001 == 0 and os.stat(path).st_uid == os.getuid():
            os.chmod(path, os.stat(path).st_mode | 0o055)
    assert why in as_nobody(_as_another, str(tmp_path))


# --- long paths ----------------------------------------------------------------------------------


def deep(base: Path, length: int) -> Path:
    """Make a file below ``base`` whose path has ``length`` bytes."""
    path = base
    while length - len(str(path)) > 300:
        path = path / ("d" * 200)
    path.mkdir(parents=True)
    file = path / ("f" * (length - len(str(path)) - 1))
    file.write_text("old")
    return file


@pytest.mark.parametrize("mode", MODES)
async def test_an_old_path_that_leaves_no_room(tmp_path: Path, mode: Mode) -> None:
    """An old file whose path is too long in the place for what is moved aside is refused."""
    old = deep(tmp_path / "day=1", 4090)
    job = await job_of(tmp_path, {"day=1/new": "n"})
    said = await refusal(job, tmp_path, mode=mode)
    assert "its path is too long to be moved aside" in said

    old.unlink()
    await job.commit_job(mode=mode)
    assert (tmp_path / "day=1/new").read_text() == "n"


async def test_a_new_path_that_leaves_no_room(tmp_path: Path) -> None:
    """A task fails whose file a rollback could not keep from being renamed late."""
    job = committer(tmp_path)
    await job.setup_job()
    task_id, attempt_id = ids(0)
    deep(Path(await job.setup_task(attempt_id), "day=1"), 4090)
    with pytest.raises(CommitError, match="its path is too long to be moved aside"):
        await job.commit_task(task_id, attempt_id)


async def test_a_long_path_with_room(tmp_path: Path) -> None:
    """An old path that just fits in its place is moved aside and deleted."""
    job = committer(tmp_path)
    room = 4095 - len(job.layout.epoch_dir(1)) + len(str(tmp_path)) - len("/aside/in")
    deep(tmp_path / "day=1", room)
    await job.setup_job()
    await run_task(job, 0, {"day=1/new": "n"})
    await job.commit_job(mode=Mode.REPLACE_TABLE)
    assert visible(tmp_path) == {"day=1/new": "n"}
