"""Compare files of a store with what is expected of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from asynccommit.commit.spill import in_batches
from asynccommit.engine.operation import BulkOperation
from asynccommit.engine.pairs import map_each
from asynccommit.engine.paths import checked_path, parent_of
from asynccommit.engine.renames import find
from asynccommit.engine.report import NAMED, OnProgress
from asynccommit.errors import NotFoundError, OptionError, PreconditionError
from asynccommit.results import Printed
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.tree import pages

_BATCH = 4_096
_BATCHES = 4
_WORTH_LISTING = 16
"""Files expected in a directory from which it is listed, as one page takes one request."""


class Expected(NamedTuple):
    """Expected facts about one file.

    Attributes:
        path: absolute path.
        size: size in bytes; ``None`` for any.
        etag: etag as listings show it; ``None`` for any.
    """

    path: str
    size: int | None = None
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A file that is not as expected.

    Attributes:
        path: the file.
        expected: its expected size and etag.
        found: the size and etag that it has; empty if nothing is there.
    """

    path: str
    expected: Mapping[str, Any]
    found: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VerifyReport(Printed):
    """The result of a verification.

    Attributes:
        checked: number of files that were compared.
        missing: number of files that are not there.
        changed: number of files with another size or etag, or with a directory in their place.
        mismatches: these files, at most a thousand.
        requests: number of requests sent.
        seconds: duration.
    """

    checked: int = 0
    missing: int = 0
    changed: int = 0
    mismatches: Sequence[Mismatch] = field(default=(), repr=False)
    requests: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Return whether every file is as expected."""
        return not self.missing and not self.changed

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self) | {"ok": self.ok}


async def verify(
    store: Store,
    expected: Iterable[Sequence[Any]] | AsyncIterable[Sequence[Any]],
    *,
    on_progress: OnProgress | None = None,
) -> VerifyReport:
    """Compare files with their expected sizes and etags.

    Directories of which many files are expected are listed; other files take a request each.

    Args:
        store: the store, as ``asynccommit.open_store`` opens it.
        expected: ``Expected``, or tuples ``(path, size)`` or ``(path, size, etag)``, from any
            iterable, which is read as the work goes on. ``None`` for a size or etag is any.
        on_progress: called a few times a second, in a thread.

    Raises:
        BulkError: the store could not be read, or an entry is invalid.
    """
    operation = BulkOperation("verify", store, on_progress=on_progress)
    if isinstance(expected, Sequence):
        operation.total = len(expected)
    comparison = _Comparison(operation)
    entries = map_each(expected, _read)
    await operation.each(in_batches(entries, _BATCH), comparison.compare, workers=_BATCHES)
    report = await operation.result()
    return VerifyReport(
        report.done,
        comparison.missing,
        comparison.changed,
        tuple(comparison.mismatches),
        report.requests,
        report.seconds,
    )


def _read(entry: Sequence[Any]) -> Expected:
    try:
        wanted = entry if isinstance(entry, Expected) else Expected(*entry)
    except TypeError:
        text = f"expected (path, size) or (path, size, etag), not {repr(entry)[:200]}"
        raise OptionError(text) from None
    return wanted._replace(path=checked_path(wanted.path))


class _Comparison:
    """Compares expected files with the store, and keeps what differs."""

    def __init__(self, operation: BulkOperation) -> None:
        self.missing = self.changed = 0
        self.mismatches: list[Mismatch] = []
        self._operation = operation
        self._store = operation.store

    async def compare(self, batch: Sequence[Expected]) -> None:
        """Compare some files."""
        groups: dict[str, list[Expected]] = defaultdict(list)
        for wanted in batch:
            groups[parent_of(wanted.path)].append(wanted)
        alone = list[Expected]()
        listed = list[str]()
        for parent, group in groups.items():
            if len(group) < _WORTH_LISTING:
                alone += group
            else:
                listed.append(parent)
        workers = self._operation.workers
        await for_each(listed, lambda it: self._listed(it, groups[it], alone), workers=workers)
        await for_each(alone, self._alone, workers=workers)

    async def _alone(self, wanted: Expected) -> None:
        self._note(wanted, await find(self._store, wanted.path))

    async def _listed(self, parent: str, group: Sequence[Expected], alone: list[Expected]) -> None:
        """Compare by a listing.

        Files that its first pages do not show are added to ``alone``.
        """
        waiting = {wanted.path: wanted for wanted in group}
        alone += [wanted for wanted in group if waiting[wanted.path] is not wanted]
        left = len(group)
        with suppress(NotFoundError, PreconditionError):
            async for page in pages(self._store, parent):
                for info in page:
                    if (wanted := waiting.pop(info.path, None)) is not None:
                        self._note(wanted, info)
                left -= _WORTH_LISTING
                if left <= 0 or not waiting:
                    break
        alone += waiting.values()

    def _note(self, wanted: Expected, info: Info | None) -> None:
        if info is None:
            self.missing += 1
            self._keep(wanted, {})
        elif info.kind is not Kind.FILE:
            self.changed += 1
            self._keep(wanted, {"kind": info.kind.value})
        elif wanted.size not in (None, info.size) or wanted.etag not in (None, info.etag):
            self.changed += 1
            self._keep(wanted, {"size": info.size, "etag": info.etag})
        self._operation.finish(size=0 if info is None else info.size)

    def _keep(self, wanted: Expected, found: Mapping[str, Any]) -> None:
        if len(self.mismatches) < NAMED:
            expected = {"size": wanted.size, "etag": wanted.etag}
            self.mismatches.append(Mismatch(wanted.path, expected, found))
