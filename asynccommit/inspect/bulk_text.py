"""Reports of bulk operations as text."""

from __future__ import annotations

from rich.text import Text

from asynccommit.engine.report import BulkReport
from asynccommit.engine.verification import Mismatch, VerifyReport
from asynccommit.runtime.terminal import count_of, plain, show_bytes, show_seconds

_SHOWN = 20
_VERBS = {
    "rename_files": ("moved", "would move"),
    "move_tree": ("moved", "would move"),
    "delete_files": ("deleted", "would delete"),
    "delete_tree": ("deleted", "would delete"),
    "make_directories": ("made", "would make"),
    "resume": ("moved", "would move"),
    "undo": ("moved back", "would move back"),
}
_GONE = "did not exist"
_SKIPPED = {"resume": "had been moved before", "undo": "had been moved back before"}


def bulk_report(report: BulkReport) -> Text:
    """Return what was done, and the first failures."""
    done, would = _VERBS[report.operation]
    parts = []
    if report.directories:
        whole = count_of(report.directories, "whole directory", "whole directories")
        parts.append(whole)
    if report.done or not report.directories:
        size = f" ({show_bytes(report.bytes)})" if report.bytes else ""
        parts.append(count_of(report.done, "file") + size)
    lines = [f"{would if report.dry_run else done} {' and '.join(parts)}"]
    if report.skipped:
        lines.append(f"{count_of(report.skipped, 'file')} {_SKIPPED.get(report.operation, _GONE)}")
    if report.recovered:
        settled = count_of(sum(report.recovered.values()), "request")
        lines.append(f"{settled} found done although the response was lost")
    took = f"{count_of(report.requests, 'request')} in {show_seconds(report.seconds)}"
    lines.append(took + (f", {report.refused:,} refused for the rate" if report.refused else ""))
    lines += _failures(report)
    return Text("\n").join(Text(plain(line)) for line in lines)


def _failures(report: BulkReport) -> list[str]:
    if not report.failed:
        return []
    would = "would fail" if report.dry_run else "failed"
    shown = [f"  {failure.reason}" for failure in report.failures[:_SHOWN]]
    if report.failed > len(shown):
        shown.append(f"  and {report.failed - len(shown):,} more; --json names a thousand")
    return [f"{count_of(report.failed, 'file')} {would}:", *shown]


def verify_report(report: VerifyReport) -> Text:
    """Return what was compared, and the first differences."""
    took = f"{count_of(report.requests, 'request')} in {show_seconds(report.seconds)}"
    lines = [f"compared {count_of(report.checked, 'file')}, {took}"]
    if report.ok and report.checked:
        lines.append("all are as expected")
    else:
        lines.append(f"{report.missing:,} missing, {report.changed:,} changed:")
    lines += [f"  {_difference(it)}" for it in report.mismatches[:_SHOWN]]
    if report.missing + report.changed > _SHOWN:
        rest = report.missing + report.changed - _SHOWN
        lines.append(f"  and {rest:,} more; --json names a thousand")
    return Text("\n").join(Text(plain(line)) for line in lines)


def _difference(it: Mismatch) -> str:
    found = ", ".join(f"{key} {value}" for key, value in it.found.items())
    wanted = ", ".join(f"{key} {value}" for key, value in it.expected.items() if value is not None)
    return f"{it.path}: {found or 'missing'}" + (f", expected {wanted}" if wanted else "")
