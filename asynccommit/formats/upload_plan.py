"""The plan of an upload commit, in chunks.

One chunk is a JSON object: ``type``, ``plan`` (its id), ``index``, ``tasks`` [[task, attempt]],
``aside`` and ``old`` [[place, size, etag]], ``uploads`` [[place, upload id, size, parts, token]]. A
place is relative to the destination; a part is its etag or, with a checksum, [etag, algorithm,
checksum]; a token is empty if the task gave none. Readers ignore unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from asynccommit.formats.fields import JsonFields, are_paths, check_size, dump_object, load_object
from asynccommit.formats.pending import MAX_PARTS, is_token
from asynccommit.formats.tables import (
    Column,
    are_etags,
    are_names,
    are_sizes,
    are_words,
    check_head,
    check_table,
)
from asynccommit.stores.parts import Part

TYPE = "asynccommit.UploadPlan/1"
CHUNK_ROWS = 20_000
"""Number of rows of a chunk."""
MAX_CHUNK_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes; a larger one is neither written nor read."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class TaskRow(NamedTuple):
    """A task and its accepted attempt, which may be empty."""

    task_id: str
    attempt_id: str


class OldRow(NamedTuple):
    """A file that existed when the plan was made."""

    place: str
    size: int
    etag: str | None


class UploadRow(NamedTuple):
    """An upload to complete: place, upload id, size, parts and token."""

    place: str
    upload_id: str
    size: int
    parts: tuple[Part, ...]
    token: str = ""


@dataclass(frozen=True, slots=True)
class UploadChunk:
    """One part of a plan.

    Attributes:
        plan_id: id of the plan.
        index: number of this part, from 0.
        tasks: the tasks that these uploads belong to.
        aside: files to overwrite; a copy of each is made first.
        old: replaced files, deleted after all uploads are completed.
        uploads: the uploads to complete.
    """

    plan_id: str
    index: int
    tasks: Sequence[TaskRow] = ()
    aside: Sequence[OldRow] = ()
    old: Sequence[OldRow] = ()
    uploads: Sequence[UploadRow] = ()


def encode_upload_chunk(chunk: UploadChunk, *, uploads_checked: bool = False) -> bytes:
    """Return the JSON of a chunk.

    Args:
        chunk: the chunk to encode.
        uploads_checked: whether the uploads come from pending sets that were checked in the same
            way.

    Raises:
        ManifestError: the chunk is invalid, or larger than ``MAX_CHUNK_BYTES``.
    """
    path = f"commit-plan-{chunk.plan_id}-{chunk.index:05d}.json"
    value: dict[str, Any] = {
        "type": TYPE,
        "plan": chunk.plan_id,
        "index": chunk.index,
        "tasks": [list(row) for row in chunk.tasks],
        "aside": [list(row) for row in chunk.aside],
        "old": [list(row) for row in chunk.old],
        "uploads": [
            [place, upload_id, size, [_part_to_json(part) for part in parts], token]
            for place, upload_id, size, parts, token in chunk.uploads
        ],
    }
    fields = JsonFields(value, path)
    check_head(fields, TYPE, chunk.plan_id, chunk.index)
    for name, columns in _TABLES.items():
        if name != "uploads" or not uploads_checked:
            check_table(fields, name, columns)
    data = dump_object(value, path, indent=False)
    check_size(data, path, MAX_CHUNK_BYTES)
    return data


def decode_upload_chunk(data: bytes, path: str, plan_id: str, index: int) -> UploadChunk:
    """Read a chunk and check everything in it.

    Args:
        data: the content.
        path: the file, for messages.
        plan_id: the plan that it must belong to.
        index: the number that this part must have.

    Raises:
        ManifestError: names the row and the field that is invalid.
    """
    check_size(data, path, MAX_CHUNK_BYTES)
    fields = load_object(data, path)
    check_head(fields, TYPE, plan_id, index)
    tables = {name: check_table(fields, name, columns) for name, columns in _TABLES.items()}
    return UploadChunk(
        plan_id,
        index,
        tasks=[*map(TaskRow._make, tables["tasks"])],
        aside=[*map(OldRow._make, tables["aside"])],
        old=[*map(OldRow._make, tables["old"])],
        uploads=[
            UploadRow(place, upload_id, size, tuple(map(_part_of, parts)), token)
            for place, upload_id, size, parts, token in tables["uploads"]
        ],
    )


def _part_to_json(part: Part) -> str | list[str]:
    return list(part) if part.checksum or part.algorithm else part.etag


def _part_of(value: str | list[str]) -> Part:
    return Part(value) if isinstance(value, str) else Part(*value)


# --- rows ------------------------------------------------------------------------------------


def _places(values: Sequence[Any]) -> bool:
    # Keys of objects never contain a lone surrogate.
    return are_paths(values) and _SURROGATE.search("".join(values)) is None


def _attempts(values: Sequence[Any]) -> bool:
    return are_names([value for value in values if value != ""])


def _tokens(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) and (not value or is_token(value)) for value in values)


def _parts(values: Sequence[Any]) -> bool:
    """Return whether all are lists of parts, neither empty nor too long."""
    if {*map(type, values)} != {list} or not all(0 < len(parts) <= MAX_PARTS for parts in values):
        return False
    parts = list(chain.from_iterable(values))
    plain = [part for part in parts if type(part) is str]
    checked = [part for part in parts if type(part) is list]
    if len(plain) + len(checked) < len(parts) or any(len(part) != 3 for part in checked):
        return False
    return are_words([*plain, *chain.from_iterable(checked)])


_PLACE = Column("place", _places, "a plain path")
_SIZE = Column("size", are_sizes, "a size")
_ETAG = Column("etag", are_etags, "an etag or null")
_OLD = (_PLACE, _SIZE, _ETAG)

_TABLES: dict[str, tuple[Column, ...]] = {
    "tasks": (
        Column("task", are_names, "a plain name"),
        Column("attempt", _attempts, "a plain name or empty"),
    ),
    "aside": _OLD,
    "old": _OLD,
    "uploads": (
        _PLACE,
        Column("id", are_words, "the id of an upload"),
        _SIZE,
        Column("parts", _parts, f"a list of 1 to {MAX_PARTS} parts"),
        Column("token", _tokens, "a token or empty"),
    ),
}
