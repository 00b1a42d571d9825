"""Which uploads are open, on servers that do not list them."""

from __future__ import annotations

import pytest

from asynccommit.errors import PreflightError
from asynccommit.options.job import Mode
from asynccommit.stores.multipart import UploadPage
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.upload_jobs import ROOT, Scenario, alone, committer

OVER = Scenario(
    "over",
    ({"p=1/x": "new x", "y": "y"},),
    {f"{ROOT}/p=1/x": "old"},
    options={"delete_target_files": True},
)


class _Unlisted:
    """A policy under which a listing shows no upload, as MinIO's below a directory."""

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> object:
            return UploadPage(()) if op.name == "list_uploads" else await call(op)

        return around


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
async def test_uploads_that_are_not_listed(mode: Mode) -> None:
    """What a listing does not show is asked for, and counts as open if it is."""
    world, tasks = alone(OVER)
    await committer(world, OVER, _Unlisted()).commit_job(tasks, mode=mode)

    assert world.state().files[f"{ROOT}/p=1/x"] == b"new x"
    assert not world.state().uploads


async def test_an_upload_that_is_gone() -> None:
    """One that has ended is named, whether or not the others are listed, and nothing changes."""
    for policies in ((), (_Unlisted(),)):
        world, tasks = alone(OVER)
        gone = next(u for u in world.bucket.uploads.open.values() if u.key == "out/t/y")
        world.bucket.abort(gone.key, gone.upload_id)
        with pytest.raises(PreflightError, match=f"completed by another process: {ROOT}/y\\."):
            await committer(world, OVER, *policies).commit_job(tasks)
