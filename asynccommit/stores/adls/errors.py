"""Translate responses of ADLS Gen2, and missing responses: one function and its tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

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
from asynccommit.stores.adls.credentials import AdlsCredential, Sas, SharedKey
from asynccommit.stores.adls.endpoint import AdlsEndpoint
from asynccommit.stores.adls.wire import parse_date
from asynccommit.stores.http.base import (
    NotSentError,
    Response,
    TooLargeError,
    TransportError,
    UntrustedError,
)
from asynccommit.stores.http.tokens import TokenError

Answer = Response | TransportError | TokenError | ValueError
"""The result of a request; a ``ValueError`` reports an invalid path or response."""

_SKEW = 300.0  # seconds between two clocks that are worth saying; the service refuses 900
_ROOM = 300  # characters of what the service says

_REFUSED_FOR_NOW = frozenset(
    {
        "DestinationPathIsBeingDeleted",
        "FilesystemBeingDeleted",
        "ContainerBeingDeleted",
        "AccountBeingCreated",
    }
)
# A caller that took these for a missing path would continue in vain.
_NO_STORE = frozenset({"FilesystemNotFound", "ContainerNotFound", "AccountNotFound"})
# The last: the caller may make files there, but not write over one.
_THERE = frozenset({"PathAlreadyExists", "DirectoryNotEmpty", "UnauthorizedBlobOverwrite"})
_OTHER_KIND = frozenset(
    {"InvalidSourceOrDestinationResourceType", "ResourceTypeMismatch", "PathConflict"}
)
# Said of a path where nothing was to be.
_THERE_TOO = frozenset({"InvalidSourceOrDestinationResourceType", "ConditionNotMet"})
# The second: what would be the parent directory is a file.
_NOT_THERE = frozenset({"SourcePathIsBeingDeleted", "InvalidDestinationPath"})
# What the caller would see as gone or changed is only the temporary file.
_GONE_ASIDE = frozenset({"SourcePathNotFound", "SourceConditionNotMet"})

# Answers to a credential that the service cannot make out.
_NOT_KNOWN = frozenset({"AuthenticationFailed", "InvalidAuthenticationInfo"})

_REMEDIES = {
    "AuthenticationFailed": "the credential is not accepted",
    "NoAuthenticationInformation": "give a credential: account_key, sas_token or credential",
    "InvalidAuthenticationInfo": "the token is not accepted: is it of the account's tenant?",
    "AuthorizationPermissionMismatch": "the identity lacks the permission: it needs the role "
    "'Storage Blob Data Contributor' or the directory's ACL, a SAS the letters racwdlme",
    "AuthorizationFailure": "the identity lacks the permission, or the account's firewall shuts "
    "out this network",
    "KeyBasedAuthenticationNotPermitted": "the account takes no keys: use a token credential",
    "AccountIsDisabled": "the account is disabled: ask its owner",
}

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff]+")
_XML = re.compile(r"<Code>([^<]*)</Code>\s*<Message>([^<\n]*)")


class AdlsRequest(NamedTuple):
    """The facts about a request that decide the meaning of its response.

    It is a tuple because each rename makes one.

    Attributes:
        op: the store method.
        path: the path of the call.
        writes: whether it changes what others see.
        new: whether it was conditional on an empty destination.
        aside: whether it was about a temporary file, which may be made again.
        dest: the destination, if not ``path``.
    """

    op: str
    path: str
    writes: bool = False
    new: bool = False
    aside: bool = False
    dest: str = ""


class AdlsErrorTranslator:
    """Tells the errors of one store.

    Args:
        place: its container.
        credential: what authorises its requests; no error shows its secrets.
        now: seconds since the epoch.
    """

    def __init__(
        self, place: AdlsEndpoint, credential: AdlsCredential, now: Callable[[], float]
    ) -> None:
        self._place = place
        self._server = place.origin.partition("://")[2]
        self._credential = credential
        self._now = now

    def translate(self, request: AdlsRequest, answer: Answer) -> StoreError:
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

    def _error(self, kind: type[StoreError], request: AdlsRequest, detail: str) -> StoreError:
        return kind(request.op, request.path, self._credential.hide(detail))

    def _told(self, text: str) -> str:
        """Return a server's message without secrets, cut after their removal."""
        return short(self._credential.hide(text), _ROOM)

    def _silence(self, request: AdlsRequest, error: TransportError) -> StoreError:
        lost = OutcomeUnknownError if request.writes else UnavailableError
        match error:
            case UntrustedError():
                advice = "; name the certificate of its authority in the option ca_file"
                return self._error(RejectedError, request, error.detail + advice)
            case NotSentError():
                advice = f"; is {self._place.account} the account's name, and the network there?"
                return self._error(UnavailableError, request, error.detail + advice)
            case TooLargeError():
                kind = OutcomeUnknownError if request.writes else RejectedError
                advice = f"; is {self._server} a Data Lake endpoint?"
                advice = advice if request.op != "get" else ""
                return self._error(kind, request, error.detail + advice)
        return self._error(lost, request, error.detail)

    def _refusal(self, request: AdlsRequest, answer: Response) -> StoreError:
        status = answer.status
        code, message = explain(answer)
        detail = _detail(request, answer, self._told(code), self._told(message))
        detail = self._credential.hide(detail)
        if status == 429 or (status == 503 and code == "ServerBusy"):
            return ThrottledError(request.op, request.path, detail, _retry_after(answer))
        if status >= 500 or status == 408:
            return _failed(request, code, detail)
        if status < 400 or (not code and "x-ms-request-id" not in answer.headers):
            return self._stranger(request, answer)
        if status in (401, 403) and code not in _THERE:
            # What the service says of a signature repeats it.
            return self._error(DeniedError, request, self._denial(answer, code))
        if code in _NO_STORE:
            detail += f": there is no container {self._place.container!r} in the account "
            detail += f"{self._place.account!r}; make it, or correct the URL"
        return self._error(_kind(request, status, code), request, detail)

    def _stranger(self, request: AdlsRequest, answer: Response) -> StoreError:
        """Judge an answer that no storage account gives."""
        status = answer.status
        what = f"{self._server} answered {status}"
        if 300 <= status < 400:
            target = urlsplit(answer.headers.get("location", "")).hostname or "another place"
            what += f", a redirect to {short(_plain(target), _ROOM)}, which is not followed"
        elif status == 407:
            what += ": the proxy wants a name and a password"
        else:
            what += f" as no Data Lake endpoint does ({self._told(_plain(_content_type(answer)))})"
        what += "; check the account's name, account_host and the proxy"
        # It may have been something between here and there that answered in its place.
        unknown = request.writes and status < 300
        return self._error(OutcomeUnknownError if unknown else RejectedError, request, what)

    def _denial(self, answer: Response, code: str) -> str:
        """Explain why a request was not permitted, with the remedy."""
        why = _REMEDIES.get(code, "not permitted")
        if code in _NOT_KNOWN:
            why = self._fault(parse_date(answer.headers.get("date")) or self._now()) or why
        return f"{answer.status} {self._told(code) or 'denied'}: {why}{_request_id(answer)}"

    def _fault(self, there: float) -> str:
        """Explain the fault in the credential; ``there`` is the service's time."""
        ahead = self._now() - there
        if abs(ahead) > _SKEW:
            way = "ahead of" if ahead > 0 else "behind"
            return f"this machine's clock is {_span(abs(ahead))} {way} the service's: set it"
        if isinstance(self._credential, SharedKey):
            return f"the account key is not one of the account {self._place.account!r}"
        if isinstance(self._credential, Sas):
            return self._credential.fault(there)
        return ""


def explain(answer: Response) -> tuple[str, str]:
    """Return the code and message of an error response."""
    code = _plain(answer.headers.get("x-ms-error-code", ""))
    try:
        error: dict[str, Any] = orjson.loads(answer.body)["error"]
        return code or _plain(str(error["code"])), _plain(str(error["message"]).split("\n")[0])
    except (ValueError, TypeError, KeyError):
        found = _XML.search(answer.body.decode("utf-8", "replace"))
        return (code or _plain(found[1]), _plain(found[2])) if found else (code, "")


def _failed(request: AdlsRequest, code: str, detail: str) -> StoreError:
    """Translate a server failure: the outcome of the request is unknown."""
    busy = code == "OperationTimedOut"
    if request.writes:
        return OutcomeUnknownError(request.op, request.path, detail, busy=busy)
    return (ThrottledError if busy else UnavailableError)(request.op, request.path, detail)


def _kind(request: AdlsRequest, status: int, code: str) -> type[StoreError]:
    """Return what a plain no means."""
    if code in _REFUSED_FOR_NOW:
        return UnavailableError
    if code in _NO_STORE:
        return RejectedError
    if request.aside and status in (404, 409, 412):
        return UnavailableError
    if code in _GONE_ASIDE and request.op != "rename":
        return UnavailableError
    if code in _THERE or (request.new and code in _THERE_TOO):
        return PreconditionError if request.op == "mkdir" else ExistsError
    if status == 404 or code in _NOT_THERE:
        return NotFoundError
    if status == 412 or code in _OTHER_KIND or (status == 409 and "Lease" in code):
        return PreconditionError
    return RejectedError


def _detail(request: AdlsRequest, answer: Response, code: str, message: str) -> str:
    said = " ".join(filter(None, (f"{answer.status}", code)))
    to = f" (to {request.dest})" if request.dest else ""
    return f"{said}{': ' if message else ''}{message}{to}{_request_id(answer)}"


def _request_id(answer: Response) -> str:
    known = short(_plain(answer.headers.get("x-ms-request-id", "")), 100)
    return f" [x-ms-request-id {known}]" if known else ""


def _content_type(answer: Response) -> str:
    return answer.headers.get("content-type", "").partition(";")[0] or "no content type"


def _retry_after(answer: Response) -> float | None:
    try:
        seconds = float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0.0 <= seconds < math.inf else None


def _plain(text: str) -> str:
    """Return a server's message as one safe line of limited length."""
    return _CONTROL.sub(" ", text)


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days"
