"""Serve directory buckets, without I/O.

``ExpressApp.read`` parses a request and ``perform`` executes it, so that faults can come between.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from asynccommit.stores.s3.xml import children, parse, values
from asynccommit.testing.emulators.s3_express.auth import authorise
from asynccommit.testing.emulators.s3_express.call import ExpressCall, read_call
from asynccommit.testing.emulators.s3_express.wire import (
    NONE,
    ExpressResponse,
    checksum_headers,
    checksum_texts,
    described,
    document,
    element,
    encoded,
    iso,
    refused,
    texts,
)
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.s3.directory_bucket import (
    DirectoryBucket,
    DirectoryService,
    RenameRequest,
)
from asynccommit.testing.models.s3.model import ALGORITHMS, CompletedPart
from asynccommit.testing.models.s3.objects import S3Object, checksum_of
from asynccommit.testing.models.s3.refusals import refuse

KEYS: Mapping[str, str] = {"test": "test"}
"""The secrets of the callers that an emulator knows, by the id of their key."""

_META = "x-amz-meta-"
_KEPT = ("cache-control", "content-disposition", "content-language", "content-type", "expires")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)

Handler = Callable[[ExpressCall, DirectoryBucket], ExpressResponse]


class ExpressApp:
    """Directory buckets as a function from requests to responses.

    Args:
        service: the model of the service.
        keys: secrets of the callers, by the id of their key.
        strict: refuse paths that name the bucket even on an address.
    """

    def __init__(
        self,
        service: DirectoryService,
        *,
        keys: Mapping[str, str] = KEYS,
        strict: bool = False,
    ) -> None:
        self.service = service
        self._keys = keys
        self._strict = strict
        self._handlers: Mapping[str, Handler] = {
            "abort_upload": _abort,
            "bucket": lambda call, bucket: ExpressResponse(200),
            "complete_upload": _complete,
            "copy": _copy,
            "create_upload": _begin,
            "delete": _delete,
            "delete_many": _delete_many,
            "get": _get,
            "head": _head,
            "list": _list,
            "list_parts": _list_parts,
            "list_uploads": _list_uploads,
            "put": _put,
            "put_part": _put_part,
            "rename": _rename,
            "session": _session,
        }

    def read(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> ExpressCall:
        """Parse a request. Raises ``Refusal``."""
        return read_call(method, target, headers, body, strict=self._strict)

    def perform(self, call: ExpressCall) -> ExpressResponse:
        """Execute a request and return its response."""
        try:
            bucket = self.service.bucket(call.bucket)
            authorise(call, bucket, self._keys)
            if call.op not in self._handlers:
                raise refuse("NotImplemented")
            return self._handlers[call.op](call, bucket)
        except Refusal as refusal:
            return refused(refusal)


# --- sessions, renames, copies ---------------------------------------------------------------


def _session(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    mode = call.headers.get("x-amz-create-session-mode", "ReadWrite")
    if mode not in ("ReadOnly", "ReadWrite"):
        raise refuse("InvalidArgument", "The mode of a session is ReadWrite or ReadOnly.")
    made = bucket.create_session(writes=mode == "ReadWrite")
    said = texts(
        AccessKeyId=made.access,
        SecretAccessKey=made.secret,
        SessionToken=made.token,
        Expiration=iso(made.expires),
    )
    return document("CreateSessionResult", element("Credentials", said))


def _rename(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    headers = call.headers
    if any("modified-since" in name for name in headers):
        raise refuse("NotImplemented")  # the emulator's limit: its times have whole seconds
    absent = headers.get("if-none-match", "")
    if absent not in ("", "*"):
        raise refuse("InvalidArgument", "If-None-Match expects an asterisk.")
    asked = RenameRequest(
        source=_source(headers.get("x-amz-rename-source", ""), bucket, whole=False),
        key=call.key,
        absent=bool(absent),
        matches=_etag(headers, "if-match"),
        source_matches=_etag(headers, "x-amz-rename-source-if-match"),
        source_differs=_etag(headers, "x-amz-rename-source-if-none-match"),
    )
    bucket.rename(asked, headers.get("x-amz-client-token", ""))
    return ExpressResponse(200)


def _copy(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    headers = call.headers
    replaces = headers.get("x-amz-metadata-directive", "COPY") == "REPLACE"
    made = bucket.copy_object(
        _source(headers["x-amz-copy-source"], bucket, whole=True),
        call.key,
        metadata=_metadata(headers) if replaces else None,
        if_none_match=headers.get("if-none-match", ""),
        if_match=_etag(headers, "if-match"),
        source_if_match=_etag(headers, "x-amz-copy-source-if-match"),
    )
    said = texts(LastModified=iso(made.modified), ETag=f'"{made.etag}"')
    return document("CopyObjectResult", said, checksum_texts(made.algorithm, made.checksum))


def _source(text: str, bucket: DirectoryBucket, *, whole: bool) -> str:
    """Return the key in the header that names a source.

    That of a copy begins with the bucket. That of a rename is the key; botocore documents no other
    form, and the examples of the guide have one that begins with the bucket as well.
    """
    path = unquote(text).removeprefix("/")
    name, slash, key = path.partition("/")
    if slash and name.endswith("--x-s3"):
        if name != bucket.name:
            raise refuse("InvalidRequest", "Source and destination are in different buckets.")
        return key
    if whole or not path:
        raise refuse("InvalidArgument", "The source is missing or names no bucket.")
    return path


# --- objects ---------------------------------------------------------------------------------


def _put(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    _refuse_md5(call)
    data, kind = call.data, _checked(call)
    made = bucket.put(
        call.key,
        data,
        metadata=_metadata(call.headers),
        algorithm=kind,
        if_none_match=call.headers.get("if-none-match", ""),
        if_match=_etag(call.headers, "if-match"),
    )
    return ExpressResponse(200, {"etag": f'"{made.etag}"', **checksum_headers(made)})


def _head(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    found = _asked_for(call, bucket)
    checked = call.headers.get("x-amz-checksum-mode") == "ENABLED"
    size = {"content-length": str(found.size)}
    return ExpressResponse(200, {**described(found, checked=checked), **size})


def _get(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    found = _asked_for(call, bucket)
    checked = call.headers.get("x-amz-checksum-mode") == "ENABLED"
    wanted = _RANGE.fullmatch(call.headers.get("range", ""))
    if wanted is None or wanted[1] + wanted[2] == "":
        return ExpressResponse(200, described(found, checked=checked), found.data)
    size = found.size
    start = int(wanted[1]) if wanted[1] else max(0, size - int(wanted[2]))
    end = min(int(wanted[2]), size - 1) if wanted[1] and wanted[2] else size - 1
    if start > end:
        raise refuse("InvalidRange")
    headers = {**described(found, checked=False), "content-range": f"bytes {start}-{end}/{size}"}
    return ExpressResponse(206, headers, found.data[start : end + 1])


def _asked_for(call: ExpressCall, bucket: DirectoryBucket) -> S3Object:
    found, wanted = bucket.head(call.key), _etag(call.headers, "if-match")
    if wanted not in ("", "*", found.etag):
        raise refuse("PreconditionFailed")
    return found


def _delete(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    bucket.delete(call.key, if_match=_etag(call.headers, "if-match"))
    return ExpressResponse(204)


def _delete_many(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    _refuse_md5(call)
    _checked(call)
    root = _parsed(call.data, "Delete")
    named = [values(one) for one in children(root, "Object")]
    keys = [(one.get("Key", ""), one.get("ETag", "").strip('"')) for one in named]
    shown = []
    for (key, _), refusal in zip(keys, bucket.delete_many(keys), strict=True):
        if refusal is not None:
            said = texts(Key=key, Code=refusal.code, Message=refusal.message)
            shown.append(element("Error", said))
        elif values(root).get("Quiet") != "true":
            shown.append(element("Deleted", texts(Key=key)))
    return document("DeleteResult", *shown)


def _list(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    query = call.query
    kind, most = query.get("encoding-type", ""), _count(query, "max-keys")
    page = bucket.list(
        query.get("prefix", ""),
        delimiter=query.get("delimiter", ""),
        start_after=query.get("start-after", ""),
        token=query.get("continuation-token", ""),
        most=most,
    )
    shown = [element("Contents", _listed(found, kind)) for found in page.objects]
    shown += [
        element("CommonPrefixes", texts(Prefix=encoded(name, kind))) for name in page.prefixes
    ]
    facts = texts(
        Name=bucket.name,
        Prefix=encoded(query.get("prefix", ""), kind),
        KeyCount=len(page.objects) + len(page.prefixes),
        MaxKeys=most,
        Delimiter=query.get("delimiter"),
        EncodingType=kind or None,
        IsTruncated="true" if page.token else "false",
        NextContinuationToken=page.token or None,
    )
    return document("ListBucketResult", facts, *shown)


def _listed(found: S3Object, kind: str) -> str:
    return texts(
        Key=encoded(found.key, kind),
        LastModified=iso(found.modified),
        ETag=f'"{found.etag}"',
        ChecksumAlgorithm=found.algorithm or None,
        Size=found.size,
        StorageClass="EXPRESS_ONEZONE",
    )


# --- uploads ---------------------------------------------------------------------------------


def _begin(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    kind = call.headers.get("x-amz-checksum-algorithm", "").upper()
    made = bucket.create_upload(call.key, metadata=_metadata(call.headers), algorithm=kind)
    said = texts(Bucket=bucket.name, Key=call.key, UploadId=made)
    headers = {"x-amz-checksum-algorithm": kind} if kind else NONE
    return document("InitiateMultipartUploadResult", said, headers=headers)


def _put_part(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    _refuse_md5(call)
    _checked(call)
    number = _count(call.query, "partNumber")
    sent = bucket.upload_part(call.key, call.query.get("uploadId", ""), number, call.data)
    headers = {"etag": f'"{sent.etag}"'}
    if sent.checksum:
        headers[f"x-amz-checksum-{sent.algorithm.lower()}"] = sent.checksum
    return ExpressResponse(200, headers)


def _complete(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    named = [values(one) for one in children(_parsed(call.data, "CompleteMultipartUpload"), "Part")]
    parts = [_completed_part(one) for one in named]
    made = bucket.complete(
        call.key,
        call.query["uploadId"],
        parts,
        if_none_match=call.headers.get("if-none-match", ""),
        if_match=_etag(call.headers, "if-match"),
    )
    said = texts(Bucket=bucket.name, Key=made.key, ETag=f'"{made.etag}"')
    checksum = checksum_texts(made.algorithm, made.checksum)
    return document("CompleteMultipartUploadResult", said, checksum)


def _completed_part(said: Mapping[str, str]) -> CompletedPart:
    number = said.get("PartNumber", "")
    if not number.isdecimal():
        raise refuse("MalformedXML")
    checksum = next(filter(None, (said.get(f"Checksum{kind}") for kind in ALGORITHMS)), "")
    return CompletedPart(int(number), said.get("ETag", "").strip('"'), checksum)


def _abort(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    bucket.abort(call.key, call.query["uploadId"])
    return ExpressResponse(204)


def _list_uploads(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    query, kind = call.query, call.query.get("encoding-type", "")
    page = bucket.list_uploads(
        query.get("prefix", ""), key_marker=query.get("key-marker", ""), most=_most(query)
    )
    shown = [
        texts(
            Key=encoded(one.key, kind),
            UploadId=one.upload_id,
            Initiated=iso(one.initiated),
            StorageClass="EXPRESS_ONEZONE",
        )
        for one in page.entries
    ]
    facts = texts(
        Bucket=bucket.name,
        EncodingType=kind or None,
        IsTruncated="true" if page.key_marker else "false",
        NextKeyMarker=page.key_marker or None,
    )
    uploads = [element("Upload", one) for one in shown]
    return document("ListMultipartUploadsResult", facts, *uploads)


def _most(query: Mapping[str, str]) -> int | None:
    return _count(query, "max-uploads") if "max-uploads" in query else None


def _list_parts(call: ExpressCall, bucket: DirectoryBucket) -> ExpressResponse:
    query = call.query
    page = bucket.list_parts(
        call.key, query["uploadId"], marker=int(query.get("part-number-marker", "0") or 0)
    )
    shown = [
        element(
            "Part",
            texts(
                PartNumber=part.number,
                LastModified=iso(part.modified),
                ETag=f'"{part.etag}"',
                Size=len(part.data),
            ),
            checksum_texts(part.algorithm, part.checksum),
        )
        for part in page.entries
    ]
    facts = texts(
        Key=call.key,
        UploadId=query["uploadId"],
        IsTruncated="true" if page.marker else "false",
        NextPartNumberMarker=page.marker or None,
    )
    return document("ListPartsResult", facts, *shown)


# --- parts of requests -----------------------------------------------------------------------


def _etag(headers: Mapping[str, str], name: str) -> str:
    return headers.get(name, "").strip('"')


def _count(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "1000")
    if not text.isdecimal():
        raise refuse("InvalidArgument", f"{name} is not a number.")
    return int(text)


def _metadata(headers: Mapping[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in headers.items() if name in _KEPT}
    own = {name: text for name, text in headers.items() if name.startswith(_META)}
    return {**kept, **own}


def _refuse_md5(call: ExpressCall) -> None:
    """Refuse an MD5, which is not supported; the code is inferred."""
    if "content-md5" in call.headers:
        raise refuse("NotImplemented")


def _checked(call: ExpressCall) -> str:
    """Return the algorithm of the checksum that came with the body; check it."""
    for kind in ALGORITHMS:
        said = call.headers.get(f"x-amz-checksum-{kind.lower()}")
        if said is not None:
            if said != checksum_of(kind, call.data):
                raise refuse("BadDigest")
            return kind
    trailer = call.headers.get("x-amz-trailer", "").removeprefix("x-amz-checksum-").upper()
    if trailer in ALGORITHMS:
        line = f"x-amz-checksum-{trailer.lower()}:".encode()
        _check_trailer(call, line, checksum_of(trailer, call.data))
        return trailer
    return ""


def _check_trailer(call: ExpressCall, line: bytes, expected: str) -> None:
    found = call.body.rpartition(line)[2].split(b"\r\n")[0].strip()
    if base64.b64decode(found) != base64.b64decode(expected):
        raise refuse("BadDigest")


def _parsed(body: bytes, name: str) -> Element:
    try:
        return parse(body, name)
    except ValueError:
        raise refuse("MalformedXML") from None
