"""The harness bites: a committer of uploads with one bug in it is caught, whichever the bug is."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from asynccommit.commit.by_upload import (
    backups,
    finish,
    outcome,
    publisher,
    record,
    rollback,
)
from asynccommit.commit.by_upload.complete import complete_uploads
from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.loaded import Pending
from asynccommit.commit.by_upload.open_uploads import open_uploads
from asynccommit.commit.by_upload.plan import Old, UploadPlan
from asynccommit.commit.by_upload.remove import remove_old
from asynccommit.commit.by_upload.sweep import Sweeper
from asynccommit.formats.commit_owner import Outcome
from asynccommit.options.job import Mode
from asynccommit.testing.models.crashes import When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_points import TAKEN, points
from tests.crash.test_uploads_races import asleep
from tests.support.upload_jobs import Scenario

Plant = Callable[[pytest.MonkeyPatch], None]
Check = Callable[[], Coroutine[Any, Any, list[str]]]

SMALL = Scenario("small", ({"p=1/a": "hello world", "b": "x"},), TAKEN, Mode.REPLACE_TABLE)


def success_first(patch: pytest.MonkeyPatch) -> None:
    """Write the marker before the files are there."""

    async def hasty(run: UploadContext, plan: UploadPlan) -> None:
        await plan.take_sample()
        await run.store.put(run.layout.success, b'{"jobId":"%s"}' % run.layout.job_id.encode())

    patch.setattr(publisher, "copy_aside", hasty)


def nothing_aside(patch: pytest.MonkeyPatch) -> None:
    """Overwrite files of which there is no copy."""

    async def nothing(run: UploadContext, path: str) -> None:
        return None

    patch.setattr(backups, "_copy", lambda run, plan, path: nothing(run, path))


def old_first(patch: pytest.MonkeyPatch) -> None:
    """Delete what is replaced before the commit is decided, as Hadoop does."""

    async def early(run: UploadContext, plan: UploadPlan) -> None:
        await remove_old(run, plan.old)
        await backups.copy_aside(run, plan)

    patch.setattr(publisher, "copy_aside", early)


def record_late(patch: pytest.MonkeyPatch) -> None:
    """Complete uploads before the record is written."""

    async def late(run: UploadContext, plan: UploadPlan, **options: Any) -> Any:
        await complete_uploads(run, plan)
        return await record.begin(run, plan, **options)

    patch.setattr(publisher, "begin", late)


def rollback_forgets(patch: pytest.MonkeyPatch) -> None:
    """Take an upload that is gone for one that was never completed."""

    async def none(run: UploadContext, pending: Pending) -> None:
        return None

    patch.setattr(rollback, "ended_as", none)


def undecided(patch: pytest.MonkeyPatch) -> None:
    """Decide without looking whether the commit is still there."""

    async def always(run: UploadContext) -> bool:
        return True

    patch.setattr(outcome, "has_begun", always)
    patch.setattr(publisher, "has_begun", always)


def sweep_all(patch: pytest.MonkeyPatch) -> None:
    """Abort every upload below the destination, as Hadoop does."""

    async def everything(sweeper: Sweeper, infos: object) -> bool:
        run = sweeper._run
        async for page in open_uploads(run):
            for upload in page:
                await run.store.abort_upload(upload.path, upload.upload_id)
        return False

    patch.setattr(Sweeper, "take", everything)


def same_marker(patch: pytest.MonkeyPatch) -> None:
    """Leave a marker that was not deleted as it is."""
    restored = backups._restore_marker

    async def plain(run: UploadContext, marker: Old, left: list[str]) -> None:
        try:
            await run.store.head(run.layout.success)
        except Exception:
            await restored(run, marker, left)

    patch.setattr(backups, "_restore_marker", plain)


def no_outcome(patch: pytest.MonkeyPatch) -> None:
    """Go on to the end without a decision."""

    async def nothing(run: UploadContext, outcome: Outcome) -> None:
        return None

    patch.setattr(publisher, "decide", nothing)


def marker_only(patch: pytest.MonkeyPatch) -> None:
    """Forget to delete what is replaced."""

    async def nothing(run: UploadContext, old: object) -> None:
        return None

    patch.setattr(finish, "remove_old", nothing)


def _points() -> Coroutine[Any, Any, list[str]]:
    return points(SMALL, When.AFTER, None, 1)


def _every_act() -> Coroutine[Any, Any, list[str]]:
    return points(SMALL, When.AFTER, None, 3)


def _asleep() -> Coroutine[Any, Any, list[str]]:
    return asleep(SMALL, "rollback", after=True, sleeps=100)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "plant, check",
    [
        (success_first, _points),
        (nothing_aside, _points),
        (old_first, _points),
        (record_late, _points),
        (rollback_forgets, _every_act),
        (undecided, _asleep),
        (sweep_all, _points),
        (same_marker, _asleep),
        (no_outcome, _asleep),
        (marker_only, _points),
    ],
    ids=lambda value: value.__name__.strip("_"),
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, check: Check
) -> None:
    """Crash points, or a driver that stood still, tell each of these bugs."""
    plant(monkeypatch)

    try:
        problems = run_virtual(check())
    except Exception as error:
        problems = [str(error)]

    assert problems


@pytest.mark.sample(1)
@pytest.mark.parametrize("check", [_points, _asleep], ids=lambda value: value.__name__.strip("_"))
def test_nothing_is_planted(check: Check) -> None:
    """Without a bug neither check finds anything."""
    assert run_virtual(check()) == []
