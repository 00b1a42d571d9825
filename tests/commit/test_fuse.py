"""Mounts that number files anew as they are renamed: nothing old comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.options.job import Mode
from tests.support.fuse import fuse
from tests.support.jobs import committer, run_task, visible, write
from tests.support.namespaces import in_namespace

OLD = {"day=1/old": "1", "day=2/old": "2"}
NEW = {"day=1/new": "n", "day=2/new": "m"}
MODES = (Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS)
AFTER = {Mode.APPEND: {**OLD, **NEW}, Mode.REPLACE_TABLE: NEW, Mode.REPLACE_PARTITIONS: NEW}


async def _commit_unvalidated(root: str, mode: str) -> dict[str, str]:
    fuse(root, "below")
    dest = Path(root, "table")
    write(dest, OLD)
    job = committer(dest, validate=False)
    await job.setup_job(mode=Mode(mode))
    await run_task(job, 0, NEW)
    report = await job.commit_job(mode=Mode(mode))
    assert report.warnings == ()
    return visible(dest)


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_old_files_with_other_numbers_do_not_come_back(tmp_path: Path, mode: Mode) -> None:
    """A replaced file is not taken for one that was written late because its number changed."""
    assert in_namespace(_commit_unvalidated, str(tmp_path), mode.value) == AFTER[mode]
