"""The plan of a commit, in chunks: what the first owner and every later one carries out.

One chunk is a JSON object: ``type``, ``plan`` (its id), ``index``, ``directories`` [d], ``aside``
and ``replaced`` [[d, kind, etag]], ``units`` [d], ``old`` [[d, size, etag]], ``files``
[[s, d, size, etag]]. A source s is relative to the job attempt's directory; a place d is relative
to the destination, or absolute and then outside of it. Names of files that are no UTF-8 hold lone
surrogates, which are escaped. Readers ignore fields that they do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from asynccommit.errors import ManifestError
from asynccommit.formats.fields import (
    MAX_LONG,
    Fields,
    are_paths,
    dump_object,
    kind_of,
    load_object,
)

TYPE = "asynccommit.CommitPlan/1"
CHUNK_ROWS = 20_000
"""How many rows a chunk should hold."""
MAX_CHUNK_BYTES = 64 * 1024 * 1024
"""The most that a reader should ask the store for; a larger one is not written."""
KINDS = frozenset({"file", "directory", "other"})
"""What is moved aside, as ``store.Kind`` names it."""

Aside = tuple[str, str, str | None]
Old = tuple[str, int, str | None]
Move = tuple[str, str, int, str | None]


@dataclass(frozen=True, slots=True)
class PlanChunk:
    """A part of a plan. Rows are plain tuples.

    Attributes:
        plan_id: the plan.
        index: which part, from 0.
        directories: places where a directory must be.
        aside: what is moved aside because it is in the way: place, kind, etag.
        replaced: what is moved aside because the job replaces it: place, kind, etag.
        units: places of the directories that are moved in as one, and directories in these.
        old: the files in what is replaced, as they were when the plan was made: place, size, etag.
        files: what is renamed: source, place, size, etag.
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
        chunk: what to write.
        files_checked: the files are of manifests that were checked in the same way: looking at
            them again would take most of the time.

    Raises:
        ManifestError: it could not be read, or is larger than ``MAX_CHUNK_BYTES``.
    """
    path = f"commit-plan-{chunk.plan_id}/{chunk.index:05d}.json"
    value: dict[str, Any] = {
        "type": TYPE,
        "plan": chunk.plan_id,
        "index": chunk.index,
        **{name: list(getattr(chunk, name)) for name in _TABLES},
    }
    fields = Fields(value, path)
    _check_head(fields, chunk.plan_id, chunk.index)
    for name in _TABLES:
        if name != "files" or not files_checked:
            _check(fields, name, tuple)
    data = dump_object(value, path, indent=False)
    _check_size(data, path)
    return data


def decode_chunk(data: bytes, path: str, plan_id: str, index: int) -> PlanChunk:
    """Read a chunk, and trust nothing in it.

    Args:
        data: the content.
        path: the file, for messages.
        plan_id: the plan that it must belong to.
        index: which part of it this must be.

    Raises:
        ManifestError: with the row and the field that is wrong.
    """
    _check_size(data, path)
    fields = load_object(data, path, surrogates=True)
    _check_head(fields, plan_id, index)
    return PlanChunk(plan_id, index, **{name: _check(fields, name, list) for name in _TABLES})


def _check_size(data: bytes, path: str) -> None:
    if len(data) > MAX_CHUNK_BYTES:
        raise ManifestError(path, f"holds {len(data)} bytes, more than {MAX_CHUNK_BYTES}")


def _check_head(fields: Fields, plan_id: str, index: int) -> None:
    fields.is_type(TYPE)
    if (found := fields.name("plan")) != plan_id:
        raise fields.wrong("plan", f"is {found[:100]!r}, not {plan_id!r}")
    if (number := fields.count("index")) != index:
        raise fields.wrong("index", f"is {number}, not {index}")


# --- rows ------------------------------------------------------------------------------------


class _Column(NamedTuple):
    """One field of the rows of a table.

    Attributes:
        name: for messages.
        good: whether all of some values are as they must be.
        what: what a good value is, for messages.
    """

    name: str
    good: Callable[[Sequence[Any]], bool]
    what: str


def _sources(values: Sequence[Any]) -> bool:
    return are_paths(values) and all(v.startswith(("tasks/", "absolute/")) for v in values)


def _places(values: Sequence[Any]) -> bool:
    return are_paths(values, absolute=True)


def _sizes(values: Sequence[Any]) -> bool:
    return {*map(type, values)} <= {int} and min(values) >= 0 and max(values) <= MAX_LONG


def _etags(values: Sequence[Any]) -> bool:
    return {*map(type, values)} <= {str, type(None)} and "" not in values


def _kinds(values: Sequence[Any]) -> bool:
    return {*map(type, values)} <= {str} and {*values} <= KINDS


_SOURCE = _Column("s", _sources, "a path below tasks/ or absolute/")
_PLACE = _Column("d", _places, "a path")
_SIZE = _Column("size", _sizes, "a size")
_ETAG = _Column("etag", _etags, "an etag or null")
_KIND = _Column("kind", _kinds, "file, directory or other")

# A table of one column holds its values themselves.
_TABLES: dict[str, tuple[_Column, ...]] = {
    "directories": (_PLACE,),
    "aside": (_PLACE, _KIND, _ETAG),
    "replaced": (_PLACE, _KIND, _ETAG),
    "units": (_PLACE,),
    "old": (_PLACE, _SIZE, _ETAG),
    "files": (_SOURCE, _PLACE, _SIZE, _ETAG),
}


def _check(fields: Fields, name: str, row: type[Any]) -> list[Any]:
    """Return a table whose rows are as they must be; of several columns, as tuples.

    Column by column, and only what is wrong is looked for row by row: there are millions of rows.
    """
    rows, columns = fields.rows(name), _TABLES[name]
    if not rows:
        return rows
    if len(columns) == 1:
        if not columns[0].good(rows):
            raise _wrong_value(fields, name, columns[0], rows)
        return rows
    if {*map(type, rows)} != {row} or {*map(len, rows)} != {len(columns)}:
        raise _wrong_row(fields, name, row, rows)
    table = list(zip(*rows, strict=True))
    for column, values in zip(columns, table, strict=True):
        if not column.good(values):
            raise _wrong_value(fields, name, column, values)
    return rows if row is tuple else list(zip(*table, strict=True))


def _wrong_row(fields: Fields, name: str, row: type[Any], rows: Sequence[Any]) -> ManifestError:
    width = len(_TABLES[name])
    good = [type(value) is row and len(value) == width for value in rows]
    return fields.wrong(f"{name}[{good.index(False)}]", f"is not a row of {width} fields")


def _wrong_value(
    fields: Fields, name: str, column: _Column, values: Sequence[Any]
) -> ManifestError:
    index = next(index for index, value in enumerate(values) if not column.good([value]))
    where = f"{name}[{index}]" if len(_TABLES[name]) == 1 else f"{name}[{index}].{column.name}"
    return fields.wrong(where, f"is {kind_of(values[index])}, not {column.what}")
