"""Serve the Retry Test API of Google's storage-testbench.

=======================================  ====================================================
POST   /retry_test                       new test: ``{"instructions": {METHOD: [FAULT, ...]}}``
GET    /retry_tests, /retry_test/ID      all tests, or one: remaining faults
DELETE /retry_test/ID                    delete the test
=======================================  ====================================================

Requests with the header ``x-retry-test-id`` meet the first fault that is left of their method;
``x-goog-emulator-instructions`` asks for one fault of one request. Methods are Google's names, as
``storage.objects.insert``. Faults:

``return-X``, ``return-X-after-YK`` (of what is uploaded), ``return-reset-connection``,
``return-broken-stream``, ``return-broken-stream-after-YK``,
``return-broken-stream-final-chunk-after-YB``, ``stall-for-Ts``, ``stall-for-Ts-after-YK``,
``return-unreachable-buckets-A,B`` (of a listing with ``returnPartialSuccess``); and by the header
alone ``return-503-after-256K`` and ``break-after-256K``, which break a download from its start and,
with ``/retry-1`` or ``/retry-2`` at their end, answer 503 to a download from elsewhere;
``return-corrupted-data``, ``inject-upload-data-error``, ``stall-always``, ``stall-at-256KiB``. A
status is answered before the effect; a stream breaks after it. The faults of gRPC,
``redirect-...`` and ``return-X-if-dp-enforced``, are accepted in tests of that transport alone.

Source: https://github.com/googleapis/storage-testbench#forced-failures-supported
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

import orjson

from asynccommit.testing.emulators.gcs.wire import JSON, GcsResponse, error_answer, json_answer
from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse

ID = "x-retry-test-id"
INSTRUCTIONS = ("x-goog-emulator-instructions", "x-goog-testbench-instructions")

INSERT = "storage.objects.insert"
GET = "storage.objects.get"
LIST_BUCKETS = "storage.buckets.list"

_FAULT = re.compile(
    r"return-(?P<status>[1-9][0-9]{2})(?:-after-(?P<status_after>[0-9]+)K)?(?:/retry-(?P<try>\d+))?"
    r"|return-(?P<reset>reset-connection)"
    r"|return-broken-stream-final-chunk-after-(?P<short>[0-9]+)B"
    r"|return-(?P<broken>broken-stream)(?:-after-(?P<broken_after>[0-9]+)K)?"
    r"|return-(?P<corrupted>corrupted-data)"
    r"|(?P<injected>inject-upload-data-error)"
    r"|return-unreachable-buckets-(?P<unreachable>[\w,./-]+)"
    r"|stall-for-(?P<stall>[0-9]+)s(?:-after-(?P<stall_after>[0-9]+)K)?"
    r"|stall-(?P<always>always|at-256KiB)"
)
_OF_A_DOWNLOAD = re.compile(r"(?:return-503|break)-after-256K(?:/retry-(?P<try>[0-9]+))?")
_OF_GRPC = re.compile(
    r"redirect-(?:send-token|send-handle-and-token|expect-token)-[a-z-]+|return-[0-9]+-if-dp-enforced"
)
_STALL = 10.0
_BROKEN = 4  # bytes of a stream that breaks at once
_HEADER_BROKEN = 1024 * 1024  # bytes of a stream that breaks because a header asks for it


class ScriptedFault(NamedTuple):
    """A scripted fault.

    Attributes:
        kind: ``status``, ``reset``, ``broken``, ``short``, ``corrupted``, ``injected``,
            ``unreachable`` or ``stall``.
        status: response status.
        after: bytes transferred before the fault; ``None`` if it is immediate.
        seconds: duration of a stall.
        names: names of unreachable buckets.
    """

    kind: str
    status: int = 0
    after: int | None = None
    seconds: float = 0.0
    names: tuple[str, ...] = ()

    def strikes(self, method: str, uploaded: int) -> bool:
        """Return whether a request of this method and upload size is hit."""
        if self.kind == "status" and self.after is not None:
            return method == INSERT and uploaded >= self.after
        if self.kind in ("short", "injected"):
            return method == INSERT
        if self.kind == "unreachable":
            return method == LIST_BUCKETS
        if self.kind == "stall" and self.after is not None and method == INSERT:
            return uploaded >= self.after
        return True


def read_fault(text: str, *, header: bool = False) -> ScriptedFault | None:
    """Parse the name of a fault; ``None`` if it is unknown."""
    found = _FAULT.fullmatch(text)
    if found is None:
        return None
    given = found.groupdict()
    if given["status"]:
        if int(given["try"] or 0) > 2:
            return None
        return ScriptedFault("status", int(given["status"]), _kib(given["status_after"]))
    if given["reset"]:
        return ScriptedFault("reset")
    if given["short"]:
        return ScriptedFault("short", after=int(given["short"]))
    if given["broken"]:
        at_once = _HEADER_BROKEN if header else _BROKEN
        return ScriptedFault("broken", after=_kib(given["broken_after"]) or at_once)
    for kind in ("corrupted", "injected"):
        if given[kind]:
            return ScriptedFault(kind)
    if given["unreachable"]:
        return ScriptedFault("unreachable", names=tuple(given["unreachable"].split(",")))
    if given["stall"]:
        return ScriptedFault(
            "stall", after=_kib(given["stall_after"]), seconds=float(given["stall"])
        )
    return ScriptedFault(
        "stall", after=None if given["always"] == "always" else 1 << 18, seconds=_STALL
    )


def read_download_fault(text: str, start: int) -> ScriptedFault | None:
    """Parse a fault that a header asks of a download from ``start``.

    ``None`` if it is unknown, or leaves such a download alone.
    """
    found = _OF_A_DOWNLOAD.fullmatch(text)
    if found is None:
        return read_fault(text, header=True)
    if start == 0:
        return ScriptedFault("broken", after=1 << 18)
    return ScriptedFault("status", 503) if found["try"] in ("1", "2") else None


def _kib(text: str | None) -> int | None:
    return None if text is None else int(text) * 1024


class DueFault(NamedTuple):
    """A fault that applies to a request; call ``spend`` when it strikes."""

    fault: ScriptedFault
    spend: Callable[[], object]


class _Test:
    """A retry test with its remaining faults."""

    def __init__(self, name: str, transport: str, left: dict[str, list[str]]) -> None:
        self.name = name
        self.transport = transport
        self.left = left

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.name,
            "instructions": self.left,
            "completed": not any(self.left.values()),
            "transport": self.transport,
        }


class RetryTests:
    """The retry tests of an emulator.

    Args:
        new_id: returns a new unique name.
        methods: names of all methods.
    """

    def __init__(self, new_id: Callable[[], str], methods: Collection[str]) -> None:
        self._new_id = new_id
        self._methods = frozenset(methods)
        self._tests: dict[str, _Test] = {}

    def clear(self) -> None:
        """Delete all tests."""
        self._tests.clear()

    def concerns(self, path: str) -> bool:
        """Return whether a request is for this API."""
        return path == "/retry_tests" or path == "/retry_test" or path.startswith("/retry_test/")

    def answer(self, method: str, path: str, body: bytes) -> GcsResponse:
        """Answer a request of this API."""
        try:
            if path == "/retry_tests" and method == "GET":
                return json_answer({"retry_test": [_.to_json() for _ in self._tests.values()]})
            if path == "/retry_test" and method == "POST":
                return json_answer(self._add(body).to_json())
            test = self._find(path.removeprefix("/retry_test/"))
            if method == "DELETE":
                del self._tests[test.name]
                return GcsResponse(200, JSON, b"{}")
            return json_answer(test.to_json())
        except GcsRefusal as refusal:
            return error_answer(refusal)

    def _find(self, name: str) -> _Test:
        try:
            return self._tests[name]
        except KeyError:
            raise refuse("notFound", f"Retry Test {name[:100]} does not exist.") from None

    def _add(self, body: bytes) -> _Test:
        try:
            given = orjson.loads(body)
            asked = given["instructions"].items()
            left = {str(method): [str(_) for _ in faults] for method, faults in asked}
            transport = str(given.get("transport", "HTTP")).upper()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _invalid("The instructions") from None
        if transport not in ("HTTP", "GRPC"):
            raise _invalid(f"The transport {transport}")
        for method, faults in left.items():
            if method not in self._methods:
                raise _invalid(f"The requested method <{method}> for fault injection")
            for fault in faults:
                _check(fault, transport)
        test = _Test(self._new_id().replace("-", ""), transport, left)
        self._tests[test.name] = test
        return test

    def find(
        self,
        headers: Mapping[str, str],
        method: str,
        uploaded: int = 0,
        *,
        download: int | None = None,
    ) -> DueFault | None:
        """Return the next fault of a request, if any is left.

        Args:
            headers: headers of the request, which name the test or the fault.
            method: Google's name of the operation.
            uploaded: size of an upload including the bytes of this request.
            download: first byte of a download.

        Raises:
            GcsRefusal: the test is unknown.
        """
        name = headers.get(ID)
        if name is not None:
            return self._next(self._find(name), method, uploaded)
        for header in INSTRUCTIONS:
            if header in headers:
                text = headers[header]
                if download is None:
                    fault = read_fault(text, header=True)
                else:
                    fault = read_download_fault(text, download)
                if fault is not None and fault.strikes(method, uploaded):
                    return DueFault(fault, _keep)
        return None

    def _next(self, test: _Test, method: str, uploaded: int) -> DueFault | None:
        left = test.left.get(method)
        if not left or test.transport != "HTTP":
            return None
        fault = read_fault(left[0])
        if fault is None or not fault.strikes(method, uploaded):
            return None
        return DueFault(fault, partial(left.pop, 0))


def _keep() -> None:
    """Keep all faults: a header's fault applies to its own request alone."""


def _check(fault: str, transport: str) -> None:
    """Check that a fault of a test exists. Raises ``GcsRefusal``."""
    if _OF_GRPC.fullmatch(fault):
        if transport == "HTTP":
            raise _invalid(f"The fault injection request <{fault}>, which is for gRPC alone,")
    elif read_fault(fault) is None:
        raise _invalid(f"The fault injection request <{fault}>")


def _invalid(what: str) -> GcsRefusal:
    return refuse("invalid", f"{what} is invalid.")
