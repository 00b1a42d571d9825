"""Format open uploads and the result of aborting them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.commit.by_upload.abort_uploads import Aborted
from asynccommit.inspect.open_uploads import DAY, Choice, OpenUpload, OpenUploads, month
from asynccommit.runtime.cells import columns, safe
from asynccommit.runtime.terminal import count_of, plain, show_bytes, show_seconds

_NOTE = (
    "Parts are stored and billed until their upload is completed or aborted: here ${price} per "
    "GB and month, without requests."
)


def upload_list(found: OpenUploads, price: float) -> RenderableType:
    """Return the uploads as a table, with their monthly price.

    Args:
        found: the open uploads.
        price: dollars per GB and month.
    """
    head = Text.assemble(("destination ", "bold"), safe(found.dest))
    if not found.uploads:
        return Group(head, Text("  no upload is open"))
    table = _table(found, found.uploads, price)
    total = safe(f"{_sum(found.uploads)}, {_dollars(_size(found.uploads), price)} a month", "bold")
    note = Text(_NOTE.format(price=f"{price:g}"), style="dim")
    return Group(head, Padding(Group(table, Text(), total, note), (0, 0, 0, 2)))


def upload_plan(found: OpenUploads, choice: Choice, price: float) -> RenderableType:
    """Return what an abort would do.

    Args:
        found: the open uploads.
        choice: the uploads to abort and to keep.
        price: dollars per GB and month.
    """
    parts: list[RenderableType] = [safe(f"would abort {_sum(choice.uploads)}", "bold")]
    if choice.uploads:
        parts.append(Padding(_table(found, choice.uploads, price), (0, 0, 0, 2)))
    return Group(*parts, *_kept(choice), *([_AGAIN] if choice.uploads else []))


def upload_abort(choice: Choice, done: Aborted) -> RenderableType:
    """Return the report of an abort; it names every failure."""
    gone = {upload[:2] for upload in done.aborted}
    head = f"aborted {_sum([one for one in choice.uploads if one.upload[:2] in gone])}"
    parts: list[RenderableType] = [safe(head, "bold")]
    if done.ended:
        parts.append(Text(f"  {count_of(len(done.ended), 'upload')} had already ended"))
    parts += [
        Padding(safe(f"failed  {upload.path} {upload.upload_id}: {error}", "red"), (0, 0, 0, 2))
        for upload, error in done.failures
    ]
    return Group(*parts, *_kept(choice))


_AGAIN = Text("nothing was changed: pass --yes to abort them")


def _kept(choice: Choice) -> list[RenderableType]:
    """Return the kept uploads by reason; a line may end in a command."""
    counts: dict[str, int] = {}
    for kept in choice.kept:
        counts[kept.reason] = counts.get(kept.reason, 0) + 1
    return [
        Text(plain(f"  kept {count_of(number, 'upload')}: {reason}"), overflow="ignore")
        for reason, number in counts.items()
    ]


def _table(found: OpenUploads, uploads: Sequence[OpenUpload], price: float) -> Table:
    numbers = ("parts", "size", "a month")
    table = columns("age", "job", *numbers, "key", "upload id", numbers=numbers)
    for one in uploads:
        key, upload_id = one.upload.path.removeprefix("/"), one.upload.upload_id
        cells = (_age(found.age(one)), one.job, f"{one.parts:,}", show_bytes(one.size))
        table.add_row(*map(safe, (*cells, _dollars(one.size, price), key, upload_id)))
    return table


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return show_seconds(seconds) if seconds < 2 * DAY else count_of(int(seconds / DAY), "day")


def _sum(uploads: Sequence[OpenUpload]) -> str:
    parts = sum(one.parts for one in uploads)
    held = f", {count_of(parts, 'part')}, {show_bytes(_size(uploads))}" if uploads else ""
    return count_of(len(uploads), "upload") + held


def _size(uploads: Sequence[OpenUpload]) -> int:
    return sum(one.size for one in uploads)


def _dollars(size: int, price: float) -> str:
    cost = month(size, price)
    return f"${cost:,.2f}" if cost >= 0.005 or not cost else "<$0.01"
