"""Objects of S3 where they are renamed: directory buckets and their like.

An etag here is ``VERSION-ALGORITHM:CHECKSUM``: the service's own, which names one version of an
object, and the checksum, which a rename keeps whatever it does to the etag. Listings show the first
part only. Source:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-buckets-objects-rename.html
"""

from __future__ import annotations

from collections.abc import Mapping

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    StoreError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.stores.base import Info
from asynccommit.stores.http.flat import Listing
from asynccommit.stores.s3.errors import S3Request
from asynccommit.stores.s3.objects import S3Objects
from asynccommit.stores.s3.wire import bare_etag, quoted

_CHECKED = {"x-amz-checksum-mode": "ENABLED"}
_SUM = "x-amz-checksum-"
_NO_SUMS = frozenset({"algorithm", "mode", "type"})
_DASH, _PERCENT = ("-", "%2D"), ("%", "%25")


def tagged(etag: str, headers: Mapping[str, str]) -> str:
    """Return the etag of an object with the checksum in ``headers``."""
    version = etag.replace(*_PERCENT).replace(*_DASH)
    for name in sorted(headers):
        kind = name.removeprefix(_SUM)
        if kind != name and kind not in _NO_SUMS:
            return f"{version}-{kind.upper()}:{headers[name]}"
    return version


def version_of(etag: str) -> str:
    """Return the service's own etag, with quotes."""
    version = etag.strip('"').partition("-")[0]
    return quoted(version.replace(*_DASH[::-1]).replace(*_PERCENT[::-1]))


def bare(info: Info) -> Info:
    """Return an entry with the service's own etag."""
    return info if info.etag is None else info._replace(etag=version_of(info.etag))


class RenamingObjects(S3Objects):
    """Reads, writes and renames objects."""

    async def find(self, request: S3Request, path: str) -> Info | None:
        answer = await self.look(request, path, checked=True)
        if answer is None:
            return None
        info = self._described(request, path, answer)
        return info._replace(etag=tagged(info.etag or "", answer.headers))

    async def page(
        self, request: S3Request, path: str, most: int, token: str | None, *, tree: bool
    ) -> Listing:
        found = await super().page(request, path, most, token, tree=tree)
        if any("-" in (info.etag or "") for info in found.entries):
            entries = [
                info if info.etag is None else info._replace(etag=tagged(info.etag, {}))
                for info in found.entries
            ]
            return found._replace(entries=entries)
        return found

    async def read_tagged(
        self, request: S3Request, path: str, limit: int
    ) -> tuple[bytes, str | None]:
        """Return the content of an object, and its etag."""
        answer = await self._read(request, path, limit, _CHECKED)
        return answer.body, tagged(bare_etag(answer.headers["etag"]), answer.headers)

    async def _put(
        self, request: S3Request, path: str, data: bytes, metadata: Mapping[str, str]
    ) -> Info:
        info = await super()._put(request, path, data, metadata)
        return info._replace(etag=tagged(info.etag or "", self.checksums(data)))

    # --- renames -----------------------------------------------------------------------------

    async def rename(self, request: S3Request, etag: str | None, token: str) -> None:
        """Rename ``request.path`` to ``request.dest`` by one request.

        Args:
            request: the rename; ``new`` forbids to replace.
            etag: of the source, if it must have one.
            token: never used before: an older one could mean that nothing is done.
        """
        client = self._client
        source, target = (client.encode(request, _) for _ in (request.path, request.dest))
        if source == target:
            client.refuse(request, ValueError("source and destination are the same"))
        headers = {"x-amz-rename-source": f"/{source}", "x-amz-client-token": token}
        if etag is not None:
            headers["x-amz-rename-source-if-match"] = version_of(etag)
        if request.new:
            headers["if-none-match"] = "*"
        answer = await client.ask(request, "PUT", target, "renameObject", headers)
        if answer.status == 200 and not answer.body.strip():
            return
        error = client.error(request, answer)
        if isinstance(error, NotFoundError | ExistsError | PreconditionError):
            error = await self._unmet(request, etag, error)
        raise error

    async def _unmet(self, request: S3Request, etag: str | None, error: StoreError) -> StoreError:
        """Return the condition that did not hold.

        The service names none, and no page says which one it looks at first. Raises
        ``UnsupportedError`` for a directory, unless a file was asked for by its etag.
        """
        op, path, dest, look = request.op, request.path, request.dest, request.look
        here = await self.find(look, path)
        if here is None:
            if etag is None and await self.is_directory(look, path):
                raise UnsupportedError(
                    f"rename {path}: it is a directory, which must be renamed object by object "
                    "in a bucket of S3"
                )
            return NotFoundError(op, path, f"{error.detail}: there is no such object")
        if etag is not None and version_of(here.etag or "") != version_of(etag):
            said = f"the etag of the source is {here.etag}, not {etag}"
            return PreconditionError(op, path, f"{error.detail}: {said}")
        if request.new and await self.find(look, dest) is not None:
            return ExistsError(op, path, f"{error.detail}: something is at {dest}")
        return UnavailableError(op, path, f"{error.detail}: it was changed and restored")
