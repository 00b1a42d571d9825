"""The demo on a directory bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.demo import run_on_s3_express

pytestmark = [pytest.mark.more, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(300)]


def test_a_killed_driver_leaves_a_commit_that_another_process_ends(tmp_path: Path) -> None:
    """Every check of the demo passes, with responses that were lost meanwhile."""
    said: list[str] = []
    found = run_on_s3_express(tmp_path, say=said.append)
    assert found.proven, found.checks
    assert found.lost > 0
    assert "it was killed" in said[-1]
