"""The readings in the guides of the engines see committed files only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.snippets import ROOT, Snippet, run_page, snippets

PAGES = ["guide-arrow", "guide-daft", "guide-dask", "guide-duckdb", "guide-polars"]

REFUSED = """
import shutil as _shutil
from asynccommit import CommitError as _CommitError, sync as _sync

_copied, _taken = next(table.glob("origin=JFK/*.parquet")), table / "origin=JFK/other.parquet"
try:
    with _sync.open_job(table) as _job, _job.task(0) as _task:
        _shutil.copy(_copied, _task.path("origin=JFK/other.parquet"))
        _taken.mkdir()
    raise SystemExit("was not refused")
except _CommitError:
    _taken.rmdir()
assert [*table.glob("_temporary/**/other.parquet")]
"""
"""Leaves the output of a job that was refused, under the names that Spark's tasks give."""


RUNNING = """
import shutil as _shutil
from asynccommit import sync as _sync

_job = _sync.open_job(table)
_writing = _job.__enter__().task(0)
_task = _writing.__enter__()
_shutil.copy(next(table.glob("origin=JFK/*.parquet")), _task.path("origin=JFK/other.parquet"))
assert [*table.glob("_temporary/**/other.parquet")]
"""
"""The same of a job that runs until the page has ended."""


@pytest.mark.timeout(300)
@pytest.mark.sample(3)
@pytest.mark.parametrize("planted", [REFUSED, RUNNING], ids=["refused", "running"])
@pytest.mark.parametrize("page", PAGES)
def test_a_guide_reads_committed_rows(page: str, planted: str, tmp_path: Path) -> None:
    """A guide's page prints the same beside files of a job that has not committed."""
    found = [each for each in snippets(ROOT / f"docs/{page}.md") if _is_run(each)]
    first = found.index(next(each for each in found if each.is_code))
    other = Snippet(found[0].page, 0, "python", frozenset(), planted)

    run_page([*found[: first + 2], other, *found[first + 2 :]], tmp_path)


def _is_run(snippet: Snippet) -> bool:
    return snippet.is_code or "output" in snippet.how
