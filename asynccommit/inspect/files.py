"""Read one file that a job left, and return facts about it.

The type that the file declares selects the reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from asynccommit.commit.layouts.layout import ALIVE, OUTCOME, OWNER, PLAN, RECORD, STOPPED, SUCCESS
from asynccommit.errors import AsyncCommitError, ManifestError
from asynccommit.formats import commit_owner, commit_plan, commit_record, plan_index
from asynccommit.formats.course import COURSE
from asynccommit.formats.manifest import FileEntry
from asynccommit.formats.success import NAME as MARKER
from asynccommit.formats.success import decode_success
from asynccommit.stores.urls import Address, decode_uri

SHOWN = 100
"""The number of renames that are listed."""

_CHUNK_NAME = re.compile(rf"{PLAN}(.+)-([0-9]+)\.json", re.ASCII)

Reader = Callable[[bytes, Address], "Inspection"]


@dataclass(frozen=True, slots=True)
class Rename:
    """One file to commit: decoded paths, or the original texts."""

    source: str
    dest: str
    size: int


@dataclass(frozen=True, slots=True)
class UploadCompletion:
    """One upload to complete: its file's URL and size, and its id."""

    dest: str
    upload_id: str
    size: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of inspecting a path.

    Attributes:
        kind: ``manifest``, ``success``, ``commit record`` and the like, ``job`` or ``destination``.
        path: the path as a user writes it.
        facts: names and JSON values to show.
        tasks: for a job, one row per manifest.
        renames: the first of the files that a commit would move.
        uploads: the first of the uploads that a commit would complete.
        problems: reasons why a commit would be refused.
        parts: for a destination, its jobs and its marker.
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
        """Return whether there is no problem, neither here nor in the parts."""
        return not self.problems and all(part.sound for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


def reader_of(place: Address, data: bytes) -> Reader | None:
    """Return the reader for a file, by its declared type or else by its name.

    The result is ``None`` for a task manifest, and for a file that cannot be distinguished from
    one.
    """
    value = _json_of(data)
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and kind in _TYPES:
            return _TYPES[kind]
        if value.get("name") == MARKER:
            return read_success
    name = place.path.rpartition("/")[2]
    return next((read for start, read in _NAMES.items() if name.startswith(start)), None)


def read_success(data: bytes, place: Address) -> Inspection:
    """Return the facts of a ``_SUCCESS`` or a summary.

    Raises ``ManifestError``.
    """
    if not data:
        committer = "a classic committer, whose marker is empty"
        return Inspection("success", str(place), {"committer": committer})
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
        "diagnostics": {k: text for k, text in found.diagnostics.items() if k != COURSE},
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
        "plan": f"{found.plan_id}, {_where(found)}",
        "outside": list(found.outside),
    }
    return Inspection("commit record", str(place), facts)


def _where(record: commit_record.CommitRecord) -> str:
    if record.index:
        return "with an index"
    return f"{len(record.plan)} chunks" if record.chunk is None else "in the record"


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
        raise ManifestError(str(place), "is not a heartbeat of a commit") from error
    return Inspection("commit heartbeat", str(place), facts)


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


def _index(data: bytes, place: Address) -> Inspection:
    plan_id = str(_json_of(data).get("plan"))
    found = plan_index.decode_index(data, str(place), plan_id)
    facts = {"plan": plan_id, "chunks": len(found.chunks), "tasks": dict(found.tasks)}
    return Inspection("commit plan index", str(place), facts)


def _part(data: bytes, place: Address) -> tuple[str, int]:
    """Return the plan and the part number of a file: from its path or content."""
    if named := _CHUNK_NAME.fullmatch(place.path.rpartition("/")[2]):
        return named[1], int(named[2])
    value = _json_of(data)
    plan_id, index = value.get("plan"), value.get("index")
    return str(plan_id), index if isinstance(index, int) else 0


def _json_of(data: bytes) -> Any:
    """Parse JSON, lone surrogates included; return ``None`` if it is invalid."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


_TYPES: dict[str, Reader] = {
    commit_record.TYPE: _record,
    commit_record.WITH_WORKERS: _record,
    plan_index.TYPE: _index,
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
"""The readers that report the expected kind of a damaged file, by the prefix of its name."""


def moment(milliseconds: int) -> str:
    """Return a time in UTC, formatted for a reader."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def rename_of(entry: FileEntry) -> Rename:
    """Return a file of a manifest, decoded where possible."""
    return Rename(decoded(entry.source), decoded(entry.dest), entry.size)


def decoded(uri: str) -> str:
    """Return the decoded path of a URI, or the text itself if invalid."""
    try:
        return str(decode_uri(uri))
    except AsyncCommitError:
        return uri
