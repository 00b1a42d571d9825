"""Reading pending sets: what is hostile is refused with its file and the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from asynccommit.commit.by_upload import load_sets as load
from asynccommit.commit.by_upload.load_sets import load_sets
from asynccommit.commit.by_upload.loaded import LoadedSets, Pending
from asynccommit.commit.job.messages import digest
from asynccommit.errors import CommitError, ManifestError, NotFoundError, PreflightError
from asynccommit.formats.pending import PendingCommit
from asynccommit.formats.pending_set import PendingSet, encode_pending_set
from tests.support.upload_jobs import (
    OTHER,
    ROOT,
    Scenario,
    World,
    alone,
    commit_task,
    committer,
    pending_of,
    save_set,
)

PLAIN = Scenario("plain", ({"a": "a"}, {"p=1/b": "b"}))
LAYOUT = PLAIN.layout()
Change = Callable[[PendingCommit], PendingCommit]


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda c: replace(c, bucket="other"), "names the bucket 'other'"),
        (lambda c: replace(c, key="out/elsewhere/a"), "is not below the destination"),
        (lambda c: replace(c, key="out/tt/a"), "is not below the destination"),
        (lambda c: replace(c, key="out/t"), "is not below the destination"),
        (lambda c: replace(c, key="out/t/_SUCCESS"), "is not a place that tasks may write to"),
        (lambda c: replace(c, key="out/t/_temporary/a"), "is not a place that tasks may write to"),
        (
            lambda c: replace(c, key="out/t/p/__magic_job-x/a"),
            "is not a place that tasks may write to",
        ),
        (lambda c: replace(c, job_id=OTHER), "belongs to another job"),
        (lambda c: replace(c, task_id="attempt_9"), "of two attempts"),
    ],
)
async def test_an_upload_that_is_not_the_jobs(change: Change, reason: str) -> None:
    """An upload of another place, job or attempt is refused, and nothing was touched."""
    world, tasks = alone(PLAIN)
    task_id, attempt_id = LAYOUT.ids(2)
    good = pending_of(world, LAYOUT, "c", "c", attempt_id)
    bad = change(pending_of(world, LAYOUT, "d", "d", attempt_id))
    tasks.append(save_set(world, LAYOUT, task_id, attempt_id, (good, bad)))
    before = world.state()
    with pytest.raises(PreflightError, match=reason) as caught:
        await committer(world, PLAIN).commit_job(tasks)

    assert LAYOUT.pending_set(task_id) in str(caught.value)
    assert world.state() == before


async def test_a_set_of_another_job() -> None:
    """A whole set of another job is refused."""
    world, tasks = alone(PLAIN)
    data = encode_pending_set(PendingSet(OTHER))
    world.bucket.put(LAYOUT.pending_set(tasks[0].task_id)[1:], data)
    tasks[0] = replace(tasks[0], digest=digest(data))
    with pytest.raises(PreflightError, match="belongs to another job"):
        await committer(world, PLAIN).commit_job(tasks)


@pytest.mark.parametrize(
    "data, reason",
    [(b"", "is empty"), (b"{}", "not the one that"), (b"not json", "not the one that")],
)
async def test_a_set_that_is_not_the_one(data: bytes, reason: str) -> None:
    """A set whose bytes are not those that the task has committed is refused."""
    world, tasks = alone(PLAIN)
    world.bucket.put(LAYOUT.pending_set(tasks[0].task_id)[1:], data)
    with pytest.raises(PreflightError, match=reason):
        await committer(world, PLAIN).commit_job(tasks)


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"version":4}', b'{"commits":[{}]}'])
async def test_a_set_that_nobody_vouches_for_and_that_is_none(data: bytes) -> None:
    """Without messages every file counts, and one that cannot be read fails the job."""
    world, _ = alone(PLAIN)
    world.bucket.put(LAYOUT.pending_set("task_9")[1:], data)
    with pytest.raises(PreflightError, match=r"task_9\.pendingset"):
        await committer(world, PLAIN).commit_job()


async def test_a_missing_set() -> None:
    """A task that says it has committed and has no set is named."""
    world, tasks = alone(PLAIN)
    del world.bucket.objects[LAYOUT.pending_set(tasks[1].task_id)[1:]]
    with pytest.raises(PreflightError, match="is missing, although attempt"):
        await committer(world, PLAIN).commit_job(tasks)


async def test_a_set_of_nobody() -> None:
    """A set that no message names is ignored and said; strictly, it fails the job."""
    world, tasks = alone(PLAIN)
    commit_task(world, LAYOUT, 7, {"zombie": "of a zombie"})
    with pytest.raises(PreflightError, match="was not passed"):
        await committer(world, PLAIN).commit_job(tasks, strict=True)
    report = await committer(world, PLAIN).commit_job(tasks)

    assert len(report.ignored) == 1
    assert "no task commit message names it" in report.warnings[0]
    assert f"{ROOT}/zombie" not in world.state().files
    assert not world.state().uploads


async def test_two_messages_of_one_task() -> None:
    """Two attempts that claim one task are refused."""
    world, tasks = alone(PLAIN)
    with pytest.raises(PreflightError, match="two attempts claim"):
        await committer(world, PLAIN).commit_job([*tasks, replace(tasks[0], attempt_id="x")])


async def test_a_job_that_is_not_there() -> None:
    """Without a directory of the job attempt there is nothing to commit."""
    with pytest.raises(PreflightError):
        await committer(World.new(), PLAIN).commit_job()


async def test_hidden_files_are_no_sets() -> None:
    """Scenario 35: what lies beside the sets of a staging job and is hidden is not read."""
    scenario = replace(PLAIN, committer="directory")
    world, _ = alone(scenario)
    world.bucket.put(f"{scenario.layout().sets_dir[1:]}/.task_1.crc", b"crc")
    report = await committer(world, scenario).commit_job()

    assert report.files == 2


async def test_a_large_set_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets are held together only while there is room for them."""
    scenario = Scenario("sets", tuple({f"f{n}": "x"} for n in range(9)))
    world, tasks = alone(scenario)
    monkeypatch.setattr(load, "_ROOM", 10)
    report = await committer(world, scenario).commit_job(tasks)

    assert report.files == 9


async def test_uploads_of_many_parts_spill_early() -> None:
    """Parts count: a few uploads of ten thousand parts do not stay in memory."""
    world = World.new()
    run = committer(world, PLAIN)._run()
    with LoadedSets(run.options) as loaded:
        pending = pending_of(world, LAYOUT, "a", "12345678")
        parts = pending.parts[:1] * 10_000
        row = Pending(f"{ROOT}/a", pending.upload_id, 8, parts)
        for _ in range(30):
            await loaded.add([row])
        kept = [each async for each in loaded.spill.each()]

        assert loaded.spill._file is not None
        assert kept == [row] * 30


async def test_errors_by_type() -> None:
    """What cannot be trusted is a ``ManifestError``, a job without directory is not found."""
    world, _ = alone(PLAIN)
    run = committer(world, PLAIN)._run()
    world.bucket.put(LAYOUT.pending_set("task_9")[1:], b"")
    with LoadedSets(run.options) as loaded, pytest.raises(ManifestError):
        await load_sets(run, loaded, None)
    with LoadedSets(run.options) as loaded, pytest.raises(NotFoundError):
        await load_sets(committer(World.new(), PLAIN)._run(), loaded, None)
    assert issubclass(PreflightError, CommitError)
