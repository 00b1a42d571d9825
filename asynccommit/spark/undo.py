"""``python -m asynccommit.spark.undo``: undo a job after Python died.

The JVM starts it, and writes a request like those of the bridge to its standard input, where
credentials are safe from other users' eyes; ``what`` is ``abort``, or ``rollback`` if the policy
``asynccommit.on.failure`` is ``rollback``. The reply is one JSON text. The process may be killed:
its work can be repeated.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from asynccommit import sync
from asynccommit.api import JobRef
from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.errors import AsyncCommitError, CommittedError, UnsupportedError
from asynccommit.results import AbortReport
from asynccommit.runtime.loop_thread import submit
from asynccommit.runtime.terminal import count_of
from asynccommit.spark.bridge import options_for, storage_of
from asynccommit.stores.elsewhere import JVM, STORE_OPTION
from asynccommit.stores.urls import decode_uri

_LONGEST = 4000
_NAMED = 20


def undo(request: Mapping[str, Any]) -> str:
    """Carry out the request, and return a description of the result.

    A commit that is already decided is finished instead. Raises ``OwnedError`` if a live process is
    committing the job, and other kinds of ``CommitError`` if the request fails.
    """
    url = str(decode_uri(request["dest"]))
    job: dict[str, Any] = {
        "url": url,
        "job_id": request["jobId"],
        "attempt": request["attempt"],
        "options": options_for(request),
        "storage_options": storage_of(request),
    }
    if job["storage_options"].get(STORE_OPTION) == JVM:
        raise UnsupportedError(
            "this process has no JVM, and only one can open the table as the session's user. As "
            f"that user say asynccommit status '{url}' -s {STORE_OPTION}={JVM}, which says what "
            "to do"
        )
    try:
        rolling = request["what"] == "rollback"
        undone = submit(_rolled_back(**job)) if rolling else sync.job(**job).abort(force=True)
    except CommittedError:
        sync.job(**job).resume()
        return "it was committed, and its clean-up is finished"
    if undone.rolled_back:
        left = (
            f", except for these paths: {', '.join(undone.not_restored[:20])}"
            if undone.not_restored
            else ""
        )
        return f"it was rolled back, {count_of(undone.files, 'file')} undone{left}"
    return undone.kept or "its commit had not begun: it was aborted"


async def _rolled_back(url: str, job_id: str, attempt: int, **settings: Any) -> AbortReport:
    """Undo the commit of a job if this user has begun it."""
    async with JobRef(url, job_id, attempt, **settings).open() as committer:
        if isinstance(committer, UploadCommitter):
            await committer.seek()
        committer.asked = False
        return await committer.rollback_job()


def main() -> int:
    """Answer the request on standard input; return the exit code."""
    try:
        outcome, code = undo(orjson.loads(sys.stdin.buffer.read())), 0
    except AsyncCommitError as error:
        outcome, code = f"it was not undone: {error}", 1
    _tell(outcome)
    return code


def _tell(outcome: str) -> None:
    """Send the reply to the JVM, which may have ended by now."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), orjson.dumps({"outcome": outcome[:_LONGEST]}))


if __name__ == "__main__":
    sys.exit(main())
