"""A driver that writes a job to HDFS and kills itself in the middle of the commit.

Usage: python -m tests.support.hdfs_kill URL JOB_ID MODE RENAMES
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from typing import Any

from asynccommit import Mode, sync
from asynccommit.stores.hdfs.store import HdfsStore

TASKS, FILES = 3, 4


def die_after(renames: int) -> None:
    """Have the process killed before one of the renames out of a job's directory or into it."""
    rename, left = HdfsStore.rename, count(renames, -1)

    async def dying(self: HdfsStore, source: str, dest: str, **options: Any) -> None:
        inside = ["/_temporary/" in path for path in (source, dest)]
        if inside != [True, True] and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        await rename(self, source, dest, **options)

    HdfsStore.rename = dying  # type: ignore[method-assign]


def write(url: str, job_id: str, mode: Mode) -> None:
    """Write twelve files in three tasks, and commit them."""
    with sync.open_job(url, job_id=job_id, mode=mode) as job:
        for number in range(TASKS):
            with job.task(number) as task:
                for file in range(FILES):
                    task.put(f"p={file}/part-{number}", f"{job_id} {number} {file}".encode())


if __name__ == "__main__":
    die_after(int(sys.argv[4]))
    write(sys.argv[1], sys.argv[2], Mode(sys.argv[3]))
