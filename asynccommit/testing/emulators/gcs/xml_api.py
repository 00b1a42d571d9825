"""Serve the part of the XML API that object_store and obstore use.

These are objects: put, get, head, delete, copy, and uploads in parts; and listings of version 2.
Everything else of the XML API is refused as not implemented.

Source: https://cloud.google.com/storage/docs/xml-api/overview
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from email.utils import parsedate_to_datetime
from xml.sax.saxutils import escape

from asynccommit.testing.emulators.gcs.call import GcsCall, GcsRoute, Query, decode, number
from asynccommit.testing.emulators.gcs.objects import media_headers, media_response
from asynccommit.testing.emulators.gcs.wire import NO_CONTENT, GcsResponse, rfc3339
from asynccommit.testing.emulators.gcs.xml_uploads import XmlUploads
from asynccommit.testing.emulators.gcs.xml_wire import (
    META,
    check_body,
    details_of,
    identity,
    preconditions,
    quoted_etag,
    xml_answer,
)
from asynccommit.testing.models.gcs.model import GcsObject, GcsService, ListQuery, refuse

RESERVED = frozenset(("", "batch", "download", "resumable", "storage", "upload"))
"""First segments of paths that are not names of buckets."""

_LISTING = {"list-type", "prefix", "delimiter", "start-after", "continuation-token", "max-keys"}


class XmlApi:
    """The operations of the XML API; each method is one operation."""

    def __init__(self, service: GcsService, new_id: Callable[[], str]) -> None:
        self._service = service
        self._uploads = XmlUploads(service, new_id)
        uploads, insert = self._uploads, "storage.objects.insert"
        self._routes = {
            "list": _route("list", "storage.objects.list", self.list),
            "GET": _route("read", "storage.objects.get", self.read),
            "HEAD": _route("get", "storage.objects.get", self.read),
            "DELETE": _route("delete", "storage.objects.delete", self.delete, 0, 1),
            "PUT": _route("insert", insert, self.put, 0, 1),
            "copy": _route("rewrite", "storage.objects.copy", self.copy, 0, 1),
            "start": _route("upload", insert, uploads.start),
            "part": _route("upload", insert, uploads.put_part),
            "complete": _route("insert", insert, uploads.complete, 0, 1),
            "abort": _route("upload", "storage.objects.delete", uploads.abort),
        }

    def clear(self) -> None:
        """Forget all uploads."""
        self._uploads.clear()

    def find(
        self, method: str, path: str, query: Query, headers: Mapping[str, str]
    ) -> tuple[GcsRoute, tuple[str, ...]]:
        """Return the route of a request, and its encoded names.

        Raises ``GcsRefusal`` for what is not implemented.
        """
        bucket, _, name = path[1:].partition("/")
        if not name:
            listing = method == "GET" and query.get("list-type") == "2" and query.keys() <= _LISTING
            return self._routes["list"] if listing else self._unknown(bucket), (bucket,)
        route = self._of_object(method, query.keys(), headers)
        return route or self._unknown(bucket), (bucket, name)

    def _of_object(
        self, method: str, keys: Set[str], headers: Mapping[str, str]
    ) -> GcsRoute | None:
        if not keys or (keys == {"generation"} and method != "PUT"):
            copies = method == "PUT" and "x-goog-copy-source" in headers
            return self._routes.get("copy" if copies else method)
        chosen = {
            ("POST", "uploads"): "start",
            ("PUT", "partNumber,uploadId"): "part",
            ("POST", "uploadId"): "complete",
            ("DELETE", "uploadId"): "abort",
        }.get((method, ",".join(sorted(keys))))
        return self._routes[chosen] if chosen else None

    def _unknown(self, bucket: str) -> GcsRoute:
        self._service.held(decode(bucket))  # a missing bucket is told first
        raise refuse("notImplemented", "This request of the XML API is not implemented here.")

    # --- objects -------------------------------------------------------------------------------

    def read(self, call: GcsCall) -> GcsResponse:
        """Return an object's bytes, or a range of them."""
        found = self._service.get(
            call.bucket,
            call.name,
            generation=number(call.query, "generation"),
            preconditions=preconditions(call),
        )
        _check_read(call, found)
        headers = media_headers(found) | {"ETag": quoted_etag(found)}
        headers |= {f"{META}{name}": text for name, text in found.details.metadata.items()}
        return media_response(call, found, headers)

    def put(self, call: GcsCall) -> GcsResponse:
        """Create an object, replacing the present one."""
        hashes = check_body(call)
        made = self._service.insert(
            call.bucket,
            call.name,
            call.body,
            details=details_of(call.headers),
            preconditions=preconditions(call),
        )
        return GcsResponse(200, identity(made) | hashes)

    def delete(self, call: GcsCall) -> GcsResponse:
        """Delete an object, or one generation."""
        self._service.delete(
            call.bucket,
            call.name,
            generation=number(call.query, "generation"),
            preconditions=preconditions(call),
        )
        return NO_CONTENT

    def copy(self, call: GcsCall) -> GcsResponse:
        """Copy an object; its metadata are those of the source."""
        source = decode(call.headers["x-goog-copy-source"]).removeprefix("/")
        bucket, _, name = source.partition("/")
        made = self._service.copy_object(
            bucket, name, call.bucket, call.name, preconditions=preconditions(call)
        )
        shown = f"<ETag>{escape(quoted_etag(made))}</ETag>"
        shown += f"<LastModified>{rfc3339(made.updated)}</LastModified>"
        return xml_answer("CopyObjectResult", shown, identity(made))

    # --- listings ------------------------------------------------------------------------------

    def list(self, call: GcsCall) -> GcsResponse:
        """Return a page of a bucket's objects."""
        get = call.query.get
        after = get("start-after", "")
        page = self._service.list(
            call.bucket,
            ListQuery(
                prefix=get("prefix", ""),
                delimiter=get("delimiter", ""),
                start_offset=f"{after}\0" if after else "",
                page_token=get("continuation-token", ""),
                max_results=number(call.query, "max-keys"),
            ),
        )
        shown = [f"<Name>{escape(call.bucket)}</Name><Prefix>{escape(get('prefix', ''))}</Prefix>"]
        shown += [_entry(found) for found in page.items]
        shown += [
            f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>"
            for prefix in page.prefixes
        ]
        shown.append(f"<IsTruncated>{'true' if page.token else 'false'}</IsTruncated>")
        if page.token:
            shown.append(f"<NextContinuationToken>{page.token}</NextContinuationToken>")
        return xml_answer("ListBucketResult", "".join(shown))


def _route(op: str, method: str, handler: Callable[[GcsCall], GcsResponse], *asks: int) -> GcsRoute:
    return GcsRoute(op, method, handler, asks=asks or (0,), xml=True)


def _entry(found: GcsObject) -> str:
    return (
        f"<Contents><Key>{escape(found.name)}</Key><Generation>{found.generation}</Generation>"
        f"<MetaGeneration>{found.metageneration}</MetaGeneration>"
        f"<LastModified>{rfc3339(found.updated)}</LastModified>"
        f"<ETag>{escape(quoted_etag(found))}</ETag><Size>{found.size}</Size></Contents>"
    )


def _check_read(call: GcsCall, found: GcsObject) -> None:
    """Check the conditions of HTTP, those on the ETag first."""
    get, etag = call.headers.get, quoted_etag(found)
    match, none_match = get("if-match"), get("if-none-match")
    unchanged = {"ETag": etag}
    if match is not None:
        if not _names(match, etag):
            raise refuse("conditionNotMet")
    elif (until := _moment(get("if-unmodified-since"))) is not None and int(found.updated) > until:
        raise refuse("conditionNotMet")
    if none_match is not None:
        if _names(none_match, etag):
            raise refuse("notModified", headers=unchanged)
    elif (since := _moment(get("if-modified-since"))) is not None and int(found.updated) <= since:
        raise refuse("notModified", headers=unchanged)


def _names(header: str, etag: str) -> bool:
    given = {word.strip().strip('"') for word in header.split(",")}
    return "*" in given or etag.strip('"') in given


def _moment(text: str | None) -> float | None:
    if not text:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError):
        return None  # as HTTP has it, an invalid date is ignored
