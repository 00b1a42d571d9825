"""Parse batch requests (``multipart/mixed``), decide their faults, build their responses.

Each part is a request with its own outcome; the whole is always answered with 200. Parts of the
response are in the order of the requests. They wait concurrently, as at the service. A connection
belongs to the whole request, so only a fault of the batch itself leaves it without a response; a
part whose response is lost is answered with 503 ``backendError``, whether it took effect or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from asynccommit.testing.emulators.emulator import later
from asynccommit.testing.emulators.gcs.call import GcsCall, decode
from asynccommit.testing.emulators.gcs.multipart import (
    MultipartPart,
    boundary_of,
    malformed,
    read_headers,
    split,
)
from asynccommit.testing.emulators.gcs.wire import GcsResponse, error_answer, status_line
from asynccommit.testing.models.fault_rules import CLEAR, SLOW, FaultDecision, FaultInjector
from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse

MOST = 100
"""Maximum number of requests in a batch."""

LARGEST = 10_000_000
"""Maximum size of a batch in bytes."""

Read = Callable[[str, str, Mapping[str, str], bytes], GcsCall]

_EMPTY_LINE = re.compile(rb"\r?\n\r?\n")
_UNFIT = ("insert", "upload", "read", "batch")


class Inner:
    """A request of a batch: ``call``, or the response to an invalid one.

    ``decision`` is its fault decision, and ``later`` schedules a late effect.
    """

    __slots__ = ("answer", "call", "content_id", "decision", "later")

    def __init__(self, content_id: str, call: GcsCall | None, answer: GcsResponse | None) -> None:
        self.content_id = content_id
        self.call = call
        self.answer = answer
        self.decision: FaultDecision = CLEAR
        self.later: Callable[[float, Callable[[], object]], None] = later


def read_batch(call: GcsCall, read: Read) -> None:
    """Fill ``call.parts`` with ``Inner``; ``read`` parses each request.

    Raises ``GcsRefusal`` for an invalid batch, too many parts or too many bytes.
    """
    if len(call.body) > LARGEST:
        raise refuse("uploadTooLarge", "The batch request is too large.")
    parts = split(call.body, boundary_of(call.headers.get("content-type", "")))
    if not parts:
        raise malformed("The batch is empty.")
    if len(parts) > MOST:
        raise malformed(f"The batch has {len(parts)} calls; the most is {MOST}.")
    outer = {name: value for name, value in call.headers.items() if not name.startswith("content-")}
    call.parts = [_inner(part, outer, read) for part in parts]


def _inner(part: MultipartPart, outer: Mapping[str, str], read: Read) -> Inner:
    content_id = part.headers.get("content-id", "")
    try:
        return Inner(content_id, _call(part, outer, read), None)
    except GcsRefusal as refusal:
        return Inner(content_id, None, error_answer(refusal))


def _call(part: MultipartPart, outer: Mapping[str, str], read: Read) -> GcsCall:
    line, _, rest = part.body.partition(b"\n")
    words = line.decode("latin-1").split()
    if len(words) < 2:
        raise malformed("A part contains no request.")
    end, body = _head_end(rest)
    target = _path(words[1])
    call = read(words[0].upper(), target, {**outer, **read_headers(rest[:end])}, body)
    if call.route.op in _UNFIT:
        raise malformed(f"{call.route.method} is not allowed in a batch.")
    return call


def _head_end(rest: bytes) -> tuple[int, bytes]:
    """Return the end of a request's headers, and its body."""
    if rest[:1] == b"\n" or rest[:2] == b"\r\n":
        return 0, rest[2 if rest[:1] == b"\r" else 1 :].rstrip(b"\r\n")
    found = _EMPTY_LINE.search(rest)
    if found is None:
        return len(rest), b""
    return found.start(), rest[found.end() :].rstrip(b"\r\n")


def _path(target: str) -> str:
    """Return the path of a URL, which may be absolute."""
    if target.startswith("/"):
        return target
    decode(target)
    return "/" + target.partition("://")[2].partition("/")[2]


def write_batch(
    inners: Sequence[Inner], answers: Sequence[GcsResponse], boundary: str
) -> GcsResponse:
    """Return the responses to all parts as one."""
    chunks: list[bytes] = []
    for inner, answer in zip(inners, answers, strict=True):
        head = f"--{boundary}\r\nContent-Type: application/http\r\n"
        if inner.content_id:
            head += f"Content-ID: {_response_id(inner.content_id)}\r\n"
        lines = "".join([f"{name}: {value}\r\n" for name, value in answer.headers.items()])
        head += f"\r\n{status_line(answer.status)}{lines}Content-Length: {len(answer.body)}\r\n\r\n"
        chunks += [head.encode("latin-1", "replace"), answer.body, b"\r\n"]
    chunks.append(f"--{boundary}--\r\n".encode())
    return GcsResponse(
        200, {"Content-Type": f"multipart/mixed; boundary={boundary}"}, b"".join(chunks)
    )


def _response_id(content_id: str) -> str:
    """Return the id of a response: that of the request with a prefix."""
    inner = content_id.removeprefix("<")
    return f"<response-{inner}" if inner != content_id else f"response-{inner}"


Later: TypeAlias = Callable[[float, Callable[[], object]], None]
"""Schedules a call after a number of seconds."""


def decide(weather: FaultInjector, call: GcsCall, later: Later) -> FaultDecision:
    """Return the fault decision of a request; call once for each request.

    The parts of a batch store theirs. ``later`` schedules parts that take effect after the batch is
    answered.
    """
    op = call.route.op
    if op != "batch":
        return weather.decide(op, call.place)
    whole = weather.decide(op, call.place)
    each = []
    for part in call.parts:
        if part.call is not None:
            part.decision = weather.decide(part.call.route.op, part.call.place)
            part.later = later
            each.append(part.decision)
    return whole if each.count(CLEAR) == len(each) else _joined(whole, each)


def _joined(whole: FaultDecision, each: Sequence[FaultDecision]) -> FaultDecision:
    before = max(whole.before, *[one.before for one in each])
    after = max(whole.after, *[one.after for one in each])
    kind = whole.kind or (SLOW if after else "")
    return whole._replace(before=before, after=after, kind=kind)


def refused(decision: FaultDecision) -> GcsResponse:
    """Return the refusal of a decision; ``backendError`` for a lost response."""
    no = decision.refusal
    return error_answer(no if isinstance(no, GcsRefusal) else refuse("backendError"))
