"""Batches of deletions: one request, and one result for each object.

Source: https://cloud.google.com/storage/docs/batch
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from asynccommit.errors import (
    ExistsError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Info
from asynccommit.stores.gcs.client import GcsClient
from asynccommit.stores.gcs.errors import GcsRequest, explain, says_not_empty
from asynccommit.stores.gcs.wire import encode_raw, generation_of
from asynccommit.stores.http.base import Response

_BOUNDARY = "=asynccommit="
KIND = f'multipart/mixed; boundary="{_BOUNDARY}"'
PART = 8192  # most bytes of the answer to one request of a batch

_KIND = re.compile(
    r"""multipart/mixed;(?:.{,200};)?\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))""", re.I
)
_ID = re.compile(rb"^content-id:[^\n]*response-[^\n]*\+(\d{1,6})>?\s*$", re.I | re.M)
_STATUS = re.compile(rb"\n*HTTP/1\.[01] (\d{3})(?: [^\n]*)?(?:\n|\Z)")


_PASSING = (ThrottledError, UnavailableError, OutcomeUnknownError)
_NO_BATCHES = (404, 405, 501)
_AT_ONCE = 8  # requests of those that take the place of a batch


class _GcsDeletion(NamedTuple):
    """One deletion of a batch: its request and the rules for its result."""

    request: GcsRequest
    path: str
    query: str
    folder: bool = False


class GcsDeletions:
    """Deletes objects, many at a time.

    Args:
        client: what sends the requests.
        without: called once it is known that the server takes no batches.
    """

    def __init__(self, client: GcsClient, without: Callable[[], None]) -> None:
        self._client = client
        self._without = without
        self._can = True

    async def delete(self, entries: Sequence[Info]) -> list[StoreError | None]:
        """Delete what ``entries`` name; see ``BulkStore.delete_many``."""
        if entries:  # what a directory is depends on it
            await self._client.need_layout(GcsRequest("delete_many", entries[0].path))
        asked: list[_GcsDeletion | StoreError] = [self._deletion(info) for info in entries]
        sent = [one for one in asked if isinstance(one, _GcsDeletion)]
        found = iter(await self._answers(sent))
        results = [next(found) if isinstance(one, _GcsDeletion) else one for one in asked]
        if len(results) == 1 and isinstance(results[0], _PASSING):
            raise results[0]
        return results

    def _deletion(self, info: Info) -> _GcsDeletion | StoreError:
        client = self._client
        name, request = info.path[1:], GcsRequest("delete_many", info.path, writes=True)
        if info.is_dir and info.etag is None and client.hierarchical:
            return _GcsDeletion(request, f"{client.folders}{encode_raw(name)}%2F", "", folder=True)
        url = client.objects + encode_raw(name) + ("%2F" if info.is_dir else "")
        if info.etag is None:
            return _GcsDeletion(request, url, "")
        try:
            generation = generation_of(info.etag)
        except ValueError as error:
            return RejectedError("delete_many", info.path, str(error))
        query = f"ifGenerationMatch={generation}"
        return _GcsDeletion(request._replace(generation=generation), url, query)

    async def _answers(self, sent: Sequence[_GcsDeletion]) -> list[StoreError | None]:
        if len(sent) > 1 and self._can:
            answer = await self._send_batch(sent)
            if answer.status not in _NO_BATCHES:
                return self._read(sent, answer)
            self._can = False
            self._without()
        turn = asyncio.Semaphore(_AT_ONCE)
        return await asyncio.gather(*(self._one(one, turn) for one in sent))

    async def _send_batch(self, sent: Sequence[_GcsDeletion]) -> Response:
        tail = self._client.tail
        urls = [f"{one.path}?{one.query}{tail}".rstrip("?").replace("?&", "?", 1) for one in sent]
        limit = PART * (len(sent) + 1)
        place, headers = self._client.place.batches, {"content-type": KIND}
        request = sent[0].request._replace(generation="")
        body = batch_of(urls)
        return await self._client.ask(request, "POST", place, "", headers, body, limit)

    def _read(self, sent: Sequence[_GcsDeletion], answer: Response) -> list[StoreError | None]:
        client, whole = self._client, sent[0].request._replace(generation="")
        client.need(whole, answer, 200)
        try:
            parts = parts_of(answer, len(sent))
        except ValueError as error:
            raise client.unread(whole, error) from None
        return [self._judge(one, part) for one, part in zip(sent, parts, strict=True)]

    def _judge(self, one: _GcsDeletion, part: Response | None) -> StoreError | None:
        if part is None:
            op, path, *_ = one.request
            return OutcomeUnknownError(op, path, "the batch response does not mention it")
        if one.folder and says_not_empty(part):
            detail = self._client.judge.told(explain(part)[1])
            return ExistsError("delete_many", one.request.path, detail)
        return None if part.status in (200, 204) else self._client.error(one.request, part)

    async def _one(self, one: _GcsDeletion, turn: asyncio.Semaphore) -> StoreError | None:
        async with turn:
            try:
                answer = await self._client.ask(one.request, "DELETE", one.path, one.query)
            except StoreError as error:
                return error
        return self._judge(one, answer)


def batch_of(paths: Sequence[str]) -> bytes:
    """Return the body of a request that deletes ``paths``, taken from URLs."""
    parts = [
        f"--{_BOUNDARY}\r\ncontent-type: application/http\r\n"
        f"content-transfer-encoding: binary\r\ncontent-id: <asynccommit+{number}>\r\n\r\n"
        f"DELETE {path} HTTP/1.1\r\n\r\n\r\n"
        for number, path in enumerate(paths)
    ]
    return "".join([*parts, f"--{_BOUNDARY}--\r\n"]).encode("ascii")


def parts_of(answer: Response, count: int) -> list[Response | None]:
    """Return the response to each of the ``count`` requests of a batch, ``None`` if missing."""
    found = _KIND.match(answer.headers.get("content-type", ""))
    if not found:
        raise ValueError("the response is not a batch")
    sections = _sections(answer.body, (found[1] or found[2]).encode("ascii", "replace"))
    parts: list[Response | None] = [None] * count
    numbers = [_ID.search(head) for head, _ in sections]
    if not any(numbers) and len(sections) == count:
        return [_part(body) for _, body in sections]
    seen = set[int]()
    for number, (_, body) in zip(numbers, sections, strict=True):
        place = int(number[1]) if number else -1
        if not 0 <= place < count or place in seen:
            raise ValueError("the response has an unexpected part")
        seen.add(place)
        parts[place] = _part(body)
    return parts


def _sections(body: bytes, boundary: bytes) -> list[tuple[bytes, bytes]]:
    """Split a body into head and content of each part."""
    pieces = (b"\n" + body.replace(b"\r\n", b"\n")).split(b"\n--" + boundary)
    # What no further boundary follows is the end, or was cut off.
    split = [piece.partition(b"\n\n") for piece in pieces[1:-1]]
    return [(head, content) for head, blank, content in split if blank]


def _part(body: bytes) -> Response | None:
    """Parse one response inside a batch response."""
    status = _STATUS.match(body)
    if not status:
        return None
    head, _, content = body[status.end() :].partition(b"\n\n")
    pairs = [line.partition(":") for line in head.decode("latin-1").split("\n")]
    headers = {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}
    return Response(int(status[1]), headers, content)
