"""Requests of an earlier version's jar get the answers that they got from that version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asynccommit.spark.bridge import Bridge
from tests.corpus.requests import Asked, answered, load, same_answer

REQUESTS = load()


def _name(asked: Asked) -> str:
    return f"{asked.story}, {json.loads(asked.request)['what']}".replace(" ", "_")


@pytest.mark.sample(6)
@pytest.mark.parametrize("asked", REQUESTS, ids=_name)
def test_request_is_answered_as_it_was(asked: Asked, tmp_path: Path) -> None:
    """A check or a commit of each kind has the same answer, and leaves the same tree."""
    answer, tree = answered(asked, tmp_path / "root")

    assert same_answer(asked, answer), answer
    assert tree == asked.tree


def test_a_request_of_another_build_is_refused() -> None:
    """As it was recorded, it names no build of this version."""
    answer = json.loads(Bridge().apply(REQUESTS[0].request))

    assert not answer["ok"]
    assert answer["kind"] == "UnsupportedError"
