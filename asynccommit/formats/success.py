"""The ``_SUCCESS`` marker and the summary of a job, in one format.

The format is that of Hadoop's manifest committer and S3A committers, so that tools written for
either can read it. A classic committer leaves a ``_SUCCESS`` of zero bytes instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from asynccommit.errors import ManifestError
from asynccommit.formats.fields import JsonFields, as_integer, load_object
from asynccommit.formats.statistics import Statistics

NAME = "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
COMMITTER = "org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitter"
MAX_FILENAMES = 100
"""Maximum number of file names that are written."""
MAX_SUCCESS_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes to read."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_TIMESTAMP = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class SuccessData:
    """The result of a job, as written to the marker.

    Attributes:
        timestamp_ms: milliseconds since the epoch; the year is below 10000.
        job_id_source: ``"JobID"`` or the Spark option that set the id.
        diagnostics: ``principal``, ``stage``, ``exception``, ...
        filenames: URI texts of the first files committed.
    """

    timestamp_ms: int
    success: bool
    hostname: str
    committer: str
    job_id: str
    job_id_source: str
    description: str | None = None
    metrics: Mapping[str, int] = field(default_factory=dict)
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    filenames: Sequence[str] = ()
    statistics: Statistics = field(default_factory=Statistics)
    state: str | None = None
    stage: str | None = None

    @property
    def date(self) -> str:
        """Return the timestamp as Java's ``ZonedDateTime`` writes it, in UTC."""
        when = _EPOCH + timedelta(milliseconds=self.timestamp_ms)
        return f"{when:%Y-%m-%dT%H:%M:%S}.{self.timestamp_ms % 1000:03d}Z[Etc/UTC]"


def encode_success(data: SuccessData, *, full: bool = True) -> bytes:
    """Return the bytes of the file, with the fields in Hadoop's order.

    Args:
        data: the content; only the first ``MAX_FILENAMES`` file names are written.
        full: whether to write statistics that are zero too, as Hadoop does.

    Raises:
        ManifestError: a text contains a lone surrogate, or a number exceeds 64 bits.
    """
    value = {
        "name": NAME,
        "timestamp": data.timestamp_ms,
        "success": data.success,
        "date": data.date,
        "hostname": data.hostname,
        "committer": data.committer,
        "description": data.description,
        "jobId": data.job_id,
        "jobIdSource": data.job_id_source,
        "metrics": dict(data.metrics),
        "diagnostics": dict(data.diagnostics),
        "filenames": list(data.filenames[:MAX_FILENAMES]),
        "iostatistics": data.statistics.to_json(full),
        "state": data.state,
        "stage": data.stage,
    }
    written = {key: item for key, item in value.items() if item is not None}
    try:
        return orjson.dumps(written, option=orjson.OPT_INDENT_2)
    except orjson.JSONEncodeError as error:
        raise ManifestError("_SUCCESS", f"cannot be written: {error}") from error


def decode_success(data: bytes, path: str) -> SuccessData:
    """Read a marker or summary from any writer; missing fields are empty.

    Args:
        data: the content.
        path: path of the file, for messages.

    Raises:
        ManifestError: it is the empty marker of a classic committer, or not in this format.
    """
    if not data:
        raise ManifestError(path, "empty: written by a classic committer, without details")
    fields = load_object(data, path)
    if fields.text("name", "") != NAME:
        raise fields.wrong("name", f"is {fields.get('name')!r:.200}, not {NAME!r}")
    return SuccessData(
        timestamp_ms=_timestamp(fields),
        success=fields.boolean("success", True),
        hostname=fields.optional("hostname") or "",
        committer=fields.optional("committer") or "",
        description=fields.optional("description"),
        job_id=fields.optional("jobId") or "",
        job_id_source=fields.optional("jobIdSource") or "",
        metrics=_metrics(fields),
        diagnostics=fields.texts("diagnostics"),
        filenames=_filenames(fields),
        statistics=Statistics.from_json(fields.get("iostatistics")),
        state=fields.optional("state"),
        stage=fields.optional("stage"),
    )


def _timestamp(fields: JsonFields) -> int:
    value = fields.integer("timestamp", minimum=0)
    if value > _MAX_TIMESTAMP:
        raise fields.wrong("timestamp", f"is {value}, later than the year 9999")
    return value


def _metrics(fields: JsonFields) -> dict[str, int]:
    metrics: dict[str, int] = {}
    for name, value in fields.object("metrics").items():
        number = as_integer(value)
        if number is None:
            raise fields.wrong(f"metrics.{name[:100]!r}", "is not an integer")
        metrics[name] = number
    return metrics


def _filenames(fields: JsonFields) -> list[str]:
    names: list[Any] = fields.items("filenames")
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise fields.wrong(f"filenames[{index}]", "is not a string")
    return names


COMMITTERS = frozenset({"magic", "directory", "partitioned"})
"""The values of ``fs.s3a.committer.name`` that tools compare with."""


def encode_s3a_success(data: SuccessData) -> bytes:
    """Return the bytes of the marker of Hadoop's S3A committers.

    ``committer`` is the name used by ``fs.s3a.committer.name``, and ``filenames`` are keys with a
    leading slash, not URIs.

    Args:
        data: the content; its file names are keys or absolute paths, of which the first
            ``success.MAX_FILENAMES`` are written.

    Raises:
        ManifestError: the committer is not one of S3A's, or a text cannot be encoded.
    """
    if data.committer not in COMMITTERS:
        expected = ", ".join(sorted(COMMITTERS))
        raise ManifestError(
            "_SUCCESS", f"committer is {data.committer[:100]!r}: expected one of {expected}"
        )
    names = [f"/{name.lstrip('/')}" for name in data.filenames[:MAX_FILENAMES]]
    return encode_success(replace(data, filenames=names), full=False)
