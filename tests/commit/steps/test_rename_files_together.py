"""Renaming many files in one request, as the local disk takes them."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.errors import (
    CommitError,
    CommitUnknownError,
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.manifest import decode_manifest, encode_manifest
from asynccommit.options.job import Options
from asynccommit.stores.base import Move
from asynccommit.stores.local import moves
from asynccommit.stores.local import store as local
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from tests.support.jobs import HOST, committer, run_task, visible

pytestmark = pytest.mark.usefixtures("files_alone")

FILES = {f"d{i % 10}/f{i:02}": str(i) for i in range(100)}
TOGETHER = LocalStore.traits.bulk_rename


class Seen:
    """A policy that keeps what is renamed, and does something before a request or two."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.alone: list[str] = []
        self.before: dict[int, Callable[[Sequence[Move]], object]] = {}

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def seen(op: Op) -> Any:
            if op.name == "rename_many":
                if hook := self.before.get(len(self.sizes)):
                    await asyncio.to_thread(hook, op.args[0])
                self.sizes.append(len(op.args[0]))
            if op.name == "rename" and "/tasks/" in op.path:
                self.alone.append(Path(op.args[1]).name)
            return await call(op)

        return seen


async def ready(
    dest: Path, seen: Seen, *, workers: int = 1, etags: bool = True
) -> ManifestCommitter:
    """Return a job whose only task committed a hundred files, with a store that is watched."""
    made = committer(dest)
    await made.setup_job()
    task = await run_task(made, 0, FILES)
    if not etags:
        path = Path(made.layout.manifest(task.task_id))
        manifest = decode_manifest(path.read_bytes(), str(path))
        bare = [entry._replace(etag=None) for entry in manifest.files]
        path.write_bytes(encode_manifest(replace(manifest, files=bare)))
    await made.store.aclose()
    store, options = Wrapped(LocalStore(), seen), Options(workers=workers)
    return ManifestCommitter(store, made.layout, options, HOST)


def broken(monkeypatch: pytest.MonkeyPatch, name: str, code: int, *, after: bool = False) -> None:
    """Let the system say ``code`` when the file of that name is renamed, once."""
    rename, left = moves.rename, [name]

    def fails(source: str, *rest: Any) -> None:
        if source.endswith(tuple(left)):
            left.clear()
            if after:
                rename(source, *rest)
            raise OSError(code, os.strerror(code), source)
        rename(source, *rest)

    monkeypatch.setattr(moves, "rename", fails)


async def test_many_files_go_in_one_request(tmp_path: Path) -> None:
    """Every file is renamed once, as many in a request as the store takes gladly."""
    seen = Seen()
    job = await ready(tmp_path / "out", seen)
    report = await job.commit_job()

    assert visible(tmp_path / "out") == FILES
    assert (max(seen.sizes), sum(seen.sizes), seen.alone) == (TOGETHER, 100, [])
    assert report.files == 100


async def test_few_files_are_spread_over_the_workers(tmp_path: Path) -> None:
    """Where a request each keeps more workers busy, each file has its own."""
    seen = Seen()
    job = await ready(tmp_path / "out", seen, workers=25)
    await job.commit_job()

    assert set(seen.sizes) == {4}
    again = Seen()
    await (await ready(tmp_path / "other", again, workers=100)).commit_job()
    assert (again.sizes, len(again.alone)) == ([], 100)


async def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """The commit ends there: what was moved before is counted, what comes behind stays."""
    dest, seen = tmp_path / "out", Seen()
    job = await ready(dest, seen)
    taken: list[Path] = []

    def take(pairs: Sequence[Move]) -> None:
        taken.append(Path(pairs[4][1]))
        taken[0].write_text("another's")

    seen.before[1] = take
    with pytest.raises(CommitError) as failed:
        await job.commit_job()

    assert isinstance(failed.value.failures[0], ExistsError)
    moved = visible(dest)
    assert moved.pop(str(taken[0].relative_to(dest))) == "another's"
    assert moved.items() <= FILES.items()
    assert f"{len(moved)} files are at their destinations" in str(failed.value)
    assert len(moved) == TOGETHER + 4
    assert seen.alone == [taken[0].name]


async def test_a_directory_that_another_job_removed_is_made_again(tmp_path: Path) -> None:
    """A directory that was empty, and is gone, costs one file a second look."""
    dest, seen = tmp_path / "out", Seen()
    job = await ready(dest, seen)
    seen.before[0] = lambda _: (dest / "d7").rmdir()
    report = await job.commit_job()

    assert visible(dest) == FILES
    assert {name[2] for name in seen.alone} >= {"7"}
    assert sorted(report.filenames) == sorted(str(dest / name) for name in FILES)


@pytest.mark.parametrize("after", [False, True])
async def test_a_lost_answer_is_settled_by_the_etag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """A file that was moved, although the system did not say so, is found; else it is moved."""
    job = await ready(tmp_path / "out", Seen())
    broken(monkeypatch, "f33", errno.EIO, after=after)
    report = await job.commit_job()

    assert visible(tmp_path / "out") == FILES
    assert report.files == 100


async def test_a_lost_answer_that_nothing_settles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an etag nobody can tell the file: the commit says so, and can be resumed."""
    dest = tmp_path / "out"
    job = await ready(dest, Seen(), etags=False)
    broken(monkeypatch, "f33", errno.EIO, after=True)
    with pytest.raises(CommitUnknownError) as unknown:
        await job.commit_job()

    assert isinstance(unknown.value.failures[0], OutcomeUnknownError)
    assert not (dest / "_SUCCESS").exists()
    await job.resume_job()
    assert visible(dest) == FILES


@pytest.mark.parametrize("code, kind", [(errno.EACCES, DeniedError), (errno.EXDEV, RejectedError)])
async def test_a_refusal_ends_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception]
) -> None:
    """A refusal that no waiting mends is asked for once, and raised."""
    seen = Seen()
    job = await ready(tmp_path / "out", seen)
    broken(monkeypatch, "f33", code)
    with pytest.raises(CommitError) as failed:
        await job.commit_job()

    assert isinstance(failed.value.failures[0], kind)
    assert seen.alone == []
    assert len(visible(tmp_path / "out")) == 33


async def test_a_resumed_commit_renames_the_rest_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was moved before is counted and not asked for again; the rest goes as it would have."""
    job = await ready(tmp_path / "out", Seen())
    with monkeypatch.context() as patched:
        broken(patched, "f33", errno.EACCES)
        with pytest.raises(CommitError):
            await job.commit_job()
    before, seen = len(visible(tmp_path / "out")), Seen()
    store = Wrapped(LocalStore(), seen)
    report = await ManifestCommitter(store, job.layout, job.options, HOST).resume_job()

    assert visible(tmp_path / "out") == FILES
    assert (report.files, report.resumed) == (100, True)
    assert (sum(seen.sizes), seen.alone) == (100 - before, [])


async def test_slow_renames_go_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request ends once it has taken a while, and the rest of it is asked for alone."""
    times = count(step=0.04)
    monkeypatch.setattr(local, "perf_counter", lambda: next(times))
    seen = Seen()
    job = await ready(tmp_path / "out", seen)
    await job.commit_job()

    assert visible(tmp_path / "out") == FILES
    requests = len(seen.sizes)
    assert requests == -(-100 // TOGETHER)
    assert len(seen.alone) == 100 - 2 * requests


@pytest.mark.sample(3)
@pytest.mark.parametrize("workers", [1, 100])
@pytest.mark.parametrize("how", ["replaced", "changed in place", "gone"])
async def test_a_source_is_looked_at_before_its_rename(
    tmp_path: Path, workers: int, how: str
) -> None:
    """What is not what its task committed is not published, and a rollback leaves nothing of it."""
    made, dest = committer(tmp_path / "out"), tmp_path / "out"
    await made.setup_job()
    task = await run_task(made, 0, FILES)
    source = Path(made.layout.task_attempt_dir(task.attempt_id), "d3/f33")
    if how != "changed in place":
        source.unlink()
    if how != "gone":
        source.write_text("!!")
    seen = Seen()
    options = Options(workers=workers)
    job = ManifestCommitter(Wrapped(LocalStore(), seen), made.layout, options, HOST)
    with pytest.raises(CommitError, match="f33") as failed:
        await job.commit_job([task])

    kind = NotFoundError if how == "gone" else PreconditionError
    assert isinstance(failed.value.failures[0], kind)
    assert "d3/f33" not in visible(dest)
    assert bool(seen.sizes) is (workers == 1)
    report = await job.rollback_job()
    assert visible(dest) == {}
    assert (report.not_restored, report.warnings) == ((), ())
