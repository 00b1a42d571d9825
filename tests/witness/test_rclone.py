"""rclone, a client in Go: it copies, lists, moves, compares and deletes on both emulators."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator

RCLONE = shutil.which("rclone")

pytestmark = pytest.mark.skipif(
    RCLONE is None, reason="rclone is not installed: apt install rclone"
)

Rclone = Callable[..., str]


@contextmanager
def _adls() -> Iterator[Mapping[str, str]]:
    """Yield the settings of a remote on an emulated account."""
    with running_emulator() as emulator:
        emulator.do(lambda it: it.model.create_filesystem("data"))
        yield {
            "type": "azureblob",
            "use_emulator": "true",
            "endpoint": f"http://127.0.0.1:{emulator.port}/devstoreaccount1",
        }


@contextmanager
def _gcs() -> Iterator[Mapping[str, str]]:
    """Yield the settings of a remote on emulated buckets."""
    with running_gcs_emulator() as emulator:
        emulator.do(lambda it: it.service.create_bucket("data"))
        yield {
            "type": "google cloud storage",
            "endpoint": f"http://127.0.0.1:{emulator.port}/storage/v1/",
            "anonymous": "true",
            "bucket_policy_only": "true",
            "no_check_bucket": "true",
        }


@pytest.fixture(params=[_adls, _gcs], ids=["adls", "gcs"])
def rclone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rclone]:
    """Yield what runs rclone with a remote ``there:``, as the page of the emulators says."""
    (tmp_path / "rclone.conf").touch()
    own = {"RCLONE_CONFIG": str(tmp_path / "rclone.conf"), "NO_PROXY": "127.0.0.1"}
    with request.param() as settings:
        named = {f"RCLONE_CONFIG_THERE_{key.upper()}": text for key, text in settings.items()}

        def run(*words: str | Path) -> str:
            assert RCLONE is not None
            done = subprocess.run(
                [RCLONE, *map(str, words), "--retries", "1"],
                env={**os.environ, **own, **named},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        yield run


def test_files_are_copied_listed_moved_and_deleted(rclone: Rclone, tmp_path: Path) -> None:
    """Each step does what rclone says, and what it reads back is what it wrote."""
    here = tmp_path / "here"
    (here / "day=1").mkdir(parents=True)
    (here / "day=1/part-0.csv").write_text("AA,JFK\n" * 1_000)
    (here / "a b é.csv").write_text("UA,EWR\n")

    rclone("copy", here, "there:data/t")
    rclone("check", here, "there:data/t", "--download")
    rclone("moveto", "there:data/t/a b é.csv", "there:data/t/moved.csv")
    listed = rclone("lsf", "-R", "--files-only", "there:data/t").split()
    shown = rclone("cat", "there:data/t/moved.csv")
    rclone("purge", "there:data/t")

    assert listed == ["day=1/part-0.csv", "moved.csv"]
    assert shown == "UA,EWR\n"
    assert rclone("lsf", "-R", "--files-only", "there:data") == ""
