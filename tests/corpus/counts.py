"""Write points and strikes of the crash tests, in a table: how much the tests try.

A change may make them more. What makes them fewer takes something out of the tests' sight.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from tests.corpus import deaths
from tests.corpus.subjects import SUBJECTS
from tests.crash import simulator

TABLE = Path(__file__).parent / "counts.json"
SEEDS = range(20)
Counts = Mapping[str, Mapping[str, int]]


def write_points(store: str) -> dict[str, int]:
    """Return how many writes each kind of work takes on a store."""
    return {one.name: deaths.writes(store, one) for one in SUBJECTS[store]}


def strikes(simulation: str) -> dict[str, int]:
    """Return how often each actor of a simulation strikes."""
    return dict(simulator.run(simulation, SEEDS).strikes)


def count() -> dict[str, Counts]:
    """Return the whole table."""
    return {
        "write points": {store: write_points(store) for store in SUBJECTS},
        "strikes": {name: strikes(name) for name in simulator.SIMULATIONS},
    }


def least(struck: int) -> int:
    """Return how many strikes there are at least where a change has only moved them about."""
    return max(1, math.floor(struck - 3 * math.sqrt(struck)))


def save(table: Mapping[str, Counts]) -> None:
    """Write the table."""
    TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", "utf-8")


def load() -> Mapping[str, Counts]:
    """Return the table that was recorded."""
    found: Mapping[str, Counts] = json.loads(TABLE.read_text("utf-8"))
    return found
