"""Run work over many items at once, and undo it where an item fails.

``for_each`` runs N workers over one shared iterator: it costs a fraction of a microsecond an item,
where one task for each item costs about 70. Its callbacks are modelled on ``Tasks`` of Netflix's
s3committer and Hadoop's ``TaskPool``: one for an item that failed, one for items never tried, one
for items already done.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from typing import Any, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")
Work = Callable[[T], Awaitable[object]]
OnFailure = Callable[[T, BaseException], Awaitable[object]]

_YIELD_EVERY = 256  # items after which a worker yields to the loop, even if no work ever waited
_NOTES = 5  # maximum number of further errors noted on the raised one


async def for_each(
    items: Iterable[T] | AsyncIterable[T],
    work: Work[T],
    *,
    workers: int,
    on_failure: OnFailure[T] | None = None,
    on_abort: Work[T] | None = None,
    on_revert: Work[T] | None = None,
) -> None:
    """Await ``work(item)`` for every item, at most ``workers`` at a time.

    The first failure stops new items; items in progress are finished. Then ``on_failure`` is called
    for each failed item with its error, ``on_abort`` for each item never tried, and ``on_revert``
    for each completed item; an error in one of these calls does not prevent the others.

    Args:
        items: read lazily, ``ChunkedItems`` ones a chunk ahead; an error that it raises counts as a
            failure.
        work: processes one item.
        workers: maximum number of items in progress, at least 1.
        on_failure: undoes the partial effects of a failed item.
        on_abort: called for the items that were never tried.
        on_revert: undoes a completed item; completed items are remembered only if this is given.

    Raises:
        Exception: the first error, with the others as notes; never an ``ExceptionGroup``.
        asyncio.CancelledError: raised after all workers have ended; nothing is undone then.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    run = _Run(items, work, remember=on_revert is not None)
    await run.spread(workers)
    if not run.errors:
        return
    if on_failure is not None:
        await run.undo(run.failed, lambda pair: on_failure(*pair), workers)
    if on_abort is not None:
        await run.undo(run.untried, on_abort, workers)
        await run.undo(run.rest, on_abort, workers)
    if on_revert is not None:
        await run.undo(run.done, on_revert, workers)
    raise _first_of(run.errors)


class ChunkedItems(AsyncIterable[T]):
    """Items that are read many at a time.

    ``for_each`` waits for a chunk of them, and not for each item.

    Args:
        chunks: sequences of items, in order; one may be empty.
    """

    def __init__(self, chunks: AsyncIterable[Sequence[T]]) -> None:
        self.chunks = chunks

    async def __aiter__(self) -> AsyncIterator[T]:
        async for chunk in self.chunks:
            for item in chunk:
                yield item


def batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the items in order, up to ``size`` at a time."""
    return [items[start : start + size] for start in range(0, len(items), size)]


async def together(*calls: Callable[[], Awaitable[object]]) -> None:
    """Await several calls at once.

    Raises the first error, after all have ended or were not begun.
    """
    await for_each(calls, lambda call: call(), workers=len(calls))


async def both(
    first: Callable[[], Awaitable[T]], second: Callable[[], Awaitable[U]]
) -> tuple[T, U]:
    """Await two calls at once, and return their results.

    Raises the first error, after both have ended or were not begun.
    """
    one: list[T] = []
    two: list[U] = []

    async def run_first() -> None:
        one.append(await first())

    async def run_second() -> None:
        two.append(await second())

    await together(run_first, run_second)
    return one[0], two[0]


async def alongside(
    main: Callable[[], Awaitable[T]], other: Callable[[], Coroutine[Any, Any, U]]
) -> tuple[T, U]:
    """Await ``main`` in this task and ``other`` in another one.

    Returns both results. An error of ``main`` cancels ``other``; one of ``other`` is raised once
    ``main`` has ended.
    """
    task = asyncio.create_task(other())
    try:
        result = await main()
    except BaseException:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: that of ``main`` is raised
        raise
    return result, await task


class _Run(Generic[T]):
    """State shared by the workers of one ``for_each``."""

    def __init__(
        self, items: Iterable[T] | AsyncIterable[T], work: Work[T], *, remember: bool = False
    ) -> None:
        self.errors: list[BaseException] = []
        self.failed: list[tuple[T, BaseException]] = []
        self.untried: list[T] = []
        self.done: list[T] = []
        self.rest: Iterator[T] | _InTurn[T]
        self.rest = _InTurn(items) if isinstance(items, AsyncIterable) else iter(items)
        self._at_most = len(items) if isinstance(items, Sized) else None
        self._work = work
        self._remember = remember

    async def spread(self, workers: int) -> None:
        if self._at_most is not None:
            workers = min(workers, self._at_most)
        if workers == 1 and not isinstance(self.rest, _InTurn):
            await self._worker(self.rest)  # a task costs as much as a short request
            return
        async with asyncio.TaskGroup() as group:
            if isinstance(self.rest, _InTurn):
                group.create_task(self._worker_in_turn(self.rest, group, workers - 1))
                return
            for _ in range(workers):
                group.create_task(self._worker(self.rest))

    async def _worker(self, items: Iterator[T]) -> None:
        try:
            await self._drain(items)
        except Exception as error:  # from the iterator: errors of the work are kept in _do
            self.errors.append(error)

    async def _worker_in_turn(
        self, items: _InTurn[T], group: asyncio.TaskGroup, others: int
    ) -> None:
        """Work on items, and start the next of the ``others`` with the first.

        The number of items is unknown: so there is at most one worker without any.
        """
        try:
            count = 0
            async for item in items:
                if self.errors:
                    self.untried.append(item)
                    return
                if others:
                    group.create_task(self._worker_in_turn(items, group, others - 1))
                    others = 0
                await self._do(item)
                count += 1
                if count % _YIELD_EVERY == 0:
                    await asyncio.sleep(0)
                if self.errors:
                    return
        except Exception as error:  # from the iterator
            self.errors.append(error)

    async def _drain(self, items: Iterator[T]) -> None:
        if self.errors:
            return
        for count, item in enumerate(items, 1):
            await self._do(item)
            if count % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            if self.errors:
                return

    async def _do(self, item: T) -> None:
        try:
            await self._work(item)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            # A cancellation that was not requested of this worker came from the work itself. A task
            # group would treat it as a normal end, and the item would be lost.
            self.errors.append(error)
            self.failed.append((item, error))
        else:
            if self._remember:
                self.done.append(item)

    async def undo(
        self, items: Iterable[U] | AsyncIterable[U], work: Work[U], workers: int
    ) -> None:
        """Await ``work`` for every item and keep the errors."""

        async def attempt(item: U) -> None:
            try:
                await work(item)
            except Exception as error:
                self.errors.append(error)

        run = _Run(items, attempt)
        await run.spread(workers)
        self.errors.extend(run.errors)


class _InTurn(Generic[T]):
    """An async iterator that several tasks may await concurrently.

    What is read of a chunk goes to whoever asks first, without a wait: a lock and a step of an
    async generator cost more than all else that ``for_each`` does for an item.
    """

    def __init__(self, items: AsyncIterable[T]) -> None:
        self._chunks = aiter(items.chunks if isinstance(items, ChunkedItems) else _alone(items))
        self._held: Iterator[T] = iter(())
        self._lock = asyncio.Lock()

    def __aiter__(self) -> _InTurn[T]:
        return self

    async def __anext__(self) -> T:
        for item in self._held:
            return item
        async with self._lock:
            while True:
                for item in self._held:  # read by another task while this one waited
                    return item
                self._held = iter(await anext(self._chunks))


async def _alone(items: AsyncIterable[T]) -> AsyncIterator[Sequence[T]]:
    async for item in items:
        yield (item,)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _first_of(errors: list[BaseException]) -> BaseException:
    first, *others = errors
    for other in others[:_NOTES]:
        first.add_note(f"also: {type(other).__name__}: {other}")
    if len(others) > _NOTES:
        first.add_note(f"and {len(others) - _NOTES} more errors")
    return first


class RequestSlots:
    """Slots for one event loop, given to those that wait in their order.

    ``take`` is a plain call: a semaphore of asyncio has a coroutine for it, which costs each
    request a microsecond although it hardly ever waits.

    Args:
        count: the number of slots.

    Attributes:
        free: slots that nobody has; 0 while somebody waits.
    """

    __slots__ = ("_queue", "free")

    def __init__(self, count: int) -> None:
        self.free = count
        self._queue: deque[asyncio.Future[None]] = deque()

    def __repr__(self) -> str:
        return f"RequestSlots({self.free} free, {len(self._queue)} wait)"

    def take(self) -> bool:
        """Take a slot if one is free; return whether one was."""
        if self.free <= 0:
            return False
        self.free -= 1
        return True

    async def wait(self) -> None:
        """Take a slot, and wait for it if none is free."""
        if self.take():
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given the slot at that moment
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back: to the first that waits, if somebody does."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1
