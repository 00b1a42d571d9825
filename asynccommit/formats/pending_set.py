"""The ``.pendingset`` file of Hadoop's S3A committers: a task's uploads.

It is ``PendingSet`` of version 3, JSON: ``version``, ``jobId``, ``commits`` (as in ``.pending``
files) and ``iostatistics``. It does not name the attempt that wrote it; the commits of the magic
committer do. The staging committers write the same format to a file named by the task's id, without
the suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from asynccommit.formats.fields import JsonFields, check_size, dump_object, load_object
from asynccommit.formats.pending import (
    PendingCommit,
    check_uri,
    check_version,
    commit_of,
    commit_to_json,
)
from asynccommit.formats.statistics import Statistics
from asynccommit.options.uploads import EtagForm

VERSION = 3
SUFFIX = ".pendingset"
MAX_PENDING_SET_BYTES = 256 * 1024 * 1024
"""Maximum size in bytes; a larger one is neither written nor read."""


@dataclass(frozen=True, slots=True)
class PendingSet:
    """The uploads of one task that the job must complete.

    Attributes:
        job_id: the job's unique id, or empty.
        commits: one for each file; may be empty. No two have the same key.
        statistics: the task's statistics.
    """

    job_id: str
    commits: tuple[PendingCommit, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)


def encode_pending_set(pending: PendingSet, form: EtagForm = EtagForm.OBJECTS) -> bytes:
    """Return the JSON of a pending set.

    Args:
        pending: the set to encode.
        form: form of the etags; the string form leaves out the checksums.

    Raises:
        ManifestError: Hadoop, or this package, could not read the result.
    """
    path = f"{pending.job_id or 'job'}{SUFFIX}"
    for commit in pending.commits:
        check_uri(commit, path)
    value = {
        "version": VERSION,
        "jobId": pending.job_id,
        "commits": [commit_to_json(commit, form) for commit in pending.commits],
        "iostatistics": pending.statistics.to_json(full=False),
    }
    data = dump_object(value, path, indent=False)
    decode_pending_set(data, path)
    return data


def decode_pending_set(data: bytes, path: str) -> PendingSet:
    """Read a pending set and check everything in it.

    The caller must check that the keys belong to the job, and to no other task.

    Args:
        data: the content.
        path: the file, for messages.

    Raises:
        ManifestError: names the field that is invalid.
    """
    check_size(data, path, MAX_PENDING_SET_BYTES)
    fields = load_object(data, path)
    check_version(fields, VERSION)
    rows = enumerate(fields.items("commits"))
    commits = tuple(commit_of(JsonFields(row, path, f"commits[{i}].")) for i, row in rows)
    _refuse_twice(fields, commits)
    return PendingSet(
        job_id=fields.optional("jobId") or "",
        commits=commits,
        statistics=Statistics.from_json(fields.get("iostatistics")),
    )


def _refuse_twice(fields: JsonFields, commits: Sequence[PendingCommit]) -> None:
    seen: dict[str, int] = {}
    for index, commit in enumerate(commits):
        first = seen.setdefault(commit.key, index)
        if first != index:
            key = commit.key[:200]
            raise fields.wrong(
                f"commits[{index}].destinationKey", f"is {key!r}, as in commits[{first}]"
            )
