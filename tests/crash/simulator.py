"""Ranges of seeds of the simulations, whose results add up in a file at each commit.

Each simulation names its actors; one that has not struck in many seeds is a failure as well.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash import (
    chaos,
    children,
    disks,
    forgers,
    ignored,
    open_directories,
    reruns,
    rivals,
    servers,
    slices,
    strangers,
    test_journaled_moves,
    test_link_makers,
    test_uploads_races,
)
from tests.crash.worlds import ACCOUNTS, FLAT, HDFS, KINDS, SETTLING
from tests.support.flat_crashes import FlatWorld
from tests.support.strikes import counted

Violations = Callable[[int], Coroutine[Any, Any, list[str]]]
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "build" / "seeds.jsonl"
GROUP = 50  # seeds of a line: what a run that is killed loses
SHOWN = 20  # failures of a summary


class Simulation(NamedTuple):
    """A simulation: a function of a seed, and the actors that must strike in many seeds.

    ``run`` runs its coroutine: in virtual time, or for a real disk with ``asyncio.run``.
    """

    violations: Violations
    actors: frozenset[str]
    run: Callable[[Coroutine[Any, Any, list[str]]], list[str]] = run_virtual


REQUESTS = frozenset(f"request {kind}" for kind in ("before", "after", "cut_before", "cut", "late"))
DOUBLED = frozenset({"request twice", "request again"})
DRIVERS = frozenset({"death", "suspension"})
CHAOS = REQUESTS | DRIVERS | {"another driver", "zombie", "second job"}


def _in_worlds(violations: Callable[[int, str], Any], kinds: Iterable[str]) -> Violations:
    """Return the simulation whose seeds are in one world after the other."""
    worlds = [*kinds]
    return lambda seed: violations(seed, worlds[seed % len(worlds)])


SIMULATIONS: Mapping[str, Simulation] = {
    **{
        kind: Simulation(
            partial(chaos.violations, kind=kind),
            CHAOS
            | {"late upload" if kind in FLAT else "straggler"}
            | (frozenset() if kind in HDFS else DOUBLED),
        )
        for kind in (*ACCOUNTS, *FLAT, *HDFS)
    },
    "strangers": Simulation(
        _in_worlds(strangers.violations, KINDS), REQUESTS | DRIVERS | DOUBLED | {"stranger"}
    ),
    "rivals": Simulation(_in_worlds(rivals.violations, KINDS), REQUESTS | DRIVERS | DOUBLED),
    "reruns": Simulation(
        _in_worlds(reruns.violations, SETTLING), REQUESTS | DOUBLED | {"suspension"}
    ),
    "workers": Simulation(
        _in_worlds(slices.violations, SETTLING), REQUESTS | DRIVERS | DOUBLED | slices.ACTORS
    ),
    "disks": Simulation(disks.violations, disks.ACTORS),
    "forgers": Simulation(forgers.violations, forgers.ACTORS),
    "ignored": Simulation(ignored.violations, ignored.ACTORS, asyncio.run),
    "moves": Simulation(
        test_journaled_moves.violations, (REQUESTS - {"request cut_before"}) | {"death"}
    ),
    "servers": Simulation(servers.violations, servers.ACTORS),
    "uploads": Simulation(test_uploads_races.violations, REQUESTS | DRIVERS | DOUBLED),
    "blocks": Simulation(
        partial(test_uploads_races.violations, of=FlatWorld), REQUESTS | DRIVERS | DOUBLED
    ),
    "links": Simulation(test_link_makers.violations, frozenset({"link"}), asyncio.run),
    "children": Simulation(children.violations, children.ACTORS, asyncio.run),
    "stragglers": Simulation(open_directories.violations, open_directories.ACTORS, asyncio.run),
}


@dataclass(frozen=True)
class Run:
    """The result of a range of seeds.

    Attributes:
        scenario: the name of the simulation.
        first: the first seed.
        end: the seed after the last one.
        commit: the commit, with ``-dirty`` if files differ from it.
        strikes: of each actor.
        failures: what the seeds have found.
    """

    scenario: str
    first: int
    end: int
    commit: str
    strikes: Mapping[str, int]
    failures: tuple[str, ...]


def run(scenario: str, seeds: range, commit: str = "") -> Run:
    """Let seeds happen in one simulation."""
    simulation = SIMULATIONS[scenario]
    with counted() as strikes:
        found = [text for seed in seeds for text in simulation.run(simulation.violations(seed))]
    return Run(scenario, seeds.start, seeds.stop, commit, dict(sorted(strikes.items())), (*found,))


def idle(runs: Iterable[Run]) -> list[str]:
    """Return the actors that have not struck in any run of their simulation."""
    strikes: dict[str, Counter[str]] = {}
    for one in runs:
        strikes.setdefault(one.scenario, Counter()).update(one.strikes)
    return [
        f"{scenario}: {actor} never struck"
        for scenario, struck in strikes.items()
        for actor in sorted(SIMULATIONS[scenario].actors - struck.keys())
    ]


# --- the file -----------------------------------------------------------------------------------


def this_commit() -> str:
    """Return the short name of the commit, with ``-dirty`` if files differ from it."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.check_output(asked, cwd=ROOT, text=True).strip()


def append(results: Path, one: Run) -> None:
    """Add the line of a run; several processes may do so at the same time."""
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(asdict(one))}\n")


def read_runs(results: Path, commit: str) -> list[Run]:
    """Return the runs of one commit."""
    if not results.exists():
        return []
    lines = results.read_text(encoding="utf-8").splitlines()
    found = [Run(**json.loads(line)) for line in lines]
    return [one for one in found if one.commit == commit]


def summary(runs: list[Run]) -> list[str]:
    """Return the lines that say what all runs of a commit have found together."""
    lines = []
    for scenario in sorted({one.scenario for one in runs}):
        mine = [one for one in runs if one.scenario == scenario]
        seeds = {seed for one in mine for seed in range(one.first, one.end)}
        failures = len({text for one in mine for text in one.failures})
        strikes = sum((Counter(one.strikes) for one in mine), Counter[str]())
        told = ", ".join(f"{actor} {count:,}" for actor, count in sorted(strikes.items()))
        lines.append(f"{scenario}: {len(seeds):,} seeds, {failures} failures; strikes: {told}")
    found = sorted({text for one in runs for text in one.failures})
    return lines + found[:SHOWN] + idle(runs)
