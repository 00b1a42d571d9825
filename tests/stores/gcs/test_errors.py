"""What each answer of the service means, by status, reason and what was asked."""

from __future__ import annotations

import json

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
from asynccommit.stores.gcs.credentials import GcsAnonymous, GcsCredential
from asynccommit.stores.gcs.endpoint import GcsEndpoint
from asynccommit.stores.gcs.errors import (
    GcsErrorTranslator,
    GcsRequest,
    explain,
    says_no_bucket,
)
from asynccommit.stores.http.base import (
    NoAnswerError,
    NotSentError,
    Response,
    TooLargeError,
    TransportError,
    UntrustedError,
)
from asynccommit.stores.http.errors import Answer
from asynccommit.stores.http.tokens import TokenError
from asynccommit.testing.models.gcs.refusals import REASONS

SERVER = "storage.googleapis.com"
PLACE = GcsEndpoint("data", f"https://{SERVER}")
KEY = "ya29.a-very-secret-token"

READ = GcsRequest("head", "/p")
GET = GcsRequest("get", "/p")
LIST = GcsRequest("list", "/p")
RENAME = GcsRequest("rename", "/p", writes=True, dest="/d", generation="17")
NEW = RENAME._replace(new=True)
PUT = GcsRequest("put", "/p", writes=True)
PUT_NEW = PUT._replace(new=True)
COPY = GcsRequest("copy", "/p", writes=True, dest="/d")
DELETE = GcsRequest("delete", "/p", writes=True)
MKDIR = GcsRequest("mkdir", "/p", writes=True)
MANY = GcsRequest("delete_many", "/p", writes=True, generation="17")


class Known(GcsAnonymous):
    """A credential that has a secret."""

    anonymous = False

    def hide(self, text: str) -> str:
        """Replace it."""
        return text.replace(KEY, "***")


def says(status: int, reason: str = "", message: str = "No.", **headers: str) -> Response:
    """Return an answer as the service gives it."""
    errors = [{"message": message, "domain": "global", "reason": reason}]
    body = {"error": {"code": status, "message": message, "errors": errors}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, named, json.dumps(body).encode())


def error(
    request: GcsRequest, answer: Answer, credential: GcsCredential | None = None
) -> StoreError:
    """Return what an answer means."""
    return GcsErrorTranslator(PLACE, credential or Known()).translate(request, answer)


# --- answers of the service ------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_, status, reason, expected",
    [
        # refused for the rate
        (RENAME, 429, "rateLimitExceeded", ThrottledError),
        (READ, 429, "rateLimitExceeded", ThrottledError),
        (MANY, 429, "userRateLimitExceeded", ThrottledError),
        (PUT, 403, "rateLimitExceeded", ThrottledError),
        (PUT, 403, "userRateLimitExceeded", ThrottledError),
        (LIST, 403, "quotaExceeded", ThrottledError),
        # failed: nobody knows what a write did
        (RENAME, 503, "backendError", OutcomeUnknownError),
        (RENAME, 500, "internalError", OutcomeUnknownError),
        (RENAME, 502, "badGateway", OutcomeUnknownError),
        (RENAME, 504, "gatewayTimeout", OutcomeUnknownError),
        (RENAME, 408, "uploadBrokenConnection", OutcomeUnknownError),
        (PUT_NEW, 503, "backendError", OutcomeUnknownError),
        (MANY, 503, "backendError", OutcomeUnknownError),
        (READ, 503, "backendError", ThrottledError),
        (READ, 500, "internalError", UnavailableError),
        (GET, 502, "badGateway", UnavailableError),
        (LIST, 408, "uploadBrokenConnection", UnavailableError),
        # not there
        (READ, 404, "notFound", NotFoundError),
        (RENAME, 404, "notFound", NotFoundError),
        (MANY, 404, "notFound", NotFoundError),
        # there already, or not what was expected
        (PUT_NEW, 412, "conditionNotMet", ExistsError),
        (NEW._replace(generation=""), 412, "conditionNotMet", ExistsError),
        (NEW, 412, "conditionNotMet", PreconditionError),
        (RENAME, 412, "conditionNotMet", PreconditionError),
        (MANY, 412, "conditionNotMet", PreconditionError),
        # for now
        (RENAME, 409, "conflict", UnavailableError),
        (PUT, 409, "conflict", UnavailableError),
        (COPY, 410, "gone", UnavailableError),
        # not permitted
        (READ, 401, "authError", DeniedError),
        (RENAME, 403, "forbidden", DeniedError),
        (PUT, 403, "insufficientPermissions", DeniedError),
        (PUT, 403, "accountDisabled", DeniedError),
        # never
        (RENAME, 403, "retentionPolicyNotMet", RejectedError),
        (DELETE, 403, "objectUnderActiveHold", RejectedError),
        (RENAME, 400, "invalid", RejectedError),
        (RENAME, 400, "userProjectMissing", RejectedError),
        (READ, 405, "methodNotAllowed", RejectedError),
        (PUT, 413, "uploadTooLarge", RejectedError),
        (GET, 416, "requestedRangeNotSatisfiable", RejectedError),
        (RENAME, 501, "notImplemented", RejectedError),
        (RENAME, 418, "somethingNew", RejectedError),
    ],
)
def test_an_answer_means_one_error(
    request_: GcsRequest, status: int, reason: str, expected: type[StoreError]
) -> None:
    """By status, reason and what was asked; the error names the path and repeats the reason."""
    found = error(request_, says(status, reason, "The service's words."))

    assert type(found) is expected
    assert (found.op, found.path) == (request_.op, "/p")
    assert f"{status} {reason}: The service's words." in found.detail


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_of_the_emulator_means_something(reason: str) -> None:
    """And is repeated, with its words."""
    status, words = REASONS[reason]
    if status < 400:
        return
    for request in (READ, RENAME, NEW, PUT_NEW, MANY):
        assert reason in error(request, says(status, reason, words)).detail


@pytest.mark.parametrize("status, busy", [(503, True), (500, False), (502, False), (408, False)])
def test_a_write_that_was_turned_away_counts_as_busy(status: int, busy: bool) -> None:
    """Its outcome is unknown; by 503 the service says that it has too much to do."""
    found = error(RENAME, says(status, "backendError"))

    assert isinstance(found, OutcomeUnknownError)
    assert found.busy is busy


@pytest.mark.parametrize(
    "text, expected",
    [("7", 7.0), ("0.5", 0.5), ("", None), ("soon", None), ("-1", None), ("nan", None)],
)
def test_the_wait_that_is_asked_for_is_kept(text: str, expected: float | None) -> None:
    """In seconds; what is none is passed over."""
    for request, status in ((RENAME, 429), (READ, 429), (READ, 503)):
        found = error(request, says(status, "rateLimitExceeded", retry_after=text))
        assert isinstance(found, ThrottledError)
        assert found.retry_after == expected


def test_a_message_names_destination_and_generation() -> None:
    """What was asked for, beside what the service says."""
    found = error(RENAME, says(412, "conditionNotMet", "It did not hold."))
    assert str(found) == (
        "rename /p: 412 conditionNotMet: It did not hold. (to /d) (generation 17 was requested)"
    )


def test_a_message_does_nothing_to_a_terminal() -> None:
    """Control characters are gone, and there is an end to it."""
    found = error(RENAME, says(400, "x\x1b[2J", "a\x1b[31mb\x07" + "c" * 5000))
    assert found.detail.isprintable()
    assert len(found.detail) < 600


# --- what helps ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        says(400, "userProjectMissing", "No user project."),
        says(400, "required", "Bucket is a requester pays bucket but no user project provided."),
    ],
)
def test_a_bucket_whose_callers_pay_is_told(answer: Response) -> None:
    """With the option that names the project."""
    found = error(READ, answer)
    assert type(found) is RejectedError
    assert "set requester_pays to the project that pays" in found.detail


@pytest.mark.parametrize(
    "message",
    [
        "The specified bucket does not exist.",
        "Bucket data does not exist.",
        "Bucket data not found",
        "No such bucket: data",
    ],
)
def test_a_missing_bucket_is_no_missing_object(message: str) -> None:
    """Whoever takes it for one goes on in vain."""
    answer = says(404, "notFound", message)
    for request in (READ, RENAME, PUT, MANY):
        found = error(request, answer)
        assert type(found) is RejectedError
        assert "there is no bucket 'data'" in found.detail
    assert says_no_bucket(answer)


@pytest.mark.parametrize(
    "message", ["No such object: data/my bucket does not exist", "The folder does not exist.", ""]
)
def test_a_missing_object_is_no_missing_bucket(message: str) -> None:
    """Whatever its name says."""
    assert type(error(READ, says(404, "notFound", message))) is NotFoundError


def test_a_denial_names_the_permission() -> None:
    """In the service's words, or in ours where it has none."""
    words = (
        "sa@x.iam does not have storage.objects.delete access to the Google Cloud Storage object."
    )
    assert "storage.objects.delete access" in error(DELETE, says(403, "forbidden", words)).detail
    said = error(DELETE, says(403, "forbidden", "Forbidden")).detail
    assert "it needs storage.objects.delete" in said
    assert "it needs storage.objects.list" in error(LIST, says(403, "forbidden")).detail


def test_whoever_may_not_move_is_told_of_the_other_road() -> None:
    """Older roles have no such permission."""
    words = "x does not have storage.objects.move access to the Google Cloud Storage object."
    assert "set move=false" in error(RENAME, says(403, "forbidden", words)).detail


def test_no_credential_and_a_wrong_one_are_told_apart() -> None:
    """Both are 401."""
    answer = says(401, "required", "Anonymous caller does not have storage.objects.get access.")
    assert "no credential was given" in error(READ, answer, GcsAnonymous()).detail
    assert "the credential was rejected" in error(READ, answer).detail


def test_a_held_object_says_until_when() -> None:
    """In the service's words, and that the job can be resumed."""
    words = "Object 'data/p' is subject to bucket's retention policy and cannot be deleted or "
    words += "overwritten until 2024-03-05T17:09:08Z"
    found = error(RENAME, says(403, "retentionPolicyNotMet", words))
    assert "until 2024-03-05T17:09:08Z" in found.detail
    assert "resume" in found.detail


@pytest.mark.parametrize(
    "message",
    [
        "Object 'data/p' is subject to bucket's retention policy and cannot be deleted",
        "Object 'data/p' is under active hold and cannot be deleted, overwritten or archived",
    ],
)
def test_a_held_object_is_known_by_its_words_too(message: str) -> None:
    """Some answers give no reason but that it is forbidden."""
    assert type(error(DELETE, says(403, "forbidden", message))) is RejectedError


def test_no_error_shows_a_secret() -> None:
    """Wherever the text comes from."""
    answers: list[Answer] = [
        says(400, "invalid", f"bad {KEY}"),
        says(401, "authError", f"bad {KEY}"),
        says(403, "forbidden", f"bad {KEY}"),
        says(429, "x", f"bad {KEY}"),
        NoAnswerError(f"sent {KEY}"),
        TokenError(f"no {KEY}", again=False),
        ValueError(f"no {KEY}"),
    ]
    assert not any(KEY in repr(error(RENAME, answer)) for answer in answers)


# --- strangers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, said",
    [
        (Response(302, {"location": "http://login.example/?x=1"}, b""), "login.example"),
        (Response(307, {}, b""), "a redirect to another place"),
        (Response(407, {}, b""), "the proxy needs a user name"),
        (Response(404, {"content-type": "text/html"}, b"<html>"), "(text/html)"),
        (Response(403, {"content-type": "text/html; x"}, b"<html>"), "(text/html)"),
        (Response(412, {}, b""), "(no content type)"),
        (Response(400, {}, b'["error"]'), "(no content type)"),
        (Response(400, {}, b'{"error": "text"}'), "(no content type)"),
        (Response(400, {}, b'{"error": {"errors": 5}}'), "(no content type)"),
    ],
)
def test_a_stranger_is_not_believed(answer: Response, said: str) -> None:
    """A page that says no says nothing about an object."""
    for request in (READ, RENAME):
        found = error(request, answer)
        assert type(found) is RejectedError
        assert said in found.detail
        assert "check the endpoint" in found.detail


def test_a_stranger_who_says_yes_to_a_write_leaves_it_unknown() -> None:
    """The service may have had the request."""
    answer = Response(200, {"content-type": "text/html"}, b"<html>")
    assert type(error(RENAME, answer)) is OutcomeUnknownError
    assert type(error(READ, answer)) is RejectedError


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_something_in_between_that_fails_counts_as_the_service(status: int) -> None:
    """A proxy may have passed the request on."""
    answer = Response(status, {"content-type": "text/html"}, b"<html>")
    assert type(error(RENAME, answer)) is OutcomeUnknownError
    assert type(error(READ, answer)) in (UnavailableError, ThrottledError)


def test_bare_text_with_the_mark_of_the_service_is_its_word() -> None:
    """Downloads say no so."""
    marked = Response(403, {"x-guploader-uploadid": "AB"}, b"you may not")
    assert type(error(GET, marked)) is DeniedError


# --- no answer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "silence, read, write",
    [
        (NotSentError("cannot connect"), UnavailableError, UnavailableError),
        (UntrustedError("not trusted"), RejectedError, RejectedError),
        (NoAnswerError("was cut"), UnavailableError, OutcomeUnknownError),
        (TransportError("strange"), UnavailableError, OutcomeUnknownError),
        (TooLargeError("too large"), RejectedError, OutcomeUnknownError),
        (TokenError("no token", again=True), UnavailableError, UnavailableError),
        (TokenError("no token", again=False), DeniedError, DeniedError),
        (ValueError("a bad name"), RejectedError, RejectedError),
    ],
)
def test_silence_means_what_can_have_happened(
    silence: TransportError | TokenError | ValueError,
    read: type[StoreError],
    write: type[StoreError],
) -> None:
    """To a read nothing, to a write perhaps something."""
    assert type(error(READ, silence)) is read
    assert type(error(RENAME, silence)) is write
    assert str(silence) in error(RENAME, silence).detail


def test_a_yes_that_cannot_be_read_leaves_a_write_unknown() -> None:
    """It was done, or it was no answer of the service."""
    judge = GcsErrorTranslator(PLACE, Known())
    assert type(judge.unread(RENAME, ValueError("odd"))) is OutcomeUnknownError
    assert type(judge.unread(READ, ValueError("odd"))) is RejectedError
    assert "odd; is it an endpoint" in judge.unread(READ, ValueError("odd")).detail


@pytest.mark.parametrize(
    "body, expected",
    [
        (
            b'{"error":{"code":404,"message":"m","errors":[{"reason":"notFound"}]}}',
            ("notFound", "m"),
        ),
        (b'{"error":{"code":404,"message":"m","status":"NOT_FOUND"}}', ("NOT_FOUND", "m")),
        (b'{"error":{"code":404,"message":"m"}}', ("error", "m")),
        (b'{"error":{"errors":[]}}', ("error", "")),
        (b"<html>", ("", "")),
        (b"null", ("", "")),
        (b"", ("", "")),
    ],
)
def test_reason_and_message_are_read(body: bytes, expected: tuple[str, str]) -> None:
    """As the service writes them, and other servers."""
    assert explain(Response(404, {}, body)) == expected


def test_a_question_that_goes_with_a_write_changes_nothing() -> None:
    """What is not known about it is not the write's outcome."""
    assert NEW.look == GcsRequest("rename", "/p", dest="/d")
    assert type(error(NEW.look, NoAnswerError("cut"))) is UnavailableError
