"""Manifests that name what cannot be committed are refused before anything is renamed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.job.messages import digest
from asynccommit.errors import CommitError, PreflightError
from asynccommit.options.job import OnFailure
from asynccommit.testing.models.invariants import named_in_vain, rolled_back
from tests.support.commits import Site, open_site

FILES = {"a": "one", "b": "two", "c/d": "three"}
_LIMIT = 1 << 20

Row = dict[str, Any]


async def damage(
    job: ManifestCommitter, task: int, change: Callable[[list[Row]], object], **said: str
) -> bytes:
    """Change the files that the manifest of a task names; return what it was."""
    path = job.layout.manifest(job.layout.ids(task)[0])
    data = await job.store.get(path, _LIMIT)
    manifest = json.loads(data) | said
    change(manifest["files"])
    await job.store.put(path, json.dumps(manifest).encode())
    return data


async def refused(site: Site, match: str) -> None:
    """See that the commit is refused, and that it has changed nothing in the table."""
    before = site.tree()
    with pytest.raises(PreflightError, match=match):
        await site.job().commit_job()
    assert site.tree() == before


def name_twice(rows: list[Row]) -> None:
    """Let two entries name one source."""
    rows[1]["s"] = rows[0]["s"]


def name_directory(rows: list[Row]) -> None:
    """Let an entry name a directory, with no etag to tell."""
    rows[0]["s"] = rows[2]["s"].rpartition("/")[0]
    rows[0].pop("e", None)
    rows[0]["z"] = 0
    rows.pop()


async def test_one_source_twice_in_a_manifest(site: Site) -> None:
    """A file that a manifest gives two destinations is refused, and can be corrected."""
    job = await site.ready(FILES)
    data = await damage(job, 0, name_twice)
    await refused(site, "one file for two destinations: .*/a for /.*/a and /.*/b")
    await job.store.put(job.layout.manifest(job.layout.ids(0)[0]), data)
    await site.job().commit_job()

    assert site.files() == FILES


async def test_one_source_in_two_manifests(site: Site) -> None:
    """So is a file that the manifests of two tasks name, each for another destination."""
    job = await site.ready(FILES)
    await site.task(job, 1, {"e": "four"})
    attempt_id = job.layout.ids(0)[1]
    base = job.layout.url(job.layout.task_attempt_dir(attempt_id))
    said = {"taskAttemptID": attempt_id, "taskAttemptDir": base}
    await damage(job, 1, lambda rows: rows[0].update(s=f"{base}/a"), **said)
    await refused(site, "one file for two destinations")


async def test_many_files_with_one_source_are_counted(site: Site) -> None:
    """Twenty of them are named, and it is said how many more there are."""
    job = await site.ready({f"f{n:02}": "x" for n in range(30)})

    def all_the_same(rows: list[Row]) -> None:
        for row in rows:
            row["s"] = rows[0]["s"]

    await damage(job, 0, all_the_same)
    await refused(site, "and 9 more")


# --- on a local disk, whose directories preflight reads where there are no messages -------------


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Site]:
    """An empty local directory."""
    made = await open_site("local", tmp_path / "root")
    yield made
    await made.close()


async def test_a_directory_as_source(disk: Site) -> None:
    """A directory that a manifest names as a file is not moved."""
    job = await disk.ready(FILES)
    await damage(job, 0, name_directory)
    await refused(disk, "/c: a directory, where its manifest names a file")


@pytest.mark.parametrize(
    "wrong", [{"e": "1-2-3"}, {"z": 77, "e": None}, {"s": "gone"}], ids=["etag", "size", "missing"]
)
async def test_a_source_that_is_another(disk: Site, wrong: Row) -> None:
    """A source that is missing, or has another etag or size than its manifest says, is refused."""
    job = await disk.ready(FILES)

    def change(rows: list[Row]) -> None:
        gone = f"{rows[1]['s'].rpartition('/')[0]}/gone"
        rows[1].update({key: gone if key == "s" else value for key, value in wrong.items()})
        rows[1] = {key: value for key, value in rows[1].items() if value is not None}

    await damage(job, 0, change)
    await refused(disk, "missing, or not what its task committed: .*/(b|gone)")


async def test_sources_that_are_as_committed_pass(disk: Site) -> None:
    """Nothing is refused for a manifest without etags, as Hadoop writes it on a disk."""
    job = await disk.ready(FILES)
    await damage(job, 0, lambda rows: [row.pop("e") for row in rows])
    await disk.job().commit_job()

    assert disk.files() == FILES


# --- what only a rename finds -----------------------------------------------------------------


@pytest.mark.parametrize("change", [name_directory, lambda rows: rows[1].update(e="1-2-3")])
async def test_what_is_found_half_way_is_told(site: Site, change: Callable[..., object]) -> None:
    """A commit that fails and is rolled back says that all is as it was, or names what is not."""
    site.place({"/table/old": "o"})
    before = site.world.tree()
    job = site.job(on_failure=OnFailure.ROLLBACK)
    await job.setup_job()
    commit = await site.task(job, 0, FILES)
    await damage(job, 0, change)
    path = job.layout.manifest(job.layout.ids(0)[0])
    commit = replace(commit, digest=digest(await job.store.get(path, _LIMIT)))
    with pytest.raises(CommitError) as caught:
        await job.commit_job([commit])
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    left = [site.bare(line.split(" ")[0]) for line in text.splitlines() if line.startswith("/")]
    as_before = "is in its former state" in text and "not all" not in text

    assert as_before is not bool(left)
    assert rolled_back(before, site.world.tree(), left) == []
    assert named_in_vain(before, site.world.tree(), left) == []
