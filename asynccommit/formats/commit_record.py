"""The commit record: there from before the first change under the destination.

Format 1, JSON: ``type``, ``jobId``, ``attempt``, ``started`` (milliseconds since the epoch),
``host``, ``user``, ``files``, ``bytes``, ``manifests`` (a digest over the tasks, their attempts
and their manifests' digests) and ``tasks`` (task id -> task attempt id). Readers ignore fields
that they do not know.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from asynccommit.formats.fields import load_object

TYPE = "asynccommit.CommitRecord/1"


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """That a job commit has begun, whose it is, and what it covers.

    Attributes:
        job_id: the job.
        attempt: the job attempt.
        started_ms: when, milliseconds since the epoch.
        host: the machine of the committing process.
        user: the user of the committing process.
        files: how many files are to be renamed.
        bytes: their sizes, added up.
        manifests: digest over what was accepted.
        tasks: task id -> accepted task attempt id.
    """

    job_id: str
    attempt: int
    started_ms: int
    host: str
    user: str
    files: int
    bytes: int
    manifests: str
    tasks: Mapping[str, str]


def digest_of(tasks: Mapping[str, str], digests: Mapping[str, str]) -> str:
    """Return one digest over accepted task attempts and what is known of their manifests."""
    whole = hashlib.sha256()
    for task_id in sorted(tasks):
        line = f"{task_id}\t{tasks[task_id]}\t{digests.get(task_id, '')}\n"
        whole.update(line.encode("utf-8", "surrogatepass"))
    return "sha256:" + whole.hexdigest()


def encode_record(record: CommitRecord) -> bytes:
    """Return the JSON of a commit record."""
    value: dict[str, Any] = {
        "type": TYPE,
        "jobId": record.job_id,
        "attempt": record.attempt,
        "started": record.started_ms,
        "host": record.host,
        "user": record.user,
        "files": record.files,
        "bytes": record.bytes,
        "manifests": record.manifests,
        "tasks": dict(record.tasks),
    }
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)


def decode_record(data: bytes, path: str) -> CommitRecord:
    """Read a commit record. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path)
    if fields.text("type", "") != TYPE:
        raise fields.wrong("type", f"is not {TYPE}")
    return CommitRecord(
        job_id=fields.text("jobId"),
        attempt=fields.integer("attempt"),
        started_ms=fields.integer("started"),
        host=fields.text("host"),
        user=fields.text("user"),
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
        manifests=fields.text("manifests"),
        tasks=fields.texts("tasks"),
    )
