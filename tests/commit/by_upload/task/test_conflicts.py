"""What keeps a task of the partitioned committer from uploading where conflicts are errors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from asynccommit.commit.by_upload.task.conflicts import refuse_conflicts
from asynccommit.commit.by_upload.task.local import LocalFile
from asynccommit.commit.by_upload.task.send import to_send
from asynccommit.errors import ExistsError
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support.faults import Faults
from tests.support.uploads import new_bucket, staging_run


async def look(bucket: S3Bucket, *names: str) -> Faults:
    """Look for conflicts of files with these names; return the requests."""
    seen = Faults()
    run = staging_run(bucket, seen, unique_names=False)
    files = [LocalFile(f"/nowhere/{name}", name, 1, (0, 0)) for name in names]
    await refuse_conflicts(run, to_send(run, files))
    return seen


def holding(*wanted: str) -> S3Bucket:
    """Return a bucket with objects below the destination."""
    bucket = new_bucket()
    for key in wanted:
        bucket.put(f"out/t/{key}", b"")
    return bucket


@pytest.mark.parametrize(
    "there",
    [[], ["p=2/a"], ["p=1/_b"], ["p=1/.c"], ["p=1/_d/e"], ["p=1/"], ["p=11/a"], ["p=1"], ["a"]],
    ids=str,
)
async def test_free_partitions(there: Sequence[str]) -> None:
    """What readers do not see, or see elsewhere, is in nobody's way."""
    await look(holding(*there), "p=1/new")


@pytest.mark.parametrize("there", ["p=1/a", "p=1/d/e", "p=1/new"])
async def test_taken_partitions(there: str) -> None:
    """Anything that readers see in a partition is in the way, and is named with the remedy."""
    with pytest.raises(ExistsError, match=f"/out/t/{there} exists.*use append or replace"):
        await look(holding(there), "p=2/new", "p=1/new")


async def test_requests() -> None:
    """Each partition is looked at once, however many files go there; files of the root by name."""
    seen = await look(holding(), *(f"p={n % 2}/{n}" for n in range(20)), "a", "b")

    assert [op.name for op in seen.seen] == ["list_tree"] * 2 + ["head"] * 2
