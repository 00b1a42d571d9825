"""``status``, ``inspect``, ``resume`` and ``abort`` on jobs whose files are uploads."""

from __future__ import annotations

import asyncio
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit import api, sync
from asynccommit.api import JobRef
from asynccommit.cli import main
from asynccommit.commit.job.success import COMMIT
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import CommitError
from asynccommit.formats.commit_record import ABORTED
from asynccommit.options.uploads import S3A
from asynccommit.stores.tree import tree_pages
from asynccommit.testing.models.fault_rules import BEFORE, Fault
from asynccommit.testing.pytest_plugin import MakeProxyThread, s3_proxy_thread
from tests.cli.support import Command
from tests.support.s3_servers import moto_url, new_bucket, open_s3, options

__all__ = ["moto_url", "s3_proxy_thread"]

JOB = "11111111-2222-3333-4444-555555555555"
OTHER = "99999999-2222-3333-4444-555555555555"
FILES = ("day=1/a", "day=1/b", "day=2/c")


class Bench:
    """A bucket of moto with jobs in it, and the command."""

    def __init__(self, command: Command, url: str, tmp: Path) -> None:
        self.command, self.server, self.tmp = command, url, tmp
        self.bucket = new_bucket(url)
        self.url = f"s3://{self.bucket}/table"
        self.conf = {
            "fs.s3a.buffer.dir": str(tmp / "buffer"),
            S3A + "staging.unique-filenames": "false",
        }

    def leave(self, job_id: str = JOB, committer: str = "magic", **conf: str) -> Layout:
        """Leave a job whose two tasks have committed; return where it is."""
        return asyncio.run(self._leave(job_id, committer, {**self.conf, **conf}))

    async def _leave(self, job_id: str, committer: str, conf: dict[str, str]) -> Layout:
        given: dict[str, Any] = {
            "options": conf,
            "storage_options": options(self.server),
            "committer": committer,
        }
        async with JobRef(self.url, job_id, **given).open() as job:
            await job.setup_job()
            layout = job.layout
        for number, names in enumerate((FILES[:2], FILES[2:])):
            async with api.job(self.url, job_id, **given).task(number) as task:
                for name in names:
                    await task.put(name, b"12345")
        return layout

    def cut(
        self, proxy: MakeProxyThread, at: str = "/c$", committer: str = "magic", **conf: str
    ) -> None:
        """Commit the job, and refuse it the completion of one file."""
        server = proxy(self.server)
        fault = Fault(BEFORE, op="complete_upload", path=at, code="AccessDenied")
        server.do(lambda it: it.weather.add(fault))

        async def commit() -> None:
            opened = JobRef(
                self.url,
                JOB,
                options={**self.conf, S3A + "threads": "1", **conf},
                storage_options=options(server.endpoint),
                committer=committer,
            ).open()
            async with opened as job:
                with pytest.raises(CommitError, match="AccessDenied") as caught:
                    await job.commit_job()
                self.said = str(caught.value)

        asyncio.run(commit())

    @property
    def storage(self) -> list[str]:
        """Options that let the command reach the server."""
        return [f"-s{name}={value}" for name, value in options(self.server).items()]

    def run(self, verb: str, *words: str, url: str = "") -> int:
        """Run a verb and return its exit code."""
        return self.command(verb, url or self.url, *self.storage, *words)

    def json(self, verb: str, *words: str, url: str = "") -> Any:
        """Run a verb and return its JSON, with the exit code as ``code``."""
        code = self.run(verb, "--json", *words, url=url)
        return {**json.loads(self.command.out), "code": code}

    def paste(self, typed: str) -> int:
        """Type a command that a message has named."""
        return main([*shlex.split(typed)[1:], *self.storage])

    def put(self, path: str, data: bytes) -> None:
        """Write a file."""

        async def put() -> None:
            store = open_s3(self.server, self.bucket)
            await store.put(path, data)
            await store.aclose()

        asyncio.run(put())

    def get(self, path: str) -> bytes:
        """Read a file."""

        async def get() -> bytes:
            store = open_s3(self.server, self.bucket)
            try:
                return await store.get(path, 1 << 20)
            finally:
                await store.aclose()

        return asyncio.run(get())

    def left(self) -> tuple[list[str], int]:
        """Return what is in the table, relative to it, and how many uploads are open."""
        return asyncio.run(self._left())

    async def _left(self) -> tuple[list[str], int]:
        store = open_s3(self.server, self.bucket)
        found: list[str] = []
        async for page in tree_pages(store, "/table"):
            found += [info.path.removeprefix("/table/") for info in page if not info.is_dir]
        uploads = (await store.list_uploads("/")).entries
        await store.aclose()
        return sorted(found), len(uploads)


@pytest.fixture
def bench(command: Command, moto_url: str, tmp_path: Path) -> Bench:
    """A bucket without anything in it."""
    return Bench(command, moto_url, tmp_path)


def only(found: Any) -> Any:
    """Return the one job of a status."""
    (job,) = found["jobs"]
    return job


DONE = ["_SUCCESS", *FILES]


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", ["magic", "directory"])
def test_job_that_has_not_begun(bench: Bench, committer: str) -> None:
    """Its sets, files, bytes and committer are told; the commands commit it or abort it."""
    bench.leave(committer=committer)

    job = only(bench.json("status"))
    assert (job["job_id"], job["state"], job["committer"]) == (JOB, "unknown", committer)
    assert (job["tasks"], job["files"], job["bytes"]) == (2, 3, 15)
    assert job["age"] is not None

    assert bench.run("status") == 0
    assert committer in bench.command.out
    assert bench.run("resume") == 3
    assert "has not begun" in bench.command.err
    assert bench.paste(job["resume"]["command"]) == 0
    assert bench.left() == (DONE, 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", ["magic", "directory"])
def test_abort_finds_the_job(bench: Bench, committer: str) -> None:
    """Without its id: the uploads are aborted and its files are gone."""
    bench.leave(committer=committer)
    assert bench.left()[1] == 3

    assert bench.json("abort")["job_id"] == JOB
    assert bench.left() == ([], 0)
    assert bench.json("abort")["code"] == 5


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", ["magic", "directory", "partitioned"])
def test_commit_that_was_cut_short_is_resumed(
    bench: Bench, s3_proxy_thread: MakeProxyThread, committer: str
) -> None:
    """It is shown with how far it came; the command of the error, pasted, finishes it."""
    bench.leave(committer=committer)
    bench.cut(s3_proxy_thread, committer=committer)

    job = only(bench.json("status"))
    assert job["committer"] == committer
    assert job["problem"] == ""
    assert (job["done"], job["files"], job["tasks"]) == (2, 3, 2)
    assert "completes the other 1 of 3 files" in job["resume"]["does"]
    assert job["resume"]["command"] in bench.said
    if committer == "partitioned":
        assert bench.run("resume") == 0
    else:
        assert bench.paste(job["resume"]["command"]) == 0
    assert bench.left() == (DONE, 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "committer, job_id", [("magic", None), ("directory", None), ("partitioned", JOB)]
)
def test_functions_find_the_job_too(
    bench: Bench, s3_proxy_thread: MakeProxyThread, committer: str, job_id: str | None
) -> None:
    """Whoever undoes or finishes it in a program has to know neither its id nor its committer."""
    given: dict[str, Any] = {"storage_options": options(bench.server)}
    bench.leave(committer=committer)
    bench.cut(s3_proxy_thread, committer=committer)
    assert sync.job(bench.url, job_id, **given).rollback().files == 2
    assert bench.left() == ([], 0)
    bench.leave(committer=committer)
    bench.cut(s3_proxy_thread, committer=committer)
    assert sync.job(bench.url, job_id, **given).resume().files == 3
    assert bench.left() == (DONE, 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", ["magic", "directory"])
def test_commit_that_was_cut_short_is_rolled_back(
    bench: Bench, s3_proxy_thread: MakeProxyThread, committer: str
) -> None:
    """The command of the status, pasted, undoes it."""
    bench.leave(committer=committer)
    bench.cut(s3_proxy_thread, committer=committer)
    job = only(bench.json("status"))

    assert "undoes 2 files" in job["abort"]["does"]
    assert bench.json("abort")["kept"].startswith("a commit has begun")
    assert bench.paste(job["abort"]["command"]) == 0
    assert bench.left() == ([], 0)


def test_of_several_jobs_the_one_that_has_begun_is_resumed(
    bench: Bench, s3_proxy_thread: MakeProxyThread
) -> None:
    """An abort has to be told which; the jobs are named with the command."""
    bench.leave()
    bench.leave(OTHER)
    bench.cut(s3_proxy_thread)
    assert [job["job_id"] for job in bench.json("status")["jobs"]] == [JOB, OTHER]
    assert only(bench.json("status", "--job-id", OTHER))["state"] == "unknown"

    assert bench.json("abort")["code"] == 2
    assert bench.json("resume")["job_id"] == JOB
    assert only(bench.json("status"))["job_id"] == OTHER
    assert bench.left()[1] == 3


@pytest.mark.sample(1)
@pytest.mark.parametrize("where", ["staging", "local"])
def test_staging_elsewhere_needs_to_be_named(
    bench: Bench, s3_proxy_thread: MakeProxyThread, where: str
) -> None:
    """Nothing of it is below the table; the command of the error says where it is."""
    place = f"s3://{bench.bucket}/staging dir" if where == "staging" else f"file:{bench.tmp}/tmp"
    conf = {S3A + "staging.tmp.path": place}
    bench.leave(committer="directory", **conf)
    assert bench.json("status")["code"] == 5
    said = ["-o", f"{S3A}staging.tmp.path={place}", "-o", f"{S3A}name=directory"]

    assert only(bench.json("status", "--job-id", JOB, *said))["tasks"] == 2
    bench.cut(s3_proxy_thread, committer="directory", **conf)
    assert f"-o {S3A}name=directory" in bench.said
    typed = "asynccommit resume" + bench.said.partition("Finish it: asynccommit resume")[2]
    assert bench.paste(typed.partition(" - or roll")[0]) == 0
    assert bench.left() == (DONE, 0)


def test_job_of_another_user_is_found(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks after the bucket need not be who ran the job."""
    place = f"s3://{bench.bucket}/staging"
    monkeypatch.setenv("LOGNAME", "alice")
    bench.leave(committer="directory")
    bench.leave(OTHER, "directory", **{S3A + "staging.tmp.path": place})
    monkeypatch.setenv("LOGNAME", "bob")

    assert bench.paste(only(bench.json("status"))["abort"]["command"]) == 0
    said = ["--job-id", OTHER, "-o", f"{S3A}staging.tmp.path={place}"]
    assert bench.paste(only(bench.json("status", *said))["abort"]["command"]) == 0
    assert bench.left()[1] == 0


def test_abort_that_was_cut_short(bench: Bench) -> None:
    """It says so, and what deletes the rest; nothing can be resumed."""
    bench.put(bench.leave().record, ABORTED)
    job = only(bench.json("status"))

    assert (job["state"], job["resume"]["command"]) == ("ended", "")
    assert bench.json("inspect")["code"] == 3
    assert bench.paste(job["abort"]["command"]) == 0
    assert bench.left() == ([], 0)


def test_clean_up_that_was_cut_short(bench: Bench) -> None:
    """What says how a commit ended is deleted last: if it alone is left, a resume deletes it."""
    layout = bench.leave()
    assert bench.run("commit", "--tasks", "2") == 0
    commit = json.loads(bench.get("/table/_SUCCESS"))["diagnostics"][COMMIT]
    bench.put(replace(layout, commit=commit).outcome, b"{}")
    job = only(bench.json("status"))

    assert (job["state"], job["abort"]["command"]) == ("ended", "")
    assert bench.paste(job["resume"]["command"]) == 0
    assert bench.left() == (DONE, 0)


def test_uploads_that_somebody_has_completed(bench: Bench) -> None:
    """Without a record it was another committer, whose commit is to be adopted."""
    bench.leave()

    async def complete() -> None:
        store = open_s3(bench.server, bench.bucket)
        (first, *_) = (await store.list_uploads("/table")).entries
        parts = [part for _, part, _ in (await store.list_parts(*first[:2])).entries]
        await store.complete_upload(first.path, first.upload_id, parts)
        await store.aclose()

    asyncio.run(complete())
    job = only(bench.json("status"))

    assert "adopts it: 1 of 3 uploads have ended" in job["resume"]["does"]
    assert bench.paste(job["resume"]["command"]) == 0
    assert bench.left() == (DONE, 0)


def test_damaged_files_are_problems_of_their_job(bench: Bench) -> None:
    """They hide no other job."""
    layout = bench.leave()
    bench.leave(OTHER)
    bench.put(layout.record, b"{")
    first, second = bench.json("status")["jobs"]

    assert "commit-record.json" in first["problem"]
    assert second["state"] == "unknown"
    assert bench.json("inspect")["code"] == 3


# --- inspect -------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", ["magic", "directory"])
def test_inspect_shows_sets_and_uploads(bench: Bench, committer: str) -> None:
    """What each task has, what would be completed, and how many uploads are open."""
    bench.leave(committer=committer)
    found = bench.json("inspect")
    (job,) = found["parts"]

    assert (found["code"], found["sound"]) == (0, True)
    assert job["facts"]["committer"] == committer
    assert (job["facts"]["pending_sets"], job["facts"]["files"], job["facts"]["bytes"]) == (
        2,
        3,
        15,
    )
    assert (job["facts"]["open_uploads"], job["facts"]["uploads_of_others"]) == ("3 of 3 files", 0)
    assert sorted(row["files"] for row in job["tasks"]) == [1, 2]
    assert [one["dest"] for one in job["uploads"]] == [f"{bench.url}/{name}" for name in FILES]
    assert bench.run("inspect") == 0
    assert "would be completed" in bench.command.out
    assert "ready to commit" in bench.command.out


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer, above", [("magic", 0), ("magic", 2), ("directory", 1)])
def test_inspect_takes_directories_of_a_job(bench: Bench, committer: str, above: int) -> None:
    """That of an attempt, and those that hold it; other jobs are left out."""
    layout = bench.leave(committer=committer)
    bench.leave(OTHER)
    place = layout.attempt_dir.rsplit("/", above)[0]
    (job,) = bench.json("inspect", url=f"s3://{bench.bucket}{place}")["parts"]

    assert job["facts"]["job_id"] == JOB


def test_inspect_says_what_speaks_against_a_commit(bench: Bench) -> None:
    """A file that is there, a set that cannot be read, uploads of others."""
    layout = bench.leave()
    bench.put("/table/day=1/a", b"old")
    (job,) = bench.json("inspect")["parts"]
    assert any("day=1/a" in problem for problem in job["problems"])

    bench.put(f"{layout.attempt_dir}/task.pendingset", b"{")
    (job,) = bench.json("inspect")["parts"]
    assert ["task.pendingset" in problem for problem in job["problems"]] == [True]


def test_inspect_says_how_far_a_commit_is(bench: Bench, s3_proxy_thread: MakeProxyThread) -> None:
    """With the command that goes on."""
    bench.leave()
    bench.cut(s3_proxy_thread)
    (job,) = bench.json("inspect")["parts"]

    assert job["facts"]["done"] == "2 of 3 files"
    assert job["facts"]["open_uploads"] == "1 of 3 files"
    assert f"asynccommit resume {bench.url} --job-id {JOB}" in job["problems"][0]


def test_place_inside_of_a_job_is_no_destination(bench: Bench) -> None:
    """The destination and the job are named."""
    layout = bench.leave()

    assert bench.run("status", url=f"s3://{bench.bucket}{layout.attempt_dir}") == 2
    assert f"give the destination {bench.url} and --job-id {JOB}" in bench.command.err


def test_report_of_a_job_of_uploads(bench: Bench) -> None:
    """The marker on S3 has the course of the commit, with its completions and directories."""
    bench.leave()
    assert bench.run("commit", "--tasks", "2") == 0

    found = bench.json("report")

    course = found["report"]["course"]
    assert found["report"]["outcome"] == "committed"
    assert (course["files"], course["bytes"]) == (3, 15)
    assert course["requests"]["complete_upload"] >= 3
    assert "complete_upload" in course["timeline"]["latency"]
    assert {one["path"] for one in course["timeline"]["partitions"]} == {"day=1", "day=2"}
