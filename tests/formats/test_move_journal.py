"""The journal of a move: round trips, and every field that is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.errors import ManifestError
from asynccommit.formats.commit_record import Owner
from asynccommit.formats.move_journal import (
    JournalState,
    MoveJournal,
    decode_journal,
    encode_journal,
)

BEGUN = MoveJournal(
    "move-1", "file:/in", "file:/out", True, False, 1_795_000_000_000, Owner("o", "h", "u", "p")
)
ENDED = replace(BEGUN, state=JournalState.UNDONE, ended_ms=1_795_000_000_001, files=3)


@pytest.mark.parametrize("journal", [BEGUN, ENDED])
def test_round_trip(journal: MoveJournal) -> None:
    """What is written reads back."""
    assert decode_journal(encode_journal(journal), "j") == journal


@pytest.mark.parametrize(
    "field, value",
    [
        ("type", "asynccommit.CommitRecord/2"),
        ("state", "done"),
        ("jobId", "../elsewhere"),
        ("source", 1),
        ("dest", None),
        ("tree", "yes"),
        ("started", -1),
        ("ended", "soon"),
        ("files", -1),
        ("owner", {}),
    ],
)
def test_other_content_is_refused(field: str, value: Any) -> None:
    """The error names the file and the field."""
    content = json.loads(encode_journal(BEGUN)) | {field: value}
    with pytest.raises(ManifestError, match=field) as caught:
        decode_journal(json.dumps(content).encode(), "j")
    assert caught.value.path == "j"
