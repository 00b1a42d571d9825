"""``uploads``: what is open on a bucket is shown, and aborted when it is said so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.formats.pending import PendingCommit
from asynccommit.formats.pending_set import PendingSet, encode_pending_set
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.fault_rules import BEFORE, Fault
from asynccommit.testing.pytest_plugin import MakeProxyThread, s3_proxy_thread
from tests.cli.support import Command
from tests.support.s3_servers import moto_url, new_bucket, open_s3, options
from tests.support.schemas import check

__all__ = ["moto_url", "s3_proxy_thread"]

JOB = "11111111-2222-3333-4444-555555555555"


class Bench:
    """A bucket of moto, and the command."""

    def __init__(self, command: Command, url: str) -> None:
        self.command, self.server = command, url
        self.bucket = new_bucket(url)
        self.url = f"s3://{self.bucket}/table"

    def begin(self, key: str, *parts: bytes) -> str:
        """Begin an upload and return its id."""
        return submit(self._begin(f"/{key}", parts))

    async def _begin(self, path: str, parts: tuple[bytes, ...]) -> str:
        store = open_s3(self.server, self.bucket)
        try:
            upload_id = await store.create_upload(path)
            for number, data in enumerate(parts, 1):
                await store.put_part(path, upload_id, number, data)
            return upload_id
        finally:
            await store.aclose()

    def leave_job(self, *uploads: tuple[str, str], begun: bool = False) -> None:
        """Leave the directory of a job whose task has committed these."""
        layout = MagicLayout(parse_url(self.url), JOB, 0)
        part = (Part('"etag"'),)
        commits = [
            PendingCommit(self.bucket, key, upload_id, part, 1, f"s3a://{self.bucket}/{key}")
            for key, upload_id in uploads
        ]
        files = {layout.pending_set("task"): encode_pending_set(PendingSet(JOB, tuple(commits)))}
        if begun:
            files[layout.record] = b"{}"
        submit(self._leave(files))

    async def _leave(self, files: Mapping[str, bytes]) -> None:
        store = open_s3(self.server, self.bucket)
        try:
            for path, data in files.items():
                await store.put(path, data)
        finally:
            await store.aclose()

    def run(self, verb: str, *words: str, url: str = "") -> int:
        """Run a verb and return its exit code."""
        storage = [f"-s{name}={value}" for name, value in options(url or self.server).items()]
        return self.command("uploads", verb, self.url, *storage, *words)

    def json(self, verb: str, *words: str, url: str = "") -> Any:
        """Run a verb and return its JSON, with the exit code as ``code``."""
        code = self.run(verb, "--json", *words, url=url)
        return {**json.loads(self.command.out), "code": code}

    def keys(self) -> list[str]:
        """Return the keys of what is open."""
        return [one["key"] for one in self.json("list")["uploads"]]


@pytest.fixture
def bench(command: Command, moto_url: str) -> Bench:
    """A bucket without anything in it."""
    return Bench(command, moto_url)


def test_nothing_is_there(bench: Bench) -> None:
    """The exit code is 0, for a check."""
    assert bench.run("list") == 0
    assert "no upload is open" in bench.command.out
    assert bench.run("abort", "--yes") == 0
    assert "aborted 0 uploads" in bench.command.out


def test_list_shows_what_is_open(bench: Bench) -> None:
    """With its parts, bytes and cost; the exit code is 3, so that a check fails."""
    upload_id = bench.begin("table/day=1/a", b"x" * 300, b"y" * 200)
    bench.begin("tables/other")

    assert bench.run("list") == 3
    (line,) = [line for line in bench.command.out.splitlines() if "day=1" in line]
    assert line.split()[-3:] == ["<$0.01", "table/day=1/a", upload_id]

    found = bench.json("list", "--price", "1073741824")
    (one,) = found["uploads"]
    assert (found["code"], found["parts"], found["bytes"], found["month"]) == (3, 2, 500, 500)
    assert (one["key"], one["upload_id"]) == ("table/day=1/a", upload_id)
    assert (one["parts"], one["bytes"], one["jobs"], one["maybe"]) == (2, 500, [], [])


def test_abort_is_shown_before_it_is_done(bench: Bench) -> None:
    """Nothing happens without --yes."""
    bench.begin("table/a")

    assert bench.run("abort", "--older-than", "0") == 0
    assert "would abort 1 upload" in bench.command.out
    assert "pass --yes" in bench.command.out
    assert bench.json("abort", "--older-than", "0")["would_abort"][0]["key"] == "table/a"
    assert bench.keys() == ["table/a"]


def test_json_fits_the_schemas(bench: Bench) -> None:
    """The list, what would be aborted, and what was aborted are as docs/schemas says."""
    bench.begin("table/a", b"x" * 300)
    upload_id = bench.begin("table/b")
    bench.leave_job(("table/b", upload_id))
    shown, would = bench.json("list"), bench.json("abort", "--older-than", "0")
    done = bench.json("abort", "--older-than", "0", "--yes")

    assert [len(found[name]) for found, name in ((shown, "uploads"), (shown, "jobs"))] == [2, 1]
    assert [len(found["kept"]) for found in (would, done)] == [1, 1]
    assert len(would["would_abort"]) == len(done["aborted"]) == 1
    check("uploads", shown)
    check("uploads-abort", would)
    check("uploads-abort", done)


def test_abort_takes_what_is_old_enough(bench: Bench) -> None:
    """An age can be said; a day is the default. To moto every upload began in November 2010."""
    upload_id = bench.begin("table/a")

    assert bench.json("abort", "--yes", "--older-than", "9999d")["aborted"] == []
    found = bench.json("abort", "--yes")
    assert found["aborted"] == [{"key": "table/a", "upload_id": upload_id}]
    assert (found["code"], bench.keys()) == (0, [])


def test_job_keeps_its_own_unless_it_is_given(bench: Bench) -> None:
    """Its directory is there; once it is given, only its own are taken, of any age."""
    bench.begin("table/before")
    upload_id = bench.begin("table/a")
    bench.leave_job(("table/a", upload_id))
    found = bench.json("abort", "--older-than", "0")
    kept = {one["key"]: one["reason"] for one in found["kept"]}

    assert kept["table/a"].endswith(f"asynccommit uploads abort {bench.url} --job-id {JOB}")
    done = bench.json("abort", "--job-id", JOB, "--yes")
    assert [one["key"] for one in done["aborted"]] == ["table/a"]
    assert bench.keys() == ["table/before"]


def test_commit_that_has_begun_is_told(bench: Bench) -> None:
    """Whoever takes its uploads away is warned."""
    bench.leave_job(("table/a", bench.begin("table/a")), begun=True)

    assert bench.run("abort", "--job-id", JOB) == 0
    assert f"the commit of job {JOB} has begun" in bench.command.err


def test_job_that_is_not_there_is_told(bench: Bench) -> None:
    """Nothing is aborted, whatever is open."""
    bench.begin("table/a")

    assert bench.json("abort", "--job-id", "gone", "--yes")["aborted"] == []
    assert "job gone has no directory" in bench.command.err
    assert bench.keys() == ["table/a"]


def test_each_failure_is_named(bench: Bench, s3_proxy_thread: MakeProxyThread) -> None:
    """The rest is aborted; the exit code is 1."""
    for name in "abc":
        bench.begin(f"table/{name}")
    proxy = s3_proxy_thread(bench.server)
    fault = Fault(BEFORE, op="abort_upload", path="/b$", code="AccessDenied")
    proxy.do(lambda it: it.weather.add(fault))

    found = bench.json("abort", "--older-than", "0", "--yes", url=proxy.endpoint)
    assert found["code"] == 1
    assert [one["key"] for one in found["aborted"]] == ["table/a", "table/c"]
    assert [one["key"] for one in found["failures"]] == ["table/b"]
    assert bench.run("abort", "--older-than", "0", "--yes", url=proxy.endpoint) == 1
    assert "failed  /table/b" in bench.command.out
    assert bench.keys() == ["table/b"]


@pytest.mark.parametrize("age", ["1", "x", "-1d", "1w", "1e3s"])
def test_age_that_is_none(bench: Bench, age: str) -> None:
    """It is named, with what can be said; nothing is asked of the store."""
    assert bench.run("abort", f"--older-than={age}") == 2
    assert "expected 90m, 12h or 7d" in bench.command.err


def test_store_without_uploads(command: Command, tmp_path: object) -> None:
    """It is named."""
    assert command("uploads", "list", str(tmp_path)) == 2
    assert "no multipart uploads" in command.err
