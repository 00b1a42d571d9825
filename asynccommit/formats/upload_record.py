"""The record, outcome and intent files of a job that commits uploads.

All are JSON with ``type``; times are milliseconds since the epoch. Readers ignore unknown fields.

- The record is written before the first upload is completed: ``jobId``, ``uuid``, ``attempt``,
  ``committer``, ``mode``, ``key``, ``options``, ``madeDestination``, ``owner``, ``started``,
  ``files``, ``bytes``, ``digest`` (of all sets), ``sets`` [[name, digest, uploads]], ``planId`` and
  ``plan`` (a digest of each of its chunks).
- The outcome is the final decision how the commit ends: ``outcome`` (``committed`` or
  ``rollback``), ``commit`` (the id of the commit), ``owner`` (the id of the owner that decided),
  ``decided``.
- An intent is written before the first part of its uploads: ``jobId``, ``taskAttempt``,
  ``created``, ``uploads`` [[key, upload id]].
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.commit_record import Option, Owner, digests_of, is_digest, options_of
from asynccommit.formats.fields import (
    MAX_TIME,
    JsonFields,
    are_paths,
    dump_object,
    kind_of,
    load_object,
)
from asynccommit.formats.tables import are_names, are_sizes, are_words

RECORD = "asynccommit.UploadRecord/1"
OUTCOME = "asynccommit.UploadOutcome/1"
INTENT = "asynccommit.UploadIntent/1"
MAX_RECORD_BYTES = 64 * 1024 * 1024
MAX_OUTCOME_BYTES = 1024 * 1024
MAX_INTENT_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes to read."""


class SetRow(NamedTuple):
    """One pending set that a commit has accepted.

    Attributes:
        name: name of its file in the directory of sets.
        digest: ``sha256:`` and the hexadecimal digest of its bytes.
        uploads: number of uploads in it.
    """

    name: str
    digest: str
    uploads: int


@dataclass(frozen=True, slots=True)
class UploadRecord:
    """The statement that an upload commit has begun: owner and extent.

    Attributes:
        job_id: id of the job.
        uuid: unique id of the job, which its files contain.
        attempt: number of the job attempt.
        committer: Hadoop's name for the committer that the tasks wrote with.
        mode: treatment of existing data at the destination.
        owner: the owner that began it.
        started_ms: when the commit began, in milliseconds since the epoch.
        files: number of uploads to complete.
        bytes: total length of the uploads.
        sets: the accepted sets, by name.
        digest: digest over all sets: ``digest_of_sets``.
        plan_id: id of the plan, which its files are named by.
        plan: the digest of each chunk of the plan, in order.
        key: the user's name for this piece of work, the same when it is run again.
        options: the options that determine how the commit continues, by name.
        made_destination: whether the job made the destination, so that a rollback may remove it.
    """

    job_id: str
    uuid: str
    attempt: int
    committer: str
    mode: str
    owner: Owner
    started_ms: int
    files: int
    bytes: int
    sets: tuple[SetRow, ...]
    digest: str
    plan_id: str
    plan: tuple[str, ...] = ()
    key: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    made_destination: bool = False


@dataclass(frozen=True, slots=True)
class UploadOutcome:
    """The final outcome of an upload commit; there is only one.

    Attributes:
        outcome: committed or rolled back.
        commit: the id of the commit: the ``plan_id`` of its record, or empty if there is none.
        owner_id: id of the owner that decided.
        decided_ms: when it was decided.
    """

    outcome: Outcome
    commit: str
    owner_id: str
    decided_ms: int


class IntendedUpload(NamedTuple):
    """One upload of a task attempt: the key in the bucket and the id."""

    key: str
    upload_id: str


@dataclass(frozen=True, slots=True)
class UploadIntent:
    """The uploads of a task attempt, recorded in case it is killed.

    Attributes:
        job_id: the job's unique id.
        task_attempt: the task attempt's id.
        uploads: the uploads that were begun.
        created_ms: when this was written.
    """

    job_id: str
    task_attempt: str
    uploads: tuple[IntendedUpload, ...]
    created_ms: int


def digest_of_sets(sets: Iterable[SetRow]) -> str:
    """Return one digest over all sets, independent of their order."""
    whole = hashlib.sha256()
    for name, digest, uploads in sorted(sets):
        line = f"{name}\t{digest}\t{uploads}\n"
        whole.update(line.encode("utf-8", "surrogatepass"))
    return "sha256:" + whole.hexdigest()


def encode_upload_record(record: UploadRecord) -> bytes:
    """Return the JSON of a record.

    Raises ``ManifestError`` if it is invalid.
    """
    value: dict[str, Any] = {
        "type": RECORD,
        "jobId": record.job_id,
        "uuid": record.uuid,
        "attempt": record.attempt,
        "committer": record.committer,
        "mode": record.mode,
        "key": record.key,
        "options": dict(record.options),
        "madeDestination": record.made_destination,
        "owner": record.owner.to_json(),
        "started": record.started_ms,
        "files": record.files,
        "bytes": record.bytes,
        "digest": record.digest,
        "planId": record.plan_id,
        "plan": list(record.plan),
        "sets": [list(row) for row in record.sets],
    }
    return _checked(value, "commit-record.json", decode_upload_record)


def decode_upload_record(data: bytes, path: str) -> UploadRecord:
    """Read a record. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path)
    fields.is_type(RECORD)
    sets = _sets(fields)
    record = UploadRecord(
        job_id=fields.name("jobId"),
        uuid=fields.name("uuid"),
        attempt=fields.count("attempt"),
        committer=fields.text("committer"),
        mode=fields.text("mode"),
        owner=Owner.of(fields),
        started_ms=fields.count("started", maximum=MAX_TIME),
        files=fields.count("files"),
        bytes=fields.count("bytes"),
        sets=sets,
        digest=fields.text("digest"),
        plan_id=fields.name("planId"),
        plan=digests_of(fields, "plan"),
        key=fields.optional("key"),
        options=options_of(fields),
        made_destination=fields.boolean("madeDestination"),
    )
    _check_sums(fields, record)
    return record


def encode_upload_outcome(outcome: UploadOutcome) -> bytes:
    """Return the JSON of an outcome.

    Raises ``ManifestError`` if it is invalid.
    """
    value: dict[str, Any] = {
        "type": OUTCOME,
        "outcome": outcome.outcome.value,
        "commit": outcome.commit,
        "owner": outcome.owner_id,
        "decided": outcome.decided_ms,
    }
    return _checked(value, "commit-outcome.json", decode_upload_outcome)


def decode_upload_outcome(data: bytes, path: str) -> UploadOutcome:
    """Read an outcome. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path)
    fields.is_type(OUTCOME)
    value = fields.get("outcome")
    try:
        outcome = Outcome(value)
    except ValueError:
        expected = " or ".join(each.value for each in Outcome)
        raise fields.wrong("outcome", f"is {kind_of(value)}, not {expected}") from None
    return UploadOutcome(
        outcome=outcome,
        commit=fields.any_text("commit"),
        owner_id=fields.text("owner"),
        decided_ms=fields.count("decided", maximum=MAX_TIME),
    )


def encode_upload_intent(intent: UploadIntent) -> bytes:
    """Return the JSON of an intent.

    Raises ``ManifestError`` if it is invalid.
    """
    value: dict[str, Any] = {
        "type": INTENT,
        "jobId": intent.job_id,
        "taskAttempt": intent.task_attempt,
        "created": intent.created_ms,
        "uploads": [list(row) for row in intent.uploads],
    }
    return _checked(value, "intent.json", decode_upload_intent)


def decode_upload_intent(data: bytes, path: str) -> UploadIntent:
    """Read an intent. Raises ``ManifestError`` for anything else.

    The caller must check that the keys belong to the job.
    """
    fields = load_object(data, path)
    fields.is_type(INTENT)
    return UploadIntent(
        job_id=fields.name("jobId"),
        task_attempt=fields.name("taskAttempt"),
        uploads=tuple(_intended(fields, *row) for row in enumerate(fields.rows("uploads"))),
        created_ms=fields.count("created", maximum=MAX_TIME),
    )


def _checked(value: Mapping[str, Any], path: str, decode: Callable[[bytes, str], object]) -> bytes:
    data = dump_object(value, path)
    decode(data, path)
    return data


def _check_sums(fields: JsonFields, record: UploadRecord) -> None:
    if len({row.name for row in record.sets}) != len(record.sets):
        raise fields.wrong("sets", "lists a set twice")
    if record.digest != digest_of_sets(record.sets):
        raise fields.wrong("digest", "is not that of the sets")
    if record.files != sum(row.uploads for row in record.sets):
        raise fields.wrong("files", "is not the number of uploads in the sets")


def _sets(fields: JsonFields) -> tuple[SetRow, ...]:
    return tuple(_set_row(fields, index, row) for index, row in enumerate(fields.rows("sets")))


def _set_row(fields: JsonFields, index: int, row: object) -> SetRow:
    match row:
        case [str() as name, str() as digest, int() as uploads]:
            if are_names([name]) and are_sizes([uploads]) and is_digest(digest):
                return SetRow(name, digest, uploads)
    raise fields.wrong(f"sets[{index}]", "is not a name, a digest and a number of uploads")


def _intended(fields: JsonFields, index: int, row: object) -> IntendedUpload:
    match row:
        case [str() as key, str() as upload_id]:
            if are_paths([key]) and are_words([upload_id]):
                return IntendedUpload(key, upload_id)
    raise fields.wrong(f"uploads[{index}]", "is not a key and an upload id")
