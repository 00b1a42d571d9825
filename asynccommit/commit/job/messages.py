"""Commit messages of tasks: digests, and jobs without files."""

from __future__ import annotations

import hashlib

from asynccommit.commit.context import CommitContext
from asynccommit.errors import PreflightError


def tell_of_no_file(run: CommitContext, tasks: int, files: int) -> None:
    """Warn of a job whose tasks have committed, and none of them a file.

    Raises ``PreflightError`` if the options require files.
    """
    if files or not (tasks or run.options.require_files):
        return
    text = "no task has committed"
    if tasks:
        text = (
            f"{tasks} {'task has' if tasks == 1 else 'tasks have'} committed without a file; if "
            "they wrote any, these are not below Task.directory, which is a URL if tasks have "
            "no local files: use Task.open or Task.put"
        )
    if run.options.require_files:
        text = f"{text}. asynccommit.require.files is set, so nothing was changed"
        raise PreflightError(run.layout.job_id, run.meter.stage, (), text)
    run.warn(text)


def digest(data: bytes) -> str:
    """Return the digest of a manifest's bytes as commit messages carry it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
