"""The commit record, written before the first visible change.

JSON: ``type``, ``jobId``, ``attempt``, ``started`` (milliseconds since the epoch),
``owner`` (``id``, ``host``, ``user``, ``process``), ``lease`` (seconds), ``files``, ``bytes``,
``manifests`` (a digest over the tasks, their attempts and their manifests' digests), ``tasks``
(task id -> task attempt id), ``mode``, ``key``, ``options``, ``madeDestination``, ``planId``,
``plan`` (a digest of each of its chunks) and ``outside`` (directories elsewhere that the plan
changes). Format 2 has its plan in files of their own; format 3 has a plan of one chunk in the
field ``chunk``, and no digests. Format 4 is of a commit whose files other processes move as well:
``workers`` has ``grant``, the seconds that those may go on after their owner, and ``index`` the
digest of the plan's index, which has the tasks and the digests. Readers ignore unknown fields.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asynccommit.formats.commit_plan import PlanChunk, chunk_object, read_chunk
from asynccommit.formats.fields import (
    MAX_TIME,
    JsonFields,
    are_paths,
    as_integer,
    dump_object,
    kind_of,
    load_object,
)

TYPE = "asynccommit.CommitRecord/2"
WITH_PLAN = "asynccommit.CommitRecord/3"
"""The type of a record that contains its plan."""
WITH_WORKERS = "asynccommit.CommitRecord/4"
"""The type of a record of a commit with workers."""
MAX_GRANT = 300.0
"""Maximum number of seconds for which a takeover waits for workers."""
MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes to read."""
ABORTED = b"\0"
"""The content that an abort puts in the record's place, which blocks a record."""
_DIGEST = re.compile("sha256:[0-9a-f]{64}", re.ASCII)

Option = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Owner:
    """The identity of whoever commits a job.

    Attributes:
        id: unique to this attempt to commit.
        host: name of the machine.
        user: name of the user.
        process: the process on that machine, as ``Host.process`` names it; may be empty.
    """

    id: str
    host: str
    user: str
    process: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the owner as a JSON object."""
        return {"id": self.id, "host": self.host, "user": self.user, "process": self.process}

    @classmethod
    def of(cls, fields: JsonFields) -> Owner:
        """Read the field ``owner``. Raises ``ManifestError``."""
        owner = JsonFields(fields.get("owner"), fields.path, f"{fields.where}owner.")
        texts = owner.text("id"), owner.text("host"), owner.text("user")
        return cls(*texts, owner.any_text("process"))


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """The statement that a job commit has begun: owner and extent.

    Attributes:
        job_id: id of the job.
        attempt: number of the job attempt.
        started_ms: when the commit began, in milliseconds since the epoch.
        owner: the owner that began it, of epoch 1.
        lease: seconds without a heartbeat after which another owner may take over.
        files: number of files to rename.
        bytes: total size of the files.
        manifests: digest over the accepted manifests.
        tasks: task id -> accepted task attempt id.
        mode: treatment of existing data at the destination.
        key: the user's name for this piece of work, the same when it is run again.
        options: the options that determine how the commit continues, by name.
        made_destination: whether the job made the destination, so that a rollback may remove it.
        plan_id: id of the plan, which its files are named by.
        plan: the digest of each chunk of the plan, in order.
        chunk: the plan, if the record contains it.
        outside: absolute decoded paths outside of the destination that the plan changes.
        index: the digest of the plan's index; ``""`` if the record has the tasks and digests.
        grant: seconds for which workers may go on after their owner; 0 without workers.
    """

    job_id: str
    attempt: int
    started_ms: int
    owner: Owner
    lease: float
    files: int
    bytes: int
    manifests: str
    tasks: Mapping[str, str]
    mode: str
    key: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    made_destination: bool = False
    plan_id: str = ""
    plan: tuple[str, ...] = ()
    chunk: PlanChunk | None = None
    outside: tuple[str, ...] = ()
    index: str = ""
    grant: float = 0.0


def digest_of(tasks: Mapping[str, str], digests: Mapping[str, str]) -> str:
    """Return one digest over accepted task attempts and their manifests."""
    whole = hashlib.sha256()
    for task_id in sorted(tasks):
        line = f"{task_id}\t{tasks[task_id]}\t{digests.get(task_id, '')}\n"
        whole.update(line.encode("utf-8", "surrogatepass"))
    return "sha256:" + whole.hexdigest()


def encode_record(record: CommitRecord) -> bytes:
    """Return the JSON of a commit record.

    Raises ``ManifestError`` if it is invalid.
    """
    value: dict[str, Any] = {
        "type": _type_of(record),
        "jobId": record.job_id,
        "attempt": record.attempt,
        "started": record.started_ms,
        "owner": record.owner.to_json(),
        "lease": record.lease,
        "files": record.files,
        "bytes": record.bytes,
        "manifests": record.manifests,
        "tasks": {} if record.index else dict(record.tasks),
        "mode": record.mode,
        "key": record.key,
        "options": dict(record.options),
        "madeDestination": record.made_destination,
        "planId": record.plan_id,
        "plan": [] if record.index else list(record.plan),
        "outside": list(record.outside),
    }
    if record.chunk is not None:
        value["chunk"] = chunk_object(record.chunk)
    if record.index:
        value |= {"index": record.index, "workers": {"grant": record.grant}}
    path = "commit-record.json"
    data = dump_object(value, path)
    decode_record(data, path)
    return data


def decode_record(data: bytes, path: str) -> CommitRecord:
    """Read a commit record. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path, surrogates=True)
    kind = fields.get("type")
    fields.is_type(kind if kind in (WITH_PLAN, WITH_WORKERS) else TYPE)
    index, grant = _workers(fields) if kind == WITH_WORKERS else ("", 0.0)
    return CommitRecord(
        job_id=fields.name("jobId"),
        attempt=fields.count("attempt"),
        started_ms=fields.count("started", maximum=MAX_TIME),
        owner=Owner.of(fields),
        lease=fields.seconds("lease"),
        files=fields.count("files"),
        bytes=fields.count("bytes"),
        manifests=fields.text("manifests"),
        tasks=fields.names("tasks"),
        mode=fields.text("mode"),
        key=fields.optional("key"),
        options=options_of(fields),
        made_destination=fields.boolean("madeDestination"),
        plan_id=fields.name("planId"),
        plan=digests_of(fields, "plan"),
        chunk=_chunk(fields) if kind == WITH_PLAN else None,
        outside=_outside(fields),
        index=index,
        grant=grant,
    )


def _type_of(record: CommitRecord) -> str:
    if record.index:
        return WITH_WORKERS
    return TYPE if record.chunk is None else WITH_PLAN


def _workers(fields: JsonFields) -> tuple[str, float]:
    """Read the digest of the index, and the seconds of a grant."""
    index = fields.text("index")
    if not is_digest(index):
        raise fields.wrong("index", "is not a digest")
    workers = JsonFields(fields.get("workers"), fields.path, f"{fields.where}workers.")
    grant = workers.seconds("grant")
    if grant > MAX_GRANT:
        raise workers.wrong("grant", f"is more than {MAX_GRANT:,.0f} seconds")
    return index, grant


def _chunk(fields: JsonFields) -> PlanChunk:
    chunk = JsonFields(fields.get("chunk"), fields.path, f"{fields.where}chunk.")
    return read_chunk(chunk, fields.name("planId"), 0)


def options_of(fields: JsonFields) -> dict[str, Option]:
    """Read the field ``options``. Raises ``ManifestError``."""
    values = fields.object("options")
    for name, value in values.items():
        valid = isinstance(value, str | bool | None) or as_integer(value) is not None
        if not valid:
            raise fields.wrong(f"options.{name[:100]!r}", f"is {kind_of(value)}")
    return values


def is_digest(text: str) -> bool:
    """Return whether a text is a digest: ``sha256:`` and hexadecimal digits."""
    return _DIGEST.fullmatch(text) is not None


def digests_of(fields: JsonFields, key: str) -> tuple[str, ...]:
    """Read a required list of digests. Raises ``ManifestError``."""
    values = fields.rows(key)
    for index, value in enumerate(values):
        if not isinstance(value, str) or not is_digest(value):
            raise fields.wrong(f"{key}[{index}]", f"is {kind_of(value)}, not a digest")
    return tuple(values)


def _outside(fields: JsonFields) -> tuple[str, ...]:
    values = fields.rows("outside")
    for index, value in enumerate(values):
        if not are_paths([value], absolute=True) or value[0] != "/":
            raise fields.wrong(f"outside[{index}]", f"is {kind_of(value)}, not an absolute path")
    return tuple(values)


def is_blank(data: bytes) -> bool:
    """Return whether a file is empty, as a power cut leaves one that counts as not written."""
    return not data.strip(b"\0")
