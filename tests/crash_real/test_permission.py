"""A permission is lost in mid-commit: it stops, and goes on once it is given back."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash_real.driver import NOBODY
from tests.crash_real.places import JOB, LocalPlace, prepare
from tests.crash_real.processes import go_on, paused
from tests.crash_real.test_disk_full import finish

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, as pytest's own is not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.sample(1)
@pytest.mark.parametrize("ending", ["resume", "rollback"])
def test_permission_lost_in_mid_commit(open_folder: Path, ending: str) -> None:
    """The commit names the file and how to go on; nothing is lost."""
    place = LocalPlace(open_folder)
    written = prepare(place, tasks=4, files=10)
    words = ["commit", place.url, "--job-id", JOB, "--trust-manifests"]
    if os.getuid() == 0:
        for path in (open_folder, *open_folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        words.insert(0, "--nobody")
    with paused(open_folder / "signs", 12, words) as child:
        partition = Path(place.url, "p=4")
        partition.chmod(0o555)
        go_on(open_folder / "signs")
        _, said = child.communicate(timeout=60)
    partition.chmod(0o755)

    assert child.returncode == 1, said
    assert "Permission denied" in said
    assert "asynccommit resume" in said
    finish(place, ending, written)
