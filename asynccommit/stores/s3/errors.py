"""Translate responses of S3, and missing responses: one function and tables.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

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
from asynccommit.redact import short
from asynccommit.stores.http.base import (
    NotSentError,
    Response,
    TooLargeError,
    TransportError,
    UntrustedError,
)
from asynccommit.stores.http.tokens import TokenError
from asynccommit.stores.s3.credentials import S3Credential
from asynccommit.stores.s3.endpoint import S3Endpoint, is_region
from asynccommit.stores.s3.xml import parse, values

Answer = Response | TransportError | TokenError | ValueError
"""The result of a request; a ``ValueError`` reports an invalid path or response."""

_ROOM = 400  # characters of what the service says
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff]+")

_SLOWER = frozenset(
    {
        "SlowDown",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequests",
        "BandwidthLimitExceeded",
    }
)
_KINDS: Mapping[str, type[StoreError]] = {
    **dict.fromkeys(("NoSuchKey", "NoSuchUpload", "NoSuchVersion"), NotFoundError),
    # What arrived is not what was sent, or not all of it: the same may arrive whole.
    **dict.fromkeys(
        (
            "OperationAborted",
            "ConditionalRequestConflict",
            "RequestTimeout",
            "IncompleteBody",
            "BadDigest",
            "XAmzContentSHA256Mismatch",
            "XAmzContentChecksumMismatch",
            "TemporaryRedirect",
        ),
        UnavailableError,
    ),
    **dict.fromkeys(
        ("PreconditionFailed", "InvalidPart", "InvalidPartOrder", "EntityTooSmall"),
        PreconditionError,
    ),
    **dict.fromkeys(
        (
            "AccessDenied",
            "AllAccessDisabled",
            "AccountProblem",
            "ExpiredToken",
            "InvalidToken",
            "TokenRefreshRequired",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "RequestTimeTooSkewed",
            "RequestExpired",
            "NotSignedUp",
            "Forbidden",
        ),
        DeniedError,
    ),
    **dict.fromkeys(
        (
            "NoSuchBucket",
            "InvalidObjectState",
            "KeyTooLongError",
            "EntityTooLarge",
            "PermanentRedirect",
            "AuthorizationHeaderMalformed",
            "MethodNotAllowed",
        ),
        RejectedError,
    ),
}
_BY_STATUS: Mapping[int, type[StoreError]] = {
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    409: UnavailableError,
    412: PreconditionError,
}
_ADVICE = {
    "ExpiredToken": "the session has ended: renew it (aws sso login, a new token), then resume",
    "InvalidToken": "the session's token does not belong to the key: give both anew",
    "InvalidAccessKeyId": "the service knows no such key: look at key, AWS_ACCESS_KEY_ID, profile",
    "SignatureDoesNotMatch": "the secret is not the key's: look at secret, AWS_SECRET_ACCESS_KEY",
    "InvalidObjectState": "the object is archived: restore it, then resume",
    "KeyTooLongError": "a name has 1,024 bytes of UTF-8 at most",
    "EntityTooSmall": "every part but the last has at least 5 MiB",
    "InvalidPart": "a part was not sent, or sent again since",
}
# What a caller needs, where the service's words do not say it.
_PERMISSIONS = {
    "head": "s3:GetObject, and s3:ListBucket to be told what is missing",
    "get": "s3:GetObject",
    "list": "s3:ListBucket",
    "list_tree": "s3:ListBucket",
    "delete": "s3:DeleteObject",
    "delete_many": "s3:DeleteObject, and s3:GetObject to delete by etag",
    "copy": "s3:GetObject and s3:PutObject",
    "abort_upload": "s3:AbortMultipartUpload",
    "list_uploads": "s3:ListBucketMultipartUploads",
    "list_parts": "s3:ListMultipartUploadParts",
    "completed": "s3:GetObject",
}
_MAY_REPLACE = frozenset({"put", "put_marker", "complete_upload", "copy"})
_CONDITIONS = (
    "if the bucket's policy demands conditional writes (s3:if-none-match), let it spare the places "
    "of jobs, __magic_job-* and _temporary: there they write without conditions"
)
OTHERS = "another file is there than the one to replace, or none: has another writer been here?"
"""The detail of an error for an etag condition that does not hold."""
_CHANGED = "the source, or what it is to replace, has changed: has another writer been here?"
_LARGEST_COPY = "is larger than 5 GiB, the most that one request copies: copy it in parts"


class Said(NamedTuple):
    """The error code and message of a failed response.

    The code is empty if the body is not from the service.
    """

    code: str
    message: str
    more: Mapping[str, str]


class S3Request(NamedTuple):
    """The facts about a request that decide the meaning of its response.

    Attributes:
        op: the store method.
        path: the path of the call.
        writes: whether it changes what others see.
        new: whether it was conditional on an empty destination.
        dest: the destination, if not ``path``.
        etag: the etag that it required at the destination, if any.
    """

    op: str
    path: str
    writes: bool = False
    new: bool = False
    dest: str = ""
    etag: str | None = None

    @property
    def look(self) -> S3Request:
        """The same as a question that goes with it: it changes nothing."""
        return self._replace(writes=False, new=False, etag=None)


class S3ErrorTranslator:
    """Tells the errors of one store.

    Args:
        place: its bucket.
        credential: what authorises its requests; no error shows its secrets.
    """

    def __init__(self, place: S3Endpoint, credential: S3Credential) -> None:
        self.place = place
        self._credential = credential

    def translate(self, request: S3Request, answer: Answer) -> StoreError:
        """Return the error that ``answer`` to ``request`` means."""
        match answer:
            case Response():
                return self._refusal(request, answer)
            case TransportError():
                return self._silence(request, answer)
            case TokenError():
                kind = UnavailableError if answer.again else DeniedError
                return self._error(kind, request, answer.detail)
        return self._error(RejectedError, request, str(answer))

    def unread(self, request: S3Request, error: ValueError) -> StoreError:
        """Return the error for an unreadable success: a write may have happened."""
        kind = OutcomeUnknownError if request.writes else RejectedError
        said = f"{self.place.server}: {error}; is it an endpoint of S3?"
        return self._error(kind, request, said)

    def verdict(
        self, request: S3Request, status: int, said: Said, wait: float | None = None
    ) -> StoreError:
        """Return the error for a service's code, of a response or one key."""
        said = self._told(said)
        detail = self._detail(request, status, said)
        if said.code in _SLOWER or status == 429:
            return ThrottledError(request.op, request.path, detail, wait)
        if said.code == "InternalError" or (status >= 500 and status != 501):
            if request.writes:
                return OutcomeUnknownError(request.op, request.path, detail, busy=status == 503)
            return UnavailableError(request.op, request.path, detail)
        kind = _KINDS.get(said.code) or _BY_STATUS.get(status, RejectedError)
        if said.code == "PreconditionFailed" and request.new:
            kind = ExistsError
        if said.code == "ConditionalRequestConflict" and request.op == "complete_upload":
            kind = PreconditionError
        if said.code == "NoSuchKey" and request.etag is not None:
            kind = PreconditionError  # the upload is there, but nothing with the etag
        return kind(request.op, request.path, detail)

    def _error(self, kind: type[StoreError], request: S3Request, detail: str) -> StoreError:
        return kind(request.op, request.path, self._credential.hide(detail))

    def _told(self, said: Said) -> Said:
        """Return the service's message without secrets, cut after their removal."""

        def told(text: str) -> str:
            return short(self._credential.hide(text), _ROOM)

        more = {name: told(text) for name, text in said.more.items()}
        return Said(told(said.code), told(said.message), more)

    def _silence(self, request: S3Request, error: TransportError) -> StoreError:
        lost = OutcomeUnknownError if request.writes else UnavailableError
        server = self.place.server
        match error:
            case UntrustedError():
                advice = "; name the certificate of its authority in the option ca_file"
                return self._error(RejectedError, request, error.detail + advice)
            case NotSentError():
                advice = f"; is the network there, and {server} the right host?"
                return self._error(UnavailableError, request, error.detail + advice)
            case TooLargeError():
                kind = OutcomeUnknownError if request.writes else RejectedError
                advice = f"; is {server} an endpoint of S3?" if request.op != "get" else ""
                return self._error(kind, request, error.detail + advice)
        return self._error(lost, request, error.detail)

    def _refusal(self, request: S3Request, answer: Response) -> StoreError:
        said = explain(answer)
        if said.code:
            return self.verdict(request, answer.status, said, _retry_after(answer))
        return self._stranger(request, answer)

    def _detail(self, request: S3Request, status: int, said: Said) -> str:
        to = f" (to {request.dest})" if request.dest else ""
        words = ": ".join(filter(None, (f"{status or ''} {said.code}".strip(), said.message)))
        advice = self._advice(request, said)
        return self._credential.hide(f"{words}{to}{'; ' if advice else ''}{advice}")

    def _advice(self, request: S3Request, said: Said) -> str:
        """Return the remedy, if the service's message has none."""
        code, place, more = said.code, self.place, said.more
        match code:
            case "NoSuchBucket":
                return f"there is no bucket {place.bucket!r}; make it, or correct the URL"
            case "RequestTimeTooSkewed":
                here, there = more.get("RequestTime", "?"), more.get("ServerTime", "?")
                return f"it is {here} here and {there} there: set this machine's clock right"
            case "PermanentRedirect" | "AuthorizationHeaderMalformed" | "TemporaryRedirect":
                region = more.get("Region", "")
                known = f"the bucket is in {_plain(region)}: say region={_plain(region)}"
                return known if region else f"is the region {place.signed_for} the bucket's?"
            case "ConditionalRequestConflict" if request.op == "complete_upload":
                return "another write came between and the upload is gone: its data has to be sent"
            case "PreconditionFailed" | "NoSuchKey" if request.etag is not None:
                return _CHANGED if request.dest else OTHERS
            case "InvalidRequest" if "copy source" in said.message.lower():
                return _LARGEST_COPY
            case "AccessDenied":
                return self._denial(request)
        return _ADVICE.get(code, "")

    def _denial(self, request: S3Request) -> str:
        if self._credential.anonymous:
            return "requests are not signed: leave out anon, or give a credential"
        needed = f"it needs {_PERMISSIONS.get(request.op, 's3:PutObject')}"
        conditional = request.new or request.etag is not None
        may_replace = request.op in _MAY_REPLACE and not conditional
        return f"{needed}; {_CONDITIONS}" if may_replace else needed

    def _stranger(self, request: S3Request, answer: Response) -> StoreError:
        """Translate a response without a code: to a HEAD, or from elsewhere."""
        status, server = answer.status, self.place.server
        ours = not answer.body and "x-amz-request-id" in answer.headers
        what = f"{server} answered {status}"
        if ours and status in _BY_STATUS:
            kind = ExistsError if status == 412 and request.new else _BY_STATUS[status]
            return self._error(kind, request, f"{what}{self._bare(request, status)}")
        if 300 <= status < 400:
            target = urlsplit(answer.headers.get("location", "")).hostname or "another place"
            what += f", a redirect to {short(_plain(target), _ROOM)}, which is not followed"
        elif status == 407:
            what += ": the proxy wants a name and a password"
        elif not ours:
            said = answer.headers.get("content-type", "").partition(";")[0] or "no content type"
            what += f" as no endpoint of S3 does ({short(_plain(said), 100)})"
        what += "; check the endpoint (endpoint_url, AWS_ENDPOINT_URL_S3) and the proxy"
        return self._unsaid(request, answer, what)

    def _bare(self, request: S3Request, status: int) -> str:
        return f": {self._denial(request)}" if status in (401, 403) else ""

    def _unsaid(self, request: S3Request, answer: Response, what: str) -> StoreError:
        """Translate the status alone, as another server may have answered."""
        status = answer.status
        if status == 429 or (status == 503 and not request.writes):
            return ThrottledError(request.op, request.path, what, _retry_after(answer))
        if status == 408 or (status >= 500 and status != 501):
            if request.writes:
                busy = status == 503
                return OutcomeUnknownError(request.op, request.path, what, busy=busy)
            return self._error(UnavailableError, request, what)
        unknown = request.writes and status < 300
        return self._error(OutcomeUnknownError if unknown else RejectedError, request, what)


def explain(answer: Response) -> Said:
    """Return the code and message of an error response.

    The code is missing if the body is not from the service.
    """
    if b"<Error" not in answer.body[:1000]:
        return Said("", "", {})
    try:
        found = values(parse(answer.body, "Error"))
    except ValueError:
        return Said("", "", {})
    more = {name: _plain(text) for name, text in found.items()}
    if region := answer.headers.get("x-amz-bucket-region", ""):
        more["Region"] = _plain(region)
    return Said(more.get("Code", ""), more.get("Message", ""), more)


def region_of(answer: Response) -> str:
    """Return the bucket's region in a response, or ``""``."""
    if answer.status not in (301, 307, 400, 403):
        return ""
    found = answer.headers.get("x-amz-bucket-region", "") or explain(answer).more.get("Region", "")
    return found if is_region(found) else ""


def says_expired(answer: Response) -> bool:
    """Return whether a response refuses the credential as expired."""
    if answer.status not in (400, 401, 403):
        return False
    return explain(answer).code in ("ExpiredToken", "TokenRefreshRequired", "InvalidToken")


def _retry_after(answer: Response) -> float | None:
    try:
        seconds = float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0.0 <= seconds < math.inf else None


def _plain(text: str) -> str:
    """Return a server's message as one safe line of limited length."""
    return _CONTROL.sub(" ", text)
