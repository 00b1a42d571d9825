"""The published schemas of the JSON of commands, made from their types.

``python -m tests.support.schemas`` writes docs/schemas; a test compares them. A consumer may rely
on the fields that are required; more may be added without another version.
"""

from __future__ import annotations

import collections.abc
import json
import types
import typing
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from asynccommit.cli.output import SCHEMA_VERSION, Exit
from asynccommit.engine.report import BulkReport, Failure
from asynccommit.engine.verification import VerifyReport
from asynccommit.formats.course import Course
from asynccommit.inspect.doctor import Check
from asynccommit.inspect.dry_run import AffectedDirectory
from asynccommit.inspect.files import Inspection
from asynccommit.inspect.garbage import Spared
from asynccommit.inspect.saved import JobRecord
from asynccommit.inspect.status import LastSuccess
from asynccommit.results import AbortReport, JobReport, JobStatus, Partition, StageTime, Timeline

FOLDER = Path(__file__).parents[2] / "docs/schemas"
Schema = dict[str, Any]
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def of(kind: Any) -> Schema:
    """Return the schema of a type of Python."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [of(one) for one in inner]}
    if kind is type(None):
        return {"type": "null"}
    if origin is tuple and Ellipsis not in inner:
        return {"type": "array", "prefixItems": [of(one) for one in inner]}
    if origin in (collections.abc.Sequence, tuple):
        return {"type": "array", "items": of(inner[0])}
    if origin is collections.abc.Mapping:
        return {"type": "object", "additionalProperties": of(inner[1])}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [one.value for one in kind]}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return record(kind)
    return {}


def record(kind: Any, **more: Schema | None) -> Schema:
    """Return the schema of a record, with further fields; a field of ``None`` is left out."""
    if isinstance(kind, type) and kind is Inspection:
        return _inspection()
    hints = typing.get_type_hints(kind)
    names = [one.name for one in fields(kind)] if is_dataclass(kind) else list(kind._fields)
    properties: dict[str, Schema | None] = {name: of(hints[name]) for name in names}
    properties |= more
    return obj(**properties)


def obj(**properties: Schema | None) -> Schema:
    """Return the schema of an object that has all of these."""
    kept = {name: schema for name, schema in properties.items() if schema is not None}
    return {"type": "object", "required": sorted(kept), "properties": kept}


def rows(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def either(*schemas: Schema) -> Schema:
    """Return the schema of what fits one of these."""
    return {"anyOf": [*schemas]}


def _inspection() -> Schema:
    hints = typing.get_type_hints(Inspection)
    properties = {
        one.name: of(hints[one.name]) for one in fields(Inspection) if one.name != "parts"
    }
    return obj(**properties, parts=rows({"$ref": "#/$defs/inspection"}))


NULL: Schema = {"type": "null"}
TEXT, WHOLE, YES = of(str), of(int), of(bool)
ADVICE = obj(does=TEXT, command=TEXT)
VIEW = obj(
    job_id=TEXT,
    attempt=WHOLE,
    committer=TEXT,
    age=of(float | None),
    silent=of(float | None),
    problem=TEXT,
    resume=ADVICE,
    abort=ADVICE,
)
VIEW["properties"] |= record(JobStatus)["properties"]
STATUS = obj(
    destination=TEXT,
    sound=YES,
    last_success=either(record(LastSuccess), NULL),
    jobs=rows(VIEW),
    rubbish=rows(obj(path=TEXT, command=TEXT)),
    classic=rows(TEXT),
)
GARBAGE = obj(
    kind=TEXT,
    path=TEXT,
    age=of(float),
    files=WHOLE,
    bytes=WHOLE,
    job_id=TEXT,
    attempt=WHOLE,
    upload_id=TEXT,
)
TIMELINE = record(Timeline, stages=rows(record(StageTime)), partitions=rows(record(Partition)))
COURSE = record(Course, timeline=TIMELINE)
JOB = record(JobReport, timeline=None)
ENTRY = obj(name=TEXT, kind=TEXT, size=WHOLE, etag=of(str | None), modified=of(float))

SCHEMAS: dict[str, tuple[str, Schema]] = {
    "status": ("asynccommit status", STATUS),
    "inspect": ("asynccommit inspect", {"$ref": "#/$defs/inspection"}),
    "report": (
        "asynccommit report",
        obj(report=record(JobRecord, course=either(COURSE, NULL)), status=STATUS),
    ),
    "job": ("asynccommit commit, resume and takeover", JOB),
    "abort": ("asynccommit abort, and takeover --rollback", record(AbortReport)),
    "plan": (
        "asynccommit abort --dry-run and takeover --dry-run",
        obj(
            dry_run=YES,
            does=TEXT,
            refused=YES,
            job=either(VIEW, NULL),
            places=rows(record(AffectedDirectory)),
        ),
    ),
    "gc": (
        "asynccommit gc",
        obj(
            destination=TEXT,
            blocked=YES,
            garbage=rows(GARBAGE),
            files=WHOLE,
            bytes=WHOLE,
            kept=rows(record(Spared)),
            warnings=rows(TEXT),
            dry_run=YES,
        ),
    ),
    "doctor": ("asynccommit doctor", obj(ok=YES, checks=rows(record(Check)))),
    "ls": ("asynccommit ls", obj(files=WHOLE, bytes=WHOLE, entries=rows(ENTRY))),
    "bulk": (
        "asynccommit mv and rm",
        record(BulkReport, failures=rows(record(Failure))),
    ),
    "verify": ("asynccommit verify", record(VerifyReport, ok=YES)),
    "error": (
        "any command that fails",
        obj(
            error={"enum": [code.name.lower() for code in Exit if code is not Exit.DONE]},
            message=TEXT,
            exit_code={"enum": [int(code) for code in Exit if code is not Exit.DONE]},
        ),
    ),
}
"""Name of the file -> the commands, and the schema without its head."""


def published(name: str) -> Schema:
    """Return the whole schema of this name."""
    commands, schema = SCHEMAS[name]
    version = {"schema_version": {"const": SCHEMA_VERSION}}
    whole: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:asynccommit:schema:{SCHEMA_VERSION}:{name}",
        "title": f"JSON of {commands}",
        "allOf": [schema, {"required": ["schema_version"], "properties": version}],
    }
    if name == "inspect":
        whole["$defs"] = {"inspection": _inspection()}
    return whole


def text_of(name: str) -> str:
    """Return the text of the file of a schema."""
    return json.dumps(published(name), indent=2) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in SCHEMAS:
        (FOLDER / f"{each}.json").write_text(text_of(each), "utf-8")
