"""The owner file of a job, renewed while its driver is alive.

JSON with ``type``, ``owner`` (id, host, user, process), ``lease`` (seconds), and ``started`` and
``seen`` in milliseconds since the epoch of 1970; readers ignore unknown fields. A file without a
lease is never renewed, and only the process shows whether the job is alive. The time of the last
write is the store's modification time of the file; ``seen`` is for people.
"""

from __future__ import annotations

from dataclasses import dataclass

from asynccommit.formats.commit_record import Owner
from asynccommit.formats.fields import MAX_TIME, dump_object, load_object

JOB_OWNER = "asynccommit.JobOwner/1"
MAX_JOB_OWNER_BYTES = 1024 * 1024
"""Maximum number of bytes to read."""


@dataclass(frozen=True, slots=True)
class JobOwner:
    """The driver of a job.

    Attributes:
        owner: identity of the driver; the id is unique to this setup.
        lease: seconds without a heartbeat after which the driver counts as dead; ``None`` if it
            sends no heartbeats.
        started_ms: when the job was set up.
        seen_ms: when this file was written.
    """

    owner: Owner
    lease: float | None
    started_ms: int
    seen_ms: int


def encode_job_owner(owner: JobOwner) -> bytes:
    """Return the JSON of a job's owner.

    Raises ``ManifestError`` if it is invalid.
    """
    value = {
        "type": JOB_OWNER,
        "owner": owner.owner.to_json(),
        "lease": owner.lease,
        "started": owner.started_ms,
        "seen": owner.seen_ms,
    }
    data = dump_object(value, "job-owner.json")
    decode_job_owner(data, "job-owner.json")
    return data


def decode_job_owner(data: bytes, path: str) -> JobOwner:
    """Read a job's owner. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path)
    fields.is_type(JOB_OWNER)
    return JobOwner(
        owner=Owner.of(fields),
        lease=None if fields.get("lease") is None else fields.seconds("lease"),
        started_ms=fields.count("started", maximum=MAX_TIME),
        seen_ms=fields.count("seen", maximum=MAX_TIME),
    )
