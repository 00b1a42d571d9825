"""The course of a commit in ``_SUCCESS`` and reports: one JSON text.

It is a value of the diagnostics, which Hadoop reads as texts, so that Hadoop can read the file.
What is read comes from a store: numbers, names and their count are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import ceil, isfinite
from typing import Any

import orjson

from asynccommit.errors import ManifestError
from asynccommit.formats.fields import MAX_LONG, JsonFields, load_object
from asynccommit.results import Partition, StageTime, Timeline

COURSE = "asynccommit.course"
"""Name in the diagnostics."""

VERSION = 1
MAX_ITEMS = 1000
"""Maximum length of each list and map that is read."""

MAX_TEXT = 4096
"""Maximum length of each text that is read."""

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Course:
    """The counts of a commit, and its course over time.

    Attributes:
        dest: the destination.
        timeline: stages, requests and latencies over time.
        files: number of files.
        bytes: total size of those files.
        tasks: number of tasks.
        replaced: number of files or directories that were replaced.
        seconds: duration of the commit so far.
        requests: store method -> number of calls.
        sent: number of requests sent, every attempt counted.
        refused: number of requests that the store refused for their rate.
        recovered: store method -> number of lost responses that were settled.
        waited: reason -> seconds that requests waited, added up.
        epoch: number of owners that the commit has had.
    """

    dest: str
    timeline: Timeline
    files: int = 0
    bytes: int = 0
    tasks: int = 0
    replaced: int = 0
    seconds: float = 0.0
    requests: Mapping[str, int] = field(default_factory=dict)
    sent: int = 0
    refused: int = 0
    recovered: Mapping[str, int] = field(default_factory=dict)
    waited: Mapping[str, float] = field(default_factory=dict)
    epoch: int = 1


def encode_course(course: Course, buckets: int) -> str:
    """Return the JSON text of a course.

    Args:
        course: the course.
        buckets: maximum number of points in time of its requests.
    """
    thinned = replace(course, timeline=_thinned(course.timeline, buckets))
    value = {"version": VERSION, **_plain(thinned)}
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str)
    return text.decode()


def decode_course(text: str, path: str) -> Course:
    """Return the course of a JSON text.

    Args:
        text: the value in the diagnostics.
        path: path of the file, for messages.

    Raises:
        ManifestError: the text is not a course, or of a version that is unknown here.
    """
    try:
        fields = load_object(text.encode(), path)
    except UnicodeEncodeError as error:
        raise ManifestError(path, f"{COURSE} is not valid text") from error
    if fields.integer("version") != VERSION:
        raise fields.wrong("version", f"is not {VERSION}: read it with the version that wrote it")
    return Course(
        dest=_text(fields.text("dest"), path),
        timeline=_timeline(JsonFields(fields.object("timeline"), path, "timeline")),
        **{name: fields.count(name) for name in ("files", "bytes", "tasks", "replaced", "sent")},
        refused=fields.count("refused"),
        seconds=_number(fields.get("seconds"), path),
        requests=_counts(fields.object("requests"), path),
        recovered=_counts(fields.object("recovered"), path),
        waited={name: _number(n, path) for name, n in _bounded(fields.object("waited")).items()},
        epoch=fields.count("epoch"),
    )


def _timeline(fields: JsonFields) -> Timeline:
    path = fields.path
    latency = {
        _text(method, path): tuple((_number(bound, path), _count(n, path)) for bound, n in rows)
        for method, rows in _bounded(fields.object("latency")).items()
        if isinstance(rows, list) and all(isinstance(row, list) and len(row) == 2 for row in rows)
    }
    return Timeline(
        fields.count("began_ms"),
        tuple(
            StageTime(_text(row[0], path), _number(row[1], path), _number(row[2], path))
            for row in _rows(fields, "stages")
        ),
        max(_number(fields.get("width"), path), 1e-3),
        tuple(_count(number, path) for number in _list(fields, "sent")),
        tuple(_count(number, path) for number in _list(fields, "refused")),
        tuple(_number(number, path) for number in _list(fields, "limits")),
        latency,
        tuple(
            Partition(_text(row[0], path), _count(row[1], path), _count(row[2], path))
            for row in _rows(fields, "partitions")
        ),
        fields.count("directories"),
    )


def _list(fields: JsonFields, name: str) -> list[Any]:
    return fields.items(name)[:MAX_ITEMS]


def _rows(fields: JsonFields, name: str) -> list[list[Any]]:
    rows = _list(fields, name)
    if not all(isinstance(row, list) and len(row) == 3 for row in rows):
        raise fields.wrong(name, "holds a row that does not have three values")
    return rows


def _bounded(value: Mapping[str, Any]) -> dict[str, Any]:
    return dict(list(value.items())[:MAX_ITEMS])


def _counts(value: Mapping[str, Any], path: str) -> dict[str, int]:
    return {_text(name, path): _count(n, path) for name, n in _bounded(value).items()}


def _text(value: object, path: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ManifestError(path, f"{COURSE} holds a text that is longer than {MAX_TEXT}, or none")
    return value


def _count(value: object, path: str) -> int:
    if type(value) is not int or not 0 <= value <= MAX_LONG:
        raise ManifestError(path, f"{COURSE} holds {value!r:.100}, which is not a count")
    return value


def _number(value: object, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ManifestError(path, f"{COURSE} holds {value!r:.100}, which is not a number")
    if not isfinite(value) or not 0 <= value <= MAX_LONG:
        raise ManifestError(path, f"{COURSE} holds {value!r:.100}, which is out of bounds")
    return float(value)


def _thinned(timeline: Timeline, buckets: int) -> Timeline:
    """Return the timeline with at most so many buckets."""
    step = max(1, ceil(len(timeline.sent) / buckets))
    return Timeline(
        timeline.began_ms,
        timeline.stages,
        timeline.width * step,
        _summed(timeline.sent, step),
        _summed(timeline.refused, step),
        timeline.limits[::step],
        timeline.latency,
        timeline.partitions,
        timeline.directories,
    )


def _summed(counts: Sequence[int], step: int) -> tuple[int, ...]:
    return tuple(sum(counts[at : at + step]) for at in range(0, len(counts), step))


def _plain(value: Any) -> Any:
    """Return a JSON value with numbers of six decimal places, for size."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return value
