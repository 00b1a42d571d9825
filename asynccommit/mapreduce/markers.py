"""The markers by which a MapReduce application master says how far the commit of its job is.

Three files in the job's staging directory: ``COMMIT_STARTED``, ``COMMIT_SUCCESS`` and
``COMMIT_FAIL``. Hadoop's are empty, and only looked for. Ours hold JSON, so that whoever finds one
knows whose it is; Hadoop's application master reads the same from them as from its own.

A start has ``type``, ``jobId``, ``epoch``, ``owner``, ``lease`` (seconds), ``started``
(milliseconds since the epoch of 1970) and ``repeatable``; whoever takes a commit over writes one
more, ``COMMIT_STARTED.000002``, with the number of its own epoch. An end has ``type``, ``jobId``,
``epoch``, ``owner``, ``ended``, ``digest`` (of what was committed) and ``error``. An owner's signs
of life are ``COMMIT_ALIVE.000002.000001`` and so on. Readers ignore fields that they do not know.
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
"""The most that a reader should ask the store for."""

_LATER = re.compile(rf"{STARTED}\.([0-9]{{6}})", re.ASCII)
_SIGN = re.compile(rf"{ALIVE}\.([0-9]{{6}})\.[0-9]{{6}}", re.ASCII)
_MAX_TEXT = 10_000


# --- what Hadoop's application master does when it starts --------------------------------------


class Action(StrEnum):
    """What an attempt of Hadoop's application master does with a job that it finds."""

    RUN = "run"
    REPEAT = "repeat"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ERROR = "error"

    @property
    def runs(self) -> bool:
        """Whether the job is run, and committed; else only its end is reported."""
        return self in (Action.RUN, Action.REPEAT)

    @property
    def is_last(self) -> bool:
        """Whether this attempt takes itself for the last: none comes after it."""
        return self is not Action.RUN


@dataclass(frozen=True, slots=True)
class Markers:
    """What an application master looks for.

    Attributes:
        staging: the user's ``.staging`` directory is there. Nobody asks for the job's own.
        started: ``COMMIT_STARTED`` is there, and so on.
    """

    staging: bool = True
    started: bool = False
    success: bool = False
    fail: bool = False


def start_up(markers: Markers, *, repeatable: bool) -> Action:
    """Return what Hadoop's application master does when it starts.

    Args:
        markers: what is there.
        repeatable: what the job's committer says of its commit (``isCommitJobRepeatable``).
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


# --- what ours say ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """That somebody commits a job, or has taken that over.

    Attributes:
        job_id: the job.
        epoch: which owner this is: the attempt of the application master, which only grows.
        owner: who it is.
        lease: seconds without a sign of life after which another may go on.
        started_ms: when.
        repeatable: the commit may be done again, whatever became of the first try.
    """

    job_id: str
    epoch: int
    owner: Owner
    lease: float
    started_ms: int
    repeatable: bool


@dataclass(frozen=True, slots=True)
class End:
    """How a commit has ended: well, if there is no error.

    Attributes:
        job_id: the job.
        epoch: the owner's.
        owner: who it was.
        ended_ms: when.
        digest: of what was committed, as its committer gives it; may be empty.
        error: what went wrong, for people.
    """

    job_id: str
    epoch: int
    owner: Owner
    ended_ms: int
    digest: str = ""
    error: str = ""


def later_start(epoch: int) -> str:
    """Return the name of the start of an owner that is not the first."""
    return f"{STARTED}.{epoch:06d}"


def sign_of_life(epoch: int, number: int) -> str:
    """Return the name of an owner's so many-th sign of life."""
    return f"{ALIVE}.{epoch:06d}.{number:06d}"


def epoch_of_start(name: str) -> int:
    """Return the epoch that the name of a later owner's start says, 0 for another name."""
    found = _LATER.fullmatch(name)
    return int(found[1]) if found else 0


def epoch_of_sign(name: str) -> int:
    """Return the epoch that the name of a sign of life says, 0 for another name."""
    found = _SIGN.fullmatch(name)
    return int(found[1]) if found else 0


def encode_start(start: Start) -> bytes:
    """Return the JSON of a start. Raises ``ManifestError`` if it could not be read."""
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

    Raises ``ManifestError`` for anything else.
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
    """Return the JSON of an end; its error is cut, so that it can be written whatever it says."""
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

    Raises ``ManifestError`` for anything else.
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


# --- what ours do with what they find ----------------------------------------------------------


class CommitVerdict(StrEnum):
    """Whether an owner may commit a job, and why not."""

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
        """Whether it may."""
        return self in (CommitVerdict.BEGIN, CommitVerdict.GO_ON, CommitVerdict.TAKE_OVER)


@dataclass(frozen=True, slots=True)
class MarkerState:
    """What is known of the commit of a job.

    Attributes:
        markers: which of the three are there; ``staging`` here is the job's own directory.
        start: the start of the present owner; ``None`` if there is none, or it is Hadoop's.
        success: what ``COMMIT_SUCCESS`` says; ``None`` if it is not there, or empty.
        fail: the same of ``COMMIT_FAIL``.
        epoch: the highest that any start names, 0 if none does.
        seen: the owner's last sign of life by the store's clock, seconds since the epoch.
    """

    markers: Markers
    start: Start | None = None
    success: End | None = None
    fail: End | None = None
    epoch: int = 0
    seen: float = 0.0

    @property
    def is_failed(self) -> bool:
        """Whether the commit has failed: what an owner says who was replaced does not count."""
        return self.markers.fail and (self.fail is None or self.fail.epoch >= self.epoch)


def judge(
    standing: MarkerState, owner_id: str, epoch: int, *, repeatable: bool, expired: bool
) -> CommitVerdict:
    """Return whether an owner may commit a job.

    Args:
        standing: what is there.
        owner_id: who asks.
        epoch: the attempt of the application master that asks.
        repeatable: its commit may be done again.
        expired: the present owner's lease is over; never so of Hadoop's, which has none.
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
        return CommitVerdict.STRAY  # Hadoop would pass it over, and report it after the next crash
    return CommitVerdict.LATER if standing.epoch >= epoch else CommitVerdict.BEGIN


def _is_empty(data: bytes) -> bool:
    return not data.strip(b"\0")


def _epoch(fields: JsonFields) -> int:
    return fields.count("epoch", minimum=1, maximum=MAX_EPOCH)


def _plain(text: str) -> str:
    text = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
