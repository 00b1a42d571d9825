"""The published schemas of the JSON of commands, made from their types.

``python -m tests.support.schemas`` writes docs/schemas; a test compares them. A consumer may rely
on the fields that are required; more may be added without another version.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from asynccommit.cli.output import SCHEMA_VERSION, Exit
from asynccommit.engine.report import BulkReport, Failure
from asynccommit.engine.verification import VerifyReport
from asynccommit.formats.course import Course
from asynccommit.inspect.doctor import Check
from asynccommit.inspect.dry_run import AffectedDirectory
from asynccommit.inspect.files import Inspection
from asynccommit.inspect.garbage import KeptItem
from asynccommit.inspect.saved import JobRecord
from asynccommit.inspect.status import LastSuccess
from asynccommit.results import AbortReport, JobReport, JobStatus, Partition, StageTime, Timeline
from tests.support.schema_parts import (
    DEPRECATED,
    NULL,
    TEXT,
    TEXTS,
    WHOLE,
    YES,
    Schema,
    either,
    obj,
    of,
    record,
    rows,
)
from tests.support.schemas_tools import TOOLS

FOLDER = Path(__file__).parents[2] / "docs/schemas"


def _inspection() -> Schema:
    hints = typing.get_type_hints(Inspection)
    properties = {
        one.name: of(hints[one.name]) for one in fields(Inspection) if one.name != "parts"
    }
    return obj(**properties, parts=rows({"$ref": "#/$defs/inspection"}))


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
FORMER: Mapping[str, Schema] = {"already": YES | DEPRECATED, "left": TEXTS | DEPRECATED}
JOB = record(JobReport, timeline=None, **FORMER)
ENTRY = obj(name=TEXT, kind=TEXT, size=WHOLE, etag=of(str | None), modified=of(float))

SCHEMAS: dict[str, tuple[str, Schema]] = {
    "status": ("asynccommit status", STATUS),
    "inspect": ("asynccommit inspect", {"$ref": "#/$defs/inspection"}),
    "report": (
        "asynccommit report",
        obj(report=record(JobRecord, course=either(COURSE, NULL)), status=STATUS),
    ),
    "job": ("asynccommit commit, resume and takeover", JOB),
    "abort": (
        "asynccommit abort, and takeover --rollback",
        record(AbortReport, left=FORMER["left"]),
    ),
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
            kept=rows(record(KeptItem)),
            warnings=rows(TEXT),
            dry_run=YES,
        ),
    ),
    "spark-conf": (
        "asynccommit spark-conf",
        obj(spark=TEXT, jar=TEXT, settings=of(dict[str, str])),
    ),
    "doctor": ("asynccommit doctor", obj(ok=YES, checks=rows(record(Check)))),
    "ls": ("asynccommit ls", obj(files=WHOLE, bytes=WHOLE, entries=rows(ENTRY))),
    "bulk": (
        "asynccommit mv and rm",
        record(BulkReport, failures=rows(record(Failure))),
    ),
    "verify": ("asynccommit verify", record(VerifyReport, ok=YES)),
    **TOOLS,
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


def check(name: str, value: object) -> None:
    """Check a value by the published schema of this name.

    Raises ``ValidationError`` of jsonschema, without which the test is skipped.
    """
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(value)


def text_of(name: str) -> str:
    """Return the text of the file of a schema."""
    return json.dumps(published(name), indent=2) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in SCHEMAS:
        (FOLDER / f"{each}.json").write_text(text_of(each), "utf-8")
