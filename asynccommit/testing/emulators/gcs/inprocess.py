"""Send requests to the JSON API in this process.

The requests are the same as over HTTP and meet the same weather, in the time of the event loop,
which may be virtual. Late effects happen in the background; ``aclose`` waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from asynccommit.stores.http.base import NoAnswerError, Response, TooLargeError, place
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.batch import decide, refused
from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.wire import JSON, GcsResponse, error_answer
from asynccommit.testing.models.fault_rules import CLEAR, FaultInjector
from asynccommit.testing.models.gcs.model import GcsRefusal
from asynccommit.testing.models.in_process import LateEffects, LostError
from asynccommit.testing.models.virtual_loop import pause

# Every response of the service has it: clients recognize the service's responses by it.
_ALWAYS = {"x-guploader-uploadid": "in-process"}
_JSON = MappingProxyType({name.lower(): value for name, value in JSON.items()} | _ALWAYS)


class InProcess(LateEffects):
    """A ``Transport`` to a ``GcsApp`` in this process.

    Subclasses may override ``exchange``, through which every request passes.

    Args:
        app: handles the requests.
        weather: fault injector; no faults if ``None``.
        patience: timeout in seconds for a response that never comes.
    """

    def __init__(
        self, app: GcsApp, weather: FaultInjector | None = None, *, patience: float = 0.0
    ) -> None:
        super().__init__(patience)
        self.app = app
        self.weather = weather

    def __repr__(self) -> str:
        return f"InProcess({self.app.service!r})"

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        """See ``Transport.send``."""
        host, slash, rest = url.partition("://")[2].partition("/")
        lower = {name.lower(): value for name, value in headers.items()}
        lower.setdefault("host", host)
        try:
            call = self.app.read(method, slash + rest, lower, body)
        except GcsRefusal as refusal:
            return _response(error_answer(refusal))
        try:
            answer = await self.exchange(call, partial(self.app.perform, call))
        except LostError:
            raise NoAnswerError(f"{method} {place(url)}: no response came") from None
        if len(answer.body) > limit:
            raise TooLargeError(f"{method} {place(url)}: more than {limit} bytes")
        return _response(answer)

    async def exchange(self, call: GcsCall, apply: Callable[[], GcsResponse]) -> GcsResponse:
        """Send one request through the weather.

        Args:
            call: the request; ``call.writes`` tells whether it may change anything, and
                ``call.route.op`` and ``call.place`` describe it.
            apply: executes it and returns the true response.

        Raises:
            LostError: there is no response.
        """
        weather = self.weather
        decision = CLEAR if weather is None else decide(weather, call, self.later)
        if decision.before:
            await pause(decision.before)
        if not decision.kind:  # no fault
            return apply()
        answer = await self.carry_out(decision, apply)
        return refused(decision) if answer is None else answer


def _response(answer: GcsResponse) -> Response:
    status, headers, body = answer
    if headers is JSON:
        return Response(status, _JSON, body)
    lower = {name.lower(): value for name, value in headers.items()}
    return Response(status, lower | _ALWAYS, body)
