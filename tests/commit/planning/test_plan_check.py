"""A forged plan: it does nothing that its record, its mode and its files do not allow."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.errors import ManifestError
from asynccommit.options.job import Mode
from tests.commit.planning.test_plan_file import Chunk, forge, refused
from tests.support.commits import Dies, Site

FILES = {"day=1/a": "1", "day=2/b": "22"}
PRECIOUS = {"/table/precious.csv": "p", "/table/day=1/old": "o", "/table/day=3/old": "o"}


async def dead(site: Site, **options: Any) -> None:
    """Leave a commit behind whose process died before its first file."""
    site.place(PRECIOUS)
    await site.cut(FILES, Dies("rename", "tasks/"), **options)


@pytest.mark.parametrize("name", ["precious.csv", "day=1/old", "day=3", ".precious.csv.crc"])
@pytest.mark.parametrize("allowed", [True, None])
async def test_a_file_that_is_in_nobodys_way(site: Site, name: str, allowed: bool | None) -> None:
    """Only what stands in the way of a file of the job is moved aside, whatever the record says."""
    await dead(site)
    kind = "directory" if name == "day=3" else "file"

    def change(chunk: Chunk) -> None:
        chunk["aside"] = [[name, kind, None]]

    def said(record: Any) -> Any:
        record.options["replaces"] = allowed
        return record

    await forge(site.job(), change, record=said)
    error = await refused(site, "no file that it is in the way of")

    assert isinstance(error, ManifestError)
    assert "asynccommit" in str(error) or "put back" in str(error)


async def test_a_record_that_replaces_no_file(site: Site) -> None:
    """Nor is what stands in the way, unless the record says that the job replaces it."""
    await dead(site)
    site.place({"/table/day=1/a": "theirs"})

    def change(chunk: Chunk) -> None:
        chunk["aside"] = [["day=1/a", "file", None]]

    await forge(site.job(), change)
    await refused(site, "replaces no existing file")


@pytest.mark.parametrize("table", ["replaced", "units", "old"])
@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS])
async def test_directories_that_are_not_replaced(site: Site, mode: Mode, table: str) -> None:
    """A directory is replaced only if the record names it, or one above it."""
    await dead(site, mode=mode)
    rows: dict[str, list[Any]] = {
        "replaced": [["day=3", "directory", None]],
        "units": ["day=3"],
        "old": [["day=3/old", 1, None]],
    }

    def change(chunk: Chunk) -> None:
        chunk[table] = [*chunk.get(table, []), *rows[table]]

    await forge(site.job(), change)
    await refused(site, "names no such directory")


@pytest.mark.parametrize("mode", [Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE])
@pytest.mark.parametrize("act", ["resume", "rollback"])
async def test_a_true_plan_is_obeyed(site: Site, mode: Mode, act: str) -> None:
    """A plan that a commit has written itself is never refused."""
    site.place({"/table/day=2": "a file in the place of a directory"})
    await dead(site, mode=mode, delete_target_files=True)
    before = site.files()
    job = site.job()
    await (job.resume_job() if act == "resume" else job.rollback_job())

    kept = {"day=3/old": "o", "precious.csv": "p"} if mode is Mode.REPLACE_PARTITIONS else {}
    assert site.files() == (FILES | kept if act == "resume" else before)
