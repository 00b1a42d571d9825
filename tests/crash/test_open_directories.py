"""Stragglers with open directories: their files stay out of the table, and no other's is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asynccommit.stores.local.store import LocalStore
from tests.crash.simulator import idle, run
from tests.support.selection import amount

SEEDS = amount("ASYNCCOMMIT_SEEDS", quick=12, full=200)


def test_what_stragglers_write_is_not_published() -> None:
    """A job ends whole or undone, and each straggler has struck."""
    one = run("stragglers", range(SEEDS))

    assert one.failures == ()
    assert idle([one]) == []


@pytest.mark.full
def test_whole_directories_on_a_disk_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task's directory that becomes one of the table is what this would find."""
    monkeypatch.setattr(LocalStore, "traits", replace(LocalStore.traits, handles=False))
    one_by_one = (run("stragglers", range(seed, seed + 1)) for seed in range(100))
    failures = (text for one in one_by_one for text in one.failures)

    assert any("in a directory of a task is published" in text for text in failures)
