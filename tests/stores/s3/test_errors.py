"""What each answer of S3 means, and what its error says to do."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.http.base import (
    NoAnswerError,
    NotSentError,
    Response,
    TooLargeError,
    TransportError,
    UntrustedError,
)
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.store import S3Store
from tests.support.s3_answers import SECRET, Direct, answering, bare, error, error_body, new_s3

PARTS = [Part('"e"')]
Call = Callable[[S3Store], Awaitable[object]]

CALLS: dict[str, Call] = {
    "get": lambda store: store.get("/p", 10),
    "list": lambda store: store.list("/p"),
    "list_tree": lambda store: store.list_tree("/p"),
    "list_uploads": lambda store: store.list_uploads("/p"),
    "list_parts": lambda store: store.list_parts("/p", "u"),
    "put": lambda store: store.put("/p", b"data"),
    "put new": lambda store: store.put("/p", b"data", overwrite=False),
    "put_marker": lambda store: store.put_marker("/p", {}),
    "copy_if": lambda store: store.copy_if("/p", "/q", "e"),
    "create_upload": lambda store: store.create_upload("/p"),
    "put_part": lambda store: store.put_part("/p", "u", 1, b"data"),
    "complete_upload": lambda store: store.complete_upload("/p", "u", PARTS),
    "complete new": lambda store: store.complete_upload("/p", "u", PARTS, overwrite=False),
    "complete over": lambda store: store.complete_upload("/p", "u", PARTS, etag="e"),
    "abort_upload": lambda store: store.abort_upload("/p", "u"),
}
READS = ("get", "list", "list_tree", "list_uploads", "list_parts")
WRITES = tuple(name for name in CALLS if name not in READS)


async def raised(name: str, *answers: Response, **options: Any) -> StoreError:
    """Return the error that a call raises for these answers."""
    with pytest.raises(StoreError) as caught:
        await CALLS[name](new_s3(answering(*answers), **options))
    shown = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    assert SECRET not in shown
    return caught.value


ANSWERS: list[tuple[str, Response, type[StoreError], str]] = [
    ("get", error("SlowDown", 503, retry_after="7"), ThrottledError, "SlowDown"),
    ("put", error("SlowDown", 503), ThrottledError, "SlowDown"),
    ("complete_upload", error("SlowDown", 503), ThrottledError, "SlowDown"),
    ("put", error("ServiceUnavailable", 503), ThrottledError, "ServiceUnavailable"),
    ("put", error("TooManyRequests", 429), ThrottledError, "TooMany"),
    ("get", error("InternalError", 500), UnavailableError, "InternalError"),
    ("put", error("InternalError", 500), OutcomeUnknownError, "InternalError"),
    ("put_part", error("RequestTimeout", 400), UnavailableError, "RequestTimeout"),
    ("put_part", error("BadDigest", 400), UnavailableError, "BadDigest"),
    ("put", error("OperationAborted", 409), UnavailableError, "OperationAborted"),
    ("put new", error("PreconditionFailed", 412), ExistsError, "412"),
    ("put new", error("ConditionalRequestConflict", 409), UnavailableError, "409"),
    ("complete new", error("PreconditionFailed", 412), ExistsError, "412"),
    ("complete new", error("ConditionalRequestConflict", 409), PreconditionError, "upload is gone"),
    (
        "complete over",
        error("PreconditionFailed", 412),
        PreconditionError,
        "the file to replace has changed",
    ),
    (
        "complete over",
        error("NoSuchKey", 404),
        PreconditionError,
        "to replace has changed or is gone",
    ),
    ("complete over", error("NoSuchUpload", 404), NotFoundError, "NoSuchUpload"),
    ("complete over", error("AccessDenied", 403), DeniedError, "needs s3:PutObject$"),
    ("copy_if", error("PreconditionFailed", 412), PreconditionError, "412"),
    ("complete_upload", error("InvalidPart", 400), PreconditionError, "missing, or was sent again"),
    ("complete_upload", error("InvalidPartOrder", 400), PreconditionError, "InvalidPartOrder"),
    ("complete_upload", error("EntityTooSmall", 400), PreconditionError, "at least 5 MiB"),
    ("complete_upload", error("NoSuchUpload", 404), NotFoundError, "NoSuchUpload"),
    ("abort_upload", error("NoSuchUpload", 404), NotFoundError, "NoSuchUpload"),
    ("put_part", error("NoSuchUpload", 404), NotFoundError, "NoSuchUpload"),
    ("put", error("NoSuchBucket", 404), RejectedError, "no bucket 'data'; create it"),
    ("list", error("NoSuchBucket", 404), RejectedError, "no bucket 'data'"),
    ("put", error("KeyTooLongError", 400), RejectedError, "1,024 bytes"),
    ("put", error("EntityTooLarge", 400), RejectedError, "EntityTooLarge"),
    ("get", error("InvalidObjectState", 403), RejectedError, "restore it"),
    ("put", error("NotImplemented", 501), RejectedError, "NotImplemented"),
    ("copy_if", error("InvalidRequest", 400, "The copy source is too big"), RejectedError, "5 GiB"),
    ("get", error("AccessDenied", 403), DeniedError, "needs s3:GetObject$"),
    ("list", error("AccessDenied", 403), DeniedError, "needs s3:ListBucket$"),
    ("put", error("AccessDenied", 403), DeniedError, r"exempt .* __magic_job-\* and _temp"),
    ("complete_upload", error("AccessDenied", 403), DeniedError, "requires conditional writes"),
    ("put new", error("AccessDenied", 403), DeniedError, "needs s3:PutObject$"),
    ("get", error("ExpiredToken", 400), DeniedError, "aws sso login"),
    ("get", error("InvalidAccessKeyId", 403), DeniedError, "AWS_ACCESS_KEY_ID"),
    ("get", error("SignatureDoesNotMatch", 403), DeniedError, "AWS_SECRET_ACCESS_KEY"),
    ("get", error("PermanentRedirect", 301), RejectedError, "is the region eu-west-1 the bucket's"),
    ("put", Response(301, {"location": "https://evil.example/x"}, b""), RejectedError, "evil.exam"),
    ("put", Response(407, {}, b""), RejectedError, "proxy needs a user name"),
    ("get", Response(502, {}, b"<html>bad gateway"), UnavailableError, "unlike an endpoint of S3"),
    (
        "put",
        Response(502, {}, b"<html>bad gateway"),
        OutcomeUnknownError,
        "unlike an endpoint of S3",
    ),
    ("get", Response(503, {"retry-after": "3"}, b""), ThrottledError, "503"),
    ("put", Response(503, {}, b""), OutcomeUnknownError, "503"),
    ("get", Response(404, {"content-type": "text/html"}, b"<html>"), RejectedError, "text/html"),
    ("list", Response(200, {}, b"<html>log in</html>"), RejectedError, "is it an endpoint of S3"),
    ("list", Response(200, {}, b"<ListBucketResult><Na"), UnavailableError, "cut short"),
    ("put", Response(200, {}, b"<html>log in</html>"), OutcomeUnknownError, "no etag"),
    ("create_upload", Response(200, {}, b"<html/>"), OutcomeUnknownError, "not Initiate"),
    ("complete_upload", Response(200, {}, b""), OutcomeUnknownError, "not XML"),
]


@pytest.mark.parametrize("name,answer,kind,said", ANSWERS)
async def test_what_an_answer_means(
    name: str, answer: Response, kind: type[StoreError], said: str
) -> None:
    """Each answer is one error, which says what to do where the service's words do not."""
    found = await raised(name, answer)

    assert type(found) is kind
    assert found.path == "/p"
    with pytest.raises(StoreError, match=said):
        raise found


@pytest.mark.parametrize("name", ["complete_upload", "complete new", "complete over", "copy_if"])
async def test_a_yes_that_was_a_no(name: str) -> None:
    """An answer that says 200 first and no in its body is that no, blanks before it or not."""
    known = {
        "SlowDown": ThrottledError,
        "InternalError": OutcomeUnknownError,
        "AccessDenied": DeniedError,
        "InvalidPart": PreconditionError,
        "PreconditionFailed": ExistsError if name == "complete new" else PreconditionError,
        "SomethingNew": RejectedError,
    }
    for code, kind in known.items():
        said = await raised(name, Response(200, {}, b"  \n  " + error_body(code)))

        assert type(said) is kind
        assert code in said.detail


async def test_retry_after_is_read() -> None:
    """What the service says of how long to wait is kept; nonsense is not."""
    waits = {"7": 7.0, "": None, "soon": None, "-1": None, "inf": None}
    for text, expected in waits.items():
        found = await raised("get", error("SlowDown", 503, retry_after=text))

        assert isinstance(found, ThrottledError)
        assert found.retry_after == expected


async def test_a_clock_that_is_wrong_is_shown_beside_the_right_one() -> None:
    """The error has both times."""
    more = (
        "<RequestTime>20260101T000000Z</RequestTime><ServerTime>2026-01-01T01:00:00Z</ServerTime>"
    )
    found = await raised("put", error("RequestTimeTooSkewed", 403, more=more))

    assert isinstance(found, DeniedError)
    assert "20260101T000000Z here and 2026-01-01T01:00:00Z there" in found.detail


async def test_who_does_not_sign_is_told_so() -> None:
    """Without a credential, a refusal says that nothing was signed."""
    found = await raised("get", error("AccessDenied", 403), anon="true", key="", secret="")

    assert "leave out anon" in found.detail


async def test_a_directory_that_may_not_be_made() -> None:
    """Its object is written under a condition: no policy that demands one refuses it."""
    direct = answering(bare(404), error("AccessDenied", 403))
    with pytest.raises(DeniedError, match=r"needs s3:PutObject$"):
        await new_s3(direct).mkdir("/p")

    assert direct.seen[-1].headers["if-none-match"] == "*"


SILENCES: list[tuple[TransportError, type[StoreError], type[StoreError]]] = [
    (NotSentError("no connection"), UnavailableError, UnavailableError),
    (NoAnswerError("cut"), UnavailableError, OutcomeUnknownError),
    (TooLargeError("large"), RejectedError, OutcomeUnknownError),
    (UntrustedError("certificate"), RejectedError, RejectedError),
]


@pytest.mark.parametrize("silence,read,write", SILENCES, ids=lambda _: type(_).__name__)
async def test_what_silence_means(
    silence: TransportError, read: type[StoreError], write: type[StoreError]
) -> None:
    """Of a write that may have arrived nobody knows; of what was not sent everybody does."""
    for name in CALLS:
        direct = Direct()
        direct.before = lambda _: silence
        with pytest.raises(StoreError) as caught:
            await CALLS[name](new_s3(direct))

        assert type(caught.value) is (read if name in READS else write), name


@pytest.mark.parametrize("status", [400, 401, 403])
async def test_a_head_without_a_reason_is_asked_for_it(status: int) -> None:
    """The answer to a HEAD has no body that says why: a GET of one byte has."""
    direct = answering(bare(status), error("RequestTimeTooSkewed", 403))
    with pytest.raises(DeniedError, match="RequestTimeTooSkewed"):
        await new_s3(direct).head("/p")

    assert [sent.method for sent in direct.seen] == ["HEAD", "GET"]
    assert direct.seen[1].headers["range"] == "bytes=0-0"


async def test_a_head_that_is_refused_whatever_is_asked() -> None:
    """Where the GET says nothing either, what is needed is named."""
    with pytest.raises(DeniedError, match="s3:ListBucket to report missing objects"):
        await new_s3(answering(bare(403), bare(200))).head("/p")


@pytest.mark.parametrize(
    "path", ["/a/../b", "/a/.", "/a//b", "/" + "x" * 1025, "/nul\0", "/\udc80"]
)
async def test_names_that_no_object_can_have(path: str) -> None:
    """They are refused before anything is sent."""
    direct = Direct()
    store = new_s3(direct)
    calls = [
        store.head(path),
        store.get(path, 1),
        store.list(path),
        store.put(path, b""),
        store.mkdir(path),
        store.delete(path),
        store.copy("/a", path),
        store.create_upload(path),
        store.list_uploads(path),
    ]
    for call in calls:
        with pytest.raises(RejectedError):
            await call

    assert direct.seen == []
