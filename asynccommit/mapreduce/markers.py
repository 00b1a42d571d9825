"""Encode, decode and judge the markers of MapReduce job commits.

Three files in the job's staging directory: ``COMMIT_STARTED``, ``COMMIT_SUCCESS`` and
``COMMIT_FAIL``. Hadoop's are empty; Hadoop checks only that they exist. Ours hold JSON, so that the
owner of a marker is known; Hadoop's application master treats them like its own.

A start has ``type``, ``jobId``, ``epoch``, ``owner``, ``lease`` (seconds), ``started``
(milliseconds since the epoch of 1970) and ``repeatable``. An owner that takes a commit over writes
another start, ``COMMIT_STARTED.000002``, with the number of its own epoch. An end has ``type``,
``jobId``, ``epoch``, ``owner``, ``ended``, ``digest`` (of the committed output) and ``error``. The
heartbeats of an owner are ``COMMIT_ALIVE.000002.000001`` and so on. Readers ignore unknown
fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from asynccommit.formats.commit_owner import MAX_EPOCH
from asynccommit.formats.commit_record import Owner
from asynccommit.formats.fields import MAX_TIME, JsonFields, dump_object, load_object

STARTED = "COMMIT_STARTED"
SUCCESS = "COMMIT_SUCCESS"
FAIL = "COMMIT_FAIL"
ALIVE = "COMMIT_ALIVE"
START_TYPE = "asynccommit.MapReduceCommitStart/1"
END_TYPE = "asynccommit.MapReduceCommitEnd/1"
MAX_MARKER_BYTES = 1024 * 1024
"""Maximum number of bytes to read."""

_LATER = re.compile(rf"{STARTED}\.([0-9]{{6}})", re.ASCII)
_SIGN = re.compile(rf"{ALIVE}\.([0-9]{{6}})\.[0-9]{{6}}", re.ASCII)
_MAX_TEXT = 10_000


# --- Hadoop's application master at its start --------------------------------------------------


class Action(StrEnum):
    """The reaction of a Hadoop application master attempt to an existing job."""

    RUN = "run"
    REPEAT = "repeat"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ERROR = "error"

    @property
    def runs(self) -> bool:
        """Return whether the job is run and committed; otherwise only its end is reported."""
        return self in (Action.RUN, Action.REPEAT)

    @property
    def is_last(self) -> bool:
        """Return whether this attempt considers itself the last one."""
        return self is not Action.RUN


@dataclass(frozen=True, slots=True)
class Markers:
    """The markers that an application master checks.

    Attributes:
        staging: the user's ``.staging`` directory exists. Hadoop does not check the job's own.
        started: ``COMMIT_STARTED`` exists; the other fields likewise.
    """

    staging: bool = True
    started: bool = False
    success: bool = False
    fail: bool = False


def start_up(markers: Markers, *, repeatable: bool) -> Action:
    """Return the action of Hadoop's application master when it starts.

    Args:
        markers: existing markers.
        repeatable: value of the committer's ``isCommitJobRepeatable``.
    """
    if not markers.staging:
        return Action.ERROR
    if not markers.started:
        return Action.RUN
    if markers.success:
        return Action.SUCCEEDED
    if markers.fail:
        return Action.FAILED
    return Action.REPEAT if repeatable else Action.ERROR


# --- content of our markers -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a commit, or of its takeover by another owner.

    Attributes:
        job_id: id of the job.
        epoch: number of the owner: the attempt of the application master, which only grows.
        owner: the owner.
        lease: seconds without a heartbeat after which another owner may take over.
        started_ms: time of the start in milliseconds.
        repeatable: the commit may be repeated, whatever happened to the first attempt.
    """

    job_id: str
    epoch: int
    owner: Owner
    lease: float
    started_ms: int
    repeatable: bool


@dataclass(frozen=True, slots=True)
class End:
    """The end of a commit; it succeeded if there is no error.

    Attributes:
        job_id: id of the job.
        epoch: epoch of the owner.
        owner: the owner.
        ended_ms: time of the end in milliseconds.
        digest: digest of the committed output, as given by its committer; may be empty.
        error: error message.
    """

    job_id: str
    epoch: int
    owner: Owner
    ended_ms: int
    digest: str = ""
    error: str = ""


def later_start(epoch: int) -> str:
    """Return the name of the start marker of a later owner."""
    return f"{STARTED}.{epoch:06d}"


def sign_of_life(epoch: int, number: int) -> str:
    """Return the name of an owner's heartbeat with this number."""
    return f"{ALIVE}.{epoch:06d}.{number:06d}"


def epoch_of_start(name: str) -> int:
    """Parse the epoch in the name of a later start marker; 0 for other names."""
    found = _LATER.fullmatch(name)
    return int(found[1]) if found else 0


def epoch_of_sign(name: str) -> int:
    """Parse the epoch in the name of a heartbeat; 0 for other names."""
    found = _SIGN.fullmatch(name)
    return int(found[1]) if found else 0


def encode_start(start: Start) -> bytes:
    """Return the JSON of a start.

    Raises ``ManifestError`` if it would be unreadable.
    """
    value = {
        "type": START_TYPE,
        "jobId": start.job_id,
        "epoch": start.epoch,
        "owner": start.owner.to_json(),
        "lease": start.lease,
        "started": start.started_ms,
        "repeatable": start.repeatable,
    }
    data = dump_object(value, STARTED)
    decode_start(data, STARTED)
    return data


def decode_start(data: bytes, path: str) -> Start | None:
    """Read a start; ``None`` for an empty one, as Hadoop writes it.

    Raises ``ManifestError`` for invalid content.
    """
    if _is_empty(data):
        return None
    fields = load_object(data, path)
    fields.is_type(START_TYPE)
    return Start(
        job_id=fields.name("jobId"),
        epoch=_epoch(fields),
        owner=Owner.of(fields),
        lease=fields.seconds("lease"),
        started_ms=fields.count("started", maximum=MAX_TIME),
        repeatable=fields.boolean("repeatable"),
    )


def encode_end(end: End) -> bytes:
    """Return the JSON of an end; a long error is truncated to the size limit."""
    value: dict[str, Any] = {
        "type": END_TYPE,
        "jobId": end.job_id,
        "epoch": end.epoch,
        "owner": end.owner.to_json(),
        "ended": end.ended_ms,
        "digest": end.digest,
        "error": _plain(end.error),
    }
    data = dump_object(value, SUCCESS)
    decode_end(data, SUCCESS)
    return data


def decode_end(data: bytes, path: str) -> End | None:
    """Read an end; ``None`` for an empty one, as Hadoop writes it.

    Raises ``ManifestError`` for invalid content.
    """
    if _is_empty(data):
        return None
    fields = load_object(data, path)
    fields.is_type(END_TYPE)
    return End(
        job_id=fields.name("jobId"),
        epoch=_epoch(fields),
        owner=Owner.of(fields),
        ended_ms=fields.count("ended", maximum=MAX_TIME),
        digest=fields.any_text("digest"),
        error=fields.any_text("error"),
    )


# --- judging the markers -----------------------------------------------------------------------


class CommitVerdict(StrEnum):
    """The verdict whether an owner may commit a job, with the reason."""

    BEGIN = "begin"
    GO_ON = "go on"
    TAKE_OVER = "take over"
    COMMITTED = "committed"
    FAILED = "failed"
    OWNED = "owned"
    LATER = "later"
    UNREPEATABLE = "unrepeatable"
    STRAY = "stray"
    MISSING = "missing"

    @property
    def commits(self) -> bool:
        """Return whether the owner may commit."""
        return self in (CommitVerdict.BEGIN, CommitVerdict.GO_ON, CommitVerdict.TAKE_OVER)


@dataclass(frozen=True, slots=True)
class MarkerState:
    """The state of a job's commit, as its markers and heartbeats show it.

    Attributes:
        markers: existing markers; ``staging`` means the job's own directory here.
        start: start of the present owner; ``None`` if there is none, or if it is Hadoop's.
        success: content of ``COMMIT_SUCCESS``; ``None`` if it does not exist or is empty.
        fail: content of ``COMMIT_FAIL``, likewise.
        epoch: highest epoch of any start, 0 if there is none.
        seen: the owner's last heartbeat by the store's clock, seconds since the epoch.
    """

    markers: Markers
    start: Start | None = None
    success: End | None = None
    fail: End | None = None
    epoch: int = 0
    seen: float = 0.0

    @property
    def is_failed(self) -> bool:
        """Return whether the commit failed; a replaced owner's failure does not count."""
        return self.markers.fail and (self.fail is None or self.fail.epoch >= self.epoch)


def judge(
    standing: MarkerState, owner_id: str, epoch: int, *, repeatable: bool, expired: bool
) -> CommitVerdict:
    """Return whether an owner may commit a job.

    Args:
        standing: state of the commit.
        owner_id: owner that asks.
        epoch: attempt of the application master that asks.
        repeatable: its commit may be repeated.
        expired: the lease of the present owner is over; always false for Hadoop's, which has none.
    """
    markers, start = standing.markers, standing.start
    if not markers.staging:
        return CommitVerdict.MISSING
    if not markers.started:
        return _unstarted(standing, epoch)
    if markers.success:
        return CommitVerdict.COMMITTED
    if standing.is_failed:
        return CommitVerdict.FAILED
    if start is not None and start.owner.id == owner_id:
        return CommitVerdict.GO_ON
    if standing.epoch >= epoch:
        return CommitVerdict.LATER
    if not expired or start is None:
        return CommitVerdict.OWNED
    return (
        CommitVerdict.TAKE_OVER if repeatable and start.repeatable else CommitVerdict.UNREPEATABLE
    )


def _unstarted(standing: MarkerState, epoch: int) -> CommitVerdict:
    if standing.markers.success or standing.markers.fail:
        return CommitVerdict.STRAY  # Hadoop would ignore it, and report it after the next crash.
    return CommitVerdict.LATER if standing.epoch >= epoch else CommitVerdict.BEGIN


def _is_empty(data: bytes) -> bool:
    return not data.strip(b"\0")


def _epoch(fields: JsonFields) -> int:
    return fields.count("epoch", minimum=1, maximum=MAX_EPOCH)


def _plain(text: str) -> str:
    text = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
