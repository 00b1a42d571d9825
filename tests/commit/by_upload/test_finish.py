"""The marker of a commit, over one that another job has written meanwhile."""

from __future__ import annotations

import pytest

from asynccommit.errors import OutcomeUnknownError
from tests.crash.test_uploads_points import MARKER
from tests.support.faults import Before, Fault, Faults
from tests.support.upload_jobs import JOB, ROOT, Scenario, alone, committer

PLAIN = Scenario("plain", ({"a": "a"},))


@pytest.mark.parametrize("after", [True, False])
async def test_a_lost_answer(after: bool) -> None:
    """A marker is written over another's, and no upload is left, whatever answers are lost."""
    world, tasks = alone(PLAIN)

    async def another() -> None:
        world.place(f"{ROOT}/_SUCCESS", MARKER)

    meanwhile = Before("complete_upload", f"{ROOT}/a", another)
    lost = Fault("copy_if", OutcomeUnknownError, "_SUCCESS", after=after, times=1)
    faults = Faults(lost)
    await committer(world, PLAIN, faults, meanwhile).commit_job(tasks)
    files, uploads = world.state()

    assert lost.struck == 1
    assert JOB.encode() in files[f"{ROOT}/_SUCCESS"]
    assert sorted(files) == [f"{ROOT}/_SUCCESS", f"{ROOT}/a"]
    assert not uploads
