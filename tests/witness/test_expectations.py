"""How `make witness` reads reports and compares: each difference is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.witness.__main__ import ALL
from tests.witness.expectations import (
    FAILED,
    PASSED,
    SKIPPED,
    Expected,
    Outcome,
    differences,
    expected_of,
    read_expected,
    read_report,
    write_line,
)

REPORT = """<testsuite>
<testcase name="good" classname="c"/>
<testcase name="good" classname="c"/>
<testcase name="assumed()" classname="c"><skipped/></testcase>
<testcase name="bad[1]" classname="c"><failure message="no match&#10;at line 1"/></testcase>
<testcase name="broken" classname="c"><error>java.io.IOException: gone
at line 2</error></testcase>
</testsuite>"""
FOUND = {"good": PASSED, "good#2": PASSED, "assumed": SKIPPED, "bad[1]": FAILED, "broken": FAILED}


def test_report_has_each_test_once(tmp_path: Path) -> None:
    """Tests of one name are numbered, and of a failure the first line is kept."""
    (tmp_path / "TEST-junit-vintage.xml").write_text(REPORT)
    outcome = read_report(tmp_path)

    assert outcome.tests == FOUND
    assert outcome.said == {"bad[1]": "no match", "broken": "java.io.IOException: gone"}


@pytest.mark.parametrize(
    "expected, lines",
    [
        (Expected(2, 1, {"bad[1]": "why", "broken": "why"}), []),
        (Expected(2, 1, {"bad[1]": "why"}), ["broken failed: it said"]),
        (
            Expected(2, 1, {"bad[1]": "w", "broken": "w", "good": "w"}),
            ["good was expected to fail, and passed: w"],
        ),
        (
            Expected(2, 1, {"bad[1]": "w", "broken": "w", "other": "w"}),
            ["other was expected to fail, and is gone: w"],
        ),
        (
            Expected(2, 1, {"bad[1]": "w", "broken": "w", "assumed": "w"}),
            ["assumed was expected to fail, and skipped: w"],
        ),
        (
            Expected(3, 0, {"bad[1]": "w", "broken": "w"}),
            ["2 passed, expected 3", "1 skipped, expected 0"],
        ),
    ],
)
def test_any_difference_is_said(expected: Expected, lines: list[str]) -> None:
    """A new failure, an expected one that is none, and tests that are skipped or gone."""
    outcome = Outcome(FOUND, {"broken": "it said"})

    assert differences(outcome, expected) == lines


def test_expectations_are_read_as_they_are_written() -> None:
    """The lines of an outcome, with the reasons of the failures, say what is expected."""
    outcome = Outcome({**FOUND, "bad[a: b]": FAILED})
    expected = Expected(2, 1, {"bad[1]": "a: b", "bad[a: b]": "d", "broken": "c"})
    lines = write_line("contract.ITest", outcome, expected)

    assert read_expected(f"# comment\n\n{lines}\nITestB: left out: why\n") == {
        "contract.ITest": expected,
        "ITestB": Expected(left_out="why"),
    }


@pytest.mark.parametrize("line", ["ITest", "ITest: many", "    test"])
def test_lines_that_are_wrong_are_refused(line: str) -> None:
    """A line without its counts or its reason is an error, with the line."""
    with pytest.raises(ValueError, match=line):
        read_expected(line)


@pytest.mark.parametrize("suite", ALL)
def test_each_expected_failure_has_a_reason(suite: str) -> None:
    """The file says why each failure is expected, and why a class is left out."""
    found = expected_of(suite)

    assert found
    assert all(
        expected.left_out == "" or len(expected.left_out) > 10 for expected in found.values()
    )
    assert not [
        f"{name}: {test}"
        for name, expected in found.items()
        for test, reason in expected.failures.items()
        if reason.startswith("TODO") or len(reason) < 10
    ]


def test_a_star_stands_for_each_test_that_it_matches() -> None:
    """All of them must fail; a pattern that matches none is a difference."""
    outcome = Outcome({"a-1": FAILED, "a-2": FAILED, "b[1]": PASSED}, {"a-1": "no"})

    assert differences(outcome, Expected(1, 0, {"a-*": "why"})) == []
    assert differences(outcome, Expected(1, 0, {"*": "why"})) == [
        "b[1] was expected to fail, and passed: why"
    ]
    assert differences(outcome, Expected(1, 0, {"a-*": "why", "c*": "why"})) == [
        "c* was expected to fail, and is gone: why"
    ]
    lines = write_line("module", outcome, Expected(1, 0, {"a-*": "why"}))
    assert lines == "module: 1 passed, 0 skipped\n    a-* => why"
