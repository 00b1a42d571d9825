"""A seed says everything: no hash, no address, no thread and no clock of a machine plays a part."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.simulate.traced import NAMES, run

ROOT = Path(__file__).parents[2]
HASH_SEEDS = ("0", "1", "4242")


def _in_process(name: str, seed: int, hash_seed: str) -> list[str]:
    command = [sys.executable, "-m", "tests.simulate.traced", name, str(seed)]
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_the_same_in_every_process(name: str) -> None:
    """Requests with their times, the clock at the end and the next random numbers are the same."""
    first, *others = (_in_process(name, 9, hash_seed) for hash_seed in HASH_SEEDS)

    assert len(first) > 100
    assert first[-1].startswith("next ")
    for other in others:
        differing = [pair for pair in zip_longest(first, other) if pair[0] != pair[1]]
        assert differing[:3] == []


def test_another_seed_is_another_run() -> None:
    """The seed matters: other faults, other ids, other times."""
    runs: list[list[str]] = [[], []]
    for seed, lines in enumerate(runs):
        run("whole", seed, lines.append)

    assert runs[0] != runs[1]
