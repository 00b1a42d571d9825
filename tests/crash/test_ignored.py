"""A job on a OneLake that ignores a header from some request on."""

from __future__ import annotations

import pytest

from asynccommit.stores.adls import client
from tests.crash import ignored
from tests.support.selection import amount

SEEDS = amount("ASYNCCOMMIT_SEEDS", quick=6, full=60)


@pytest.mark.more
@pytest.mark.timeout(120)
async def test_no_job_takes_an_ignored_header_as_obeyed() -> None:
    """It fails by name, or warns if it was decided, and can be ended afterwards."""
    for seed in range(SEEDS):
        assert await ignored.violations(seed) == []


async def test_a_store_that_looks_at_no_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation bites: without the refusal a job ends well with such an answer."""
    monkeypatch.setattr(client, "_refuse_ignored", lambda *_: None)
    found = [text for seed in range(3) for text in await ignored.violations(seed)]

    assert any("ended well, though a header was ignored" in text for text in found)
