"""Record what this version leaves behind, so that later versions must end it alike.

Record only what a change means to change, and say in its message what that is: each line that
differs is a promise to those who upgrade between a death and its recovery.

    python -m tests.corpus                       what is recorded
    python -m tests.corpus --record adls hdfs    states on these stores; all without names
    python -m tests.corpus --count               write points and strikes
    python -m tests.corpus --requests            what the jar of this version asks; needs Spark
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.corpus import counts, deaths, requests
from tests.corpus.subjects import SUBJECTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, or say what is recorded."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus")
    parser.add_argument("stores", nargs="*", help=f"some of: {', '.join(SUBJECTS)}")
    parser.add_argument("--record", action="store_true", help="write states again")
    parser.add_argument("--count", action="store_true", help="count points and strikes again")
    parser.add_argument("--requests", action="store_true", help="write requests again")
    asked = parser.parse_args(arguments)
    if unknown := {*asked.stores} - SUBJECTS.keys():
        parser.error(f"no store is named {', '.join(sorted(unknown))}")
    for store in asked.stores or SUBJECTS if asked.record else ():
        deaths.save(store, {one.name: deaths.record(store, one) for one in SUBJECTS[store]})
    if asked.count:
        counts.save(counts.count())
    if asked.requests:
        requests.save(requests.record())
    for store, subjects in SUBJECTS.items():
        states = sum(len(deaths.load(store, one.name)) for one in subjects)
        size = (deaths.FILES / f"{store}.xz").stat().st_size
        sys.stdout.write(f"{store}: {len(subjects)} kinds of work, {states} states, {size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
