"""The kind of job directory that a store has."""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.ownership.fenced_directory import FencedDirectory
from asynccommit.commit.ownership.flat_directory import FlatDirectory
from asynccommit.commit.ownership.job_directory import JobDirectory

_FENCED, _FLAT = FencedDirectory(), FlatDirectory()


def directory_of(run: CommitContext) -> JobDirectory:
    """Return what keeps late requests out of the directory of a job attempt."""
    return _FENCED if run.store.traits.fences else _FLAT
