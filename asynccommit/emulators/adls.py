"""An emulator of ADLS Gen2: wire format over ``asynccommit.sim``, one process, all in memory.

    async with AdlsEmulator() as emulator:
        ...  # emulator.url, emulator.account, emulator.key, emulator.connection_string

``running_emulator`` does the same on a thread of its own, for code without an event loop.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from asynccommit.emulators.adls_auth import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, Keyring
from asynccommit.emulators.adls_blob import Blob
from asynccommit.emulators.adls_call import Call, read_target
from asynccommit.emulators.adls_dfs import Dfs, Route
from asynccommit.emulators.adls_wire import Wire
from asynccommit.emulators.control import PREFIX, Control
from asynccommit.emulators.server import Connection, Limits, Request, Server
from asynccommit.host import Host, this_host
from asynccommit.sim import store
from asynccommit.sim.faults import CLEAR, Climate, Decision, Effect, Reply, Weather

T = TypeVar("T")


class AdlsEmulator:
    """One or more accounts on one port; an async context manager.

    Args:
        port: where to listen; 0 is any free port.
        address: the interface, loopback unless there is a reason.
        accounts: account name -> key; the first is what ``url`` and its like are about.
        hns: whether the accounts have a hierarchical namespace.
        climate: latency, faults and the limit on requests to begin with.
        pages: how the accounts page and split what they do.
        limits: what a request may hold.
        tls: serve https.
        seed: of the faults' randomness.
        host: where time and ids come from.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        address: str = "127.0.0.1",
        accounts: Mapping[str, str] | None = None,
        hns: bool = True,
        climate: Climate | None = None,
        pages: store.Limits | None = None,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        seed: int = 0,
        host: Host | None = None,
    ) -> None:
        self.address, self.wanted_port, self._tls, self._hns = address, port, tls, hns
        self._host = host or this_host()
        self._pages = pages or store.Limits()
        self._seed = seed
        self.keyring = Keyring(dict(accounts or {DEVELOPMENT_ACCOUNT: DEVELOPMENT_KEY}))
        self.accounts: dict[str, store.Account] = {}
        self._climate = climate or Climate()
        self.weather = self._fresh_weather()
        self.wire = Wire(self._host.now, self._host.new_id()[:24])
        self._dfs = Dfs(self.accounts, self.wire)
        self._blob = Blob(self.accounts, self.wire, self._host.new_id)
        self._control = Control(self)
        self._answers: Counter[bytes] = Counter()  # by status
        self._server = Server(self, limits)
        self.reset()

    async def __aenter__(self) -> AdlsEmulator:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen. Raises ``OSError`` if the port is taken."""
        await self._server.start(self.address, self.wanted_port, self._tls)

    async def stop(self) -> None:
        """Close the port and all connections; what is stored stays until the object goes."""
        await self._server.stop()

    def reset(self) -> None:
        """Forget all that is stored and all statistics; the weather is as at the start."""
        for name in self.keyring.keys:
            self.accounts[name] = store.Account(
                name,
                now=self._host.now,
                new_id=self._host.new_id,
                hns=self._hns,
                limits=self._pages,
            )
        self._blob.reset()
        self._answers.clear()
        self.weather = self._fresh_weather()

    def _fresh_weather(self) -> Weather:
        return Weather(random.Random(self._seed), time.monotonic, self._climate)

    def clear_stats(self) -> None:
        """Count from nothing; what is stored and the weather stay."""
        self._answers.clear()
        self.weather.requests.clear()
        self.weather.struck.clear()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._server.port

    @property
    def endpoint(self) -> str:
        """The URL of the port, under which every account has its name."""
        scheme = "http" if self._tls is None else "https"
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{scheme}://{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL of the (first) account, for both of its endpoints."""
        return f"{self.endpoint}/{self.account}"

    @property
    def account(self) -> str:
        """The name of the (first) account."""
        return next(iter(self.keyring.keys))

    @property
    def key(self) -> str:
        """The key of the (first) account."""
        return self.keyring.keys[self.account]

    @property
    def model(self) -> store.Account:
        """The (first) account itself: what is stored, without HTTP."""
        return self.accounts[self.account]

    @property
    def connection_string(self) -> str:
        """What SDKs and adlfs take: both endpoints, account and key."""
        scheme = self.endpoint.partition(":")[0]
        return (
            f"DefaultEndpointsProtocol={scheme};AccountName={self.account};"
            f"AccountKey={self.key};BlobEndpoint={self.url};DfsEndpoint={self.url};"
        )

    def stats(self) -> dict[str, Any]:
        """Return what was asked and answered since the start or the last reset.

        ``cpu_seconds`` are those of the whole process since it began.
        """
        statuses = {key.decode(): count for key, count in sorted(self._answers.items())}
        return {
            **self.weather.report(),
            "statuses": statuses,
            "connections": self._server.connections,
            "cpu_seconds": round(time.process_time(), 6),
        }

    def __call__(self, request: Request, connection: Connection) -> None:
        """Answer one request."""
        if request.target.startswith(PREFIX):
            connection.send(self._control.answer(request))
            return
        try:
            call = Call(request, read_target(request, self.accounts))
            route = (self._blob if call.blob else self._dfs).route(call)
        except store.Refusal as error:
            self._send(connection, self.wire.refusal(request, error))
            return
        decision = self.weather.decide(route.op, call.place)
        if decision is CLEAR:
            self._send(connection, self._perform(call, route))
        else:
            storm = _Storm(decision, partial(self._perform, call, route))
            storm.meet(partial(self._end, call, connection, decision))

    def _send(self, connection: Connection, answer: bytes) -> None:
        self._answers[answer[9:12]] += 1
        connection.send(answer)

    def _end(self, call: Call, connection: Connection, decision: Decision, answer: bytes) -> None:
        if decision.reply is Reply.CUT:
            connection.cut()
        elif decision.reply is Reply.REFUSAL and decision.refusal is not None:
            refused = self.wire.refusal(call.request, decision.refusal, blob=call.blob)
            self._send(connection, refused)
        elif decision.reply is not Reply.NEVER:
            self._send(connection, answer)

    def _perform(self, call: Call, route: Route) -> bytes:
        try:
            self.keyring.check(call, route.op, self._host.now())
            return route.handler(call)
        except store.Refusal as error:
            return self.wire.refusal(call.request, error, blob=call.blob)


class _Storm:
    """One request that does not pass undisturbed: it happens in the time of its decision."""

    def __init__(self, decision: Decision, perform: Callable[[], bytes]) -> None:
        self._decision = decision
        self._perform = perform

    def meet(self, end: Callable[[bytes], None]) -> None:
        """Let it happen; ``end`` is given the true answer. No client need stay for it."""
        _later(self._decision.before, partial(self._act, end))

    def _act(self, end: Callable[[bytes], None]) -> None:
        decision, answer = self._decision, b""
        if decision.effect is Effect.NOW:
            answer = self._perform()
        elif decision.effect is Effect.LATE:
            _later(decision.late, self._perform)
        _later(decision.after, partial(end, answer))


def _later(seconds: float, act: Callable[[], object]) -> None:
    if seconds > 0:
        asyncio.get_running_loop().call_later(seconds, act)
    else:
        act()


class EmulatorThread:
    """An emulator on a thread of its own; made by ``running_emulator``."""

    def __init__(self, emulator: AdlsEmulator, stop: asyncio.Event) -> None:
        self._emulator = emulator
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self.port = emulator.port
        self.endpoint = emulator.endpoint
        self.url = emulator.url
        self.account = emulator.account
        self.key = emulator.key
        self.connection_string = emulator.connection_string

    def do(self, work: Callable[[AdlsEmulator], T]) -> T:
        """Return what ``work`` returns, done on the emulator's thread between two requests."""

        async def on_thread() -> T:
            return work(self._emulator)

        return asyncio.run_coroutine_threadsafe(on_thread(), self._loop).result(timeout=30)

    def stop(self) -> None:
        """Tell the emulator to end."""
        self._loop.call_soon_threadsafe(self._stop.set)


@contextmanager
def running_emulator(**arguments: Any) -> Iterator[EmulatorThread]:
    """Run an ``AdlsEmulator`` with these arguments on a thread, for as long as the block.

    Raises what its ``start`` raises.
    """
    ready: Future[EmulatorThread] = Future()
    thread = threading.Thread(
        target=lambda: asyncio.run(_host(arguments, ready)), name="adls-emulator", daemon=True
    )
    thread.start()
    running = ready.result(timeout=60)
    try:
        yield running
    finally:
        running.stop()
        thread.join()


async def _host(arguments: Mapping[str, Any], ready: Future[EmulatorThread]) -> None:
    stop = asyncio.Event()
    try:
        async with AdlsEmulator(**arguments) as emulator:
            ready.set_result(EmulatorThread(emulator, stop))
            await stop.wait()
    except Exception as error:
        if ready.done():
            raise
        ready.set_exception(error)
