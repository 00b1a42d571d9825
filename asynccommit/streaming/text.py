"""Show sink logs, their problems and repairs, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.runtime.cells import ROWS, safe
from asynccommit.runtime.terminal import count_of, show_bytes
from asynccommit.stores.urls import Address
from asynccommit.streaming.adopt import Adoption
from asynccommit.streaming.repair import Change, Repaired
from asynccommit.streaming.verify import Batch, Finding, Verified

_AGAIN = Text(
    "nothing was changed: pass --yes to make the changes, while no query writes to the table"
)


def sink_text(found: Verified) -> RenderableType:
    """Return a log as text: its batches, and the files that readers see."""
    parts: list[RenderableType] = [Text.assemble(("table ", "bold"), safe(found.dest))]
    if found.newest is None:
        return Group(*parts, Text("  there is no log: readers see all files"))
    head = f"batches to {found.newest}, a compact file every {found.interval}; readers see "
    size = sum(file.size for file in found.files.values())
    parts.append(safe(f"  {head}{count_of(len(found.files), 'file')}, {show_bytes(size)}"))
    if found.unlisted:
        text = (
            f"{count_of(found.unlisted, 'file')} of the table in no batch: readers do not see them"
        )
        parts.append(safe(f"  {text}"))
    parts.append(Padding(_batches(found.batches), (0, 0, 0, 2)))
    return Group(*parts)


def findings_text(found: Verified) -> RenderableType:
    """Return the problems of a log as text, with the remedies."""
    if not found.findings:
        return Group(safe(f"no problems in the log of {found.dest}", "bold"), *_runs(found))
    count = len(found.findings) + found.more
    head = safe(f"{count_of(count, 'problem')} in the log of {found.dest}", "bold")
    return Group(head, *_findings(found.findings, count), *_runs(found))


def _runs(found: Verified) -> Iterable[RenderableType]:
    for run in found.running[:ROWS]:
        yield safe(f"  batch {run.batch} of query {run.query} runs, or its driver has died")
    if found.over:
        text = "may have left files: the next start of the query deletes them, or repair"
        yield safe(f"  {count_of(len(found.over), 'run')} of batches that the log has {text}")


def repair_text(dest: Address, done: Repaired) -> RenderableType:
    """Return the result of a repair as text, with the remaining problems."""
    parts: list[RenderableType] = []
    if done.changes:
        verb = "would repair" if done.dry_run else "repaired"
        parts.append(safe(f"{verb} {count_of(len(done.changes), 'file')} of {dest}", "bold"))
        parts += [safe(f"  {change.name}: {', '.join(change.what)}") for change in done.changes]
    elif not done.over:
        parts.append(safe(f"nothing in the log of {dest} can be repaired", "bold"))
    if done.over:
        what = f"{count_of(len(done.over), 'run')} of batches that the log has"
        if done.dry_run:
            parts.append(safe(f"would delete what {what} left in no batch"))
        elif not done.left:
            parts.append(safe(f"deleted {count_of(len(done.deleted), 'file')} of {what}"))
    if done.kept:
        parts.append(safe(f"  backups: {', '.join(done.kept)}"))
    if done.left:
        parts.append(safe("remaining problems:", "bold"))
        parts += _findings(done.left, len(done.left))
    if (done.changes or done.over) and done.dry_run:
        parts.append(_AGAIN)
    return Group(*parts)


def adoption_text(done: Adoption, *, done_now: bool) -> RenderableType:
    """Return to whom a log was given as text."""
    verb = "belongs" if done_now else "would belong"
    parts = [safe(f"the log of {done.dest} {verb} to query {done.query}", "bold")]
    if done.before is not None:
        parts.append(safe(f"  before, it was that of query {done.before}"))
    if done.checkpoint is not None:
        made = "start" if done_now else "would make one: start"
        parts.append(
            safe(
                f"  {done.checkpoint}: {made} the query with this checkpointLocation; its first "
                f"batch is {done.newest + 1}, and it reads from where its sources begin"
            )
        )
    if not done_now:
        parts.append(_AGAIN)
    return Group(*parts)


def adoption_json(done: Adoption, *, done_now: bool) -> dict[str, Any]:
    """Return to whom a log was given as JSON values."""
    return {
        "destination": str(done.dest),
        "dry_run": not done_now,
        "before": done.before,
        "query": done.query,
        "newest": done.newest,
        "checkpoint": None if done.checkpoint is None else str(done.checkpoint),
    }


def sink_json(found: Verified) -> dict[str, Any]:
    """Return a log as JSON values."""
    return {
        "destination": str(found.dest),
        "newest": found.newest,
        "interval": found.interval or None,
        "batches": [
            {"file": b.name, "bytes": b.size, "entries": b.entries, "query": b.query}
            for b in found.batches
            if b.read
        ],
        "not_read": [batch.name for batch in found.batches if not batch.read],
        "files": [
            {"path": file.path, "bytes": file.size, "modified": file.modified}
            for file in found.files.values()
        ],
        "unlisted": found.unlisted,
    }


def findings_json(found: Verified) -> dict[str, Any]:
    """Return the problems of a log as JSON values."""
    return {
        "destination": str(found.dest),
        "newest": found.newest,
        "files": len(found.files),
        "unlisted": found.unlisted,
        "findings": _list(found.findings),
        "more": found.more,
        "running": [run.name for run in found.running],
        "over": [run.name for run in found.over],
    }


def repair_json(dest: Address, done: Repaired) -> dict[str, Any]:
    """Return the result of a repair as JSON values."""
    return {
        "destination": str(dest),
        "would_repair" if done.dry_run else "repaired": [_change(one) for one in done.changes],
        "kept": done.kept,
        "left": _list(done.left),
        "over": [run.name for run in done.over],
        "deleted": done.deleted,
    }


def _batches(batches: Sequence[Batch]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    for name, justify in (("file", "left"), ("size", "right"), ("entries", "right")):
        table.add_column(name, justify="left" if justify == "left" else "right")
    table.add_column("query", overflow="fold")
    read = [batch for batch in batches if batch.read]
    for batch in read[-ROWS:]:
        cells = (batch.name, show_bytes(batch.size), f"{batch.entries:,}", batch.query or "")
        table.add_row(*map(safe, cells))
    if rest := len(batches) - len(read):
        table.add_row(safe(f"and {count_of(rest, 'file')} that readers no longer need", "dim"))
    return table


def _findings(findings: Sequence[Finding], count: int) -> Iterable[RenderableType]:
    for one in findings[:ROWS]:
        yield safe(f"  {one.file}: {one.problem}", "red")
        yield safe(f"    {one.wrong.value}")
    if count > ROWS:
        yield safe(f"  and {count - ROWS} more")


def _list(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [
        {
            "file": one.file,
            "wrong": one.wrong.name.lower(),
            "problem": one.problem,
            "remedy": one.wrong.value,
        }
        for one in findings
    ]


def _change(change: Change) -> dict[str, Any]:
    return {"file": change.name, "what": list(change.what), "bytes": len(change.new)}
