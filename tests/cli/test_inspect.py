"""``inspect`` on the files that a commit leaves: each is shown, and a damaged one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.formats.commit_owner import (
    Claim,
    Decision,
    Outcome,
    encode_beat,
    encode_claim,
    encode_decision,
)
from asynccommit.formats.commit_record import Owner
from tests.cli.support import Command, cut_short
from tests.support.jobs import JOB

WHEN = 1_795_000_000_000
KINDS = {
    "commit-record.json": "commit record",
    "commit-owner-000002.json": "commit owner",
    "commit-alive-000001.json": "commit heartbeat",
    "commit-stopped-000001.json": "commit stopped",
    "commit-outcome.json": "commit outcome",
    "commit-plan-*-00000.json": "commit plan",
}


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    """A job attempt that has every kind of file."""
    attempt = cut_short(tmp_path)
    owner = Owner("two", "h", "u", "1.2.3")
    said = {
        "commit-owner-000002.json": encode_claim(Claim(2, owner, 60.0, WHEN, "it had died")),
        "commit-alive-000001.json": encode_beat(1, "one", WHEN),
        "commit-outcome.json": encode_decision(Decision(Outcome.ROLLBACK, 2, "two", WHEN, "c")),
    }
    for name, data in said.items():
        (attempt / name).write_bytes(data)
    return attempt


@pytest.mark.parametrize("name, kind", KINDS.items())
def test_every_file_is_shown(command: Command, attempt: Path, name: str, kind: str) -> None:
    """What it is and what it says, as JSON and as text."""
    (path,) = attempt.glob(name)

    found = command.json("inspect", path)

    assert (found["code"], found["kind"]) == (0, kind)
    assert found["facts"]
    assert command("inspect", path) == 0
    assert command.out.startswith(kind)


@pytest.mark.rotate("data")
@pytest.mark.parametrize("data", ["", "{", "[]", '{"type": 7}', '{"type": "other"}', "\x00"])
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_named(command: Command, attempt: Path, name: str, data: str) -> None:
    """A file that cannot be trusted is refused by its name, never a crash."""
    (path,) = attempt.glob(name)
    path.write_text(data)

    error = command.json("inspect", path)

    assert (error["code"], error["error"]) == (3, "refused")
    assert str(path) in error["message"]


def test_the_plan_says_what_is_moved(command: Command, attempt: Path) -> None:
    """A part of a plan shows its files, relative as they are in it."""
    (path,) = attempt.glob("commit-plan-*-00000.json")

    found = command.json("inspect", path)

    assert (found["facts"]["files"], found["facts"]["bytes"]) == (3, 11)
    assert {rename["dest"] for rename in found["renames"]} == {
        "day=1/part-0",
        "day=2/part-0",
        "day=1/part-1",
    }


def test_a_plan_that_was_moved_is_still_read(command: Command, attempt: Path) -> None:
    """Under another name a part of a plan says itself which part it is."""
    (path,) = attempt.glob("commit-plan-*-00000.json")
    path.rename(attempt.parent / "saved.json")

    assert command.json("inspect", attempt.parent / "saved.json")["kind"] == "commit plan"


def test_the_record_says_by_whom(command: Command, attempt: Path) -> None:
    """Owner, mode and lease of the commit are facts."""
    facts = command.json("inspect", attempt / "commit-record.json")["facts"]

    assert (facts["job_id"], facts["host"], facts["user"]) == (JOB, "driver-0", "alice")
    assert (facts["mode"], facts["lease"], facts["files"]) == ("append", 60.0, 3)


def test_a_job_whose_record_is_damaged(command: Command, attempt: Path) -> None:
    """The job is shown all the same, with the damage as its problem."""
    (attempt / "commit-record.json").write_text("{}")

    found = command.json("inspect", attempt)

    assert found["code"] == 3
    assert "unknown" in found["problems"][0]
    assert "commit-record.json" in found["problems"][0]
