"""The ``.pending`` file of Hadoop's S3A committers: one open upload.

It is ``SinglePendingCommit`` of version 2, JSON. Etags are strings in Hadoop up to 3.4.1, and
objects that also contain a checksum from 3.4.2 on. The version is 2 in both forms, and each release
refuses the other's form. Readers here accept both; a user who writes for an older Hadoop must set
the form. Parts have no number: the first is 1. Readers ignore unknown fields, and take the last
value of a duplicate key, as Jackson does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from asynccommit.errors import ManifestError, UrlError
from asynccommit.formats.fields import (
    MAX_TIME,
    JsonFields,
    are_paths,
    check_size,
    dump_object,
    kind_of,
    load_object,
)
from asynccommit.formats.statistics import Statistics
from asynccommit.formats.tables import are_words
from asynccommit.options.uploads import EtagForm
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import decode_uri

VERSION = 2
SUFFIX = ".pending"
MAX_PENDING_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes to read."""
MAX_PARTS = 10_000
"""Maximum number of parts of an upload, as on S3."""
MAX_KEY_BYTES = 1024
"""Maximum length of a key in UTF-8, as on S3."""
TOKEN = "asynccommit.token"
"""Our key in the extra data: the token of the upload and its file."""
_TOKEN = re.compile(r"[0-9A-Za-z-]{1,64}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """One file of a task, with everything needed to complete its upload.

    Attributes:
        bucket: name of the bucket.
        key: key of the file in the bucket; a plain relative path.
        upload_id: id that the service gave the upload.
        parts: all of them, in order; at least one.
        length: size of the file in bytes.
        uri: URI of the file, percent-encoded; Hadoop's magic committer writes the marker's URI
            here.
        job_id: the job's unique id, or empty.
        task_id: the task attempt's id, or empty.
        text: a note for people.
        created: milliseconds since the epoch.
        filename: path of the file that this was read from; the value in the file is ignored.
        extra: further fields from the writer.
    """

    bucket: str
    key: str
    upload_id: str
    parts: tuple[Part, ...]
    length: int
    uri: str
    job_id: str = ""
    task_id: str = ""
    text: str = ""
    created: int = 0
    filename: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def token(self) -> str:
        """Return the token that marks the future file.

        It is empty if the writer gave none, as Hadoop does.
        """
        return self.extra.get(TOKEN, "")


def is_token(text: str) -> bool:
    """Return whether a text is valid as the token of an upload."""
    return _TOKEN.fullmatch(text) is not None


def encode_pending(commit: PendingCommit, form: EtagForm = EtagForm.OBJECTS) -> bytes:
    """Return the JSON of a ``.pending`` file.

    Args:
        commit: the commit to encode.
        form: form of the etags; the string form leaves out the checksums.

    Raises:
        ManifestError: Hadoop, or this package, could not read the result.
    """
    path = commit.key + SUFFIX
    check_uri(commit, path)
    data = dump_object(commit_to_json(commit, form), path, indent=False)
    decode_pending(data, path)
    return data


def decode_pending(data: bytes, path: str) -> PendingCommit:
    """Read a ``.pending`` file and check everything in it.

    Args:
        data: the content.
        path: path of the file, for messages; it becomes the ``filename``, as in Hadoop.

    Raises:
        ManifestError: names the field that is invalid.
    """
    check_size(data, path, MAX_PENDING_BYTES)
    return commit_of(load_object(data, path), filename=path)


def commit_to_json(commit: PendingCommit, form: EtagForm) -> dict[str, Any]:
    """Return the JSON object of one commit, with the fields in Hadoop's order."""
    if form is EtagForm.STRINGS:
        etags: list[Any] = [part.etag for part in commit.parts]
    else:
        etags = [_etag_object(part) for part in commit.parts]
    return {
        "version": VERSION,
        "filename": commit.filename,
        "uri": commit.uri,
        "uploadId": commit.upload_id,
        "bucket": commit.bucket,
        "destinationKey": commit.key,
        "created": commit.created,
        "saved": commit.created,
        "date": _java_date(commit.created),
        "jobId": commit.job_id,
        "taskId": commit.task_id,
        "text": commit.text,
        "etags": etags,
        "extraData": dict(commit.extra),
        "length": commit.length,
        "iostatistics": Statistics().to_json(full=False),
        "partCount": len(commit.parts),
    }


def commit_of(fields: JsonFields, filename: str | None = None) -> PendingCommit:
    """Read one commit from its JSON object.

    Args:
        fields: the object.
        filename: path of the file, if the commit has a file of its own.

    Raises:
        ManifestError: names the field that is invalid.
    """
    check_version(fields, VERSION)
    extra = {} if fields.get("extraData") is None else fields.texts("extraData")
    if TOKEN in extra and not is_token(extra[TOKEN]):
        raise fields.wrong("extraData", f"{TOKEN} is not a token")
    return PendingCommit(
        bucket=fields.text("bucket"),
        key=_key(fields),
        upload_id=_upload_id(fields),
        parts=_parts(fields),
        length=fields.integer("length", minimum=0),
        uri=fields.text("uri"),
        job_id=fields.optional("jobId") or "",
        task_id=fields.optional("taskId") or "",
        text=fields.optional("text") or "",
        created=_created(fields),
        filename=filename or fields.optional("filename"),
        extra=extra,
    )


def check_uri(commit: PendingCommit, path: str) -> None:
    """Raise ``ManifestError`` for a ``uri`` that Java could not read."""
    try:
        decode_uri(commit.uri)
    except UrlError as error:
        raise JsonFields({}, path).wrong("uri", f"cannot be written: {error}") from None


def check_version(fields: JsonFields, version: int) -> None:
    """Raise an error for another version than this; a missing one passes, as in Hadoop."""
    found = fields.integer("version", version)
    if found != version:
        raise fields.wrong("version", f"is {found}, not {version}: another release wrote it")


def _upload_id(fields: JsonFields) -> str:
    upload_id = fields.text("uploadId")
    if not are_words([upload_id]):
        raise fields.wrong("uploadId", "holds a control character")
    return upload_id


def _key(fields: JsonFields) -> str:
    key = fields.text("destinationKey")
    if not are_paths([key]):
        raise fields.wrong("destinationKey", f"is {key[:200]!r}, not a plain relative path")
    if len(key.encode()) > MAX_KEY_BYTES:
        raise fields.wrong("destinationKey", f"is longer than {MAX_KEY_BYTES} bytes")
    return key


def _created(fields: JsonFields) -> int:
    created = fields.integer("created", minimum=0)
    if created > MAX_TIME:
        raise fields.wrong("created", f"is {created}, later than the year 9999")
    return created


def _parts(fields: JsonFields) -> tuple[Part, ...]:
    etags = fields.rows("etags")
    if not etags:
        raise fields.wrong("etags", "is empty: an upload without parts cannot be completed")
    if len(etags) > MAX_PARTS:
        raise fields.wrong("etags", f"holds {len(etags)} parts, more than {MAX_PARTS}")
    parts = tuple(map(_part, etags))
    if not _are_parts(parts):
        raise _wrong_part(fields, etags)
    return parts


def _part(value: Any) -> Part:
    if not isinstance(value, dict):
        return Part(value)
    algorithm, checksum = value.get("checksumAlgorithm"), value.get("checksum")
    return Part(value.get("etag", ""), algorithm or "", checksum or "")


def _are_parts(parts: Sequence[Part]) -> bool:
    """Return whether all are valid parts, checked in one pass for speed."""
    etags, algorithms, checksums = zip(*parts, strict=True)
    if not are_words(etags) or not all(etag.strip('"') for etag in etags):
        return False
    if not any(algorithms) and not any(checksums):
        return True
    with_one = [part for part in parts if part.algorithm or part.checksum]
    return are_words([text for part in with_one for text in part])


def _wrong_part(fields: JsonFields, etags: Sequence[Any]) -> ManifestError:
    index = next(index for index, etag in enumerate(etags) if not _are_parts([_part(etag)]))
    etag: Any = _part(etags[index]).etag
    where = f"etags[{index}]"
    if not isinstance(etag, str):
        return fields.wrong(where, f"is {kind_of(etags[index])}, not an etag")
    if not etag.strip('"'):
        return fields.wrong(where, "is empty")
    if not are_words([etag]):
        return fields.wrong(where, "holds a control character")
    return fields.wrong(where, "does not have both a checksum and its algorithm, as plain text")


def _etag_object(part: Part) -> dict[str, str | None]:
    return {
        "etag": part.etag,
        "checksumAlgorithm": part.algorithm or None,
        "checksum": part.checksum or None,
    }


def _java_date(millis: int) -> str:
    """Return a time in the format of Java's ``Date``, in UTC and English on every system."""
    when = _EPOCH + timedelta(milliseconds=max(0, min(millis, MAX_TIME)))
    day, month = _DAYS[when.weekday()], _MONTHS[when.month - 1]
    return f"{day} {month} {when:%d %H:%M:%S} UTC {when.year}"
