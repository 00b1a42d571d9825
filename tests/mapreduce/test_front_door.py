"""A program commits with markers by public names alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit import UrlError, open_store
from asynccommit.mapreduce import CommitMarkers, Committed, Heartbeat

JOB = "job_1700000000000_0007"


async def _work(check: object) -> str:
    return "digest"


@pytest.mark.parametrize("kind", [str, Path, "file:{}".format])
async def test_staging_directory_is_text_or_a_path(
    tmp_path: Path, kind: type[str] | type[Path]
) -> None:
    """The staging directory is a URL, a path as text or a path object; the host is the real one."""
    heartbeat = Heartbeat()
    heartbeat.beat()
    async with open_store(tmp_path) as store:
        attempt = CommitMarkers(store, kind(tmp_path), JOB, epoch=1, heartbeat=heartbeat)
        done = await attempt.commit(_work)

    assert isinstance(done, Committed)
    assert {"COMMIT_STARTED", "COMMIT_SUCCESS"} <= {path.name for path in tmp_path.iterdir()}


async def test_empty_staging_directory_is_refused(tmp_path: Path) -> None:
    """A staging directory without a name is a ``UrlError``."""
    async with open_store(tmp_path) as store:
        with pytest.raises(UrlError):
            CommitMarkers(store, "", JOB, epoch=1, heartbeat=Heartbeat())
