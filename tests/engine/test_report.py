"""Reports are plain values, and an error says what was done."""

from __future__ import annotations

import json

from asynccommit.engine import BulkError, BulkReport, Failure


def test_a_report_is_plain_json() -> None:
    """A report with failures can be written as JSON."""
    failure = Failure("/a", "/b", "there", "ExistsError")
    report = BulkReport("rename_files", done=1, failed=1, failures=(failure,))

    assert json.loads(json.dumps(report.to_json()))["failures"][0]["dest"] == "/b"


def test_an_error_says_what_was_done() -> None:
    """The text has the first error and the counts that are not zero."""
    report = BulkReport("move_tree", done=1_234, directories=2, skipped=3, failed=1)

    assert str(BulkError(report, ValueError("why"))) == (
        "move_tree: why (1,234 done, 2 directories moved, 3 skipped, 1 failed)"
    )
