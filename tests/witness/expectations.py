"""Expectations of suites of other hands, and how an outcome differs from them.

A file of expectations has a line for each unit of a suite (a test class, or a module): how many
tests pass and how many are skipped. An indented line is a test that is expected to fail, with its
reason. A unit may be left out, for a reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

_LEFT_OUT = "left out: "
_REASON = " => "  # names of tests have colons

PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"

FOLDER = Path(__file__).parent


@dataclass
class Outcome:
    """The results of a class: of each test, and the first line of each failure."""

    tests: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def names(self, result: str) -> list[str]:
        """Return the tests with a result."""
        return sorted(name for name, found in self.tests.items() if found == result)


Opened = tuple[Sequence[str], Callable[[str], Outcome]]
"""The units of a suite, and a function that runs one of them."""


@dataclass
class Expected:
    """What a class is expected to do; a failure is expected for its reason.

    A class that is left out, for its reason, is not run. A name with stars stands for every test
    that it matches.
    """

    passed: int = 0
    skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    left_out: str = ""

    def expanded(self, tests: Iterable[str]) -> dict[str, str]:
        """Return the reason of each failure that is expected of ``tests``."""
        found: dict[str, str] = {}
        for name, reason in self.failures.items():
            pattern = re.compile(re.escape(name).replace(r"\*", ".*"))
            same = [test for test in tests if pattern.fullmatch(test)] if "*" in name else []
            found |= dict.fromkeys(same or [name], reason)
        return found


def read_expected(text: str) -> dict[str, Expected]:
    """Read the expectations: a line for each class, and indented ones for its failures."""
    found: dict[str, Expected] = {}
    last = Expected()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        separator = _REASON if line.startswith(" ") else ": "
        name, found_one, rest = line.partition(separator)
        if not found_one:
            raise ValueError(f"{line!r} has no {separator!r}")
        if line.startswith(" "):
            last.failures[name.strip()] = rest
            continue
        if rest.startswith(_LEFT_OUT):
            found[name] = Expected(left_out=rest.removeprefix(_LEFT_OUT))
            continue
        counts = re.fullmatch(r"(\d+) passed, (\d+) skipped", rest)
        if counts is None:
            raise ValueError(f"{line!r} has no counts")
        last = found[name] = Expected(int(counts[1]), int(counts[2]))
    return found


def differences(outcome: Outcome, expected: Expected) -> list[str]:
    """Return each difference of a class from what is expected, as a line."""
    failed = outcome.names(FAILED)
    wanted = expected.expanded(outcome.tests)
    found = [
        f"{name} failed: {outcome.said.get(name, '')}" for name in failed if name not in wanted
    ]
    found += [
        f"{name} was expected to fail, and {outcome.tests.get(name, 'is gone')}: {reason}"
        for name, reason in wanted.items()
        if name not in failed
    ]
    if found:
        return found
    counts = ((PASSED, expected.passed), (SKIPPED, expected.skipped))
    return [
        f"{number} {result}, expected {count}"
        for result, count in counts
        if (number := len(outcome.names(result))) != count
    ]


def read_report(folder: Path) -> Outcome:
    """Read JUnit's XML reports; tests of the same name are numbered."""
    outcome = Outcome()
    for report in sorted(folder.glob("TEST-*.xml")):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            base = name = re.sub(r"\(\)$", "", case.get("name", ""))
            number = 1
            while name in outcome.tests:
                number += 1
                name = f"{base}#{number}"
            outcome.tests[name] = _result(case)
            problem = (
                case.find("failure") if case.find("failure") is not None else case.find("error")
            )
            if problem is not None:
                text = problem.get("message") or problem.text or ""
                outcome.said[name] = (text.strip().splitlines() or [""])[0][:300]
    return outcome


def _result(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return FAILED
    return PASSED if case.find("skipped") is None else SKIPPED


def write_line(name: str, outcome: Outcome, old: Expected) -> str:
    """Return the lines of a class for the file of expectations."""
    counts = f"{len(outcome.names(PASSED))} passed, {len(outcome.names(SKIPPED))} skipped"
    failed = outcome.names(FAILED)
    covered = old.expanded(failed)
    reasons = {name: why for name, why in old.failures.items() if "*" in name}
    reasons |= {_: f"TODO {outcome.said.get(_)}" for _ in failed if _ not in covered}
    reasons |= {_: old.failures[_] for _ in failed if _ in old.failures}
    return "\n".join(
        [f"{name}: {counts}", *(f"    {_}{_REASON}{why}" for _, why in reasons.items())]
    )


def expected_of(suite: str) -> dict[str, Expected]:
    """Read the expectations of a suite."""
    return read_expected((FOLDER / f"{suite}.txt").read_text("utf-8"))


def run_units(suite: str, opened: Opened, parts: Sequence[str], lines: str | None) -> list[str]:
    """Run the units of a suite, say what each did, and return the differences.

    Args:
        suite: its name, which the file of its expectations has too.
        opened: its units.
        parts: run only units whose names contain one of these; empty: all.
        lines: add the lines of a new file of expectations to this file.
    """
    expected, (units, run) = expected_of(suite), opened
    totals, bad = dict.fromkeys((PASSED, SKIPPED, FAILED), 0), []
    for name in units:
        if parts and not any(part in name for part in parts):
            continue
        wanted = expected.get(name, Expected())
        if wanted.left_out:
            say(f"out     {name}: {wanted.left_out}")
            continue
        outcome = run(name)
        for result in totals:
            totals[result] += len(outcome.names(result))
        found = differences(outcome, wanted)
        bad += [f"{suite}: {name}: {line}" for line in found]
        say(f"{'DIFFERS' if found else 'ok':8}{write_line(name, outcome, wanted)}")
        if lines:
            with open(lines, "a", encoding="utf-8") as file:
                file.write(f"{write_line(name, outcome, wanted)}\n")
    gone = sorted(set(expected) - set(units))
    bad += [f"{suite}: {name} is expected, but is not in the suite" for name in gone]
    say(f"{suite}: {', '.join(f'{count} {result}' for result, count in totals.items())}")
    return bad


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
