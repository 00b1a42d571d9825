"""Whole jobs of uploads over the wire, against a server of other hands."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from asynccommit import api, open_job
from asynccommit.options.uploads import S3A
from asynccommit.stores.base import Info
from asynccommit.stores.tree import tree_pages
from tests.support.s3_servers import moto_url, new_bucket, open_s3, options

__all__ = ["moto_url"]

PART = 5 << 20
ODD = "".join(map(chr, range(0x20, 0x7F))).replace("/", "") + "é\u0301漢🦆\u2028"


async def left(url: str, bucket: str) -> tuple[dict[str, Info], int]:
    """Return what is below the destination, and how many uploads are open."""
    store = open_s3(url, bucket)
    try:
        pages = [page async for page in tree_pages(store, "/out")]
        uploads = (await store.list_uploads("/")).entries
        return {info.path: info for page in pages for info in page}, len(uploads)
    finally:
        await store.aclose()


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", ["magic", "directory", "partitioned"])
async def test_job_over_the_wire(moto_url: str, tmp_path: Path, committer: str) -> None:
    """Files of several parts, of one and of none, of any name: all are there, and nothing else."""
    bucket = new_bucket(moto_url)
    conf = {
        "fs.s3a.multipart.size": str(PART),
        "fs.s3a.buffer.dir": str(tmp_path),
        S3A + "staging.unique-filenames": "false",
    }
    given: dict[str, Any] = {"storage_options": options(moto_url), "options": conf}
    given["committer"] = committer
    url, large = f"s3://{bucket}/out/t", bytes(range(256)) * (11 << 12)

    async with open_job(url, **given) as job:
        async with job.task(0) as task, await task.open("day=1/large") as file:
            for start in range(0, len(large), 1 << 20):
                await file.write(large[start : start + (1 << 20)])
        async with api.job(url, job.job_id, **given).task(1) as other:
            await other.put("day=2/a b+c%d.csv", b"1,2")
            await other.put(f"d{ODD}/x{ODD}", b"odd")
            await other.put("empty", b"")
        with pytest.raises(ValueError, match="mine"):
            async with job.task(2) as failing:
                await failing.put("never", b"data")
                raise ValueError("mine")
        assert other.commit is not None
        job.accept(other.commit)

    found, uploads = await left(moto_url, bucket)
    sizes = {path: info.size for path, info in found.items() if not path.endswith("_SUCCESS")}
    assert sizes == {
        "/out/t/day=1/large": len(large),
        "/out/t/day=2/a b+c%d.csv": 3,
        f"/out/t/d{ODD}/x{ODD}": 3,
        "/out/t/empty": 0,
    }
    assert "/out/t/_SUCCESS" in found
    assert (uploads, os.listdir(tmp_path)) == (0, [])
    store = open_s3(moto_url, bucket)
    data = await store.get("/out/t/day=1/large", 1 << 30)
    await store.aclose()
    assert hashlib.sha256(data).digest() == hashlib.sha256(large).digest()
