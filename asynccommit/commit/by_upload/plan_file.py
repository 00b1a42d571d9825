"""The accepted plan on the store, for whoever resumes the commit.

It contains everything needed to complete the uploads, so that a pending set rewritten by a late
task attempt changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any

from asynccommit.commit.by_upload.context import UploadContext, save
from asynccommit.commit.by_upload.load_sets import checked_place
from asynccommit.commit.by_upload.loaded import LoadedSets, Pending
from asynccommit.commit.by_upload.plan import Old, UploadPlan
from asynccommit.commit.conditions import prove_conditions
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.job.messages import digest
from asynccommit.commit.job.places import read_places
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.commit.spill import Entry
from asynccommit.errors import ManifestError, NotFoundError, PreconditionError, StoreError
from asynccommit.formats.upload_plan import (
    CHUNK_ROWS,
    MAX_CHUNK_BYTES,
    OldRow,
    TaskRow,
    UploadChunk,
    UploadRow,
    decode_upload_chunk,
    encode_upload_chunk,
)
from asynccommit.formats.upload_record import UploadRecord
from asynccommit.options.job import Mode
from asynccommit.stores.tree import is_there, remove_file

_CHUNK_PARTS = 200_000
"""Parts that a chunk holds at most, and one upload more: some 10 MB."""


async def save_plan(run: UploadContext, plan: UploadPlan, plan_id: str) -> list[str]:
    """Write the plan next to the pending sets; return its chunks' digests."""
    digests: list[str] = []
    async for chunk in _chunks(run.layout, plan, plan_id):
        data = encode_upload_chunk(chunk, uploads_checked=True)
        await save(run, run.layout.plan(plan_id, chunk.index), data)
        digests.append(digest(data))
        if chunk.index == 0:
            await _prove(run, run.layout.plan(plan_id, 0), data)
    return digests


async def _prove(run: UploadContext, path: str, data: bytes) -> None:
    """Check that the store of the job's files never replaces an existing file.

    The check is made if that is not known. The commit record needs it, and so does the completion
    of uploads at the destination. Raises ``RejectedError``.
    """
    await prove_conditions(run.pending, path, data)
    traits = run.store.traits
    if traits.account != run.pending.traits.account and not traits.conditions_proven:
        probe = f"{run.layout.scratch}/_probe"
        await run.store.put(probe, b"")
        await prove_conditions(run.store, probe, b"")


async def drop_plan(run: UploadContext, plan_id: str, chunks: int) -> None:
    """Delete a plan that no record refers to."""
    for index in range(chunks):
        with suppress(StoreError):
            await remove_file(run.pending, run.layout.plan(plan_id, index))


async def _chunks(
    layout: UploadLayout, plan: UploadPlan, plan_id: str
) -> AsyncIterator[UploadChunk]:
    """Yield the plan in as few chunks as its rows allow, at least one."""
    index, held, chunk = 0, 0, dict[str, Any]()
    async for name, rows, size in _tables(layout, plan):
        if name in chunk or held + size > CHUNK_ROWS:
            yield UploadChunk(plan_id, index, **chunk)
            index, held, chunk = index + 1, 0, {}
        chunk[name] = rows
        held += size
    if chunk or not index:
        yield UploadChunk(plan_id, index, **chunk)


async def _tables(
    layout: UploadLayout, plan: UploadPlan
) -> AsyncIterator[tuple[str, Sequence[object], int]]:
    """Yield the name of a table, rows of it, and the rows that they count as."""
    tasks = [TaskRow(*pair) for pair in sorted(plan.loaded.tasks.items())]
    asides = [OldRow(layout.relative(path), *old) for path, old in sorted(plan.asides.items())]
    small: dict[str, Sequence[object]] = {"tasks": tasks, "aside": asides}
    for name, table in small.items():
        for at in range(0, len(table), CHUNK_ROWS):
            few = table[at : at + CHUNK_ROWS]
            yield name, few, len(few)
    async for old in _old_rows(layout, plan):
        yield "old", old, len(old)
    async for uploads in _upload_rows(layout, plan):
        parts = sum(len(row.parts) for row in uploads)
        yield "uploads", uploads, max(len(uploads), parts * CHUNK_ROWS // _CHUNK_PARTS)


async def _old_rows(layout: UploadLayout, plan: UploadPlan) -> AsyncIterator[list[OldRow]]:
    rows: list[OldRow] = []
    async for entry in plan.old.each():
        rows.append(OldRow(layout.relative(entry.dest), entry.size, entry.etag))
        if len(rows) == CHUNK_ROWS:
            yield rows
            rows = []
    if rows:
        yield rows


async def _upload_rows(layout: UploadLayout, plan: UploadPlan) -> AsyncIterator[list[UploadRow]]:
    rows: list[UploadRow] = []
    parts = 0
    async for dest, upload_id, size, some, token in plan.loaded.spill.each():
        rows.append(UploadRow(layout.relative(dest), upload_id, size, some, token))
        parts += len(some)
        if len(rows) == CHUNK_ROWS or parts >= _CHUNK_PARTS:
            yield rows
            rows, parts = [], 0
    if rows:
        yield rows


# --- reading ---------------------------------------------------------------------------------


async def load_plan(run: UploadContext, record: UploadRecord, plan: UploadPlan) -> None:
    """Read and check the plan that ``record`` names.

    Raises ``ManifestError`` for a chunk that is missing or damaged, or names a place that this job
    may not write to.
    """
    loaded = plan.loaded
    plan.mode = _mode(run, record)
    plan.targets = [run.layout.resolve(name) for name in places_in(record, "targets")]
    loaded.sets += record.sets
    with run.meter.timed("job_stage_load_manifests", len(record.plan)):
        for index, wanted in enumerate(record.plan):
            await _read(run, record, plan, index, wanted)
            run.meter.step()
        url = run.layout.pending_url(run.layout.plan(record.plan_id, 0))
        if (loaded.files, loaded.bytes) != (record.files, record.bytes):
            raise ManifestError(
                url,
                f"holds {loaded.files} files of {loaded.bytes} bytes, but the commit record has "
                f"{record.files} of {record.bytes}",
            )
        await _refuse_own(run, plan, url)


def _mode(run: UploadContext, record: UploadRecord) -> Mode:
    try:
        return Mode(record.mode)
    except ValueError:
        url = run.layout.pending_url(run.layout.record)
        raise ManifestError(
            url, f"mode is {record.mode[:100]!r}, which is not a write mode"
        ) from None


def places_in(record: UploadRecord, name: str) -> list[str]:
    """Return the places that a record stores under an option's name.

    ``guard.places_text`` wrote them.
    """
    return read_places(str(record.options.get(name) or "[]"))


async def has_plan(run: UploadContext, record: UploadRecord) -> bool:
    """Return whether any chunk of a record's plan exists."""
    for index in range(len(record.plan)):
        path = run.layout.plan(record.plan_id, index)
        if await is_there(run.pending, path):
            return True
    return False


async def _read(
    run: UploadContext, record: UploadRecord, plan: UploadPlan, index: int, wanted: str
) -> None:
    layout = run.layout
    path = layout.plan(record.plan_id, index)
    url = layout.pending_url(path)
    data = b""
    with suppress(NotFoundError):
        data = await run.pending.get(path, MAX_CHUNK_BYTES)
    if digest(data) != wanted:
        raise ManifestError(url, "is not the plan that the commit record names")
    chunk = decode_upload_chunk(data, url, record.plan_id, index)
    plan.loaded.tasks.update(chunk.tasks)
    try:
        for place, size, etag in chunk.aside:
            plan.asides[_place(layout, place, marker=True)] = Old(size, etag)
        old = [Entry("", _place(layout, row.place), row.size, row.etag) for row in chunk.old]
        await plan.old.append(old)
        await plan.loaded.add(list(_pending(layout, chunk)))
    except PreconditionError as error:
        raise ManifestError(url, f"{error.path} {error.detail}") from None


def _pending(layout: UploadLayout, chunk: UploadChunk) -> Iterator[Pending]:
    for place, upload_id, size, parts, token in chunk.uploads:
        yield Pending(_place(layout, place), upload_id, size, parts, token)


def _place(layout: UploadLayout, name: str, *, marker: bool = False) -> str:
    path = layout.resolve(name)
    if marker and path == layout.success:
        return path
    return checked_place(layout, path)


async def _refuse_own(run: UploadContext, plan: UploadPlan, url: str) -> None:
    """Raise an error for an old file to delete that the job itself writes."""
    with Fingerprints(run.options.spill_directory) as old:
        async for entry in plan.old.each():
            old.add([entry.dest])
        suspects = plan.loaded.dests.common(old) | plan.loaded.dests.repeated()
    if not suspects:
        return
    own = await _of(plan.loaded, suspects)
    async for entry in plan.old.each():
        if entry.dest in own:
            raise ManifestError(
                url, f"{entry.dest} is to be replaced, but is also written by the job"
            )


async def _of(loaded: LoadedSets, prints: set[int]) -> set[str]:
    return {p.dest async for p in loaded.spill.each() if fingerprint(p.dest) in prints}
