"""The base of all test servers, with an optional thread."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from asynccommit.errors import OptionError
from asynccommit.runtime.background import is_busy, wait_for_all
from asynccommit.runtime.host import Host
from asynccommit.testing.emulators.saved_state import StateFolder, packed
from asynccommit.testing.emulators.server import Connection, RequestLimits, Server, ServerRequest
from asynccommit.testing.emulators.tls import ServerTls, Tls, server_tls
from asynccommit.testing.models.fault_rules import (
    Climate,
    Dialect,
    FaultDecision,
    FaultInjector,
    take_effect,
)

_LOG = logging.getLogger(__name__)
_CLEAN_UP = 30.0  # seconds that a clean-up in the background may take before the server stops
_SAVE_EVERY = 2.0  # seconds
_PAUSES = 19.0  # a pause in times of what the last save took

T = TypeVar("T")
E = TypeVar("E", bound="Serving")
R = TypeVar("R", bound="Running[Any]")


class AcceptedKeys(Protocol):
    """The credentials that an emulator accepts, changeable at run time.

    Attributes:
        tokens: valid bearer tokens; ``None`` if any token is valid.
        expired: bearer tokens that have expired.
    """

    tokens: set[str] | None
    expired: set[str]


class Serving(ABC):
    """A server on a port, with injected weather; an async context manager.

    Args:
        dialect: fault dialect of the service.
        host: source of time and ids.
        port: port to listen on; 0 for any free port.
        address: network interface.
        climate: initial latency, faults and request limit.
        limits: maximum size of a request.
        tls: serve https: with this context, or with a new certificate if it is true, or a list of
            further host names of one.
        hosts: host names of a new certificate, beside ``address`` and the loopback addresses.
        seed: random seed of the faults.
    """

    def __init__(
        self,
        dialect: Dialect,
        host: Host,
        *,
        port: int,
        address: str,
        climate: Climate | None,
        limits: RequestLimits | None,
        tls: Tls,
        seed: int,
        hosts: Collection[str] = (),
    ) -> None:
        self.address, self.wanted_port = address, port
        self._wanted_tls, self._hosts = tls, (address, *hosts)
        self._tls: ServerTls | None = None
        self.host = host
        self._dialect, self._seed = dialect, seed
        self._climate = climate or Climate()
        self.weather = self.fresh_weather()
        self._answers: Counter[bytes] = Counter()  # by status
        self.changes = 0  # responses and resets: nothing has changed while it stays the same
        self._server = Server(self, limits)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if is_busy():
            with suppress(TimeoutError):
                await asyncio.to_thread(wait_for_all, _CLEAN_UP)
        await self.stop()

    async def start(self) -> None:
        """Listen.

        Raises ``OSError`` if the port is taken, and as ``prepare_tls``.
        """
        if self._wanted_tls:
            await asyncio.to_thread(self.prepare_tls)
        await self._server.start(self.address, self.wanted_port, self.prepare_tls().context)

    def prepare_tls(self) -> ServerTls:
        """Make the certificate, if one is wanted.

        This blocks for some milliseconds; ``start`` does it on a thread otherwise.
        Raises ``OptionError`` for an invalid host name, ``UnsupportedError`` without trustme.
        """
        if self._tls is None:
            self._tls = server_tls(self._wanted_tls, self._hosts)
        return self._tls

    async def stop(self) -> None:
        """Close the port and all connections; stored data stays in the object."""
        await self._server.stop()

    @abstractmethod
    def __call__(self, request: ServerRequest, connection: Connection) -> None:
        """Answer one request."""

    @abstractmethod
    def reset(self) -> None:
        """Delete all stored data and statistics; restore the initial weather."""

    def fresh_weather(self) -> FaultInjector:
        """Return the initial weather."""
        rng = random.Random(self._seed)
        return FaultInjector(rng, time.monotonic, self._climate, self._dialect)

    def clear_stats(self) -> None:
        """Reset the statistics; stored data and the weather stay."""
        self._answers.clear()
        self.weather.requests.clear()
        self.weather.struck.clear()

    def send(self, connection: Connection, answer: bytes) -> None:
        """Send a whole response and count it by its status."""
        self.changes += 1
        self._answers[answer[9:12]] += 1
        connection.send(answer)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._server.port

    @property
    def scheme(self) -> str:
        """``http`` or ``https``."""
        return "https" if self._wanted_tls else "http"

    @property
    def ca_pem(self) -> bytes | None:
        """The CA certificate that clients must trust, in PEM form.

        ``None`` for http, for a context that was given, and before the start.
        """
        return None if self._tls is None else self._tls.ca_pem

    @property
    def endpoint(self) -> str:
        """The URL of the port."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.scheme}://{host}:{self.port}"

    def stats(self) -> dict[str, Any]:
        """Return request and response counts since the start or the last reset.

        ``cpu_seconds`` counts the whole process since it began.
        """
        statuses = {key.decode(): count for key, count in sorted(self._answers.items())}
        return {
            **self.weather.report(),
            "statuses": statuses,
            "connections": self._server.connections,
            "cpu_seconds": round(time.process_time(), 6),
        }


class Emulator(Serving):
    """A store on a port, whose state may be kept in a folder.

    Args: as of ``Serving``, and

        data: folder with the state, or ``None`` to keep it in memory only.
        kind: name of the emulator in that folder.

    Raises:
        OptionError: the state in the folder cannot be read.
    """

    def __init__(
        self,
        dialect: Dialect,
        host: Host,
        *,
        data: str | os.PathLike[str] | None = None,
        kind: str,
        **options: Any,
    ) -> None:
        super().__init__(dialect, host, **options)
        self._folder = None if data is None else StateFolder(data, kind)
        self._saved = -1  # number of responses and resets when the state was saved
        self._saver: asyncio.Task[None] | None = None
        self._saving = asyncio.Lock()

    async def start(self) -> None:
        """Read the state, if there is a folder for it, and listen.

        Raises as ``Serving.start``, and ``OptionError`` if the state cannot be read.
        """
        if self._folder is not None:
            state = await asyncio.to_thread(self._folder.open)
            try:
                if state is not None:
                    self.restore(state)
                self._saved = self.changes
                await super().start()
            except BaseException:
                self._folder.close()
                raise
            self._saver = asyncio.create_task(self._save_at_times(self._folder))
        else:
            await super().start()

    async def stop(self) -> None:
        """Close the port and all connections, and save the state."""
        await super().stop()
        if self._folder is None or self._saver is None:
            return
        self._saver.cancel()
        await asyncio.wait([self._saver])
        self._saver = None
        try:
            if self._saved != self.changes:
                await asyncio.to_thread(self._folder.save, packed(self.state()))
        finally:
            self._folder.close()

    async def _save_at_times(self, folder: StateFolder) -> None:
        """Save the state while it changes, using a twentieth of the time at most."""
        pause = _SAVE_EVERY
        while True:
            await asyncio.sleep(pause)
            if self._saved == self.changes:
                continue
            begun = time.monotonic()
            try:
                await self.save()
            except OSError as error:
                _LOG.error("%s could not be saved: %s", folder.file, error)
            pause = max(_SAVE_EVERY, _PAUSES * (time.monotonic() - begun))

    async def save(self) -> None:
        """Save the state now.

        Raises ``OptionError`` without a folder, and ``OSError``."""
        if self._folder is None:
            raise OptionError("this emulator has no folder for its state: start it with --data")
        async with self._saving:
            changes, content = self.changes, packed(self.state())
            await asyncio.shield(asyncio.to_thread(self._folder.save, content))
            self._saved = changes

    @abstractmethod
    def state(self) -> object:
        """Return what is stored, for ``packed``."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Store what ``state`` returned.

        Raises ``OptionError`` if it is of another emulator."""

    @property
    @abstractmethod
    def keys(self) -> AcceptedKeys:
        """The accepted credentials."""

    @abstractmethod
    def pages(self) -> Mapping[str, Any]:
        """Return the limits that split listings and long operations."""

    @abstractmethod
    def set_pages(self, given: object) -> None:
        """Change these limits. Raises ``OptionError`` for an invalid setting."""


class Running(Generic[E]):
    """A server on a thread of its own."""

    def __init__(self, emulator: E, stop: asyncio.Event) -> None:
        self._emulator = emulator
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self.port = emulator.port
        self.endpoint = emulator.endpoint
        self.ca_pem = emulator.ca_pem

    def do(self, work: Callable[[E], T]) -> T:
        """Return ``work()``, run on the emulator's thread between two requests."""

        async def on_thread() -> T:
            return work(self._emulator)

        return asyncio.run_coroutine_threadsafe(on_thread(), self._loop).result(timeout=30)

    def stop(self) -> None:
        """Stop the emulator; a second call has no effect."""
        with suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(self._stop.set)


@contextmanager
def on_thread(
    make: Callable[[], E], shown: Callable[[E, asyncio.Event], R], name: str
) -> Iterator[R]:
    """Run the emulator that ``make`` creates on a thread, inside the block.

    It stops once clean-ups in the background have ended. Raises the errors of its ``start``.
    """
    ready: Future[R] = Future()
    serving = threading.Thread(
        target=lambda: asyncio.run(_serve(make, shown, ready)), name=name, daemon=True
    )
    serving.start()
    running = ready.result(timeout=60)
    try:
        yield running
    finally:
        running.stop()
        serving.join()


async def _serve(
    make: Callable[[], E], shown: Callable[[E, asyncio.Event], R], ready: Future[R]
) -> None:
    stop = asyncio.Event()
    try:
        async with make() as emulator:
            ready.set_result(shown(emulator, stop))
            await stop.wait()
    except Exception as error:
        if ready.done():
            raise
        ready.set_exception(error)


A = TypeVar("A")


class FaultyRequest(Generic[A]):
    """A request that is performed when, and if, its fault decision says so."""

    def __init__(self, decision: FaultDecision, perform: Callable[[], A]) -> None:
        self._decision = decision
        self._perform = perform

    def meet(self, end: Callable[[A | None], None]) -> None:
        """Perform the request; pass the true response to ``end``, if there is one.

        The client may have disconnected.
        """
        later(self._decision.before, partial(self._act, end))

    def _act(self, end: Callable[[A | None], None]) -> None:
        decision = self._decision
        answer = take_effect(decision, self._perform, later)
        later(decision.after, partial(end, answer))


def later(seconds: float, act: Callable[[], object]) -> None:
    """Call ``act`` after a delay; at once if the delay is 0."""
    if seconds > 0:
        asyncio.get_running_loop().call_later(seconds, act)
    else:
        act()
