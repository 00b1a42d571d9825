"""Objects of S3: metadata, content and writes."""

from __future__ import annotations

from collections.abc import Mapping

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.base import Response
from asynccommit.stores.http.client import SMALL
from asynccommit.stores.http.flat import FlatObjects, Listing
from asynccommit.stores.s3.checksums import headers as checksum_headers
from asynccommit.stores.s3.client import S3Client
from asynccommit.stores.s3.errors import OTHERS, S3Request, explain
from asynccommit.stores.s3.wire import (
    TOKEN,
    bare_etag,
    encode_raw,
    info_of,
    list_query,
    listed,
    quoted,
)
from asynccommit.stores.s3.xml import parse

LISTING = 32 << 20  # most bytes of a page: 1,000 keys of a kilobyte, encoded, take a tenth
_DATA = "application/octet-stream"
_NEW = {"if-none-match": "*"}
_UNTOLD = (400, 401, 403)  # with no body to a HEAD
_META = "x-amz-meta-"


class S3Objects(FlatObjects[S3Request]):
    """Reads and writes objects.

    Args:
        client: what sends the requests.
    """

    def __init__(self, client: S3Client) -> None:
        keeping = client.settings.keeping
        self._client = client
        self._content = dict(keeping.content)
        self._written = {**keeping.written, **keeping.content, "content-type": _DATA}
        self._copied = {**keeping.written, **keeping.content, **keeping.source}
        self._conditional_copy = True

    # --- what is there -----------------------------------------------------------------------

    async def find(self, request: S3Request, path: str) -> Info | None:
        answer = await self.look(request, path)
        return None if answer is None else self._described(request, path, answer)

    def _described(self, request: S3Request, path: str, answer: Response) -> Info:
        try:
            return info_of(path, answer.headers)
        except ValueError as error:
            raise self._client.unread(request, error) from None

    async def look(
        self, request: S3Request, path: str, *, checked: bool = False
    ) -> Response | None:
        """Send a HEAD for ``path``; return its facts, or ``None`` if missing.

        Args:
            request: the request that this is for.
            path: the path of the object.
            checked: request its checksum too.
        """
        client = self._client
        key = client.encode(request, path)
        headers = {**self._content, **({"x-amz-checksum-mode": "ENABLED"} if checked else {})}
        answer = await client.ask(request, "HEAD", key, "", headers)
        if answer.status == 404:
            return None
        if answer.status in _UNTOLD:
            # The answer to a HEAD has no body that says why; that to a GET has.
            said = await client.ask(
                request, "GET", key, "", {**self._content, "range": "bytes=0-0"}
            )
            answer = said if explain(said).code else answer
        client.need(request, answer, 200)
        return answer

    async def page(
        self, request: S3Request, path: str, most: int, token: str | None, *, tree: bool
    ) -> Listing:
        client = self._client
        if path != "/":
            client.encode(request, path)  # for its checks: in a query it is encoded otherwise
        query = list_query(path, most, token, tree=tree)
        answer = await client.ask(request, "GET", None, query, limit=LISTING)
        client.need(request, answer, 200)
        try:
            return listed(answer.body, path, token, tree=tree)
        except ValueError as error:
            raise client.unread(request, error) from None

    # --- content -----------------------------------------------------------------------------

    async def read(self, request: S3Request, path: str, limit: int) -> bytes:
        return (await self._read(request, path, limit, {})).body

    async def _read(
        self, request: S3Request, path: str, limit: int, headers: Mapping[str, str]
    ) -> Response:
        """Return the response with the content of an object."""
        client = self._client
        key = client.encode(request, path)
        # The range limit also leaves room for an error body.
        most = max(limit, SMALL)
        answer = await client.ask(request, "GET", key, "", {**self._content, **headers}, limit=most)
        if answer.status != 200:
            error = client.error(request, answer)
            raise await self.missing(request, path) if isinstance(error, NotFoundError) else error
        if "etag" not in answer.headers:
            raise client.unread(request, ValueError("the response has no etag"))
        if len(answer.body) > limit:
            held = f"holds {len(answer.body)} bytes, more than {limit}"
            raise RejectedError(request.op, path, held)
        return answer

    async def write(self, request: S3Request, path: str, data: bytes, token: str | None) -> Info:
        """Make the object at ``path`` by one request."""
        metadata = {TOKEN: token} if token is not None else {}
        return await self._put(request, path, data, metadata)

    async def mark(self, request: S3Request, path: str, metadata: Mapping[str, str]) -> Info:
        """Make the empty object at ``path`` with these metadata."""
        named = {f"{_META}{name.lower()}": value for name, value in metadata.items()}
        return await self._put(request, path, b"", named)

    async def need_placeholder(self, request: S3Request) -> None:
        """Raise ``NotFoundError`` for a directory that only its content implies."""
        client, path = self._client, request.path
        key = f"{encode_raw(path[1:])}/"
        answer = await client.ask(request.look, "HEAD", key, "", dict(self._content))
        if answer.status == 404:
            raise NotFoundError(request.op, path, "the directory exists only through its files")
        client.need(request.look, answer, 200)

    async def make_directory(self, request: S3Request, path: str) -> None:
        client = self._client
        headers = self._headers(b"", new=True)
        answer = await client.ask(
            request, "PUT", f"{client.encode(request, path)}/", "", headers, b""
        )
        if answer.status != 412 or not explain(answer).code:
            client.need(request, answer, 200)

    def begun(self, token: str | None) -> dict[str, str]:
        """Return the headers that an upload begins with."""
        kind = self._client.settings.checksum
        checked = {"x-amz-checksum-algorithm": kind} if kind else {}
        return {**self._written, **checked, **({} if token is None else {TOKEN: token})}

    def part(self, data: bytes) -> dict[str, str]:
        """Return the headers of a part."""
        return {**self._content, **self.checksums(data)}

    @property
    def written(self) -> dict[str, str]:
        """The headers of whatever is written."""
        return dict(self._written)

    def checksums(self, data: bytes) -> dict[str, str]:
        """Return the header with the checksum of what is written."""
        return checksum_headers(self._client.settings.checksum, data)

    @property
    def content(self) -> dict[str, str]:
        """The headers of whatever reads content or ends an upload."""
        return dict(self._content)

    def _headers(self, data: bytes, *, new: bool) -> dict[str, str]:
        condition = _NEW if new and self._client.settings.conditional else {}
        return {**self._written, **self.checksums(data), **condition}

    async def _put(
        self, request: S3Request, path: str, data: bytes, metadata: Mapping[str, str]
    ) -> Info:
        client = self._client
        key = client.encode(request, path)
        headers = {**self._headers(data, new=request.new), **metadata}
        answer = await client.ask(request, "PUT", key, "", headers, data)
        client.need(request, answer, 200)
        try:
            etag = bare_etag(answer.headers.get("etag", ""))
        except ValueError as error:
            raise client.unread(request, error) from None
        return Info(path, Kind.FILE, len(data), etag, token=metadata.get(TOKEN))

    # --- copies ------------------------------------------------------------------------------

    async def copy(self, request: S3Request, etag: str | None = None) -> None:
        """Copy ``request.path`` to ``request.dest``, if its etag matches.

        Without an etag there is no condition.
        """
        client, path, dest = self._client, request.path, request.dest
        source, target = client.encode(request, path), client.encode(request, dest)
        if request.new and await self.find(request.look, dest) is not None:
            raise ExistsError(request.op, path, f"something is at {dest}")
        sure = client.place.real and client.settings.conditional
        if request.etag is not None and not sure:
            await self.need_etag(request, dest, request.etag)
        bucket = encode_raw(client.place.bucket)
        headers = {**self._copied, "x-amz-copy-source": f"/{bucket}/{source}"}
        if etag is not None:
            await self._need_source(request, etag)
            headers["x-amz-copy-source-if-match"] = quoted(etag)
        answer = await self._copied_to(request, target, headers)
        if answer.status != 200:
            raise await self._no_copy(request, client.error(request, answer))
        try:
            parse(answer.body, "CopyObjectResult")
        except ValueError as unread:
            # A copy that takes long is answered with 200 before it is known to have failed.
            raise client.late(request, answer, unread) from None

    async def need_etag(self, request: S3Request, path: str, etag: str) -> None:
        """Send a HEAD; raise if ``path`` does not hold the expected version."""
        there = await self.find(request.look, path)
        if there is None or there.etag != etag.strip('"'):
            raise PreconditionError(request.op, request.path, OTHERS)

    async def _no_copy(self, request: S3Request, error: StoreError) -> StoreError:
        """Return the error for a failed copy, without the object's name."""
        path = request.path
        if isinstance(error, NotFoundError):
            return await self.missing(request, path)
        replaces = request.etag is not None and isinstance(error, PreconditionError)
        if replaces and await self.find(request.look, path) is None:
            return await self.missing(request, path)
        return error

    async def _need_source(self, request: S3Request, etag: str) -> None:
        """Raise if the source's etag differs and the server may not check it."""
        if self._client.place.real:
            return
        there = await self.find(request.look, request.path)
        if there is None:
            raise await self.missing(request, request.path)
        if there.etag != etag.strip('"'):
            said = f"its etag is {there.etag}, not {etag}"
            raise PreconditionError(request.op, request.path, said)

    async def _copied_to(
        self, request: S3Request, target: str, headers: dict[str, str]
    ) -> Response:
        client = self._client
        condition = _NEW if request.new else {}
        if request.etag is not None:
            condition = {"if-match": quoted(request.etag)}
        if condition and self._conditional_copy and client.settings.conditional:
            headers = {**headers, **condition}
            answer = await client.ask(request, "PUT", target, "", headers, own=True)
            if answer.status != 501 or (request.etag is not None and client.place.real):
                return answer
            self._conditional_copy = False
            headers = {name: value for name, value in headers.items() if name not in condition}
        return await client.ask(request, "PUT", target, "", headers, own=True)
