"""Send requests to the ADLS emulator in this process.

The requests are the same as over HTTP and meet the same weather, in the time of the event loop,
which may be virtual. Late effects happen in the background; ``aclose`` waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from asynccommit.stores.http.base import NoAnswerError, Response, TooLargeError, place
from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.adls.dfs import AdlsRoute
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.server import ServerRequest
from asynccommit.testing.models.adls.account import Refusal
from asynccommit.testing.models.fault_rules import CLEAR, FaultInjector
from asynccommit.testing.models.in_process import LateEffects, LostError
from asynccommit.testing.models.virtual_loop import pause


class InProcessAdls(LateEffects):
    """A ``Transport`` to an ``AdlsEmulator`` that need not listen.

    Subclasses may override ``exchange``, through which every request passes.

    Args:
        emulator: handles the requests.
        weather: fault injector; no faults if ``None``.
        patience: timeout in seconds for a response that never comes.
        agent: the ``User-Agent``, which tells the emulator the endpoint.
    """

    def __init__(
        self,
        emulator: AdlsEmulator,
        weather: FaultInjector | None = None,
        *,
        patience: float = 0.0,
        agent: str = "asynccommit",
    ) -> None:
        super().__init__(patience)
        self.emulator = emulator
        self.weather = weather
        self._agent = agent

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        """See ``Transport.send``."""
        host, slash, rest = url.partition("://")[2].partition("/")
        request = ServerRequest()
        request.method, request.target, request.body = method, (slash + rest).encode(), body
        request.headers = {name.lower(): value for name, value in headers.items()}
        request.headers |= {"host": host, "user-agent": self._agent}
        if body or method not in ("GET", "HEAD", "DELETE"):
            request.headers["content-length"] = str(len(body))
        try:
            call, route = self.emulator.read(request)
        except Refusal as refusal:
            return _response(self.emulator.wire.refusal(request, refusal))
        try:
            perform = partial(self.emulator.perform, call, route)
            answer = _response(await self.exchange(call, route, perform))
        except LostError:
            raise NoAnswerError(f"{method} {place(url)}: no response came") from None
        if len(answer.body) > limit:
            raise TooLargeError(f"{method} {place(url)}: more than {limit} bytes")
        return answer

    async def exchange(self, call: AdlsCall, route: AdlsRoute, apply: Callable[[], bytes]) -> bytes:
        """Send one request through the weather.

        Args:
            call: the request.
            route: what it asks for.
            apply: executes it and returns the true response.

        Raises:
            LostError: there is no response.
        """
        weather = self.weather
        decision = CLEAR if weather is None else weather.decide(route.op, call.place)
        if decision.before:
            await pause(decision.before)
        if not decision.kind:  # no fault
            return apply()
        answer = await self.carry_out(decision, apply)
        if answer is not None:
            return answer
        assert decision.refusal is not None
        return self.emulator.wire.refusal(call.request, decision.refusal, blob=call.blob)


def _response(answer: bytes) -> Response:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Response(
        int(status.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}, body
    )
