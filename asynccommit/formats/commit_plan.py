"""The plan of a commit, in chunks: the operations of every owner.

One chunk is a JSON object: ``type``, ``plan`` (its id), ``index``, ``directories`` [d], ``aside``
and ``replaced`` [[d, kind, etag]], ``units`` [d], ``old`` [[d, size, etag]], ``files``
[[s, d, size, etag]]. A source s is relative to the job attempt's directory; for
FileOutputCommitter, to the directory of its committed tasks; for a move of existing files, to the
directory that they are below. A place d is relative to the destination, or absolute if it is
outside of the destination. File names that are not UTF-8 contain lone surrogates, which are
escaped. Readers ignore unknown fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asynccommit.formats.fields import JsonFields, are_paths, check_size, dump_object, load_object
from asynccommit.formats.tables import Column, are_etags, are_sizes, check_head, check_table

TYPE = "asynccommit.CommitPlan/1"
CHUNK_ROWS = 20_000
"""Number of rows of a chunk."""
MAX_INLINE_ROWS = 1_000
"""Number of rows up to which a chunk may be part of the commit record."""
MAX_CHUNK_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes; a larger one is neither written nor read."""
KINDS = frozenset({"file", "directory", "other"})
"""The kinds of entries that are moved aside, named as in ``store.Kind``."""

Aside = tuple[str, str, str | None]
Old = tuple[str, int, str | None]
Move = tuple[str, str, int, str | None]


@dataclass(frozen=True, slots=True)
class PlanChunk:
    """One part of a plan. Rows are plain tuples.

    Attributes:
        plan_id: id of the plan.
        index: number of this part, from 0.
        directories: places where a directory must exist.
        aside: existing things to move aside because they are in the way: place, kind, etag.
        replaced: existing things to move aside because the job replaces them: place, kind, etag.
        units: places of directories that are renamed as a whole, and of the directories in them.
        old: the files in replaced directories, as they were when the plan was made: place, size,
            etag.
        files: files to rename: source, place, size, etag.
    """

    plan_id: str
    index: int
    directories: Sequence[str] = ()
    aside: Sequence[Aside] = ()
    replaced: Sequence[Aside] = ()
    units: Sequence[str] = ()
    old: Sequence[Old] = ()
    files: Sequence[Move] = ()


def encode_chunk(chunk: PlanChunk, *, files_checked: bool = False) -> bytes:
    """Return the JSON of a chunk.

    Args:
        chunk: the chunk to encode.
        files_checked: whether the files come from manifests that were checked in the same way;
            checking them again would take most of the time.

    Raises:
        ManifestError: the chunk is invalid, or larger than ``MAX_CHUNK_BYTES``.
    """
    path = f"commit-plan-{chunk.plan_id}/{chunk.index:05d}.json"
    value = chunk_object(chunk)
    fields = JsonFields(value, path)
    check_head(fields, TYPE, chunk.plan_id, chunk.index)
    for name in _TABLES:
        if name != "files" or not files_checked:
            check_table(fields, name, _TABLES[name], tuple)
    data = dump_object(value, path, indent=False)
    check_size(data, path, MAX_CHUNK_BYTES)
    return data


def chunk_object(chunk: PlanChunk) -> dict[str, Any]:
    """Return a chunk as a JSON object."""
    head = {"type": TYPE, "plan": chunk.plan_id, "index": chunk.index}
    return {**head, **{name: list(getattr(chunk, name)) for name in _TABLES}}


def rows_of(chunk: PlanChunk) -> int:
    """Return the number of rows of a chunk."""
    return sum(len(getattr(chunk, name)) for name in _TABLES)


def decode_chunk(data: bytes, path: str, plan_id: str, index: int) -> PlanChunk:
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
    return read_chunk(load_object(data, path, surrogates=True), plan_id, index)


def read_chunk(fields: JsonFields, plan_id: str, index: int) -> PlanChunk:
    """Read the object of a chunk as ``decode_chunk`` does."""
    check_head(fields, TYPE, plan_id, index)
    tables = {name: check_table(fields, name, columns) for name, columns in _TABLES.items()}
    return PlanChunk(plan_id, index, **tables)


# --- rows ------------------------------------------------------------------------------------


def _sources(values: Sequence[Any]) -> bool:
    return are_paths(values)


def _places(values: Sequence[Any]) -> bool:
    return are_paths(values, absolute=True)


def _kinds(values: Sequence[Any]) -> bool:
    return {*map(type, values)} <= {str} and {*values} <= KINDS


_SOURCE = Column("s", _sources, "a relative path")
_PLACE = Column("d", _places, "a path")
_SIZE = Column("size", are_sizes, "a size")
_ETAG = Column("etag", are_etags, "an etag or null")
_KIND = Column("kind", _kinds, "file, directory or other")

# A table of one column is a list of values.
_TABLES: dict[str, tuple[Column, ...]] = {
    "directories": (_PLACE,),
    "aside": (_PLACE, _KIND, _ETAG),
    "replaced": (_PLACE, _KIND, _ETAG),
    "units": (_PLACE,),
    "old": (_PLACE, _SIZE, _ETAG),
    "files": (_SOURCE, _PLACE, _SIZE, _ETAG),
}
