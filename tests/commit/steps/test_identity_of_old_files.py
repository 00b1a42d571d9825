"""A table's own files that tasks publish again as hard links are never taken for the job's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.errors import CommittedError
from asynccommit.options.job import Mode
from asynccommit.testing.models.invariants import restored
from tests.support.commits import DEST, Dies, Site, open_site

OLD = {"/table/day=1/a": "one", "/table/day=1/b": "two", "/table/day=2/c": "three"}
LINKS = {"day=1/a": "day=1/a", "day=1/new": "day=1/b", "day=2/c": "day=2/c", "day=2/d": "day=2/c"}
"""What the task publishes, and the file of the table that each is a hard link of."""
EXPECTED = {name: OLD[f"/table/{old}"] for name, old in LINKS.items()}
MODES: dict[str, dict[str, Any]] = {
    "delete_target_files": {"options": {"delete_target_files": True}},
    "replace_table": {"mode": Mode.REPLACE_TABLE},
    "replace_partitions": {"mode": Mode.REPLACE_PARTITIONS},
    "overwrite": {"overwrite": ["/table/day=1", "/table/day=2"]},
}


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Site]:
    """An empty local directory: no other store has hard links."""
    made = await open_site("local", tmp_path / "root")
    yield made
    await made.close()


async def link_task(site: Site, job: ManifestCommitter, links: Mapping[str, str]) -> None:
    """Commit a task that publishes files of the table again as hard links."""
    task_id, attempt_id = job.layout.ids(0)
    base = Path(await job.setup_task(attempt_id))
    for name, old in links.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(site.path(f"{DEST}/{old}"), base / name)
    await job.commit_task(task_id, attempt_id)


async def cut(site: Site, kind: str, at: Dies, job_id: str, **options: Any) -> ManifestCommitter:
    """Leave a commit of hard links as a process leaves it that dies at a request."""
    how = MODES[kind]
    told = {**how.get("options", {}), **options}
    job = site.job(workers=1, job_id=job_id, **told)
    await job.setup_job()
    await link_task(site, job, LINKS)
    job = site.job(at, workers=1, job_id=job_id, **told)
    overwrite = [site.path(path) for path in how.get("overwrite", ())]
    with suppress(BaseException):
        await job.commit_job(mode=how.get("mode", Mode.APPEND), overwrite=overwrite)
    return job


@pytest.mark.sample(2)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", MODES)
async def test_a_rollback_keeps_files_that_were_linked(disk: Site, kind: str, after: bool) -> None:
    """Wherever the commit died, the table's files are there again: content, inode and time."""
    disk.place(OLD)
    before = disk.world.tree()
    for skip in range(30):
        at = Dies("rename", DEST, skip=skip, after=after)
        await cut(disk, kind, at, f"job{skip}")
        try:
            await disk.job(job_id=f"job{skip}").rollback_job()
        except CommittedError:
            break
        assert restored(before, disk.world.tree()) == [], skip

    assert 4 < skip < 29


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", MODES)
async def test_a_rollback_that_is_repeated_keeps_them(disk: Site, kind: str) -> None:
    """A second rollback does not take what the first one has put back."""
    disk.place(OLD)
    before = disk.world.tree()
    for skip in range(40):
        await cut(disk, kind, Dies("put", "00/commit-outcome"), f"job{skip}")
        at = Dies("rename", "", skip=skip, after=True)
        with suppress(BaseException):
            await disk.job(at, workers=1, job_id=f"job{skip}").rollback_job()
        await disk.job(job_id=f"job{skip}").rollback_job()
        assert restored(before, disk.world.tree()) == [], skip
        if not at.dead:
            break

    assert 4 < skip < 39


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", MODES)
async def test_a_resume_publishes_them(disk: Site, kind: str) -> None:
    """A resume does not take a file that is still to be moved aside for the new one."""
    for skip in range(30):
        disk.place(OLD)
        at = Dies("rename", DEST, skip=skip)
        await cut(disk, kind, at, f"job{skip}", validate=False)
        if not at.dead:
            break
        with suppress(CommittedError):
            await disk.job(job_id=f"job{skip}").resume_job()
        there = {name: text for name, text in disk.files().items() if name in LINKS}
        assert there == EXPECTED, skip
        for name in disk.files():
            await disk.job().store.delete(disk.path(f"{DEST}/{name}"))

    assert 4 < skip < 29


async def test_two_sources_that_are_one_file(disk: Site) -> None:
    """Two names of one file in a task are two files of the job, and both are taken back."""
    disk.place({"/table/old": "o"})
    before = disk.world.tree()
    job = disk.job()
    await job.setup_job()
    await link_task(disk, job, {"x": "old", "y": "old"})
    with suppress(BaseException):
        await disk.job(Dies("put", "00/commit-outcome")).commit_job()
    assert disk.files() == {"old": "o", "x": "o", "y": "o"}
    report = await disk.job().rollback_job()

    assert report.files == 2
    assert restored(before, disk.world.tree()) == []
