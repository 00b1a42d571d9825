"""A fault-injecting proxy in front of S3 servers.

The servers cannot lose responses themselves.

    async with S3Proxy("http://127.0.0.1:5000") as proxy:
        proxy.weather.add(Fault("cut", op="complete_upload", times=1))
        ...  # clients use proxy.endpoint as the server

``running_s3_proxy`` does the same on a thread of its own, for code without an event loop. Requests
are forwarded unchanged, so that signatures stay valid; faults are decided by the weather.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from asynccommit.runtime.host import Host, this_host
from asynccommit.testing.emulators.control import PREFIX, Control
from asynccommit.testing.emulators.emulator import Running, Serving, on_thread
from asynccommit.testing.emulators.s3_proxy.forward import (
    ForwardedResponse,
    ForwardError,
    forward,
    read_target,
)
from asynccommit.testing.emulators.s3_proxy.s3 import (
    S3_HTTP,
    refusal_answer,
    s3_operation,
    s3_place,
)
from asynccommit.testing.emulators.server import Connection, RequestLimits, ServerRequest
from asynccommit.testing.emulators.tls import Tls
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import Climate, Effect, FaultDecision, Reply

_log = logging.getLogger(__name__)


class S3Proxy(Serving):
    """A port with another server behind it; an async context manager.

    A late request that has not been sent when the proxy stops is never sent.

    Args:
        target: URL of the server, such as ``http://127.0.0.1:5000``.
        port: port to listen on; 0 for any free port.
        address: network interface, loopback by default.
        climate: initial latency, faults and request limit.
        limits: maximum size of a request and of a response.
        tls: serve https: with this context, or a new certificate (see ``ca_pem``) if it is true,
            or a list of further host names of one.
        seed: random seed of the faults.
        host: source of ids.

    Raises:
        OptionError: the target is not such a URL.
    """

    def __init__(
        self,
        target: str,
        *,
        port: int = 0,
        address: str = "127.0.0.1",
        climate: Climate | None = None,
        limits: RequestLimits | None = None,
        tls: Tls = False,
        seed: int = 0,
        host: Host | None = None,
    ) -> None:
        limits = limits or RequestLimits()
        super().__init__(
            S3_HTTP,
            host or this_host(),
            port=port,
            address=address,
            climate=climate,
            limits=limits,
            tls=tls,
            seed=seed,
        )
        self.target = read_target(target)
        self.forwarded: Counter[str] = Counter()  # by operation
        self._most = limits.head + limits.body
        self._control = Control(self)
        self._under_way: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Close the port, all connections, and all requests in flight."""
        await super().stop()
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def reset(self) -> None:
        """Reset the statistics and the weather; the server keeps its data."""
        self.clear_stats()
        self.weather = self.fresh_weather()

    def clear_stats(self) -> None:
        """Reset the statistics."""
        super().clear_stats()
        self.forwarded.clear()

    def stats(self) -> dict[str, Any]:
        """Return counts of requests, forwards and responses since the start or the last reset."""
        return {**super().stats(), "forwarded": dict(self.forwarded)}

    def __call__(self, request: ServerRequest, connection: Connection) -> None:
        """Answer a request, or forward it."""
        if request.target.startswith(PREFIX):
            connection.send(self._control.answer(request))
            return
        target = request.target.decode("latin-1")
        op = s3_operation(request.method, target, request.headers)
        decision = self.weather.decide(op, s3_place(target, request.headers))
        self._begin(self._meet(op, request, connection, decision))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that goes on even if the client disconnects."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _meet(
        self, op: str, request: ServerRequest, connection: Connection, decision: FaultDecision
    ) -> None:
        """Forward a request as its fault decision says."""
        try:
            await _wait(decision.before)
            answer = None
            if decision.effect in (Effect.NOW, Effect.TWICE, Effect.AGAIN):
                answer = await self._forward(op, request)
            if decision.effect is Effect.TWICE:
                answer = await self._forward(op, request)
            elif decision.effect in (Effect.LATE, Effect.AGAIN):
                self._begin(self._later(decision.late, op, request))
            await _wait(decision.after)
            self._end(request, connection, decision, answer)
        except ForwardError as error:
            self._fail(request, connection, error)
        except Exception:
            _log.exception("%s %r", request.method, request.target[:200])
            connection.cut()

    async def _later(self, seconds: float, op: str, request: ServerRequest) -> None:
        await _wait(seconds)
        try:
            await self._forward(op, request)
        except ForwardError as error:
            _log.warning("late %s: %s", op, error)

    async def _forward(self, op: str, request: ServerRequest) -> ForwardedResponse:
        self.forwarded[op] += 1
        return await forward(self.target, request, self._most)

    def _end(
        self,
        request: ServerRequest,
        connection: Connection,
        decision: FaultDecision,
        answer: ForwardedResponse | None,
    ) -> None:
        if decision.reply is Reply.CUT:
            connection.cut()
        elif decision.reply is Reply.REFUSAL and decision.refusal is not None:
            self._refuse(request, connection, decision.refusal)
        elif decision.reply is not Reply.NEVER and answer is not None:
            request.keep_alive = request.keep_alive and answer.keep_alive
            self.send(connection, answer.data)

    def _fail(self, request: ServerRequest, connection: Connection, error: ForwardError) -> None:
        """Behave like the server did: refuse the connection, or cut it."""
        _log.warning("%s", error)
        if error.reached:
            connection.cut()
        else:
            self._refuse(request, connection, Refusal(502, "BadGateway", str(error)))

    def _refuse(self, request: ServerRequest, connection: Connection, refusal: Refusal) -> None:
        place = request.target.decode("latin-1").partition("?")[0].lstrip("/")
        request_id = self.host.new_id().replace("-", "")[:16].upper()
        self.send(connection, refusal_answer(refusal, request.method, place, request_id))


async def _wait(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


class S3ProxyThread(Running[S3Proxy]):
    """A proxy on a thread of its own, created by ``running_s3_proxy``."""


@contextmanager
def running_s3_proxy(target: str, **arguments: Any) -> Iterator[S3ProxyThread]:
    """Run an ``S3Proxy`` with these arguments on a thread, inside the block.

    Raises the errors of its constructor and its ``start``.
    """
    make = partial(S3Proxy, target, **arguments)
    with on_thread(make, S3ProxyThread, "s3-proxy") as running:
        yield running
