"""Reports of bulk operations are a few plain lines."""

from __future__ import annotations

from asynccommit.engine import BulkReport, Failure, Mismatch, VerifyReport
from asynccommit.inspect.text import bulk_report, verify_report


def test_a_report_says_what_was_done() -> None:
    """Counts, sizes, requests, and what was settled or refused, each only if there is any."""
    report = BulkReport(
        "move_tree",
        done=1_500,
        directories=1,
        bytes=2_000_000,
        requests=1_510,
        refused=3,
        recovered={"rename": 2},
        seconds=1.5,
    )
    assert bulk_report(report).plain.splitlines() == [
        "moved 1 whole directory and 1,500 files (2.0 MB)",
        "2 requests found done although the response was lost",
        "1,510 requests in 1.50 s, 3 refused for the rate",
    ]
    dry = BulkReport("delete_files", done=1, skipped=1, dry_run=True)
    assert bulk_report(dry).plain.splitlines()[:2] == [
        "would delete 1 file",
        "1 file did not exist",
    ]


def test_failures_are_named_and_bounded() -> None:
    """Twenty failures are shown, without control characters, and the rest is counted."""
    failures = tuple(Failure(f"/{i}", "", f"rename /\x1b{i}: there", "X") for i in range(30))
    report = BulkReport("rename_files", failed=1_200, failures=failures)

    lines = bulk_report(report).plain.splitlines()

    assert lines[2] == "1,200 files failed:"
    assert lines[3] == "  rename /\\x1b0: there"
    assert lines[-1] == "  and 1,180 more; --json names a thousand"


def test_differences_are_named() -> None:
    """A missing file and another size are told with what was expected."""
    good = VerifyReport(checked=2, requests=1)
    bad = VerifyReport(
        checked=3,
        missing=1,
        changed=1,
        mismatches=(
            Mismatch("/a", {"size": 1, "etag": None}, {}),
            Mismatch("/b", {"size": None, "etag": "x"}, {"size": 2, "etag": "y"}),
        ),
    )
    assert verify_report(good).plain.endswith("all are as expected")
    assert verify_report(bad).plain.splitlines()[1:] == [
        "1 missing, 1 changed:",
        "  /a: missing, expected size 1",
        "  /b: size 2, etag y, expected etag x",
    ]
