"""The fence of a rollback, where tasks' directories may be open in an earlier owner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit.commit.steps.undo_renames import _take_out
from asynccommit.stores.local.store import LocalStore
from tests.support.commits import Site, run_of
from tests.support.crashes import LocalWorld

pytestmark = pytest.mark.skipif(not LocalStore.traits.pins, reason="this system has no /proc")


async def test_a_rollback_leaves_nothing_in_a_directory_that_is_open(tmp_path: Path) -> None:
    """A task's directory that an earlier owner has open is empty once it is fenced."""
    site = Site(LocalWorld(tmp_path))
    task = tmp_path / "task_1"
    (task / "day=1").mkdir(parents=True)
    (task / "day=1/part-0").write_text("x")
    opened = os.open(task, os.O_PATH)
    run = run_of(site.job()).numbered(2)
    place = f"{run.epoch_dir}/task_1"
    try:
        await run.store.mkdir(run.epoch_dir)
        await run.store.rename(str(task), place)
        await _take_out(run, place)
        await _take_out(run, place)
        assert not os.path.exists(f"/proc/self/fd/{opened}/day=1/part-0")
        assert Path(f"{place}/day=1/part-0").read_text() == "x"
    finally:
        os.close(opened)
        await site.close()
