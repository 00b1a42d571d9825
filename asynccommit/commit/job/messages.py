"""Commit messages of tasks: digests, and a warning without files."""

from __future__ import annotations

import hashlib

from asynccommit.commit.context import CommitContext


def warn_of_no_file(run: CommitContext, tasks: int, files: int) -> None:
    """Warn of a job whose tasks have committed, and none of them a file."""
    if tasks and not files:
        run.warn(
            f"{tasks} {'task has' if tasks == 1 else 'tasks have'} committed without a file; if "
            "they wrote any, these are not below Task.directory, which is a URL if tasks have "
            "no local files: use Task.open or Task.put"
        )


def digest(data: bytes) -> str:
    """Return the digest of a manifest's bytes as commit messages carry it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
