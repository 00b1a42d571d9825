"""The recipe for Dagster, run by its executor: a step dies in its commit, and Dagster retries it.

Dagster pins what it is installed with, so it is not in the lock: `tox -e dagster` runs this.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

from tests.support.recipes import is_exact, kill_in_the_commit, logged, write_recipe

pytestmark = [
    pytest.mark.skipif(not find_spec("dagster"), reason="Dagster is not installed"),
    pytest.mark.full,
    pytest.mark.timeout(900),
]
DAY = "2026-05-01"


def test_a_step_that_dies_in_its_commit_is_retried(tmp_path: Path) -> None:
    """The retry finishes the interrupted commit; a second materialization writes nothing."""
    table = write_recipe(tmp_path, "nightly.py", "assets.py")
    killer = Thread(target=kill_in_the_commit, args=(table,))
    killer.start()
    first = _materialize(tmp_path)
    killer.join()
    second = _materialize(tmp_path)

    assert "STEP_UP_FOR_RETRY" in first
    assert "STEP_RESTARTED" in first
    assert "STEP_SUCCESS" in first
    assert "STEP_UP_FOR_RETRY" not in second
    assert is_exact(table, DAY)
    assert not (table / "_temporary").exists()


def _materialize(folder: Path) -> str:
    """Materialize the asset of a day by the executor of steps; return what was logged."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    command = [str(Path(sys.executable).with_name("dagster")), "asset", "materialize"]
    command += ["--select", "flights", "-f", "assets.py", "--partition", DAY]
    environment = {**os.environ, "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "yes"}
    return logged(command, environment, folder)
