"""Translate responses of S3, and missing ones, to errors.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

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
from asynccommit.stores.http.base import Response
from asynccommit.stores.http.errors import ErrorTranslator, failed, plain, retry_after
from asynccommit.stores.s3.credentials import S3Credential
from asynccommit.stores.s3.endpoint import S3Endpoint, is_region
from asynccommit.stores.s3.xml import parse, values

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
    "ExpiredToken": "the session has expired: renew it (aws sso login, a new token), then resume",
    "InvalidToken": "the session token does not belong to the key: give a matching pair",
    "InvalidAccessKeyId": "unknown key: check key, AWS_ACCESS_KEY_ID, profile",
    "SignatureDoesNotMatch": "wrong secret for the key: check secret, AWS_SECRET_ACCESS_KEY",
    "InvalidObjectState": "the object is archived: restore it, then resume",
    "KeyTooLongError": "a name may have at most 1,024 bytes of UTF-8",
    "EntityTooSmall": "every part except the last must have at least 5 MiB",
    "InvalidPart": "a part is missing, or was sent again",
}
# What a caller needs, where the service's words do not say it.
_PERMISSIONS = {
    "head": "s3:GetObject, and s3:ListBucket to report missing objects",
    "get": "s3:GetObject",
    "list": "s3:ListBucket",
    "list_tree": "s3:ListBucket",
    "delete": "s3:DeleteObject",
    "delete_many": "s3:DeleteObject, and s3:GetObject to delete by etag",
    "copy": "s3:GetObject and s3:PutObject",
    "abort_upload": "s3:AbortMultipartUpload",
    "list_uploads": "s3:ListBucketMultipartUploads",
    "list_parts": "s3:ListMultipartUploadParts",
    "create_session": "s3express:CreateSession",
    "completed": "s3:GetObject",
}
_MAY_REPLACE = frozenset({"put", "put_marker", "complete_upload", "copy"})
_CONDITIONS = (
    "if the bucket policy requires conditional writes (s3:if-none-match), exempt the "
    "directories of jobs, __magic_job-* and _temporary, which are written without conditions"
)
OTHERS = "the file to replace has changed or is gone: is there another writer?"
"""The detail of an error for an etag condition that does not hold."""
_CHANGED = "the source, or the file to replace, has changed: is there another writer?"
_LARGEST_COPY = "is larger than 5 GiB, the maximum of one copy request: copy it in parts"


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
        writes: whether it has a visible effect.
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


class S3ErrorTranslator(ErrorTranslator[S3Request]):
    """The translator of responses to errors, for one store.

    Args:
        place: its bucket.
        credential: what authorises its requests; no error shows its secrets.
    """

    endpoint = "an endpoint of S3"
    settings = "the endpoint (endpoint_url, AWS_ENDPOINT_URL_S3) and the proxy"

    def __init__(self, place: S3Endpoint, credential: S3Credential) -> None:
        super().__init__(place.server, credential)
        self._place = place
        self._anonymous = credential.anonymous
        self._session = credential

    def trust(self, credential: S3Credential) -> None:
        """Show no secrets of another credential from now on."""
        self.credential = self._session = credential

    def go_to(self, place: S3Endpoint) -> None:
        """Translate the answers of another endpoint from now on."""
        self._place, self.server = place, place.server

    def refusal(self, request: S3Request, answer: Response) -> StoreError:
        said = explain(answer)
        if said.code:
            return self.verdict(request, answer.status, said, retry_after(answer))
        return self._bare(request, answer)

    def verdict(
        self, request: S3Request, status: int, said: Said, wait: float | None = None
    ) -> StoreError:
        """Return the error for a service's code, of a response or one key."""
        said = self._shown(said)
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

    def _shown(self, said: Said) -> Said:
        """Return the service's message without secrets, cut after their removal."""
        more = {name: self.told(text) for name, text in said.more.items()}
        return Said(self.told(said.code), self.told(said.message), more)

    def _detail(self, request: S3Request, status: int, said: Said) -> str:
        to = f" (to {request.dest})" if request.dest else ""
        words = ": ".join(filter(None, (f"{status or ''} {said.code}".strip(), said.message)))
        advice = self._advice(request, said)
        return self.credential.hide(f"{words}{to}{'; ' if advice else ''}{advice}")

    def _advice(self, request: S3Request, said: Said) -> str:
        """Return the remedy, if the service's message has none."""
        code, place, more = said.code, self._place, said.more
        match code:
            case "NoSuchBucket":
                return f"there is no bucket {place.bucket!r}; create it, or correct the URL"
            case "RequestTimeTooSkewed":
                here, there = more.get("RequestTime", "?"), more.get("ServerTime", "?")
                return f"it is {here} here and {there} there: correct this machine's clock"
            case "PermanentRedirect" | "AuthorizationHeaderMalformed" | "TemporaryRedirect":
                region = more.get("Region", "")
                known = f"the bucket is in {plain(region)}: set region={plain(region)}"
                return known if region else f"is the region {place.signed_for} the bucket's?"
            case "ConditionalRequestConflict" if request.op == "complete_upload":
                return "another write interfered and the upload is gone: its data must be sent"
            case "PreconditionFailed" | "NoSuchKey" if request.etag is not None:
                return _CHANGED if request.dest else OTHERS
            case "InvalidRequest" if "copy source" in said.message.lower():
                return _LARGEST_COPY
            case "AccessDenied":
                return self._denial(request)
            case "ExpiredToken" | "TokenRefreshRequired":
                return self._session.explain() or _ADVICE["ExpiredToken"]
        return _ADVICE.get(code, "")

    def _denial(self, request: S3Request) -> str:
        if self._anonymous:
            return "requests are not signed: leave out anon, or give a credential"
        needed = f"it needs {_PERMISSIONS.get(request.op, 's3:PutObject')}"
        conditional = request.new or request.etag is not None
        may_replace = request.op in _MAY_REPLACE and not conditional
        return f"{needed}; {_CONDITIONS}" if may_replace else needed

    def _bare(self, request: S3Request, answer: Response) -> StoreError:
        """Translate a response without a code: to a HEAD, or from elsewhere."""
        status = answer.status
        ours = not answer.body and "x-amz-request-id" in answer.headers
        if ours and status in _BY_STATUS:
            kind = ExistsError if status == 412 and request.new else _BY_STATUS[status]
            why = f": {self._denial(request)}" if status in (401, 403) else ""
            return self.error(kind, request, f"{self.server} answered {status}{why}")
        what = self.stranger(answer, ours=ours)
        if status == 429:
            return ThrottledError(request.op, request.path, what, retry_after(answer))
        if status == 408 or (status >= 500 and status != 501):
            return failed(request, answer, self.credential.hide(what))
        return self.unknown(request, answer, what)


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
    more = {name: plain(text) for name, text in found.items()}
    if region := answer.headers.get("x-amz-bucket-region", ""):
        more["Region"] = plain(region)
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
