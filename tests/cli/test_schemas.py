"""The JSON of commands fits the published schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from asynccommit import sync
from tests.cli.support import Command, cut_short, prepare
from tests.support.jobs import JOB
from tests.support.schemas import FOLDER, SCHEMAS, text_of

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")


def validate(name: str, value: object) -> None:
    """Check a value by the published schema of this name."""
    schema = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(value)


def done(table: Path) -> None:
    """Commit a job."""
    with sync.job(table) as job, job.task(0) as task:
        task.put("day=1/part-0", b"x")


def interrupted(table: Path) -> None:
    """Leave a commit that was interrupted."""
    cut_short(table)


def written(table: Path) -> None:
    """Leave a job that has not been committed."""
    prepare(table)


CASES: Sequence[tuple[str, Any, Sequence[str]]] = [
    ("status", done, ("status", "T")),
    ("status", interrupted, ("status", "T")),
    ("status", written, ("status", "T")),
    ("inspect", interrupted, ("inspect", "T")),
    ("inspect", done, ("inspect", "T/_SUCCESS")),
    ("inspect", written, ("inspect", "T")),
    ("report", done, ("report", "T")),
    ("report", interrupted, ("report", "T")),
    ("job", interrupted, ("resume", "T")),
    ("job", written, ("commit", "T", "--trust-manifests", "--dry-run")),
    ("job", written, ("commit", "T", "--tasks", "2")),
    ("abort", written, ("abort", "T", "--force")),
    ("abort", interrupted, ("abort", "T", "--rollback")),
    ("plan", interrupted, ("abort", "T", "--rollback", "--dry-run")),
    ("plan", written, ("abort", "T", "--dry-run")),
    ("gc", written, ("gc", "T", "--older-than", "0")),
    ("gc", interrupted, ("gc", "T")),
    ("doctor", done, ("doctor",)),
    ("ls", done, ("ls", "T")),
    ("bulk", done, ("mv", "T/day=1", "T/day=2")),
    ("bulk", done, ("rm", "T/day=1", "--recursive", "--dry-run")),
    ("error", done, ("abort", "T")),
    ("error", done, ("status", "T/missing")),
    ("error", done, ("statsu",)),
    ("abort", interrupted, ("abort", "T", "--job-id", JOB)),
]


@pytest.mark.parametrize("name,state,words", CASES)
def test_output_fits_its_schema(
    name: str, state: Any, words: Sequence[str], command: Command, tmp_path: Path
) -> None:
    """What a command really prints fits the schema that docs/schemas publishes for it."""
    state(tmp_path / "t")

    command(*(word.replace("T", str(tmp_path / "t")) for word in words), "--json")

    validate(name, json.loads(command.out))


@pytest.mark.parametrize("name", SCHEMAS)
def test_published_schema_is_current(name: str) -> None:
    """A schema is what the types say: run ``python -m tests.support.schemas`` after a change."""
    assert (FOLDER / f"{name}.json").read_text("utf-8") == text_of(name)


def test_all_published_schemas_are_tested() -> None:
    """There is no file without a type, and no type without an output."""
    assert {path.stem for path in FOLDER.iterdir()} == {*SCHEMAS}
    assert {*SCHEMAS} - {name for name, _, _ in CASES} == {"verify"}


def test_schema_refuses_what_does_not_fit(command: Command, tmp_path: Path) -> None:
    """A schema is strict enough to notice a field that is missing, or of another type."""
    done(tmp_path / "t")
    command("status", tmp_path / "t", "--json")
    value = json.loads(command.out)

    for broken in ({**value, "jobs": 3}, {**value, "schema_version": 2}, {"schema_version": 1}):
        with pytest.raises(jsonschema.ValidationError):
            validate("status", broken)
