"""Send requests to directory buckets in this process.

The requests are the same as over HTTP and meet the same weather, in the time of the event loop,
which may be virtual. Late effects happen in the background; ``aclose`` waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from asynccommit.stores.http.base import NoAnswerError, Response, TooLargeError, place
from asynccommit.testing.emulators.s3_express.app import ExpressApp
from asynccommit.testing.emulators.s3_express.call import ExpressCall
from asynccommit.testing.emulators.s3_express.wire import ExpressResponse, refused
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import CLEAR, FaultDecision
from asynccommit.testing.models.in_process import LateEffects, LostError
from asynccommit.testing.models.s3.refusals import refuse
from asynccommit.testing.models.virtual_loop import pause

_ALWAYS = {"x-amz-request-id": "in-process"}


class ExpressWeather(Protocol):
    """The source of fault decisions, as a ``FaultInjector`` is one."""

    def decide(self, op: str, path: str, /) -> FaultDecision:
        """Return what becomes of a request."""
        ...


class ExpressInProcess(LateEffects):
    """A ``Transport`` to an ``ExpressApp`` in this process.

    Subclasses may override ``exchange``, through which every request passes.

    Args:
        app: handles the requests.
        weather: fault injector; no faults if ``None``.
        patience: timeout in seconds for a response that never comes.
    """

    def __init__(
        self, app: ExpressApp, weather: ExpressWeather | None = None, *, patience: float = 0.0
    ) -> None:
        super().__init__(patience)
        self.app = app
        self.weather = weather

    def __repr__(self) -> str:
        return f"ExpressInProcess({self.app.service!r})"

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        """See ``Transport.send``."""
        host, slash, rest = url.partition("://")[2].partition("/")
        lower = {name.lower(): value for name, value in headers.items()}
        lower.setdefault("host", host)
        try:
            call = self.app.read(method, slash + rest, lower, body)
        except Refusal as refusal:
            return _response(method, refused(refusal))
        try:
            answer = await self.exchange(call, partial(self.app.perform, call))
        except LostError:
            raise NoAnswerError(f"{method} {place(url)}: no response came") from None
        if len(answer.body) > limit:
            raise TooLargeError(f"{method} {place(url)}: more than {limit} bytes")
        return _response(method, answer)

    async def exchange(
        self, call: ExpressCall, apply: Callable[[], ExpressResponse]
    ) -> ExpressResponse:
        """Send one request through the weather.

        Args:
            call: the request; ``call.writes`` tells whether it may change anything, and
                ``call.op`` and ``call.place`` describe it.
            apply: executes it and returns the true response.

        Raises:
            LostError: there is no response.
        """
        weather = self.weather
        decision = CLEAR if weather is None else weather.decide(call.op, call.place)
        if decision.before:
            await pause(decision.before)
        if not decision.kind:  # no fault
            return apply()
        answer = await self.carry_out(decision, apply)
        if answer is not None:
            return answer
        return refused(decision.refusal or refuse("InternalError"))


def _response(method: str, answer: ExpressResponse) -> Response:
    body = b"" if method == "HEAD" else answer.body
    return Response(answer.status, {**answer.headers, **_ALWAYS}, body)
