"""The accepted plan on the store, for whoever resumes the commit."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.drafts import draft, put_drafted
from asynccommit.commit.driver.durable import make_durable
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.paths import outermost, within
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Aside, Plan
from asynccommit.commit.planning.plan_check import refuse_excess
from asynccommit.commit.spill import Entry, in_batches
from asynccommit.errors import ManifestError, NotFoundError, PreconditionError, StoreError
from asynccommit.formats.commit_plan import (
    CHUNK_ROWS,
    MAX_CHUNK_BYTES,
    MAX_INLINE_ROWS,
    PlanChunk,
    decode_chunk,
    encode_chunk,
    rows_of,
)
from asynccommit.formats.commit_record import CommitRecord
from asynccommit.formats.plan_index import PlanIndex, encode_index
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import remove_file
from asynccommit.stores.unchanged import refuse_renumbering

_MAX_INLINE_BYTES = 256 * 1024
_AT_ONCE = 8
"""Number of chunks that are written at once; one has about 4 MB."""
T = TypeVar("T")


def has_chunks(files: int) -> bool:
    """Return whether the rows of so many files are in several chunks."""
    return files > CHUNK_ROWS


class Saved(NamedTuple):
    """A plan as the commit record describes it.

    Attributes:
        digests: of its chunks.
        version: the etag of the first one.
        chunk: the plan itself, if the record contains it.
        indexed: the digest of its index, if the record has that in the place of the others.
    """

    digests: tuple[str, ...]
    version: str | None
    chunk: PlanChunk | None = None
    indexed: str = ""


@dataclass(slots=True)
class PlanWriter:
    """Writes a plan below the job attempt's directory, in chunks.

    Each chunk is written when the next one is known, and a few are written at once. So the digests
    of all chunks are known before the last one is written. A small plan is not written where a file
    takes several requests: the record contains it.

    Attributes:
        run: the commit under way.
        plan_id: names the plan.
        indexed: whether the plan has an index, for workers.
        digests: of the chunks so far.
        version: the etag of the first chunk, once it is written.
        chunk: the plan, if it is part of the record.
    """

    run: CommitContext
    plan_id: str
    indexed: bool = False
    digests: list[str] = field(default_factory=list)
    version: str | None = None
    chunk: PlanChunk | None = None
    _held: bytes = b""
    _index: bytes = b""

    async def begin(self, plan: Plan) -> None:
        """Write all chunks but the last one."""
        await for_each(self._complete(plan), self._put, workers=_AT_ONCE)
        if self.chunk is not None:
            self._held = b""
            self.digests.clear()
        elif not self.digests and not self.run.store.traits.fences:
            self._hold(PlanChunk(self.plan_id, 0))  # the record needs a plan
        if self.indexed:
            index = PlanIndex(self.plan_id, tuple(self.digests), plan.loaded.tasks)
            self._index = encode_index(index)

    async def _complete(self, plan: Plan) -> AsyncIterator[tuple[int, bytes]]:
        """Yield number and content of each chunk but the last one, which is held."""
        chunk = None
        async for chunk in _chunks(self.run.layout, plan, self.plan_id):
            if self._held:
                yield len(self.digests) - 1, self._held
            self._hold(chunk)
        if chunk is not None and self._is_inline(chunk):
            self.chunk = chunk

    def _hold(self, chunk: PlanChunk) -> None:
        self._held = encode_chunk(chunk, files_checked=True)
        self.digests.append(digest(self._held))

    def _is_inline(self, chunk: PlanChunk) -> bool:
        return (
            self.run.store.traits.drafts
            and not self.indexed
            and len(self.digests) == 1
            and len(self._held) <= _MAX_INLINE_BYTES
            and rows_of(chunk) <= MAX_INLINE_ROWS
        )

    async def finish(self) -> None:
        """Write the chunk that is held, if there is one, and the index."""
        if self._index:
            await self._write(self.run.layout.plan_index(self.plan_id), self._index)
        if self._held:
            await self._put((len(self.digests) - 1, self._held))
            self._held = b""

    async def _put(self, item: tuple[int, bytes]) -> None:
        index, data = item
        info = await self._write(self.run.layout.plan(self.plan_id, index), data)
        if index == 0:  # not every job was set up by us, nor on this mount
            await refuse_renumbering(self.run.store, info)
        self.version = info.etag if index == 0 else self.version

    async def _write(self, path: str, data: bytes) -> Info:
        store, layout = self.run.store, self.run.layout
        info = await put_drafted(store, layout, path, data, await draft(store, layout, data))
        await make_durable(self.run, path)
        return info

    @property
    def saved(self) -> Saved:
        """Return what the commit record says of the plan."""
        indexed = digest(self._index) if self._index else ""
        return Saved(tuple(self.digests), self.version, self.chunk, indexed)


async def drop_plan(run: CommitContext, saving: PlanWriter) -> None:
    """Delete a plan that no record names."""
    paths = [run.layout.plan(saving.plan_id, index) for index in range(len(saving.digests))]
    paths += [run.layout.plan_index(saving.plan_id)] if saving.indexed else []
    for path in paths:
        with suppress(StoreError):
            await remove_file(run.store, path)


def digest(data: bytes) -> str:
    """Return the digest by which the commit record names a chunk."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


async def _chunks(layout: Layout, plan: Plan, plan_id: str) -> AsyncIterator[PlanChunk]:
    """Yield the plan in chunks that are as few as their number of rows allows."""
    index, held, chunk = 0, 0, dict[str, Sequence[Any]]()
    async for name, rows in _parts(layout, plan):
        if chunk and (name in chunk or held + len(rows) > CHUNK_ROWS):
            yield PlanChunk(plan_id, index, **chunk)
            index, held, chunk = index + 1, 0, {}
        chunk[name] = rows
        held += len(rows)
    if chunk:
        yield PlanChunk(plan_id, index, **chunk)


async def _parts(layout: Layout, plan: Plan) -> AsyncIterator[tuple[str, Sequence[Any]]]:
    """Yield the tables of the plan in batches of rows, directories first."""
    for part in _small_parts(layout, plan):
        yield part
    async for old in in_batches(plan.old.entries(), CHUNK_ROWS):
        yield "old", [(layout.relative(e.dest), e.size, e.etag) for e in old]
    base = len(layout.sources_dir.rstrip("/")) + 1
    inside = layout.root + "/"
    skip = len(inside)
    async for entries in in_batches(plan.loaded.spill.entries(), CHUNK_ROWS):
        files = [
            (s[base:], d[skip:] if d.startswith(inside) else d, z, e) for s, d, z, e in entries
        ]
        yield "files", files


def _small_parts(layout: Layout, plan: Plan) -> Iterator[tuple[str, Sequence[Any]]]:
    parts: tuple[tuple[str, Sequence[object]], ...] = (
        ("directories", [layout.relative(path) for path in plan.missing]),
        ("units", [layout.relative(path) for path in sorted(plan.unit_directories())]),
        ("aside", [_aside_row(layout, aside) for aside in plan.aside]),
        ("replaced", [_aside_row(layout, aside) for aside in plan.replaced]),
    )
    for name, rows in parts:
        for start in range(0, len(rows), CHUNK_ROWS):
            yield name, rows[start : start + CHUNK_ROWS]


def _aside_row(layout: Layout, aside: Aside) -> tuple[str, str, str | None]:
    return layout.relative(aside.path), aside.kind.value, aside.etag


# --- reading ---------------------------------------------------------------------------------


async def load_plan(run: CommitContext, record: CommitRecord, loaded: LoadedManifests) -> Plan:
    """Read and check the plan of ``record`` into ``loaded``.

    Raises ``ManifestError`` for a chunk that is missing, damaged or leads where no commit of this
    job may go, and for a plan that does more than its record allows.
    """
    plan = Plan(loaded)
    loaded.tasks.update(record.tasks)
    loaded.vouched = True
    reader = PlanReader(run, record.plan_id, record.outside, plan)
    with run.meter.timed("job_stage_load_manifests", len(record.plan)):
        for index, wanted in enumerate(record.plan):
            await reader.read(index, wanted)
            run.meter.step()
        if record.chunk is not None:
            await reader.take(record.chunk, run.layout.url(run.layout.record))
    if (loaded.files, loaded.bytes) != (record.files, record.bytes):
        raise ManifestError(
            run.layout.url(
                run.layout.plan(record.plan_id, 0) if record.plan else run.layout.record
            ),
            f"holds {loaded.files} files of {loaded.bytes} bytes, but the commit record has "
            f"{record.files} of {record.bytes}",
        )
    plan.units = set(outermost(loaded.directories))
    await refuse_excess(run, record, plan)
    plan.make = plan.to_make(run.store.traits)
    return plan


@dataclass(slots=True)
class PlanReader:
    """Reads chunks into a plan, and refuses what leads elsewhere.

    Attributes:
        run: the commit under way.
        plan_id: names the plan.
        named: the places outside of the destination that the commit changes.
        plan: takes what the chunks hold.
        outside: directories outside that were found to be allowed.
    """

    run: CommitContext
    plan_id: str
    named: Sequence[str]
    plan: Plan
    outside: set[str] = field(default_factory=set)

    async def read(self, index: int, wanted: str) -> None:
        """Read one chunk, and take it in."""
        layout = self.run.layout
        path = layout.plan(self.plan_id, index)
        url = layout.url(path)
        data = b""
        with suppress(NotFoundError):
            data = await self.run.store.get(path, MAX_CHUNK_BYTES)
        if digest(data) != wanted:
            raise ManifestError(url, "is not the plan that the commit record names")
        await self.take(decode_chunk(data, url, self.plan_id, index), url)

    async def take(self, chunk: PlanChunk, url: str) -> None:
        """Take in one chunk; ``url`` names its file in messages."""
        layout = self.run.layout
        self.plan.missing += [self._place(name, url, made=True) for name in chunk.directories]
        self.plan.loaded.directories.update(self._place(name, url) for name in chunk.units)
        self.plan.aside += [self._aside(row, url) for row in chunk.aside]
        self.plan.replaced += [self._aside(row, url) for row in chunk.replaced]
        old = [Entry("", self._place(d, url, aside=True), z, e) for d, z, e in chunk.old]
        await self.plan.old.append(old)
        for name, slash in sorted({s.partition("/")[:2] for s, *_ in chunk.files}):
            if not layout.has_source(name, below=bool(slash)):
                raise ManifestError(url, f"{name[:200]!r} is not a directory of a task of this job")
        base = layout.sources_dir.rstrip("/") + "/"
        files = [Entry(base + s, self._place(d, url), z, e) for s, d, z, e in chunk.files]
        await self.plan.loaded.add(files, [])

    def _aside(self, row: tuple[str, str, str | None], url: str) -> Aside:
        name, kind, etag = row
        return Aside(self._place(name, url, aside=True), Kind(kind), etag)

    def _place(self, name: str, url: str, *, aside: bool = False, made: bool = False) -> str:
        layout = self.run.layout
        path = layout.resolve(name)
        if layout.reserves(path) and not (aside and path == layout.success):
            raise ManifestError(url, f"tasks may not write to {path}")
        parent = path.rpartition("/")[0]
        if name.startswith("/") and parent not in self.outside:
            self._refuse_outside(path, url, made=made)
            if not made:
                self.outside.add(parent)
        return path

    def _refuse_outside(self, path: str, url: str, *, made: bool) -> None:
        """Refuse paths outside the places that the record names."""
        named = self.named
        if not within(path, named) and not (made and any(within(p, [path]) for p in named)):
            raise ManifestError(url, f"{path} is outside the destination")
        if not self.run.options.allow_outside_destination:
            raise PreconditionError(
                "rename",
                path,
                "is outside the destination, which a resumed commit changes only if allowed: if "
                "the job was meant to write there, set asynccommit.resume.outside",
            )
