"""Uploads in parts, beyond the contract: whose an object is, and answers that cannot be trusted."""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import Any

import pytest

from asynccommit.errors import OutcomeUnknownError, PreconditionError, RejectedError
from asynccommit.stores.http.base import Response
from asynccommit.stores.multipart import UploadPage
from asynccommit.stores.parts import Part
from tests.support.s3_answers import Direct, Sent, answering, bare, error, found, new_s3

DATAS = [b"one", b"two"]
MD5S = [hashlib.md5(data, usedforsecurity=False) for data in DATAS]
PLAIN = [Part(f'"{digest.hexdigest()}"') for digest in MD5S]
ETAG = hashlib.md5(b"".join(d.digest() for d in MD5S), usedforsecurity=False).hexdigest() + "-2"
CRCS = [zlib.crc32(data).to_bytes(4, "big") for data in DATAS]
CHECKED = [
    Part(part.etag, "CRC32", base64.b64encode(crc).decode())
    for part, crc in zip(PLAIN, CRCS, strict=True)
]
CHECKSUM = base64.b64encode(zlib.crc32(b"".join(CRCS)).to_bytes(4, "big")).decode() + "-2"
OPAQUE = [Part('"opaque-1"'), Part('"opaque-2"')]
OTHER = "0" * 32
KMS = {"x_amz_server_side_encryption": "aws:kms"}
SSE_S3 = {"x_amz_server_side_encryption": "AES256"}
SSE_C = {"x_amz_server_side_encryption_customer_algorithm": "AES256"}
SAME = {"x_amz_checksum_crc32": CHECKSUM}
DIFFERENT = {"x_amz_checksum_crc32": "AAAAAA==-2"}
WHOLE = {"x_amz_checksum_crc32": "AAAAAA=="}


@pytest.mark.parametrize(
    "parts,there,expected",
    [
        (PLAIN, bare(404), False),
        (PLAIN, found(ETAG), True),
        (PLAIN, found(ETAG, **SSE_S3), True),
        (PLAIN, found(f"{OTHER}-2"), False),
        (PLAIN, found(f"{OTHER}-3"), False),
        (PLAIN, found(OTHER), False),
        (PLAIN, found(f"{OTHER}-2", **KMS), None),
        (PLAIN, found(f"{OTHER}-3", **KMS), False),
        (PLAIN, found(OTHER, **KMS), False),
        (CHECKED, found(OTHER, **WHOLE, **KMS), False),
        (PLAIN, found(f"{OTHER}-2", **SSE_C), None),
        (PLAIN, found("opaque"), None),
        (OPAQUE, found("opaque-2"), None),
        (OPAQUE, found(f"{OTHER}-2"), None),
        (OPAQUE, found(f"{OTHER}-3"), False),
        (CHECKED, found(f"{OTHER}-2", **SAME, **KMS), True),
        (CHECKED, found(f"{OTHER}-2", **DIFFERENT, **KMS), False),
        (CHECKED, found(ETAG, **WHOLE), True),
        (CHECKED, found(f"{OTHER}-2", **WHOLE, **KMS), None),
        (CHECKED, found("opaque", **SAME), True),
    ],
)
async def test_whose_an_object_is(
    parts: list[Part], there: Response, expected: bool | None
) -> None:
    """It is an upload's by etag or checksum of its parts, surely another's, or nobody can tell."""
    direct = answering(there)
    store = new_s3(direct)
    if expected is None:
        with pytest.raises(OutcomeUnknownError, match="neither the etag nor the checksum"):
            await store.completed("/p", parts)
        return
    info = await store.completed("/p", parts)

    assert (info is not None) is expected
    assert info is None or info.size == 5
    [sent] = direct.seen
    assert (sent.method, sent.headers["x-amz-checksum-mode"]) == ("HEAD", "ENABLED")


async def test_a_completion_says_what_the_parts_are() -> None:
    """Etags as they came, in quotes, with checksums where there are some, in order."""
    body = (
        b'\n <CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        b"<ETag>&quot;" + ETAG.encode() + b"&quot;</ETag></CompleteMultipartUploadResult>"
    )
    direct = answering(Response(200, {}, body))
    info = await new_s3(direct).complete_upload("/a b/ü", "u/+=", [CHECKED[0], Part("a&b")])
    [sent] = direct.seen

    assert info.etag == ETAG
    assert (sent.path, sent.query) == ("/a%20b/%C3%BC", "uploadId=u%2F%2B%3D")
    assert "if-none-match" not in sent.headers
    assert sent.body.decode().partition("\n")[2] == (
        '<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Part><ChecksumCRC32>{CHECKED[0].checksum}</ChecksumCRC32>"
        f"<ETag>&quot;{MD5S[0].hexdigest()}&quot;</ETag><PartNumber>1</PartNumber></Part>"
        "<Part><ETag>&quot;a&amp;b&quot;</ETag><PartNumber>2</PartNumber></Part>"
        "</CompleteMultipartUpload>"
    )


YES = Response(
    200,
    {},
    b"<CompleteMultipartUploadResult><ETag>&quot;new-1&quot;</ETag>"
    b"</CompleteMultipartUploadResult>",
)
ELSEWHERE: dict[str, Any] = {"endpoint_url": "http://127.0.0.1:1"}


@pytest.mark.parametrize("more", [{}, {**ELSEWHERE, "conditional_replace": "true"}])
async def test_an_etag_is_a_condition_where_that_is_known_to_count(more: dict[str, Any]) -> None:
    """On AWS, or where one says so, a completion that replaces an etag is one request."""
    direct = answering(YES)
    store = new_s3(direct, **more)
    await store.complete_upload("/p", "u", PLAIN, overwrite=False, etag="old")

    [sent] = direct.seen
    assert store.traits.multipart is not None
    assert store.traits.multipart.matches
    assert sent.headers["if-match"] == '"old"'
    assert "if-none-match" not in sent.headers


async def test_elsewhere_it_is_looked_at_first() -> None:
    """Another server may pass the condition over, or not know it, so the store looks as well."""
    direct = answering(found("old"), error("NotImplemented", 501), YES)
    store = new_s3(direct, **ELSEWHERE)
    await store.complete_upload("/p", "u", PLAIN, etag="old")

    assert store.traits.multipart is not None
    assert not store.traits.multipart.matches
    said = [(sent.method, sent.headers.get("if-match")) for sent in direct.seen]
    assert said == [("HEAD", None), ("POST", '"old"'), ("POST", None)]


@pytest.mark.parametrize("there", [found("other"), bare(404)])
async def test_elsewhere_another_file_is_not_replaced(there: Response) -> None:
    """What the look finds is the answer, and nothing is completed."""
    direct = answering(there)
    with pytest.raises(PreconditionError, match="the file to replace has changed or is gone"):
        await new_s3(direct, **ELSEWHERE).complete_upload("/p", "u", PLAIN, etag="old")

    assert [sent.method for sent in direct.seen] == ["HEAD"]


async def test_a_token_goes_with_the_beginning_of_an_upload() -> None:
    """It is metadata of the object to be, under the name that those of puts have."""
    begun = b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    direct = answering(Response(200, {}, begun))
    await new_s3(direct).create_upload("/p", token="mark")
    await new_s3(direct).create_upload("/p")

    tokens = [sent.headers.get("x-amz-meta-asynccommit-token") for sent in direct.seen]
    assert tokens == ["mark", None]


@pytest.mark.parametrize(
    "there, expected",
    [
        (found("opaque", x_amz_meta_asynccommit_token="mine", **KMS), True),
        (found(ETAG, x_amz_meta_asynccommit_token="other"), False),
        (found(ETAG), False),
        (bare(404), False),
    ],
)
async def test_a_token_tells_whose_an_object_is(there: Response, expected: bool) -> None:
    """Whatever etags are, and whatever other object has the same parts."""
    direct = answering(there)
    info = await new_s3(direct).completed("/p", PLAIN, "mine")

    assert (info is not None) is expected
    assert [sent.method for sent in direct.seen] == ["HEAD"]


async def test_no_parts_make_no_file() -> None:
    """An upload of nothing is refused before it is sent: some servers would make an object."""
    direct = answering(bare(200))
    with pytest.raises(RejectedError, match="without parts"):
        await new_s3(direct).complete_upload("/p", "u", [])

    assert direct.seen == []


async def test_keys_of_the_customers_go_along() -> None:
    """SSE-C's key is sent with every part, with what completes them and what looks."""
    key = base64.b64encode(bytes(32)).decode()
    answer = found(ETAG)._replace(
        body=b"<InitiateMultipartUploadResult><UploadId>u</UploadId>"
        b"</InitiateMultipartUploadResult>"
    )
    direct = answering(answer)
    store = new_s3(direct, encryption="SSE-C", encryption_key=key)
    await store.create_upload("/p")
    await store.put_part("/p", "u", 1, b"data")
    await store.completed("/p", PLAIN)

    name = "x-amz-server-side-encryption-customer-key"
    assert [sent.headers[name] for sent in direct.seen] == [key] * 3
    assert direct.seen[0].headers["x-amz-checksum-algorithm"] == "CRC32"


UPLOAD = b"<Upload><Key>a/b%%2Bc+d</Key><UploadId>u</UploadId><Initiated>%b</Initiated></Upload>"


def uploads(*rest: bytes, name: bytes = b"ListMultipartUploadsResult") -> Response:
    """Return a page of uploads."""
    inner = b"<EncodingType>url</EncodingType>" + b"".join(rest)
    return Response(200, {}, b"<%b>%b</%b>" % (name, inner, name))


async def test_uploads_are_listed_with_their_age() -> None:
    """Names are decoded, and when they began is known if the service says so."""
    one = UPLOAD % b"2026-01-01T00:00:00.000Z"
    page = await new_s3(answering(uploads(one, UPLOAD % b"nonsense"))).list_uploads("/a")

    assert [(_.path, _.upload_id, _.initiated) for _ in page.entries] == [
        ("/a/b+c d", "u", 1767225600.0),
        ("/a/b+c d", "u", 0.0),
    ]
    assert page.token is None


@pytest.mark.parametrize(
    "rest",
    [
        b"<Upload><Key>b/c</Key><UploadId>u</UploadId></Upload>",
        b"<Upload><Key>a/c</Key></Upload>",
        b"<IsTruncated>true</IsTruncated>",
        b"<IsTruncated>true</IsTruncated><NextUploadIdMarker>u</NextUploadIdMarker>",
    ],
)
async def test_uploads_that_are_none(rest: bytes) -> None:
    """Another directory's, nameless ones, and a page that does not say how to go on are refused."""
    with pytest.raises(RejectedError, match="is it an endpoint of S3"):
        await new_s3(answering(uploads(rest))).list_uploads("/a")


async def test_a_server_that_lists_no_uploads_below_a_directory() -> None:
    """Elsewhere than on AWS those are found among all of the bucket, page by page."""
    more = b"<IsTruncated>true</IsTruncated><NextKeyMarker>b/k</NextKeyMarker>"
    near = UPLOAD.replace(b"a/b", b"ab/") % b""
    pages = [uploads(), uploads(near, more), uploads(UPLOAD % b"")]
    direct = answering(*pages)
    store = new_s3(direct, endpoint_url="http://127.0.0.1:9000")
    first = await store.list_uploads("/a")
    second = await store.list_uploads("/a", first.token)

    assert first.entries == ()
    assert [(upload.path, second.token) for upload in second.entries] == [("/a/b+c d", None)]
    prefixes = [sent.query.partition("prefix=")[2].partition("&")[0] for sent in direct.seen]
    assert prefixes == ["a%2F", "", ""]
    real = answering(uploads())
    assert (await new_s3(real).list_uploads("/a")).entries == ()
    assert len(real.seen) == 1


async def test_a_bucket_whose_uploads_nobody_may_list() -> None:
    """Who may list those below a directory only is told of these."""
    direct = answering(uploads(), error("AccessDenied", 403))
    page = await new_s3(direct, endpoint_url="http://127.0.0.1:9000").list_uploads("/a")

    assert page == UploadPage(())


async def test_pages_that_do_not_go_on_end() -> None:
    """A server that gives the same page for ever is left."""
    more = b"<IsTruncated>true</IsTruncated><NextKeyMarker>a/k</NextKeyMarker>"
    store = new_s3(answering(uploads(more)))
    page = await store.list_uploads("/a")
    with pytest.raises(RejectedError, match="where the rest begins"):
        await store.list_uploads("/a", page.token)

    parts = b"<IsTruncated>true</IsTruncated><NextPartNumberMarker>3</NextPartNumberMarker>"
    store = new_s3(answering(uploads(parts, name=b"ListPartsResult")))
    found_parts = await store.list_parts("/a", "u")
    with pytest.raises(RejectedError, match="where the rest begins"):
        await store.list_parts("/a", "u", found_parts.token)


class Server:
    """What a server other than AWS's answers; it may delete objects with the uploads of a key."""

    def __init__(self, *, deletes: bool) -> None:
        self.deletes = deletes
        self.objects = {"/data/t/there"}
        self.aborted: list[str] = []

    def answer(self, sent: Sent) -> Response:
        """Keep the names of objects, and answer."""
        key, query = sent.path, sent.query
        if sent.method == "HEAD":
            return found("old") if key in self.objects else bare(404)
        if sent.method == "PUT":
            self.objects.add(key)
            return bare(200, etag='"e"')
        if sent.method == "POST":
            text = b"<InitiateMultipartUploadResult><UploadId>u2</UploadId>"
            return Response(200, {}, text + b"</InitiateMultipartUploadResult>")
        if "uploadId" in query:
            self.aborted.append(key)
        if "uploadId" not in query or self.deletes:
            self.objects.discard(key)
        return bare(204)


@pytest.mark.parametrize("deletes", [False, True])
async def test_an_abort_never_deletes_the_object_of_the_key(deletes: bool) -> None:
    """Elsewhere than on AWS it is tried with an object of our own first, once."""
    server, direct = Server(deletes=deletes), Direct()
    direct.before = server.answer
    store = new_s3(direct, endpoint_url="http://127.0.0.1:9")

    await store.abort_upload("/t/missing", "u0")
    assert server.aborted == ["/data/t/missing"]
    for number in range(2):
        if deletes:
            with pytest.raises(RejectedError, match=r"abort_upload /t/there.*S3Mock 5\.2 does"):
                await store.abort_upload("/t/there", f"u{number}")
        else:
            await store.abort_upload("/t/there", f"u{number}")
    assert server.objects == {"/data/t/there"}
    assert server.aborted.count("/data/t/there") == (0 if deletes else 2)
    assert len([key for key in server.aborted if "_asynccommit-abort-" in key]) == 1
    await store.abort_upload("/t/missing", "u3")
    assert server.aborted[-1] == "/data/t/missing"


async def test_an_abort_on_aws_is_one_request() -> None:
    """AWS keeps the object, which its documentation says."""
    direct = answering(bare(204))

    await new_s3(direct).abort_upload("/t/there", "u")

    assert [sent.method for sent in direct.seen] == ["DELETE"]
