"""Local files on their way: where each goes, in what parts, and what comes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_upload.task.local import LocalFile, find_files
from asynccommit.commit.by_upload.task.send import Sending, send, to_send
from asynccommit.errors import ExistsError, RejectedError
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support.uploads import ATTEMPT, JOB, Gate, new_bucket, staging_run


def file(name: str, size: int = 1) -> LocalFile:
    """Return a file that need not be there."""
    return LocalFile(f"/nowhere/{name}", name, size, (0, 0))


def sent(*files: LocalFile, bucket: S3Bucket | None = None, **uploads: Any) -> list[Sending]:
    """Return what is to be sent."""
    return to_send(staging_run(bucket or new_bucket(), **uploads), files)


async def test_places_and_partitions() -> None:
    """A file goes to its name below the destination, with the job's id in it if wanted."""
    plain = sent(file("day=1/a.csv"), file("b"), unique_names=False)
    unique = sent(file("day=1/a.csv"), file("b"))

    assert [each.path for each in plain] == ["/out/t/day=1/a.csv", "/out/t/b"]
    assert [each.path for each in unique] == [f"/out/t/day=1/a-{JOB}.csv", f"/out/t/b-{JOB}"]
    assert [each.partition for each in plain] == ["day=1", ""]


async def test_empty_files() -> None:
    """Empty files are sent unless they are not wanted."""
    assert len(sent(file("a", 0), file("b"))) == 2
    assert [each.file.name for each in sent(file("a", 0), file("b"), skip_empty=True)] == ["b"]


@pytest.mark.parametrize("name", ["_temporary/a", "d/__magic_job-x/a"])
async def test_places_of_the_protocol(name: str) -> None:
    """A file at a place of the protocol is refused before anything is sent."""
    with pytest.raises(ExistsError, match="commit protocol"):
        sent(file(name))


async def test_sizes_of_parts() -> None:
    """Each file has the smallest parts that it can have, and one that is too large is refused."""
    bucket = new_bucket(most_parts=4, largest_part=2 << 20)

    sizes = [each.size for each in sent(file("a", 16), file("b", 17), bucket=bucket)]
    assert sizes == [4, 1 << 20]
    with pytest.raises(RejectedError, match="more than 4 parts"):
        sent(file("a", (8 << 20) + 1), bucket=bucket)


async def test_parts_of_many_files_at_once(tmp_path: Path) -> None:
    """So many parts are under way, of whichever files, and each file has its own in order."""
    gate, bucket = Gate("put_part"), new_bucket()
    for name, size in {"large": 23, "small": 3, "empty": 0}.items():
        (tmp_path / name).write_bytes(bytes(range(size)))
    run = staging_run(bucket, gate, in_flight=5, unique_names=False)
    files = to_send(run, await asyncio.to_thread(find_files, str(tmp_path)))

    sending = asyncio.create_task(send(run, ATTEMPT, files))
    while gate.waiting < 5:  # noqa: ASYNC110  what it waits for are threads
        await asyncio.sleep(0.001)
    gate.open()
    commits = await sending

    assert [(each.key, len(each.parts), each.length) for each in commits] == [
        ("out/t/empty", 1, 0),
        ("out/t/large", 6, 23),
        ("out/t/small", 1, 3),
    ]
    for commit in commits:
        await run.store.complete_upload(f"/{commit.key}", commit.upload_id, commit.parts)
    assert bucket.objects["out/t/large"].data == bytes(range(23))


async def test_nothing_to_send() -> None:
    """A task without files begins nothing and writes nothing down."""
    bucket = new_bucket()

    assert await send(staging_run(bucket), ATTEMPT, []) == []

    assert bucket.objects == {}
