"""The task manifest of Hadoop's manifest committer.

A task writes it and the job commit reads it; either side may be Hadoop's own class
``org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from asynccommit.errors import ManifestError
from asynccommit.formats.fields import MAX_LONG, JsonFields, as_integer, load_object
from asynccommit.formats.statistics import Statistics

TYPE = "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1"
VERSION = 1
SUFFIX = "-manifest.json"


class FileEntry(NamedTuple):
    """One file to commit: source and destination as URI texts, size and etag."""

    source: str
    dest: str
    size: int
    etag: str | None = None


class DirEntry(NamedTuple):
    """One directory that must exist: URI, status, depth (1 = topmost).

    The status is what the task saw there, ``UNKNOWN`` to ``CREATED_DIR``.
    """

    dest: str
    status: int
    level: int


UNKNOWN, NOT_FOUND, FILE, DIR, CREATED_DIR = range(5)


@dataclass(frozen=True, slots=True)
class TaskManifest:
    """The output of one committed task attempt; only types are checked.

    Attributes:
        task_attempt_dir: URI text; ``""`` if the writer left it out.
        directories: the directories; a ``dest`` of ``""`` means that the writer left it out.
    """

    job_id: str
    job_attempt: int
    task_id: str
    task_attempt_id: str
    task_attempt_dir: str
    files: Sequence[FileEntry] = ()
    directories: Sequence[DirEntry] = ()
    statistics: Statistics = field(default_factory=Statistics)
    extra_data: Mapping[str, str] = field(default_factory=dict)


def encode_manifest(manifest: TaskManifest, *, full: bool = False) -> bytes:
    """Return the bytes of a manifest file, with the fields in Hadoop's order.

    Args:
        manifest: the manifest to encode.
        full: whether to write statistics that are zero too, about 18 KB, as Hadoop does.

    Raises:
        ManifestError: a text contains a lone surrogate, or a number exceeds 64 bits.
    """
    value = {
        "extraData": dict(manifest.extra_data),
        "type": TYPE,
        "version": VERSION,
        "jobId": manifest.job_id,
        "jobAttemptNumber": manifest.job_attempt,
        "taskID": manifest.task_id,
        "taskAttemptID": manifest.task_attempt_id,
        "taskAttemptDir": manifest.task_attempt_dir,
        "files": [_file_json(entry) for entry in manifest.files],
        "directories": [{"d": d, "t": t, "l": level} for d, t, level in manifest.directories],
        "iostatistics": manifest.statistics.to_json(full),
    }
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except orjson.JSONEncodeError as error:
        raise ManifestError(f"{manifest.task_id}{SUFFIX}", f"cannot be written: {error}") from error


def decode_manifest(data: bytes, path: str) -> TaskManifest:
    """Read the bytes of a manifest file from any writer.

    The check is stricter than Hadoop's for values that become a file name or a rename; unknown
    fields are ignored. The caller must check that the paths are in the right directories
    (``urls.Under``).

    Args:
        data: the content.
        path: the file, for messages.

    Raises:
        ManifestError: names the index of the entry and the invalid field.
    """
    if not data:
        raise ManifestError(path, "empty: its write did not finish")
    fields = load_object(data, path)
    _check_type(fields)
    return TaskManifest(
        job_id=fields.name("jobId"),
        job_attempt=fields.integer("jobAttemptNumber", minimum=0),
        task_id=fields.name("taskID"),
        task_attempt_id=fields.name("taskAttemptID"),
        task_attempt_dir=fields.text("taskAttemptDir", ""),
        files=_files(fields, exact=rb"\u0000" in data),
        directories=_directories(fields),
        statistics=Statistics.from_json(fields.get("iostatistics")),
        extra_data=fields.texts("extraData"),
    )


def _file_json(entry: FileEntry) -> dict[str, Any]:
    value = {"s": entry.source, "d": entry.dest, "z": entry.size}
    return value if entry.etag is None else {**value, "e": entry.etag}


def _check_type(fields: JsonFields) -> None:
    kind = fields.text("type", TYPE)
    if kind != TYPE:
        raise fields.wrong("type", f"is {kind[:200]!r}, not {TYPE!r}")
    if as_integer(fields.get("version", VERSION)) != VERSION:
        raise fields.wrong("version", f"is not {VERSION}, the only known version")


def _files(fields: JsonFields, exact: bool) -> list[FileEntry]:
    raw = fields.items("files")
    entries = None if exact else _quick_files(raw)
    if entries is None:
        entries = [
            _file(JsonFields(value, fields.path, f"files[{index}]."))
            for index, value in enumerate(raw)
        ]
        _refuse_duplicates(entries, fields)
    return entries


_new_file: Any = partial(tuple.__new__, FileEntry)


def _quick_files(raw: list[Any]) -> list[FileEntry] | None:
    """Return the entries if all are as Hadoop writes them, else ``None``.

    The check runs column by column in C: a loop over single values takes four times as long.
    """
    if not raw:
        return []
    try:
        sources, dests, sizes = (list(map(itemgetter(key), raw)) for key in "sdz")
        etags = [entry.get("e") for entry in raw]
    except (KeyError, TypeError, AttributeError):
        return None
    good = (
        {*map(type, sources), *map(type, dests)} == {str}
        and {*map(type, sizes)} == {int}
        and {*map(type, etags)} <= {str, type(None)}
        and all(sources)
        and all(dests)
        and "" not in etags
        and min(sizes) >= 0
        and max(sizes) <= MAX_LONG
        and len({*dests}) == len(dests)
    )
    return list(map(_new_file, zip(sources, dests, sizes, etags, strict=True))) if good else None


def _file(entry: JsonFields) -> FileEntry:
    return FileEntry(
        entry.text("s"), entry.text("d"), entry.integer("z", minimum=0), entry.optional("e")
    )


def _refuse_duplicates(entries: list[FileEntry], fields: JsonFields) -> None:
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if first.setdefault(entry.dest, index) != index:
            problem = f"is the same as that of files[{first[entry.dest]}]: {entry.dest[:300]!r}"
            raise fields.wrong(f"files[{index}].d", problem)


def _directories(fields: JsonFields) -> list[DirEntry]:
    raw = fields.items("directories")
    return [
        _directory(JsonFields(value, fields.path, f"directories[{index}]."))
        for index, value in enumerate(raw)
    ]


def _directory(entry: JsonFields) -> DirEntry:
    dest = entry.optional("d") or ""
    status = entry.integer("t")
    state = status if UNKNOWN <= status <= CREATED_DIR else UNKNOWN
    return DirEntry(dest, state, entry.integer("l"))
