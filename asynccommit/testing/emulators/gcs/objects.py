"""Serve requests about objects; an object stored as gzip is decompressed for other clients.

Source: https://cloud.google.com/storage/docs/transcoding
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from asynccommit.testing.emulators.gcs.call import GcsCall, flag, number
from asynccommit.testing.emulators.gcs.fields import read_mask
from asynccommit.testing.emulators.gcs.object_json import (
    Json,
    Retained,
    read_details,
    show_object,
    shown_hashes,
    uniform_access,
    viewer,
    wrong,
)
from asynccommit.testing.emulators.gcs.wire import NO_CONTENT, GcsResponse, http_date, json_answer
from asynccommit.testing.models.gcs.model import (
    ComposeSource,
    Details,
    GcsObject,
    GcsRefusal,
    GcsService,
    ListQuery,
    Rewrite,
    refuse,
)

_RANGE = re.compile(r"bytes=(\d*)-(\d*)").fullmatch
_TYPE = "application/octet-stream"


class Objects:
    """The operations on objects; each method is one operation."""

    def __init__(self, service: GcsService, scheme: str) -> None:
        self._service = service
        self._scheme = scheme

    def _shown(self, call: GcsCall, found: GcsObject) -> GcsResponse:
        """Return a response with an object's resource."""
        fields = call.query.get("fields")
        mask = None if fields is None else read_mask(fields)
        show = viewer(mask, call.origin(self._scheme), self._retained(found.bucket))
        return json_answer(show(found))

    def _retained(self, bucket: str) -> Retained | None:
        """Return a function that returns the retention of a bucket's objects."""
        with suppress(GcsRefusal):  # a caller who may see the objects may lack access to the bucket
            return self._service.get_bucket(bucket).retained_until
        return None

    # --- reading -------------------------------------------------------------------------------

    def get(self, call: GcsCall) -> GcsResponse:
        """Return an object's resource."""
        query = call.query
        found = self._service.get(
            call.bucket,
            call.name,
            generation=number(query, "generation"),
            preconditions=call.conditions(),
            soft_deleted=flag(query, "softDeleted"),
        )
        check_etag(call, found)
        return self._shown(call, found)

    def read(self, call: GcsCall) -> GcsResponse:
        """Return an object's bytes, or a range of them."""
        found = self._service.get(
            call.bucket,
            call.name,
            generation=number(call.query, "generation"),
            preconditions=call.conditions(),
        )
        check_etag(call, found)
        return media_response(call, found, media_headers(found))

    def list(self, call: GcsCall) -> GcsResponse:
        """Return a page of a bucket's objects."""
        query = call.query
        found = self._service.list(call.bucket, _query_of(call))
        shown: Json = {"kind": "storage#objects"}
        if found.token:
            shown["nextPageToken"] = found.token
        if found.prefixes:
            shown["prefixes"] = found.prefixes
        mask = read_mask(query["fields"]) if "fields" in query else None
        if mask is not None and "*" not in mask:
            shown = {name: value for name, value in shown.items() if name in mask}
            if "items" not in mask:
                return json_answer(shown)
        inner = None if mask is None else mask.get("items")
        if found.items:
            show = viewer(inner, call.origin(self._scheme), self._retained(call.bucket))
            shown["items"] = [show(item) for item in found.items]
        return json_answer(shown)

    def acl(self, call: GcsCall) -> GcsResponse:
        """Refuse to show an ACL, which buckets with uniform access do not have."""
        self._service.get_bucket(call.bucket)
        raise uniform_access()

    # --- changing ------------------------------------------------------------------------------

    def patch(self, call: GcsCall) -> GcsResponse:
        """Change an object's metadata."""
        return self._change(call, replace=False)

    def update(self, call: GcsCall) -> GcsResponse:
        """Replace an object's metadata."""
        return self._change(call, replace=True)

    def _change(self, call: GcsCall, *, replace: bool) -> GcsResponse:
        found = self._service.patch(
            call.bucket,
            call.name,
            read_details(call.json()),
            generation=number(call.query, "generation"),
            preconditions=call.conditions(),
            replace=replace,
        )
        return self._shown(call, found)

    def delete(self, call: GcsCall) -> GcsResponse:
        """Delete an object, or one generation."""
        self._service.delete(
            call.bucket,
            call.name,
            generation=number(call.query, "generation"),
            preconditions=call.conditions(),
        )
        return NO_CONTENT

    def restore(self, call: GcsCall) -> GcsResponse:
        """Restore a soft-deleted object."""
        generation = number(call.query, "generation")
        if generation is None:
            raise refuse("required", "Required parameter: generation", location="generation")
        found = self._service.restore(
            call.bucket, call.name, generation, preconditions=call.conditions()
        )
        return self._shown(call, found)

    # --- moving and copying --------------------------------------------------------------------

    def move(self, call: GcsCall) -> GcsResponse:
        """Rename an object."""
        bucket, source, dest = call.names
        found = self._service.move(
            bucket,
            source,
            dest,
            preconditions=call.conditions(),
            source_preconditions=call.source_conditions(),
        )
        return self._shown(call, found)

    def rewrite(self, call: GcsCall) -> GcsResponse:
        """Copy an object, or a part of it."""
        bucket, source, dest_bucket, dest = call.names
        query = call.query
        self._admit_source(call)
        done = self._service.rewrite(
            bucket,
            source,
            dest_bucket,
            dest,
            generation=number(query, "sourceGeneration"),
            details=self._copy_details(call),
            token=query.get("rewriteToken", ""),
            max_bytes=number(query, "maxBytesRewrittenPerCall"),
            preconditions=call.conditions(),
            source_preconditions=call.source_conditions(),
        )
        return json_answer(_progress(done, call.origin(self._scheme)))

    def copy(self, call: GcsCall) -> GcsResponse:
        """Copy an object in one call."""
        bucket, source, dest_bucket, dest = call.names
        self._admit_source(call)
        found = self._service.copy_object(
            bucket,
            source,
            dest_bucket,
            dest,
            generation=number(call.query, "sourceGeneration"),
            details=self._copy_details(call),
            preconditions=call.conditions(),
            source_preconditions=call.source_conditions(),
        )
        return self._shown(call, found)

    def _admit_source(self, call: GcsCall) -> None:
        bucket, _, dest_bucket, _ = call.names
        if bucket != dest_bucket:
            self._service.admit("get", bucket, user_project=call.user_project)

    def _copy_details(self, call: GcsCall) -> Details | None:
        """Return the details given for a copy, if any."""
        given = {name: _ for name, _ in read_details(call.json()).items() if _ is not None}
        key = call.query.get("destinationKmsKeyName", "")
        if not given and key:
            return self._service.get(call.bucket, call.name).details._replace(kms_key_name=key)
        if key:
            given["kms_key_name"] = key
        return Details(**given) if given else None

    def compose(self, call: GcsCall) -> GcsResponse:
        """Concatenate objects into one."""
        given = call.json()
        sources = given.get("sourceObjects")
        if not isinstance(sources, list) or not sources:
            raise refuse("required", "You must provide at least one source component.")
        destination = given.get("destination")
        details = read_details(destination) if isinstance(destination, dict) else {}
        if "kmsKeyName" in call.query:
            details["kms_key_name"] = call.query["kmsKeyName"]
        found = self._service.compose(
            call.bucket,
            call.name,
            [_source(_) for _ in sources],
            details=Details(**{name: _ for name, _ in details.items() if _ is not None}),
            preconditions=call.conditions(),
            delete_sources=_deletes_sources(given),
        )
        return self._shown(call, found)


def _deletes_sources(given: Json) -> bool:
    """Return whether a compose deletes its sources."""
    deletes = given.get("deleteSourceObjects")
    if deletes is not None and not isinstance(deletes, bool):
        raise wrong("deleteSourceObjects", deletes)
    return deletes is True


def _query_of(call: GcsCall) -> ListQuery:
    query = call.query
    get = query.get
    return ListQuery(
        prefix=get("prefix", ""),
        delimiter=get("delimiter", ""),
        start_offset=get("startOffset", ""),
        end_offset=get("endOffset", ""),
        include_trailing_delimiter=flag(query, "includeTrailingDelimiter"),
        include_folders_as_prefixes=flag(query, "includeFoldersAsPrefixes"),
        match_glob=get("matchGlob", ""),
        versions=flag(query, "versions"),
        soft_deleted=flag(query, "softDeleted"),
        page_token=get("pageToken", ""),
        max_results=number(query, "maxResults"),
    )


def _progress(done: Rewrite, origin: str) -> Json:
    found = done.object
    shown: Json = {
        "kind": "storage#rewriteResponse",
        "totalBytesRewritten": str(done.rewritten),
        "objectSize": str(done.total),
        "done": found is not None,
    }
    if found is None:
        return {**shown, "rewriteToken": done.token}
    return {**shown, "resource": show_object(found, origin)}


def _source(given: Any) -> ComposeSource:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise wrong("sourceObjects", given)
    conditions = given.get("objectPreconditions")
    match = conditions.get("ifGenerationMatch") if isinstance(conditions, dict) else None
    return ComposeSource(
        given["name"],
        _integer("sourceObjects.generation", given.get("generation")),
        _integer("sourceObjects.objectPreconditions.ifGenerationMatch", match),
    )


def _integer(member: str, value: Any) -> int | None:
    """Parse a 64-bit integer, which is a string in JSON."""
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        raise wrong(member, value) from None


def byte_range(call: GcsCall) -> tuple[int, int | None]:
    """Return the half-open byte range; an absent or malformed Range means all."""
    found = _RANGE(call.headers.get("range", ""))
    if found is None or not (found[1] or found[2]):
        return 0, None
    if not found[1]:
        return -int(found[2]), None
    start = int(found[1])
    end = int(found[2]) + 1 if found[2] else None
    return (0, None) if end is not None and end <= start else (start, end)


def start_of(call: GcsCall) -> int:
    """Return the first byte that a download asks for; negative from the end."""
    return byte_range(call)[0]


def check_etag(call: GcsCall, found: GcsObject) -> None:
    """Check the headers If-Match (412) and If-None-Match (304) of a read."""
    headers = call.headers
    if "if-match" in headers and not _names(headers["if-match"], found.etag):
        raise refuse("conditionNotMet", location_type="header", location="If-Match")
    if "if-none-match" in headers and _names(headers["if-none-match"], found.etag):
        raise refuse("notModified", headers={"ETag": found.etag})


def _names(header: str, etag: str) -> bool:
    given = {_.strip().strip('"') for _ in header.split(",")}
    return "*" in given or etag in given


def media_response(call: GcsCall, found: GcsObject, headers: dict[str, str]) -> GcsResponse:
    """Answer a download: decompressed bytes, a range, or the whole object."""
    if (plain := decompressed(found, call.headers)) is not None:
        del headers["Content-Encoding"]
        return GcsResponse(200, {**headers, **GUNZIPPED}, plain)
    start, end = byte_range(call)
    data = found.content.part(start, end)
    if start == 0 and end is None:
        return GcsResponse(200, headers, data)
    first = start if start >= 0 else max(0, found.size + start)
    headers["Content-Range"] = f"bytes {first}-{first + len(data) - 1}/{found.size}"
    return GcsResponse(206, headers, data)


def media_headers(found: GcsObject) -> dict[str, str]:
    """Return the headers of a download."""
    details = found.details
    headers = {
        "Content-Type": details.content_type or _TYPE,
        "ETag": found.etag,
        "X-Goog-Generation": str(found.generation),
        "X-Goog-Metageneration": str(found.metageneration),
        "X-Goog-Hash": shown_hashes(found.crc32c, found.content.md5),
        "X-Goog-Storage-Class": details.storage_class or "STANDARD",
        "X-Goog-Stored-Content-Encoding": details.content_encoding or "identity",
        "X-Goog-Stored-Content-Length": str(found.size),
        "Last-Modified": http_date(int(found.updated)),
    }
    rest = {
        "Cache-Control": details.cache_control,
        "Content-Disposition": details.content_disposition,
        "Content-Encoding": details.content_encoding,
        "Content-Language": details.content_language,
    }
    return headers | {name: value for name, value in rest.items() if value}


GUNZIPPED: Mapping[str, str] = {
    "Transfer-Encoding": "chunked",
    "Vary": "Accept-Encoding",
    "X-Guploader-Response-Body-Transformations": "gunzipped",
}
"""Headers of a response that was decompressed."""


def decompressed(found: GcsObject, headers: Mapping[str, str]) -> bytes | None:
    """Return the decompressed bytes of an object.

    They are ``None`` if the object is served as it is stored: if the request has
    ``Accept-Encoding: gzip``, if the object's ``cacheControl`` has ``no-transform``, or if its
    ``contentEncoding`` is wrong (inferred). A decompressed response has neither
    ``Content-Encoding`` nor ``Content-Length``, and ``Range`` is ignored.
    """
    details = found.details
    if details.content_encoding.lower() != "gzip" or _takes_gzip(headers):
        return None
    if "no-transform" in details.cache_control.lower():
        return None
    try:
        return gzip.decompress(found.content.data)
    except (OSError, EOFError, zlib.error):
        return None


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for gzip, and not by a quality of 0."""
    for given in headers.get("accept-encoding", "").lower().split(","):
        coding, _, quality = given.partition(";")
        if coding.strip() == "gzip":
            return quality.replace(" ", "").removeprefix("q=").strip("0.") != "" or not quality
    return False
