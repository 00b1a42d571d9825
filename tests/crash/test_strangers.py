"""Jobs among strangers and rivals: nothing of anybody is lost, and every job comes to an end."""

from __future__ import annotations

import os

import pytest

from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash import reruns, rivals, strangers
from tests.crash.worlds import KINDS, SETTLING

SEEDS = int(os.environ.get("ASYNCCOMMIT_CRASH_SEEDS", "200"))
GROUP = 20


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_what_strangers_write_is_not_lost(first: int) -> None:
    """Their files stay, the rest is whole or undone, and a command that an error names ends it."""
    seeds = range(first, min(first + GROUP, SEEDS))
    found = [run_virtual(strangers.violations(n, KINDS[n % len(KINDS)])) for n in seeds]

    assert [text for texts in found for text in texts] == []


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_rivals_seem_to_run_one_after_the_other(first: int) -> None:
    """Two jobs that overwrite and replace each other's files end as in one of both orders."""
    seeds = range(first, min(first + GROUP, SEEDS))
    found = [run_virtual(rivals.violations(n, KINDS[n % len(KINDS)])) for n in seeds]

    assert [text for texts in found for text in texts] == []


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_an_id_that_is_used_again_while_a_driver_sleeps(first: int) -> None:
    """What it changes late is never seen, and keeps the next run from neither end."""
    seeds = range(first, min(first + GROUP, SEEDS))
    found = [run_virtual(reruns.violations(n, SETTLING[n % len(SETTLING)])) for n in seeds]

    assert [text for texts in found for text in texts] == []


@pytest.mark.parametrize("seed, kind", [(100607, "steps")])
def test_ids_used_again_that_were_found_once(seed: int, kind: str) -> None:
    """A driver that fell asleep while it read two runs of a job at once commits neither."""
    assert run_virtual(reruns.violations(seed, kind)) == []
