"""Two jobs of one table whose ids look like each other's directories leave each other alone."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from asynccommit import CommitError, OptionError, TaskCommit, api, sync
from asynccommit.api import JobRef, job_statuses
from asynccommit.commit.registry import Committer
from asynccommit.results import NOT_BEGUN
from asynccommit.stores import registry
from asynccommit.testing.models.s3.model import S3Bucket
from tests.cli.support import Command
from tests.commit.test_robustness import older
from tests.support.jobs import committer, run_task, visible
from tests.support.selection import amount
from tests.support.uploads import SMALLEST, new_bucket

IDS = [
    "n7",
    "N7",
    "n7 ",
    "manifest_n7",
    "manifest_manifest_n7",
    "manifest_",
    "job_n7_0000",
    "n7_0000",
    "job-n7",
    "magic_job-n7",
    "__magic_job-n7",
    "n7.aborted",
    "n7.committed",
    "n7.rolledback",
    "00",
    "00.aborted",
    "manifests",
    "tasks",
    "alive",
    "staging",
    "_temporary",
    "n7%2F",
    "%6e7",
    "n-7",
    "\u00e9",
    "e\u0301",
    "0f8fad5b-d9cb-469f-a165-70867728950e",
    "0f8fad5bd9cb469fa16570867728950e",
]
VERBS = ["abort", "rollback", "resume", "status"]
URL = "s3://data/out/t"


@dataclass
class Table:
    """A table on a disk or in a bucket, and what its jobs are opened with."""

    url: str
    root: Path
    bucket: S3Bucket | None = None
    given: dict[str, Any] = field(default_factory=dict)

    def content(self) -> dict[str, bytes | None]:
        """Return everything that is there; directories are ``None``."""
        if self.bucket is not None:
            found: dict[str, bytes | None] = {k: o.data for k, o in self.bucket.objects.items()}
            return {**found, **{f"upload {u}": None for u in self.bucket.uploads.open}}
        paths = sorted(self.root.rglob("*"))
        return {str(p): p.read_bytes() if p.is_file() else None for p in paths}


@dataclass
class Live:
    """A job that is set up, with a task that has committed two files.

    ``cut`` is one whose commit has died half-way.
    """

    table: Table
    job_id: str
    kind: str
    cut: bool
    commit: TaskCommit | None = None

    def opened(self) -> Any:
        """Return the job's committer, opened as another process would."""
        return JobRef(self.table.url, self.job_id, committer=self.kind, **self.table.given).open()

    async def begin(self, tag: str) -> None:
        """Set the job up and commit its task. Raises ``CommitError``."""
        async with self.opened() as job:
            await job.setup_job()
            task_id, attempt_id = job.layout.ids(0)
            await job.setup_task(attempt_id)
            work = job.work(attempt_id)
            for name in (f"{tag}/1", f"{tag}/2"):
                await work.put(name, tag.encode())
            self.commit = await job.commit_task(task_id, attempt_id)

    async def die(self, tag: str) -> None:
        """Begin the commit, and let it fail half-way, on a disk."""
        (missing,) = self.table.root.glob(f"_temporary/**/{tag}/2")
        aside = self.table.root.parent / f"aside-{tag}"
        missing.rename(aside)
        async with self.opened() as job:
            with suppress(CommitError):
                await job.commit_job([self.commit])
        (place,) = [missing] if missing.parent.exists() else self._moved(tag)
        aside.rename(place)

    def _moved(self, tag: str) -> list[Path]:
        return [p / "2" for p in self.table.root.glob(f"_temporary/**/{tag}")]

    async def finish(self) -> None:
        """Commit the job, or finish its commit."""
        async with self.opened() as job:
            report = await (job.resume_job() if self.cut else job.commit_job([self.commit]))
        assert report.files == 2


async def interfere(table: Table, one: Live, other: Live, verb: str) -> None:
    """Do something to one job, and see that the other is as it was, and can be committed."""
    await other.begin("other")
    before = table.content()
    try:
        await one.begin("one")
    except (CommitError, OptionError):  # an id that another's tasks have, or no id at all
        assert {k: v for k, v in table.content().items() if k in before} == before
        return
    theirs, seen = set(before), set(table.content())
    if other.cut:
        await other.die("other")
        theirs |= table.content().keys() - seen
    if one.cut:
        await one.die("one")
    before = {k: v for k, v in table.content().items() if k in theirs and v is not None}
    await act(table, one, verb)
    after = table.content()
    assert {k: after.get(k, b"gone") for k in before} == before
    await other.finish()


async def act(table: Table, one: Live, verb: str) -> None:
    """Abort, roll back, resume or look at a job."""
    found = {(job.job_id, job.state in NOT_BEGUN) for job in await statuses(table, one)}
    if verb == "abort":
        async with one.opened() as job:
            assert bool((await job.abort_job()).kept) is one.cut
    elif verb == "rollback" and one.cut:
        await api.job(table.url, one.job_id, **table.given).rollback()
    elif verb == "resume" and one.cut:
        await api.job(table.url, one.job_id, **table.given).resume()
    elif one.kind != "file_v1" or one.cut:
        assert (one.job_id, not one.cut) in found


async def statuses(table: Table, one: Live) -> Any:
    """Return the status of the jobs of the table."""
    given = {k: v for k, v in table.given.items() if k == "storage_options"}
    return await job_statuses(table.url, **given)


PAIR = st.lists(st.sampled_from(IDS), min_size=2, max_size=2, unique=True)
KINDS = st.tuples(*[st.sampled_from(["manifest", "file_v1"])] * 2)
SLOWLY = settings(
    max_examples=amount("ASYNCCOMMIT_EXAMPLES", quick=5, full=20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.mark.more
@SLOWLY
@given(PAIR, st.sampled_from(VERBS), st.booleans(), st.booleans(), KINDS)
@example(["n7", "manifest_n7"], "abort", False, False, ("manifest", "manifest"))
@example(["manifest_n7", "n7"], "resume", True, False, ("manifest", "manifest"))
@example(["n7", "job_n7_0000"], "abort", False, False, ("file_v1", "file_v1"))
def test_two_jobs_on_a_disk(
    ids: list[str], verb: str, cut: bool, other_cut: bool, kinds: tuple[str, str]
) -> None:
    """What is done to one of two jobs changes nothing of the other, whatever their ids are."""
    root = tempfile.mkdtemp(prefix="whose-")
    try:
        table = Table(f"{root}/t", Path(root, "t"))
        one = Live(table, ids[0], kinds[0], cut and kinds[0] == "manifest")
        other = Live(table, ids[1], kinds[1], other_cut and kinds[1] == "manifest")
        asyncio.run(interfere(table, one, other, verb))
    finally:
        shutil.rmtree(root)


@pytest.mark.every(2)
@pytest.mark.more
@SLOWLY
@given(PAIR, st.sampled_from(["abort", "status"]), st.data())
def test_two_jobs_in_a_bucket(
    monkeypatch: pytest.MonkeyPatch, ids: list[str], verb: str, data: st.DataObject
) -> None:
    """The same of jobs that upload, with each committer beside each."""
    names = ["magic", "directory", "partitioned"]
    kinds = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=2))
    assume(not any(job_id.startswith("__magic") for job_id in ids))
    bucket = new_bucket()
    places = {**registry.STORES, "s3": "asynccommit.testing.models.s3.client.SimS3Store"}
    with tempfile.TemporaryDirectory(prefix="whose-") as root, monkeypatch.context() as patch:
        patch.setattr(registry, "STORES", MappingProxyType(places))
        conf = {"fs.s3a.multipart.size": str(SMALLEST), "fs.s3a.buffer.dir": root}
        given = {"storage_options": {"bucket": bucket}, "options": conf}
        table = Table(URL, Path(root), bucket, given)
        one = Live(table, ids[0], kinds[0], cut=False)
        other = Live(table, ids[1], kinds[1], cut=False)
        asyncio.run(interfere(table, one, other, verb))


# --- the layout of Hadoop before 3.4.1 ---------------------------------------------------------


async def begun(table: Path, job_id: str, files: dict[str, str]) -> Committer:
    """Set up a job, and commit a task of it if there are files."""
    job = committer(table, job_id=job_id)
    await job.setup_job()
    if files:
        await run_task(job, 0, files)
    return job


@pytest.mark.parametrize("files", [{}, {"part-0": "x"}])
async def test_an_abort_leaves_a_job_whose_directory_older_hadoop_would_use(
    tmp_path: Path, files: dict[str, str]
) -> None:
    """``_temporary/manifest_n7`` is the running job of that very id, and no job ``n7``."""
    await begun(tmp_path, "manifest_n7", files)
    before = sorted(tmp_path.rglob("*"))
    report = await committer(tmp_path, job_id="n7").abort_job()

    assert sorted(tmp_path.rglob("*")) == before
    assert report.outcome == "nothing to clean up"
    assert bool(report.warnings) is not bool(files)


async def test_an_older_job_is_not_that_of_its_directory(tmp_path: Path) -> None:
    """What a job ``n7`` of older Hadoop left is no job ``manifest_n7``, and nobody takes it so."""
    await begun(tmp_path, "n7", {"part-0": "x"})
    await asyncio.to_thread(older, tmp_path, "n7")
    before = sorted(tmp_path.rglob("*"))
    other = committer(tmp_path, job_id="manifest_n7")
    for request in (other.abort_job, other.setup_job, other.rollback_job):
        with pytest.raises(
            CommitError, match=r"belongs to job n7, as written by Hadoop before 3\.4\.1"
        ):
            await request()
    assert sorted(tmp_path.rglob("*")) == before

    report = await committer(tmp_path, job_id="n7").commit_job()
    assert (report.files, visible(tmp_path)) == (1, {"part-0": "x"})


def test_commands_name_the_job_that_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """``status`` shows a job by its own id, and what it says to type works."""
    command = Command(capsys)
    asyncio.run(_begin(tmp_path))
    shown = command.json("status", tmp_path)["jobs"]
    assert [job["job_id"] for job in shown] == ["manifest_n7"]
    assert command("abort", tmp_path, "--job-id", "n7", "--force") == 0
    assert "was kept" in command.err
    assert sync.job_statuses(tmp_path)[0].job_id == "manifest_n7"
    assert command("abort", tmp_path, "--job-id", "manifest_n7", "--force") == 0
    assert list(tmp_path.iterdir()) == []


async def _begin(table: Path) -> None:
    job = await begun(table, "manifest_n7", {})
    await job.store.aclose()


async def test_tasks_with_the_same_ids(tmp_path: Path) -> None:
    """Two jobs of FileOutputCommitter whose tasks cannot be told apart are not there at once."""
    async with JobRef(tmp_path, "job_n7_0000", committer="file_v1").open() as job:
        await job.setup_job()
    before = sorted(tmp_path.rglob("*"))
    async with JobRef(tmp_path, "n7", committer="file_v1").open() as other:
        with pytest.raises(
            CommitError, match="job_n7_0000 has tasks with the ids of this job's tasks"
        ):
            await other.setup_job()
        with pytest.raises(
            CommitError, match="job_n7_0000 has tasks with the ids of this job's tasks"
        ):
            await other.abort_job()
    assert sorted(tmp_path.rglob("*")) == before
