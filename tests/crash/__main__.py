"""Let ranges of seeds happen, and say what all runs of this commit have found.

Each run adds to ``build/seeds.jsonl``; runs of several ranges, one after the other or at the same
time, add up. The exit code is 1 if a seed has found something or an actor has never struck.

    python -m tests.crash --seeds 0:2000                every simulation
    python -m tests.crash --seeds 2000:4000 adls hns    some of them
    python -m tests.crash                               no run; the summary
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.crash import simulator


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=_first_line())
    names = ", ".join(simulator.SIMULATIONS)
    parser.add_argument("scenarios", nargs="*", metavar="NAME", help=f"some of: {names}")
    parser.add_argument("--seeds", type=_seeds, default=range(0), help="FIRST:END")
    parser.add_argument("--results", type=Path, default=simulator.RESULTS, help="the file")
    asked = parser.parse_args(arguments)
    if unknown := {*asked.scenarios} - simulator.SIMULATIONS.keys():
        parser.error(f"no simulation is named {', '.join(sorted(unknown))}: expected {names}")
    commit = simulator.this_commit()
    for first in asked.seeds[:: simulator.GROUP]:
        seeds = range(first, min(first + simulator.GROUP, asked.seeds.stop))
        for scenario in asked.scenarios or simulator.SIMULATIONS:
            simulator.append(asked.results, simulator.run(scenario, seeds, commit))
    runs = simulator.read_runs(asked.results, commit)
    lines = [f"commit {commit}", *simulator.summary(runs)]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(one.failures for one in runs) or bool(simulator.idle(runs)))


def _first_line() -> str:
    return (__doc__ or "").partition("\n")[0]


def _seeds(text: str) -> range:
    first, _, end = text.partition(":")
    return range(int(first), int(end))


if __name__ == "__main__":
    sys.exit(main())
