"""One bulk operation: its workers, counts, failures and progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

from asynccommit.engine.report import (
    NAMED,
    BulkError,
    BulkProgress,
    BulkReport,
    Failure,
    OnProgress,
)
from asynccommit.errors import StoreError
from asynccommit.redact import Redacted, redact
from asynccommit.runtime.apart import Listener
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.in_flight import InFlightLimit
from asynccommit.stores.policies.traffic import Traffic, traffic_of

log = logging.getLogger(__name__)

T = TypeVar("T")
OnError = Literal["stop", "continue"]

_PROGRESS_INTERVAL = 0.1


class BulkOperation:
    """The counts of one bulk operation, and its workers.

    Args:
        name: name of the public function.
        store: the store.
        on_error: ``stop`` begins no more items after the first failure; ``continue`` goes on.
        dry_run: whether nothing is changed.
        on_progress: called a few times a second, in a thread.

    Attributes:
        done: number of items done.
        directories: number of directories moved as a whole.
        skipped: number of items for which there was nothing to do.
        bytes: total size of the files done.
        total: number of items; ``None`` while unknown.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        *,
        on_error: OnError = "stop",
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.name = name
        self.store = store
        self.dry_run = dry_run
        self.done = self.directories = self.skipped = self.bytes = 0
        self.total: int | None = None
        self._failed = 0
        self._failures: list[Failure] = []
        self._first: BaseException | None = None
        self._stops = on_error == "stop"
        self._listener = Listener(on_progress, _note_failure)
        self._before = _traffic(store)
        self._started = self._reported = _now()

    @property
    def workers(self) -> int:
        """Return the number of items to work on at a time."""
        return workers_of(self.store)

    async def each(
        self,
        items: Iterable[T] | AsyncIterable[T],
        work: Callable[[T], Awaitable[object]],
        *,
        workers: int | None = None,
    ) -> None:
        """Await ``work(item)`` for every item, many at a time.

        ``work`` calls ``fail`` for an item that fails. Nothing is begun once the operation has
        stopped. Raises ``BulkError`` for any other error, such as one of ``items`` itself.
        """
        if self.has_stopped:
            return
        try:
            await for_each(items, work, workers=workers or self.workers)
        except _Stopped:
            return
        except Exception as error:
            self._first = self._first or error
            await self._listener.end()
            raise BulkError(self.report(), self._first) from error

    def fail(self, path: str, dest: str, error: StoreError) -> None:
        """Count a failure of ``work``.

        Nothing more is begun if the operation stops at errors.
        """
        self.record(path, dest, error)
        if self._stops:
            raise _Stopped

    def record(self, path: str, dest: str, error: StoreError) -> None:
        """Count a failure outside of ``work``."""
        self._failed += 1
        self._first = self._first or error
        if len(self._failures) < NAMED:
            reason = redact(str(error))
            self._failures.append(Failure(path, dest, reason, type(error).__name__))
        self._tell()

    @contextmanager
    def recording(self, path: str, dest: str = "") -> Iterator[None]:
        """Count an error of the store in the block as a failure at ``path``."""
        try:
            yield
        except StoreError as error:
            self.record(path, dest, error)

    def finish(self, count: int = 1, size: int = 0) -> None:
        """Count items done, with their total size in bytes."""
        self.done += count
        self.bytes += size
        self._tell()

    def observe(self, done: int, total: int | None) -> None:
        """Report how many items another engine has done."""
        self.done, self.total = done, total
        self._tell()

    def finish_directory(self) -> None:
        """Count a directory that was moved or deleted as a whole."""
        self.directories += 1
        self._tell()

    def skip(self) -> None:
        """Count an item for which there was nothing to do."""
        self.skipped += 1
        self._tell()

    def report(self) -> BulkReport:
        """Return what was done so far."""
        before, now = self._before, _traffic(self.store)
        recovered = {
            name: count - before.recovered.get(name, 0)
            for name, count in now.recovered.items()
            if count > before.recovered.get(name, 0)
        }
        return BulkReport(
            self.name,
            done=self.done,
            directories=self.directories,
            skipped=self.skipped,
            failed=self._failed,
            failures=tuple(self._failures),
            bytes=self.bytes,
            requests=now.sent - before.sent,
            refused=now.refused - before.refused,
            recovered=recovered,
            seconds=_now() - self._started,
            dry_run=self.dry_run,
        )

    async def result(self) -> BulkReport:
        """Return the report.

        Raises ``BulkError`` if an item failed and the operation stopped.
        """
        self._tell(last=True)
        await self._listener.end()
        report = self.report()
        if self._first is not None and self._stops:
            raise BulkError(report, self._first) from self._first
        return report

    @property
    def has_stopped(self) -> bool:
        """Return whether nothing more is begun."""
        return self._stops and self.has_failed

    @property
    def has_failed(self) -> bool:
        """Return whether an item failed."""
        return self._first is not None

    def _tell(self, *, last: bool = False) -> None:
        if not self._listener.listens:
            return
        now = _now()
        if not last and now - self._reported < _PROGRESS_INTERVAL:
            return
        self._reported = now
        done = self.done + self.directories + self.skipped + self._failed
        progress = BulkProgress(self.name, done, self.total, self._failed, now - self._started)
        self._listener(progress)


def _note_failure(error: Exception) -> None:
    log.warning("progress reporting stopped: %s", Redacted(error))


class _Stopped(Exception):  # noqa: N818 - never leaves this module
    """Raised to begin no more items."""


def workers_of(store: Store) -> int:
    """Return the number of requests to keep in flight."""
    if isinstance(store, Wrapped):
        for policy in store.policies:
            if isinstance(policy, InFlightLimit) and policy.slots is not None:
                return policy.slots
    return store.traits.workers


def _traffic(store: Store) -> Traffic:
    return traffic_of(store) if isinstance(store, Wrapped) else Traffic()


def _now() -> float:
    return asyncio.get_running_loop().time()
