"""The layout of a move, and the record that describes it."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.commit.hints import job_command
from asynccommit.commit.layouts.file_output import recorded
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.layouts.move import MoveLayout
from asynccommit.errors import ManifestError
from asynccommit.stores.urls import Address

DEST = Address("abfs", "c@a", "/out")
MOVE = MoveLayout(DEST, "move-1", source="/in", journal="/home/me/my move.json")


def test_a_record_describes_it() -> None:
    """The options of a commit record give the same layout."""
    assert recorded(Layout(DEST, "move-1"), MOVE.facts) == MOVE


@pytest.mark.parametrize("source", [None, 7, "in", "/in/../secret", "//in", ""])
def test_an_invalid_source_is_refused(source: Any) -> None:
    """A record is input: its source must be a directory of the store."""
    with pytest.raises(ManifestError, match="no valid source"):
        recorded(Layout(DEST, "move-1"), {**MOVE.facts, "source": source})


def test_only_its_own_files_are_reserved() -> None:
    """A move may move a marker, and what another job has below ``_temporary``."""
    assert MOVE.reserves(MOVE.record)
    assert not MOVE.reserves("/out/_SUCCESS")
    assert not MOVE.reserves("/out/_temporary/other/x")


@pytest.mark.parametrize(
    "verb, flags, wanted",
    [
        ("resume", (), "--resume"),
        ("takeover", (), "--force --resume"),
        ("takeover", ("--rollback",), "--force --rollback"),
        ("abort", ("--rollback",), "--rollback"),
    ],
)
def test_commands_name_the_journal(verb: str, flags: tuple[str, ...], wanted: str) -> None:
    """The remedy for a move is a command of ``mv``, quoted for a shell."""
    assert job_command(verb, MOVE, *flags) == f"asynccommit mv {wanted} '/home/me/my move.json'"
