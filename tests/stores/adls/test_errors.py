"""What each answer of the service means, by status, code and what was asked."""

from __future__ import annotations

import json
from email.utils import formatdate

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
from asynccommit.stores.adls.credentials import AdlsAnonymous, AdlsCredential, Sas, SharedKey
from asynccommit.stores.adls.endpoint import AdlsEndpoint
from asynccommit.stores.adls.errors import AdlsErrorTranslator, AdlsRequest, explain
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

NOW = 1_709_658_548.0
KEY = "a2V5IG9mIGFuIGFjY291bnQ="
HOST = "acct.dfs.core.windows.net"
PLACE = AdlsEndpoint("acct", "data", HOST, f"https://{HOST}", "")

READ = AdlsRequest("head", "/p")
GET = AdlsRequest("get", "/p")
RENAME = AdlsRequest("rename", "/p", writes=True, dest="/d")
NEW = RENAME._replace(new=True)
PUT = AdlsRequest("put", "/p", writes=True)
PUT_NEW = PUT._replace(new=True)
ASIDE = AdlsRequest("put", "/p", aside=True)
COPY = AdlsRequest("copy", "/p", writes=True, dest="/d")
DELETE = AdlsRequest("delete", "/p", writes=True)
MKDIR = AdlsRequest("mkdir", "/p", writes=True)


def says(status: int, code: str = "", message: str = "", **headers: str) -> Response:
    """Return an answer as the service gives it."""
    body = json.dumps({"error": {"code": code, "message": f"{message}\nRequestId:1\nTime:now"}})
    found = {"x-ms-request-id": "1-2-3", "x-ms-error-code": code} if code else {}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {**found, **named}, body.encode() if code else b"")


def judge(credential: AdlsCredential | None = None, now: float = NOW) -> AdlsErrorTranslator:
    """Return a judge of the account."""
    return AdlsErrorTranslator(PLACE, credential or AdlsAnonymous(), lambda: now)


def error(request: AdlsRequest, answer: Answer) -> StoreError:
    """Return what an answer means."""
    return judge().translate(request, answer)


# --- answers of the service ------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_, status, code, expected",
    [
        # refused for the rate
        (RENAME, 503, "ServerBusy", ThrottledError),
        (READ, 503, "ServerBusy", ThrottledError),
        (ASIDE, 503, "ServerBusy", ThrottledError),
        (RENAME, 429, "TooManyRequests", ThrottledError),
        # failed: nobody knows what a write did
        (RENAME, 500, "OperationTimedOut", OutcomeUnknownError),
        (MKDIR, 500, "InternalError", OutcomeUnknownError),
        (DELETE, 503, "", OutcomeUnknownError),
        (RENAME, 502, "", OutcomeUnknownError),
        (RENAME, 504, "", OutcomeUnknownError),
        (RENAME, 408, "", OutcomeUnknownError),
        (READ, 500, "OperationTimedOut", ThrottledError),
        (READ, 500, "InternalError", UnavailableError),
        (READ, 502, "", UnavailableError),
        (READ, 408, "", UnavailableError),
        (ASIDE, 500, "InternalError", UnavailableError),
        # not there
        (READ, 404, "PathNotFound", NotFoundError),
        (READ, 404, "BlobNotFound", NotFoundError),
        (RENAME, 404, "SourcePathNotFound", NotFoundError),
        (RENAME, 404, "RenameDestinationParentPathNotFound", NotFoundError),
        (RENAME, 409, "InvalidDestinationPath", NotFoundError),
        (RENAME, 409, "SourcePathIsBeingDeleted", NotFoundError),
        (PUT, 404, "RenameDestinationParentPathNotFound", NotFoundError),
        (READ, 404, "FilesystemNotFound", RejectedError),
        (MKDIR, 404, "ContainerNotFound", RejectedError),
        # there already
        (NEW, 409, "PathAlreadyExists", ExistsError),
        (NEW, 409, "InvalidSourceOrDestinationResourceType", ExistsError),
        (NEW, 412, "ConditionNotMet", ExistsError),
        (NEW, 403, "UnauthorizedBlobOverwrite", ExistsError),
        (PUT_NEW, 409, "PathAlreadyExists", ExistsError),
        (RENAME, 409, "DirectoryNotEmpty", ExistsError),
        (DELETE, 409, "DirectoryNotEmpty", ExistsError),
        # not what was expected
        (RENAME, 409, "InvalidSourceOrDestinationResourceType", PreconditionError),
        (RENAME, 412, "SourceConditionNotMet", PreconditionError),
        (NEW, 412, "SourceConditionNotMet", PreconditionError),
        (RENAME, 412, "ConditionNotMet", PreconditionError),
        (RENAME, 412, "LeaseIdMissing", PreconditionError),
        (RENAME, 409, "LeaseAlreadyPresent", PreconditionError),
        (MKDIR, 409, "PathAlreadyExists", PreconditionError),
        (MKDIR, 409, "PathConflict", PreconditionError),
        (GET, 409, "ResourceTypeMismatch", PreconditionError),
        # the temporary file of a put is gone or changed: it may be made again
        (ASIDE, 404, "PathNotFound", UnavailableError),
        (ASIDE, 409, "PathConflict", UnavailableError),
        (ASIDE, 412, "ConditionNotMet", UnavailableError),
        (PUT, 404, "SourcePathNotFound", UnavailableError),
        (PUT, 412, "SourceConditionNotMet", UnavailableError),
        (COPY, 404, "SourcePathNotFound", UnavailableError),
        # for now
        (RENAME, 409, "DestinationPathIsBeingDeleted", UnavailableError),
        (MKDIR, 409, "FilesystemBeingDeleted", UnavailableError),
        # not permitted
        (READ, 403, "AuthorizationPermissionMismatch", DeniedError),
        (READ, 403, "AuthenticationFailed", DeniedError),
        (READ, 401, "NoAuthenticationInformation", DeniedError),
        (RENAME, 403, "AccountIsDisabled", DeniedError),
        (ASIDE, 403, "AuthorizationFailure", DeniedError),
        # never
        (RENAME, 409, "InvalidRenameSourcePath", RejectedError),
        (RENAME, 400, "InvalidUri", RejectedError),
        (ASIDE, 400, "InvalidQueryParameterValue", RejectedError),
        (ASIDE, 413, "RequestBodyTooLarge", RejectedError),
        (READ, 405, "UnsupportedHttpVerb", RejectedError),
        (GET, 416, "InvalidRange", RejectedError),
        (RENAME, 409, "SomethingNew", RejectedError),
    ],
)
def test_an_answer_means_one_error(
    request_: AdlsRequest, status: int, code: str, expected: type[StoreError]
) -> None:
    """By status, code and what was asked; the error names the path and repeats the code."""
    found = error(request_, says(status, code, "The service's words."))

    assert type(found) is expected
    assert (found.op, found.path) == (request_.op, "/p")
    assert str(status) in found.detail
    assert code in found.detail


@pytest.mark.parametrize(
    "code, busy", [("OperationTimedOut", True), ("InternalError", False), ("", False)]
)
def test_a_write_that_took_too_long_counts_as_busy(code: str, busy: bool) -> None:
    """Its outcome is unknown, and the service says that it has too much to do."""
    found = error(RENAME, says(500, code))

    assert isinstance(found, OutcomeUnknownError)
    assert found.busy is busy


@pytest.mark.parametrize(
    "text, expected",
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_the_wait_that_is_asked_for_is_kept(text: str, expected: float | None) -> None:
    """In seconds; what is none is passed over."""
    found = error(RENAME, says(503, "ServerBusy", retry_after=text))

    assert isinstance(found, ThrottledError)
    assert found.retry_after == expected


def test_a_message_has_the_first_line_destination_and_request_id() -> None:
    """What the service says further repeats the request id; the support asks for it."""
    found = error(NEW, says(409, "PathAlreadyExists", "The specified path already exists."))

    assert str(found) == (
        "rename /p: 409 PathAlreadyExists: The specified path already exists. (to /d) "
        "[x-ms-request-id 1-2-3]"
    )


def test_a_message_does_nothing_to_a_terminal() -> None:
    """Control characters are gone, and there is an end to it."""
    found = error(RENAME, says(409, "X\x1b[2J", "a\x1b[31mb\x07" + "c" * 5000))

    assert found.detail.isprintable()
    assert len(found.detail) < 1000


def test_the_missing_container_is_named() -> None:
    """With its account, and what to do."""
    found = error(READ, says(404, "FilesystemNotFound"))

    assert "no container 'data' in the account 'acct'; create it" in found.detail


def test_xml_of_the_other_endpoint_is_read() -> None:
    """A gateway may answer in the form of the blob service."""
    body = (
        b'\xef\xbb\xbf<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code>'
        b"<Message>Server failed.\nRequestId:1</Message></Error>"
    )

    assert explain(Response(403, {}, body)) == ("AuthenticationFailed", "Server failed.")


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{"error": 1}', b"\xff", b"<html>"])
def test_a_body_that_explains_nothing_is_passed_over(body: bytes) -> None:
    """The header still has the code."""
    assert explain(Response(404, {"x-ms-error-code": "C"}, body)) == ("C", "")


# --- permissions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "credential, code, remedy",
    [
        (
            SharedKey("acct", KEY, lambda: NOW),
            "AuthenticationFailed",
            "not belong to the account 'acct'",
        ),
        (
            Sas("se=2020-01-01&sig=c2lnbmF0dXJl"),
            "AuthenticationFailed",
            "expired at 2020-01-01: get a new one",
        ),
        (
            Sas("se=2030-01-01&sig=c2lnbmF0dXJl"),
            "AuthenticationFailed",
            "is the token complete, and of this account",
        ),
        (AdlsAnonymous(), "NoAuthenticationInformation", "give a credential"),
        (AdlsAnonymous(), "InvalidAuthenticationInfo", "is it from the account's tenant"),
        (AdlsAnonymous(), "AuthorizationPermissionMismatch", "Storage Blob Data Contributor"),
        (AdlsAnonymous(), "AuthorizationFailure", "firewall"),
        (
            SharedKey("acct", KEY, lambda: NOW),
            "KeyBasedAuthenticationNotPermitted",
            "accepts no keys",
        ),
        (AdlsAnonymous(), "AccountIsDisabled", "ask its owner"),
        (AdlsAnonymous(), "SomethingNew", "not permitted"),
    ],
)
def test_a_refusal_says_what_to_do(credential: AdlsCredential, code: str, remedy: str) -> None:
    """By the credential and the service's code."""
    answer = says(403, code, date=formatdate(NOW, usegmt=True))
    found = judge(credential).translate(READ, answer)

    assert isinstance(found, DeniedError)
    assert remedy in found.detail


@pytest.mark.parametrize(
    "skew, said",
    [
        (3_600, "60 min ahead of the service's: set it"),
        (-1_200, "20 min behind the service's: set it"),
        (-5 * 86_400, "5 days behind"),
        (4 * 3_600, "4 h ahead"),
        (200, "not belong to the account"),
    ],
)
def test_a_wrong_clock_is_told_by_how_much(skew: float, said: str) -> None:
    """A signature is good for a quarter of an hour by the service's clock."""
    answer = says(403, "AuthenticationFailed", date=formatdate(NOW, usegmt=True))
    found = judge(SharedKey("acct", KEY, lambda: NOW), NOW + skew).translate(RENAME, answer)

    assert said in found.detail


def test_what_the_service_says_of_a_signature_is_not_repeated() -> None:
    """It quotes the signature and what was signed."""
    answer = says(403, "AuthenticationFailed", "The MAC signature 'c2lnbmF0dXJl' is not the same")

    assert (
        "c2lnbmF0dXJl"
        not in judge(SharedKey("acct", KEY, lambda: NOW)).translate(READ, answer).detail
    )


@pytest.mark.parametrize("status", [400, 404, 409, 500, 503])
def test_a_secret_that_is_echoed_is_hidden(status: int) -> None:
    """Whatever the response is."""
    answer = says(status, "SomeCode", "no: sv=1&sig=c2lnbmF0dXJl")

    found = judge(Sas("sv=1&sig=c2lnbmF0dXJl")).translate(READ, answer)
    assert "sig=***" in found.detail


# --- answers of others -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "status, headers, said",
    [
        (
            301,
            {"location": "https://user:hunter2@evil.example/x?sig=1"},
            "a redirect to evil.example",
        ),
        (307, {}, "a redirect to another place"),
        (407, {}, "the proxy needs a user name and a password"),
        (200, {"content-type": "text/html; charset=utf-8"}, "(text/html)"),
        (404, {"content-type": "text/html"}, "unlike a Data Lake endpoint"),
        (412, {}, "no content type"),
        (418, {}, "answered 418"),
    ],
)
def test_an_answer_of_something_else_is_told(
    status: int, headers: dict[str, str], said: str
) -> None:
    """A proxy, a portal or another server: not a missing path, and not a success."""
    found = error(READ, Response(status, headers, b"<html>Sign in</html>"))

    assert type(found) is RejectedError
    assert said in found.detail
    assert "hunter2" not in found.detail


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_failing_proxy_is_named(status: int) -> None:
    """It may have passed the request on; the message says who answered, and what to check."""
    answer = Response(status, {"content-type": "text/html"}, b"<html>Bad gateway</html>")
    read, write = error(READ, answer), error(RENAME, answer)

    assert (type(read), type(write)) == (UnavailableError, OutcomeUnknownError)
    for found in (read, write):
        assert f"{HOST} answered {status}, unlike a Data Lake endpoint (text/html)" in found.detail
        assert "check the account's name, account_host and the proxy" in found.detail


@pytest.mark.parametrize("status", [500, 503])
def test_a_failure_without_a_code_is_the_service_s_own(status: int) -> None:
    """A HEAD has no body; the request's id tells that the service answered."""
    found = error(READ, Response(status, {"x-ms-request-id": "1-2-3"}, b""))

    assert (type(found), "unlike" in found.detail) == (UnavailableError, False)


def test_an_unexpected_success_of_a_write_is_unknown() -> None:
    """It may have been done, whoever says so."""
    assert type(error(RENAME, Response(200, {}, b""))) is OutcomeUnknownError
    assert type(error(RENAME, says(202, x_ms_request_id="1"))) is OutcomeUnknownError


# --- no answer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_, silence, expected, said",
    [
        (RENAME, NotSentError("PUT h/p: no such host"), UnavailableError, "is acct the account's"),
        (READ, NotSentError("HEAD h/p: refused"), UnavailableError, "refused"),
        (RENAME, UntrustedError("PUT h/p: self-signed"), RejectedError, "ca_file"),
        (RENAME, NoAnswerError("PUT h/p: cut"), OutcomeUnknownError, "cut"),
        (READ, NoAnswerError("HEAD h/p: cut"), UnavailableError, "cut"),
        (ASIDE, NoAnswerError("PATCH h/p: cut"), UnavailableError, "cut"),
        (READ, TooLargeError("GET h/p: larger"), RejectedError, f"is {HOST} a Data Lake endpoint"),
        (GET, TooLargeError("GET h/p: larger"), RejectedError, "larger"),
        (RENAME, TooLargeError("PUT h/p: larger"), OutcomeUnknownError, "larger"),
        (RENAME, TokenError("no token: later", again=True), UnavailableError, "later"),
        (READ, TokenError("no token: never", again=False), DeniedError, "never"),
        (READ, ValueError("cannot be sent"), RejectedError, "cannot be sent"),
    ],
)
def test_no_answer_means_one_error(
    request_: AdlsRequest,
    silence: TransportError | TokenError | ValueError,
    expected: type[StoreError],
    said: str,
) -> None:
    """What was not sent is refused; what was sent may have happened, if it was a write."""
    found = error(request_, silence)

    assert type(found) is expected
    assert said in found.detail
