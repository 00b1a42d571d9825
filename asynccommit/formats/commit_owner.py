"""The claim, heartbeat, stop and decision files of the owners of a commit.

All are JSON with ``type``, ``epoch`` and times in milliseconds since the epoch of 1970; readers
ignore unknown fields. A claim has ``owner``, ``lease`` (seconds), ``started``, ``why``. A heartbeat
has ``owner`` (the id), ``beat``. A stop has ``owner`` (the id), ``stopped``, ``stage``, ``error``,
``renamed``. The decision has ``outcome`` (``committed`` or ``rollback``), ``owner`` (the id),
``decided``, ``commit`` (the id of the commit).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from asynccommit.errors import ManifestError
from asynccommit.formats.commit_record import Owner
from asynccommit.formats.fields import MAX_TIME, JsonFields, dump_object, kind_of, load_object
from asynccommit.formats.job_owner import JOB_OWNER

CLAIM = "asynccommit.CommitOwner/1"
ALIVE = "asynccommit.CommitAlive/1"
STOPPED = "asynccommit.CommitStopped/1"
OUTCOME = "asynccommit.CommitOutcome/1"
MAX_EPOCH = 999_999
"""The maximum that fits into the file names."""
MAX_OWNER_BYTES = 1024 * 1024
"""Maximum number of bytes to read."""
_MAX_TEXT = 10_000


class Outcome(StrEnum):
    """The end of a commit: committed or rolled back."""

    COMMITTED = "committed"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of an owner that has taken a commit over.

    Attributes:
        epoch: number of this owner; the commit record is the claim of the first.
        owner: the owner's identity.
        lease: seconds without a heartbeat after which another owner may take over.
        started_ms: when the owner took over.
        why: the reason why the commit could be taken over, for people.
    """

    epoch: int
    owner: Owner
    lease: float
    started_ms: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class OwnerStop:
    """The statement that an owner has stopped and will do nothing more.

    Attributes:
        epoch: number of the owner.
        owner_id: id of the owner.
        stopped_ms: when it stopped.
        stage: the stage that failed, by its Hadoop statistic name.
        error: the error, for people.
        renamed: number of files that it has renamed.
    """

    epoch: int
    owner_id: str
    stopped_ms: int
    stage: str = ""
    error: str = ""
    renamed: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The final decision how a commit ends; there is only one.

    Attributes:
        outcome: committed or rolled back.
        epoch: number of the owner that decided.
        owner_id: id of that owner.
        decided_ms: when it was decided.
        commit: the id of the commit.
    """

    outcome: Outcome
    epoch: int
    owner_id: str
    decided_ms: int
    commit: str


def encode_claim(claim: Claim) -> bytes:
    """Return the JSON of a claim. Raises ``ManifestError`` if it is invalid."""
    value = {
        "type": CLAIM,
        "epoch": claim.epoch,
        "owner": claim.owner.to_json(),
        "lease": claim.lease,
        "started": claim.started_ms,
        "why": _plain(claim.why),
    }
    data = dump_object(value, "commit-owner.json")
    decode_claim(data, "commit-owner.json")
    return data


def decode_claim(data: bytes, path: str) -> Claim:
    """Read a claim. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path)
    fields.is_type(CLAIM)
    return Claim(
        epoch=_epoch(fields),
        owner=Owner.of(fields),
        lease=fields.seconds("lease"),
        started_ms=_time(fields, "started"),
        why=fields.any_text("why"),
    )


def encode_beat(epoch: int, owner_id: str, beat_ms: int) -> bytes:
    """Return the JSON of a heartbeat; only people read it."""
    value = {"type": ALIVE, "epoch": epoch, "owner": owner_id, "beat": beat_ms}
    return dump_object(value, "commit-alive.json")


def is_stand_in(data: bytes) -> bool:
    """Return whether a stop file is a heartbeat, renamed on a full disk."""
    try:
        fields = load_object(data, "commit-stopped.json")
    except ManifestError:
        return False
    return fields.get("type") in (ALIVE, JOB_OWNER)


def encode_stop(stop: OwnerStop) -> bytes:
    """Return the JSON of a stop.

    Texts are truncated, so that it can be written whatever went wrong.
    """
    value = {
        "type": STOPPED,
        "epoch": stop.epoch,
        "owner": stop.owner_id,
        "stopped": stop.stopped_ms,
        "stage": _plain(stop.stage),
        "error": _plain(stop.error),
        "renamed": stop.renamed,
    }
    return dump_object(value, "commit-stopped.json")


def decode_stop(data: bytes, path: str) -> OwnerStop:
    """Read a stop. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path)
    fields.is_type(STOPPED)
    return OwnerStop(
        epoch=_epoch(fields),
        owner_id=fields.text("owner"),
        stopped_ms=_time(fields, "stopped"),
        stage=fields.any_text("stage"),
        error=fields.any_text("error"),
        renamed=fields.count("renamed"),
    )


def encode_decision(decision: Decision) -> bytes:
    """Return the JSON of the decision.

    Raises ``ManifestError`` if it is invalid.
    """
    value: dict[str, Any] = {
        "type": OUTCOME,
        "outcome": decision.outcome.value,
        "epoch": decision.epoch,
        "owner": decision.owner_id,
        "decided": decision.decided_ms,
        "commit": decision.commit,
    }
    data = dump_object(value, "commit-outcome.json")
    decode_decision(data, "commit-outcome.json")
    return data


def decode_decision(data: bytes, path: str) -> Decision:
    """Read the decision. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path)
    fields.is_type(OUTCOME)
    return Decision(
        outcome=_outcome(fields),
        epoch=_epoch(fields),
        owner_id=fields.text("owner"),
        decided_ms=_time(fields, "decided"),
        commit=fields.text("commit"),
    )


def _outcome(fields: JsonFields) -> Outcome:
    value = fields.get("outcome")
    try:
        return Outcome(value)
    except ValueError:
        expected = " or ".join(outcome.value for outcome in Outcome)
        raise fields.wrong("outcome", f"is {kind_of(value)}, not {expected}") from None


def _epoch(fields: JsonFields) -> int:
    return fields.count("epoch", minimum=1, maximum=MAX_EPOCH)


def _time(fields: JsonFields, key: str) -> int:
    return fields.count(key, maximum=MAX_TIME)


def _plain(text: str) -> str:
    """Return a text that can be encoded, whatever file names are in it."""
    text = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
