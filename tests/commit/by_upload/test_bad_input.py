"""Buckets that cannot take the job as it is, and names that look as if they could not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.registry import Committer
from asynccommit.errors import CommitError, DeniedError
from asynccommit.options.job import Mode
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support.uploads import ATTEMPT, TASK, keys, new_bucket, open_committer

COMMITTERS = ["magic", "directory", "partitioned"]
PRINTED = "".join(map(chr, range(0x20, 0x7F))).replace("/", "")
CONTROLS = "".join(map(chr, (*range(1, 0x20), 0x7F)))
OTHERS = "é\u0301ß漢🦆\u00a0\u2028\ufeff\ufffd\U0010ffff"


class Demanding:
    """A bucket's policy that refuses what makes an object without a condition.

    As AWS documents it for ``s3:if-none-match``: beginning an upload and sending parts are free.

    Args:
        spared: directories in which it does not hold.
    """

    def __init__(self, *spared: str) -> None:
        self._spared = spared

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def demanding(op: Op) -> Any:
            name = "put" if op.name == "put_marker" else op.name
            over = op.options.get("overwrite", name != "copy") and op.options.get("etag") is None
            if name in ("put", "copy", "complete_upload") and over and not self._spares(op.path):
                raise DeniedError(op.name, op.path, "the bucket policy")
            return await call(op)

        return demanding

    def _spares(self, path: str) -> bool:
        return any(name.startswith(self._spared) for name in path.split("/"))


async def run(job: Committer, files: dict[str, bytes], mode: Mode = Mode.APPEND) -> None:
    """Run a job of one task."""
    await job.setup_job(mode=mode)
    await job.setup_task(ATTEMPT)
    for name, data in files.items():
        await job.work(ATTEMPT).put(name, data)
    await job.commit_job([await job.commit_task(TASK, ATTEMPT)], mode=mode)


def table(bucket: S3Bucket) -> dict[str, bytes]:
    """Return what is below the destination."""
    return {key.removeprefix("out/t/"): bucket.objects[key].data for key in keys(bucket)}


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
@pytest.mark.parametrize("committer", COMMITTERS)
async def test_policy_that_demands_conditions(committer: str, mode: Mode, tmp_path: Path) -> None:
    """A job writes to the table under conditions only; in its own places it needs none."""
    bucket = new_bucket()
    bucket.put("out/t/old", b"old")
    bucket.put("out/t/_SUCCESS", b"of an earlier job")
    policy = Demanding("__magic_job-", "_temporary")
    settings: dict[str, Any] = {"buffer_directory": str(tmp_path), "unique_names": False}
    await run(open_committer(bucket, committer, policy, **settings), {"day=1/a": b"new"}, mode)

    found = table(bucket)
    assert b'"success"' in found.pop("_SUCCESS")
    assert found == {"day=1/a": b"new", **({"old": b"old"} if mode is Mode.APPEND else {})}


@pytest.mark.parametrize("committer", COMMITTERS)
async def test_policy_that_demands_them_everywhere(committer: str, tmp_path: Path) -> None:
    """Where a job may not write over its own files either, it fails and leaves nothing."""
    bucket = new_bucket()
    job = open_committer(bucket, committer, Demanding(), buffer_directory=str(tmp_path))
    with pytest.raises((CommitError, DeniedError), match="the bucket policy"):
        await run(job, {"day=1/a": b"new"})
    await job.abort_job()

    assert (keys(bucket), bucket.uploads.open) == ([], {})


@pytest.mark.parametrize("committer", COMMITTERS)
async def test_names_of_every_character(committer: str, tmp_path: Path) -> None:
    """What a key may hold a name may hold, control characters too; what is read is what was."""
    names = [f"d{PRINTED}/x{PRINTED}", f"p=1/x{CONTROLS}", f"p=1/{OTHERS}", " ", "a" * 240 + "é"]
    bucket = new_bucket()
    settings: dict[str, Any] = {"buffer_directory": str(tmp_path), "unique_names": False}
    wanted = {name: name.encode() for name in names}
    await run(open_committer(bucket, committer, **settings), wanted)

    found = table(bucket)
    assert found.pop("_SUCCESS")
    assert found == wanted
