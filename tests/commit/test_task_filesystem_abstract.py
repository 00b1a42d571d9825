"""fsspec's own tests of filesystems, for what the filesystem of a task allows.

Not run, because files of a task are written and not read: ``AbstractCopyTests`` and
``AbstractGetTests``, which copy from the filesystem, and ``AbstractOpenTests`` and
``AbstractPipeTests``, which read back what they have written. What the last two say about exclusive
writes is in tests of ours below.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.tests.abstract import AbstractFixtures, AbstractPutTests

from asynccommit import sync


class TaskFixtures(AbstractFixtures):  # type: ignore[misc]
    """The filesystem of a task of a local job."""

    @pytest.fixture
    def fs(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
        """The filesystem."""
        table = tmp_path_factory.mktemp("table")
        with sync.open_job(table) as job, job.task(0) as task:
            yield task.filesystem

    @pytest.fixture
    def fs_path(self) -> str:
        """The root of the tests, which is that of the task."""
        return ""

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        """Joins names with slashes."""
        return posixpath.join

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        """Directories exist with their files."""
        return False


@pytest.mark.full
class TestPut(TaskFixtures, AbstractPutTests):  # type: ignore[misc]
    """fsspec's tests of ``put``."""

    test_copy_with_source_and_destination_as_list = None  # reads the files back


def test_an_exclusive_file_is_written_once(tmp_path: Path) -> None:
    """As fsspec says of ``open`` with mode ``xb``, and of ``pipe_file`` with mode ``create``."""
    with sync.open_job(tmp_path) as job, job.task(0) as task:
        files = task.filesystem
        with files.open("a", "xb") as file:
            file.write(b"data")
        with pytest.raises(FileExistsError):
            files.open("a", "xb")
        with pytest.raises(FileExistsError):
            files.pipe_file("a", b"data", mode="create")
        files.pipe_file("a", b"new data", mode="overwrite")
    assert (tmp_path / "a").read_bytes() == b"new data"


def test_what_was_written_can_be_deleted(tmp_path: Path) -> None:
    """A deleted file is not committed; a directory goes with its last file."""
    with sync.open_job(tmp_path) as job, job.task(0) as task:
        files = task.filesystem
        for name in ("a/b/one", "a/two", "three"):
            files.pipe_file(name, b"x")
        files.rm("a", recursive=True)
        assert files.find("") == ["three"]
        with pytest.raises(FileNotFoundError):
            files.rm("none")
    assert job.report.files == 1
    assert (tmp_path / "three").exists()
