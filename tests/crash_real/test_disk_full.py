"""The disk is full, or a quota used up, in mid-commit: it stops, and goes on once there is room."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from asynccommit.options.job import Mode
from tests.crash_real.places import JOB, LocalPlace, prepare, table_after, table_before
from tests.crash_real.processes import go_on, paused, run

pytestmark = pytest.mark.timeout(120)

SIZE = 8 * 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Leave no room on a disk while the block runs."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"x" * 4096)
    yield
    filler.unlink()


def finish(place: LocalPlace, ending: str, written: dict[int, dict[str, bytes]]) -> None:
    """Resume or roll back, and compare the table file by file."""
    words = ("resume",) if ending == "resume" else ("abort", "--rollback")
    code, said = run(place, *words)
    assert code == 0, said
    tree = place.tree()
    if ending == "resume":
        tree.pop("_SUCCESS")
        assert tree == table_after(Mode.APPEND, written)
    else:
        assert tree == table_before()


@pytest.mark.sample(1)
@pytest.mark.parametrize("ending", ["resume", "rollback"])
def test_disk_full_in_mid_commit(tmp_path: Path, disk: Path, ending: str) -> None:
    """The commit says that the disk is full and how to go on, and with room again it does."""
    place = LocalPlace(disk)
    written = prepare(place, tasks=4, files=10)
    words = ("commit", place.url, "--job-id", JOB, "--trust-manifests")
    with paused(tmp_path / "signs", 12, words) as child, full(disk):
        go_on(tmp_path / "signs")
        _, said = child.communicate(timeout=60)
        assert child.returncode == 1, said
        assert "no space left" in said
        assert "asynccommit resume" in said
        assert run(place, "resume")[0] != 0

    finish(place, ending, written)


@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize("ending", ["resume", "rollback"])
def test_disk_full_and_the_driver_lives(tmp_path: Path, disk: Path, ending: str) -> None:
    """A driver that goes on to live after its commit has failed keeps nobody from finishing it."""
    place = LocalPlace(disk)
    written = prepare(place, tasks=4, files=10)
    words = ("commit", place.url, "--job-id", JOB, "--trust-manifests", "--stay")
    with paused(tmp_path / "signs", 12, words) as child:
        assert child.stderr is not None
        with full(disk):
            go_on(tmp_path / "signs")
            said = list(iter(child.stderr.readline, "the command has ended\n"))
            assert "no space left" in "".join(said)
        assert child.poll() is None
        finish(place, ending, written)
        assert child.poll() is None
        child.communicate("\n", timeout=60)


@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize("ending", ["resume", "rollback"])
def test_quota_used_up_in_mid_commit(tmp_path: Path, ending: str) -> None:
    """The same when only this process may write no more."""
    place = LocalPlace(tmp_path)
    written = prepare(place, tasks=4, files=10)
    words = ("commit", place.url, "--job-id", JOB, "--trust-manifests")
    with paused(tmp_path / "signs", 12, words) as child:
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (0, 0))
        go_on(tmp_path / "signs")
        _, said = child.communicate(timeout=60)

    assert child.returncode == 1, said
    assert "asynccommit resume" in said
    assert os.strerror(errno.EFBIG) in said
    finish(place, ending, written)
