"""Apply the faults of the Retry Test API to requests.

See ``retry_test``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from asynccommit.testing.emulators.emulator import later
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.call import GcsCall, flag
from asynccommit.testing.emulators.gcs.objects import start_of
from asynccommit.testing.emulators.gcs.retry_test import (
    ID,
    INSERT,
    INSTRUCTIONS,
    RetryTests,
    ScriptedFault,
)
from asynccommit.testing.emulators.gcs.uploads import uploaded_by
from asynccommit.testing.emulators.gcs.wire import GcsResponse, error_answer, json_answer
from asynccommit.testing.emulators.server import Connection
from asynccommit.testing.models.gcs.model import GcsRefusal
from asynccommit.testing.models.gcs.refusals import REASONS

_SPOILED = ("broken", "short", "corrupted", "stall", "unreachable")
_REASONS = {status: reason for reason, (status, _) in reversed(list(REASONS.items()))}


def is_scripted(headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for a fault."""
    return ID in headers or INSTRUCTIONS[0] in headers or INSTRUCTIONS[1] in headers


class ScriptedRequest:
    """A request that asks for a fault.

    Args:
        app: handles it.
        call: the request.
        connection: connection of the client.
        write: encodes a response.
        send: sends the bytes of a whole response.
    """

    def __init__(
        self,
        app: GcsApp,
        call: GcsCall,
        connection: Connection,
        write: Callable[[GcsResponse], bytes],
        send: Callable[[bytes], None],
    ) -> None:
        self._app = app
        self._call = call
        self._connection = connection
        self._write = write
        self._send = send

    def follow(self, tests: RetryTests, go_on: Callable[[], None]) -> bool:
        """Apply the next fault; ``go_on`` executes the request normally.

        Returns whether there was a fault. Raises ``GcsRefusal`` for an unknown test.
        """
        call = self._call
        download = start_of(call) if call.route.media else None
        found = tests.find(call.headers, call.route.method, uploaded_by(call), download=download)
        if found is None:
            return False
        fault = found.fault
        if fault.kind in _SPOILED and not (fault.kind == "stall" and self._is_early(fault)):
            self._spoil(fault, found.spend)
            return True
        found.spend()
        if fault.kind == "status":
            self._refuse(fault)
        elif fault.kind == "reset":
            self._connection.reset()
        elif fault.kind == "injected":
            self._app.uploads.damage(call)
            go_on()
        else:
            later(fault.seconds, go_on)
        return True

    def _is_early(self, fault: ScriptedFault) -> bool:
        """Return whether a stall precedes the effect, as in an upload."""
        return fault.after is None or self._call.route.method == INSERT

    def _refuse(self, fault: ScriptedFault) -> None:
        if fault.after is not None:
            self._app.uploads.keep_until(self._call, fault.after)
        reason = _REASONS.get(fault.status, "backendError")
        refusal = GcsRefusal(fault.status, reason, f"Retry Test: Caused a {fault.status}")
        self._send(self._write(error_answer(refusal)))

    def _spoil(self, fault: ScriptedFault, spend: Callable[[], object]) -> None:
        """Execute the request, and break its response if it is long enough."""
        answer = self._app.perform(self._call)
        if fault.kind == "unreachable":
            self._send(self._write(self._without(fault.names, answer, spend)))
            return
        after = fault.after or 0
        if len(answer.body) <= after or (fault.kind == "short" and answer.status != 200):
            self._send(self._write(answer))
            return
        spend()
        if fault.kind == "corrupted":
            answer = answer._replace(body=bytes([_ ^ 0xFF for _ in answer.body]))
        elif fault.kind == "short":
            answer = answer._replace(body=answer.body[:after])
        whole = self._write(answer)
        first = len(whole) - len(answer.body) + after
        if fault.kind == "broken":
            self._connection.begin(whole[:first])
            self._connection.hang_up()
        elif fault.kind == "stall":
            self._connection.begin(whole[:first])
            later(fault.seconds, lambda: self._connection.send(whole[first:]))
        else:
            self._send(whole)

    def _without(
        self, names: tuple[str, ...], answer: GcsResponse, spend: Callable[[], object]
    ) -> GcsResponse:
        """Return a list of buckets in which some cannot be reached."""
        if answer.status != 200 or not flag(self._call.query, "returnPartialSuccess"):
            return answer
        spend()
        shown = orjson.loads(answer.body)
        shown["unreachable"] = list(names)
        left = [_ for _ in shown.pop("items", []) if f"projects/_/buckets/{_['name']}" not in names]
        return json_answer({**shown, "items": left} if left else shown)
