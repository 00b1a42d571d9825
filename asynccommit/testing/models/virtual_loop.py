"""An event loop in virtual time, which moves only when idle.

A run is repeatable on any machine:

* Time is counted in whole ticks, and no timer is due sooner than the next tick. Otherwise a timer
  shorter than the rounding error would fire at the same moment, again and again.
* Timers fire at their tick, those of one tick in the order in which they were set.
* Code such as task groups keeps tasks in sets; here tasks hash by their number, not by their
  address, so that siblings are cancelled in the order of their creation.
* Calls in threads (``to_thread``, ``run_in_executor``) are waited for before time moves, and take
  no virtual time. Their results are delivered when nothing else is ready, in the order of the
  calls, however long each took.

Sockets are waited for only while no timer is set. If nothing can happen any more, ``DeadlockError``
names the waiting tasks and their positions.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TICKS = 1_000_000_000
"""Ticks per second."""

HORIZON = 30 * 86_400.0
"""Seconds after which a run counts as endless: heartbeats never stop."""

_NAMED = 20  # maximum number of tasks that a deadlock names
_FRAMES = 4  # maximum number of frames of each
_CANCELLED = 64  # maximum number of cancelled timers kept in the queue


class DeadlockError(RuntimeError):
    """Raised when nothing is ready or due, or past the horizon."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with its own clock, which starts at 0 seconds.

    Args:
        horizon: maximum time of its clock in seconds.

    Attributes:
        ticks: present time of its clock.
    """

    _ready: deque[asyncio.Handle]
    _selector: selectors.BaseSelector
    _stopping: bool
    _process_events: Callable[[list[tuple[selectors.SelectorKey, int]]], None]

    def __init__(self, horizon: float = HORIZON) -> None:
        self.ticks = 0
        self.serials = count(1)
        self._horizon = horizon
        self._timers: list[tuple[int, int, asyncio.TimerHandle | asyncio.Future[None]]] = []
        self._order = count()
        self._cancelled = 0
        self._threads: deque[tuple[Future[Any], asyncio.Future[Any]]] = deque()
        self._pool: Executor | None = None
        super().__init__()
        self._sockets = self._selector.get_map()
        self._own = len(self._sockets)
        self.set_task_factory(_make_task)

    def time(self) -> float:
        """Return the seconds that have passed on this loop's clock."""
        return self.ticks / TICKS

    def skip(self, seconds: float) -> None:
        """Advance the clock, as if the loop had been blocked: timers fire late."""
        self.ticks += round(seconds * TICKS)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call ``callback`` after ``delay`` seconds."""
        tick = math.inf if delay == math.inf else self.ticks + round(delay * TICKS)
        return self._set(tick, callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call ``callback`` when the clock shows ``when``."""
        return self._set(
            math.inf if when == math.inf else round(when * TICKS), callback, args, context
        )

    def _set(
        self,
        tick: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        if tick <= self.ticks:
            tick = self.ticks + 1
        handle = asyncio.TimerHandle(tick / TICKS, callback, args, self, context)
        if tick != math.inf:
            heappush(self._timers, (int(tick), next(self._order), handle))
        return handle

    def pause(self, seconds: float) -> asyncio.Future[None]:
        """Return a future that is done after ``seconds``: a sleep without a timer's handle."""
        waiting: asyncio.Future[None] = self.create_future()
        tick = max(self.ticks + round(seconds * TICKS), self.ticks + 1)
        heappush(self._timers, (tick, next(self._order), waiting))
        return waiting

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Remove cancelled timers from the queue once they are the majority."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED and self._cancelled * 2 > len(self._timers):
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            heapify(self._timers)
            self._cancelled = 0

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Call ``func`` in a thread, even if its result is no longer awaited."""
        if executor is None:
            executor = self._pool = self._pool or ThreadPoolExecutor(thread_name_prefix="virtual")
        asked = executor.submit(func, *args)
        asked.add_done_callback(self._wake)
        waiting: asyncio.Future[T] = self.create_future()
        self._threads.append((asked, waiting))
        return waiting

    def _wake(self, asked: Future[Any]) -> None:
        """Wake the loop, so that it sees the result of a thread."""
        with suppress(RuntimeError):  # closed meanwhile: nobody waits
            self.call_soon_threadsafe(_nothing)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: ``close`` waits for the threads anyway."""

    def close(self) -> None:
        """Wait for the threads, then close."""
        if self._pool is not None:
            self._pool.shutdown()
        super().close()

    # --- one turn ------------------------------------------------------------------------------

    def _run_once(self) -> None:
        """Run ready callbacks; if there are none, advance to the next event."""
        ready = self._ready
        if len(self._sockets) > self._own:
            self._look(0)
        if not (ready or self._stopping):
            self._wait()
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _wait(self) -> None:
        if self._threads:
            self._hand_over()
        elif self._timers:
            self._jump()
        elif len(self._sockets) > self._own:
            self._look(None)
        else:
            raise DeadlockError(f"{self._at()} nothing can go on. {_waiting(self)}")

    def _look(self, timeout: float | None) -> None:
        """Poll the sockets, including the one that wakes the loop."""
        self._process_events(self._selector.select(timeout))

    def _jump(self) -> None:
        """Advance the clock to the next timers."""
        timers, ready = self._timers, self._ready
        tick = max(timers[0][0], self.ticks)
        while timers and timers[0][0] <= tick:
            timer = heappop(timers)[2]
            if timer.cancelled():
                continue
            if isinstance(timer, asyncio.Future):
                timer.set_result(None)
            else:
                ready.append(timer)
        if not ready:
            return
        self.ticks = tick
        if tick > self._horizon * TICKS:
            raise DeadlockError(f"{self._at()} there is no end. {_waiting(self)}")

    def _hand_over(self) -> None:
        """Wait for the earliest call in a thread, and deliver its result."""
        asked, waiting = self._threads[0]
        while not asked.done():
            self._look(None)
            if self._ready:
                return  # It is done, or needs the loop first.
        self._threads.popleft()
        if waiting.done():
            return
        if asked.cancelled():
            waiting.cancel()
        elif (error := asked.exception()) is None:
            waiting.set_result(asked.result())
        else:
            waiting.set_exception(error)

    def _at(self) -> str:
        return f"at {self.time():,.9g} s of virtual time"


def _nothing() -> None:
    pass


class _Task(asyncio.Task[Any]):
    """A task with a number as hash, for a repeatable set order."""

    def __init__(
        self, coro: Coroutine[Any, Any, Any], *, loop: VirtualLoop, **options: Any
    ) -> None:
        self.serial = next(loop.serials)
        name = options.pop("name", None) or f"Task-{self.serial}"
        super().__init__(coro, loop=loop, name=name, **options)

    def set_name(self, value: object) -> None:
        """Set the name; Python 3.13.0 passes ``None`` for tasks without a name."""
        if value is not None:
            super().set_name(value)

    def __hash__(self) -> int:
        return self.serial


def _make_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> _Task:
    assert isinstance(loop, VirtualLoop)
    return _Task(coro, loop=loop, **options)


def _waiting(loop: VirtualLoop) -> str:
    """Return the unfinished tasks, and the position at which each waits."""
    tasks = [task for task in asyncio.all_tasks(loop) if isinstance(task, _Task)]
    lines = [
        f"  {task.get_name()}: {_place(task)}"
        for task in sorted(tasks, key=lambda task: task.serial)
    ]
    more = [f"  and {len(lines) - _NAMED} more"] if len(lines) > _NAMED else []
    return "\n".join([f"Tasks that wait: {len(lines)}", *lines[:_NAMED], *more])


def _place(task: _Task) -> str:
    """Return the innermost calls in which a task waits, outermost first."""
    frames: list[str] = []
    inner: Any = task.get_coro()
    while inner is not None:
        for kind in ("cr", "gi", "ag"):
            frame = getattr(inner, f"{kind}_frame", None)
            if frame is not None:
                name = "/".join(frame.f_code.co_filename.split("/")[-2:])
                frames.append(f"{frame.f_code.co_qualname} ({name}:{frame.f_lineno})")
        inner = next(
            (
                getattr(inner, name)
                for name in ("cr_await", "gi_yieldfrom", "ag_await")
                if hasattr(inner, name)
            ),
            None,
        )
    return " > ".join(frames[-_FRAMES:])


async def pause(seconds: float) -> None:
    """Sleep on any event loop; faster on one with virtual time."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        await loop.pause(seconds)
    else:
        await asyncio.sleep(seconds)


def run_virtual(main: Coroutine[Any, Any, T], *, horizon: float = HORIZON) -> T:
    """Run ``main`` to its end in virtual time, as ``asyncio.run`` does.

    Raises ``DeadlockError`` if it cannot end, or does not end before ``horizon``.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(horizon)) as runner:
        return runner.run(main)
