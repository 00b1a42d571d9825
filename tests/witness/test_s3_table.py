"""The table of servers of S3 is what was recorded, and what is recorded is what is tried."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict

import pytest

from asynccommit.errors import UnsupportedError
from tests.witness import s3_table
from tests.witness.s3_builds import NOT_HAD, SERVERS, Running, Server
from tests.witness.s3_table import Tried, load, page, try_server

MOTO = SERVERS[0]


def test_the_page_is_what_was_recorded() -> None:
    """Nobody edits the page, and each server that a clone can try is on it."""
    recorded = load()

    assert page(recorded) == s3_table.PAGE.read_text("utf-8")
    assert [*recorded["servers"]] == [server.name for server in SERVERS]
    tried = [Tried(**one) for one in recorded["servers"].values()]
    assert sum(not one.missing for one in tried) >= 6
    assert all(one.rules >= 72 and len(one.jobs) == 3 for one in tried if not one.missing)


@pytest.mark.sample(1)
def test_a_server_is_tried() -> None:
    """The probe, and jobs of each committer, give what is recorded of moto."""
    found, recorded = try_server(MOTO, rules=False), Tried(**load()["servers"]["moto"])

    assert (found.abilities, found.jobs) == (recorded.abilities, recorded.jobs)
    assert set(found.jobs.values()) == {""}


def test_a_server_that_cannot_be_had_is_said_to_be() -> None:
    """The page has the reason in the place of answers."""

    def running() -> AbstractContextManager[Running]:
        raise UnsupportedError("there is no compiler")

    found = try_server(Server("new", "1.0", "nowhere", running))
    recorded = {**load(), "servers": {**load()["servers"], "new": asdict(found)}}

    assert "| new 1.0 | there is no compiler |" in page(recorded)
    assert all(name in page(recorded) for name in NOT_HAD)
