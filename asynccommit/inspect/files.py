"""One file that a job left: read by what it says that it is, and told in facts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from asynccommit.commit.layout import ALIVE, OUTCOME, OWNER, PLAN, RECORD, STOPPED, SUCCESS
from asynccommit.errors import AsyncCommitError, ManifestError
from asynccommit.formats import commit_owner, commit_plan, commit_record
from asynccommit.formats.manifest import FileEntry
from asynccommit.formats.success import NAME as MARKER
from asynccommit.formats.success import decode_success
from asynccommit.stores.urls import Address, decode_uri

SHOWN = 100
"""How many renames are named."""

_CHUNK_NAME = re.compile(rf"{PLAN}(.+)-([0-9]+)\.json", re.ASCII)

Reader = Callable[[bytes, Address], "Inspection"]


@dataclass(frozen=True, slots=True)
class Rename:
    """One file to commit: decoded paths or, of what cannot be decoded, the texts that are there."""

    source: str
    dest: str
    size: int


@dataclass(frozen=True, slots=True)
class UploadCompletion:
    """One upload to complete: the URL of its file, its id, and the file's bytes."""

    dest: str
    upload_id: str
    size: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is at a path.

    Attributes:
        kind: ``manifest``, ``success``, ``commit record`` and the like, ``job`` or ``destination``.
        path: as a user writes it.
        facts: what is to be said of it; JSON values.
        tasks: of a job, one row a manifest.
        renames: the first of the files that a commit would move.
        uploads: the first of those that a commit would complete.
        problems: why a commit would be refused.
        parts: of a destination, its jobs and its marker.
    """

    kind: str
    path: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    tasks: Sequence[Mapping[str, Any]] = ()
    renames: Sequence[Rename] = ()
    uploads: Sequence[UploadCompletion] = ()
    problems: Sequence[str] = ()
    parts: Sequence[Inspection] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing speaks against a commit, here or in the parts."""
        return not self.problems and all(part.sound for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


def reader_of(place: Address, data: bytes) -> Reader | None:
    """Return how to read a file, by what it says that it is, then by its name.

    ``None`` for a task manifest, and for what cannot be told from one.
    """
    value = _json_of(data)
    if isinstance(value, dict):
        said = value.get("type")
        if isinstance(said, str) and said in _TYPES:
            return _TYPES[said]
        if value.get("name") == MARKER:
            return read_success
    name = place.path.rpartition("/")[2]
    return next((read for start, read in _NAMES.items() if name.startswith(start)), None)


def read_success(data: bytes, place: Address) -> Inspection:
    """Tell of a ``_SUCCESS`` or a summary. Raises ``ManifestError``."""
    if not data:
        said = "a classic committer: its marker is empty and says no more"
        return Inspection("success", str(place), {"committer": said})
    found = decode_success(data, str(place))
    counters = found.statistics.counters
    facts: dict[str, Any] = {
        "success": found.success,
        "job_id": found.job_id,
        "job_id_source": found.job_id_source,
        "date": found.date,
        "host": found.hostname,
        "committer": found.committer,
        "files": counters.get("committer_files_committed", 0),
        "bytes": counters.get("committer_bytes_committed", 0),
        "diagnostics": dict(found.diagnostics),
        "filenames": [decoded(uri) for uri in found.filenames],
    }
    return Inspection("success", str(place), facts)


def _record(data: bytes, place: Address) -> Inspection:
    found = commit_record.decode_record(data, str(place))
    facts = {
        "job_id": found.job_id,
        "attempt": found.attempt,
        "started": moment(found.started_ms),
        **_owner(found.owner),
        "lease": found.lease,
        "mode": found.mode,
        "key": found.key or "",
        "files": found.files,
        "bytes": found.bytes,
        "tasks": dict(found.tasks),
        "plan": f"{found.plan_id}, {len(found.plan)} chunks",
        "outside": list(found.outside),
    }
    return Inspection("commit record", str(place), facts)


def _owner(owner: commit_record.Owner) -> dict[str, Any]:
    return {"host": owner.host, "user": owner.user, "process": owner.process}


def _claim(data: bytes, place: Address) -> Inspection:
    found = commit_owner.decode_claim(data, str(place))
    facts = {
        "epoch": found.epoch,
        "started": moment(found.started_ms),
        **_owner(found.owner),
        "lease": found.lease,
        "why": found.why,
    }
    return Inspection("commit owner", str(place), facts)


def _stop(data: bytes, place: Address) -> Inspection:
    found = commit_owner.decode_stop(data, str(place))
    facts = {
        "epoch": found.epoch,
        "stopped": moment(found.stopped_ms),
        "stage": found.stage,
        "error": found.error,
        "files_moved": found.renamed,
    }
    return Inspection("commit stopped", str(place), facts)


def _decision(data: bytes, place: Address) -> Inspection:
    found = commit_owner.decode_decision(data, str(place))
    decided = moment(found.decided_ms)
    facts = {"outcome": found.outcome.value, "epoch": found.epoch, "decided": decided}
    return Inspection("commit outcome", str(place), facts)


def _beat(data: bytes, place: Address) -> Inspection:
    try:
        value = _json_of(data)
        facts = {"epoch": int(value["epoch"]), "beat": moment(int(value["beat"]))}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ManifestError(str(place), "is no sign of life of a commit") from error
    return Inspection("commit sign of life", str(place), facts)


def _chunk(data: bytes, place: Address) -> Inspection:
    found = commit_plan.decode_chunk(data, str(place), *_part(data, place))
    facts = {
        "plan": found.plan_id,
        "index": found.index,
        "files": len(found.files),
        "bytes": sum(size for _, _, size, _ in found.files),
        "directories": len(found.directories),
        "moved_aside": [path for path, _, _ in (*found.aside, *found.replaced)][:SHOWN],
        "replaced_files": len(found.old),
    }
    renames = [Rename(source, dest, size) for source, dest, size, _ in found.files[:SHOWN]]
    return Inspection("commit plan", str(place), facts, renames=renames)


def _part(data: bytes, place: Address) -> tuple[str, int]:
    """Return which part of which plan a file must be: as its path says, or else as it says."""
    if named := _CHUNK_NAME.fullmatch(place.path.rpartition("/")[2]):
        return named[1], int(named[2])
    value = _json_of(data)
    plan_id, index = value.get("plan"), value.get("index")
    return str(plan_id), index if isinstance(index, int) else 0


def _json_of(data: bytes) -> Any:
    """Return what JSON there is, ``None`` if there is none; lone surrogates are let through."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


_TYPES: dict[str, Reader] = {
    commit_record.TYPE: _record,
    commit_owner.CLAIM: _claim,
    commit_owner.STOPPED: _stop,
    commit_owner.OUTCOME: _decision,
    commit_owner.ALIVE: _beat,
    commit_plan.TYPE: _chunk,
}

_NAMES: dict[str, Reader] = {
    RECORD: _record,
    OWNER: _claim,
    STOPPED: _stop,
    OUTCOME: _decision,
    ALIVE: _beat,
    PLAN: _chunk,
    SUCCESS: read_success,
    "summary-": read_success,
}
"""How a damaged file is read, so that the error says what it should be: by how its name begins."""


def moment(milliseconds: int) -> str:
    """Return a time as a reader wants it, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def rename_of(entry: FileEntry) -> Rename:
    """Return a file of a manifest, decoded where it can be."""
    return Rename(decoded(entry.source), decoded(entry.dest), entry.size)


def decoded(uri: str) -> str:
    """Return the place that a URI names, or the text itself."""
    try:
        return str(decode_uri(uri))
    except AsyncCommitError:
        return uri
