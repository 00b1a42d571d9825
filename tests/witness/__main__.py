"""Run suites of other hands against the emulators and compare with what is expected.

Any difference fails the run: a test that fails, one that no longer does, one that is skipped or
has gone. The file of expectations of each suite gives the reason of each failure.

    python -m tests.witness                        all suites whose sources a registry has
    python -m tests.witness adlfs azure-sdk        these suites
    python -m tests.witness --fast                 those that take minutes, if they can be fetched
    WITNESS_OBSTORE=CLONE python -m tests.witness obstore-azure obstore-gcs
    python -m tests.witness hadoop Rename Acl      units with one of these in their names
    python -m tests.witness --list                 no run; the suites and their units
    python -m tests.witness s3-servers             servers of S3: see tests/witness/s3_table.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from asynccommit.errors import UnsupportedError
from tests.witness import hadoop_azure, obstore, pypi_suites, s3_table
from tests.witness.expectations import Opened, run_units, say

_Suites = dict[str, Callable[[], AbstractContextManager[Opened]]]

SUITES: _Suites = {
    **{suite.name: partial(pypi_suites.opened, suite) for suite in pypi_suites.SUITES},
    "hadoop": hadoop_azure.opened,
}
BY_HAND: _Suites = {suite.name: partial(obstore.opened, suite) for suite in obstore.SUITES}
ALL: _Suites = {**SUITES, **BY_HAND}
_SERVERS = "s3-servers"
_FAST = ("adlfs", "adlfs-hns", "azure-sdk")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="witness", description="Run suites of other hands against the emulators."
    )
    parser.add_argument("names", nargs="*", help=f"suites ({', '.join(ALL)}), parts of units")
    parser.add_argument("--fast", action="store_true", help=f"{', '.join(_FAST)}, if available")
    parser.add_argument("--list", action="store_true", help="list the units")
    parser.add_argument("--lines", metavar="FILE", help="add the lines of a new list to this file")
    parser.add_argument("--record", action="store_true", help="write down what servers of S3 do")
    asked = parser.parse_intermixed_args(arguments)
    if _SERVERS in asked.names:
        return s3_table.main(set(asked.names) - {_SERVERS}, record=asked.record)
    chosen = [name for name in ALL if name in asked.names] or list(_FAST if asked.fast else SUITES)
    parts = [name for name in asked.names if name not in ALL]
    bad: list[str] = []
    for suite in chosen:
        try:
            with ALL[suite]() as opened:
                if asked.list:
                    say("\n".join(f"{suite} {unit}" for unit in opened[0]))
                else:
                    bad += run_units(suite, opened, parts, asked.lines)
        except UnsupportedError as error:
            if not asked.fast:
                sys.exit(f"witness: {suite}: {error}")
            say(f"out     {suite}: {error}")
    sys.stderr.write("".join(f"{line}\n" for line in bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
