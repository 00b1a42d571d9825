"""Translate responses of Google Cloud Storage, and missing responses: one function and tables."""

from __future__ import annotations

import math
import re
from typing import NamedTuple
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
from asynccommit.stores.gcs.credentials import GcsCredential
from asynccommit.stores.gcs.endpoint import GcsEndpoint
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

_ROOM = 400  # characters of what the service says

# A 403 that is about the rate of requests.
_TOO_MANY = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"})
_HELD = re.compile(
    r"retentionPolicyNotMet|objectUnderActiveHold|bucket's retention policy|\bactive hold\b"
)
_NO_PROJECT = frozenset(
    {"userProjectMissing", "authenticationRequiredRequesterPays", "userProjectInvalid"}
)

# What a caller needs, where the service's words do not say it.
_PERMISSIONS = {
    "head": "storage.objects.get",
    "get": "storage.objects.get",
    "list": "storage.objects.list",
    "list_tree": "storage.objects.list",
    "put": "storage.objects.create, and storage.objects.delete to replace",
    "delete": "storage.objects.delete",
    "delete_many": "storage.objects.delete",
    "copy": "storage.objects.get and storage.objects.create",
    "rename": "storage.objects.move and storage.objects.create",
    "mkdir": "storage.objects.create or, for folders, storage.folders.create",
}

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff]+")
_NO_BUCKET = re.compile(
    r"(?!no such object).{0,99}?\bbucket\b.{0,99}\b(?:does not exist|not found)|no such bucket",
    re.I,
)
_PAYS = re.compile("requester pays", re.IGNORECASE)
_NAMED = re.compile(r"\bstorage\.[a-z]+\.[a-zA-Z]+\b")


class GcsRequest(NamedTuple):
    """The facts about a request that decide the meaning of its response.

    It is a tuple because each rename makes one.

    Attributes:
        op: the store method.
        path: the path of the call.
        writes: whether it changes what others see.
        new: whether it was conditional on an empty destination.
        dest: the destination, if not ``path``.
        generation: the generation of ``path`` that it named, if any.
    """

    op: str
    path: str
    writes: bool = False
    new: bool = False
    dest: str = ""
    generation: str = ""

    @property
    def look(self) -> GcsRequest:
        """The same as a question that goes with it: it changes nothing."""
        return self._replace(writes=False, new=False, generation="")


class GcsErrorTranslator:
    """Tells the errors of one store.

    Args:
        place: its bucket.
        credential: what authorises its requests; no error shows its secrets.
    """

    def __init__(self, place: GcsEndpoint, credential: GcsCredential) -> None:
        self._bucket = place.bucket
        self._server = place.origin.partition("://")[2]
        self._credential = credential

    def translate(self, request: GcsRequest, answer: Answer) -> StoreError:
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

    def unread(self, request: GcsRequest, error: ValueError) -> StoreError:
        """Return the error for an unreadable success: a write may have happened."""
        kind = OutcomeUnknownError if request.writes else RejectedError
        said = f"{self._server}: {error}; is it an endpoint of Google Cloud Storage?"
        return self._error(kind, request, said)

    def _error(self, kind: type[StoreError], request: GcsRequest, detail: str) -> StoreError:
        return kind(request.op, request.path, self._credential.hide(detail))

    def _shown(self, request: GcsRequest, status: int, reason: str, message: str) -> str:
        """Return the service's message without secrets, cut after their removal."""
        hide = self._credential.hide
        told = (short(hide(text), _ROOM) for text in (reason, message))
        return hide(_detail(request, status, *told))

    def _silence(self, request: GcsRequest, error: TransportError) -> StoreError:
        lost = OutcomeUnknownError if request.writes else UnavailableError
        match error:
            case UntrustedError():
                advice = "; name the certificate of its authority in the option ca_file"
                return self._error(RejectedError, request, error.detail + advice)
            case NotSentError():
                advice = f"; is the network there, and {self._server} the right host?"
                return self._error(UnavailableError, request, error.detail + advice)
            case TooLargeError():
                kind = OutcomeUnknownError if request.writes else RejectedError
                advice = f"; is {self._server} an endpoint of Google Cloud Storage?"
                advice = advice if request.op != "get" else ""
                return self._error(kind, request, error.detail + advice)
        return self._error(lost, request, error.detail)

    def _refusal(self, request: GcsRequest, answer: Response) -> StoreError:
        status = answer.status
        reason, message = explain(answer)
        detail = self._shown(request, status, reason, message)
        if status == 429 or (status == 403 and reason in _TOO_MANY):
            return ThrottledError(request.op, request.path, detail, _retry_after(answer))
        if status < 400 or status == 407 or not is_known(answer, reason):
            return self._stranger(request, answer)
        if (status >= 500 and status != 501) or status == 408:
            return _failed(request, answer, detail)
        if status in (401, 403) and not _HELD.search(detail):
            return self._error(DeniedError, request, self._denial(request, answer))
        return self._no(request, status, reason, message, detail)

    def _no(
        self, request: GcsRequest, status: int, reason: str, message: str, detail: str
    ) -> StoreError:
        """Judge a plain no."""
        kind: type[StoreError] = _kind(request, status)
        if status == 403:
            kind, detail = RejectedError, f"{detail}; it is held: release it, then resume"
        elif reason in _NO_PROJECT or (status == 400 and _PAYS.search(message)):
            detail += "; name the project that pays in the option requester_pays"
            kind = RejectedError
        elif status == 404 and _NO_BUCKET.match(message):
            detail += f": there is no bucket {self._bucket!r}; make it, or correct the URL"
            kind = RejectedError
        return kind(request.op, request.path, detail)

    def _stranger(self, request: GcsRequest, answer: Response) -> StoreError:
        """Judge an answer that the service never gives."""
        status = answer.status
        what = f"{self._server} answered {status}"
        if 300 <= status < 400:
            target = urlsplit(answer.headers.get("location", "")).hostname or "another place"
            what += f", a redirect to {short(_plain(target), _ROOM)}, which is not followed"
        elif status == 407:
            what += ": the proxy wants a name and a password"
        else:
            said = short(_plain(_content_type(answer)), 100)
            what += f" as no endpoint of Google Cloud Storage does ({said})"
        what += "; check the endpoint (STORAGE_EMULATOR_HOST, endpoint_url) and the proxy"
        if status == 408 or status >= 500:  # of something between here and there
            return _failed(request, answer, what)
        # It may have answered in the place of the service, which has had the request.
        unknown = request.writes and status < 300
        return self._error(OutcomeUnknownError if unknown else RejectedError, request, what)

    def _denial(self, request: GcsRequest, answer: Response) -> str:
        """Explain why a request was not permitted, with the remedy."""
        reason, message = explain(answer)
        said = self._shown(request, answer.status, reason, message)
        if answer.status == 401:
            if self._credential.anonymous:
                return f"{said}; no credential was given: see the option token"
            return f"{said}; the credential is not accepted"
        if "storage.objects.move" in message:
            return f"{said}; without it, the option move=false copies and deletes instead"
        if _NAMED.search(message):
            return said
        return f"{said}; it needs {_PERMISSIONS.get(request.op, 'more permissions')}"


def explain(answer: Response) -> tuple[str, str]:
    """Return the reason and message of an error response.

    Both are empty if the response is not from the service.
    """
    try:
        error = orjson.loads(answer.body)["error"]
        reasons = error.get("errors") or error.get("details") or [{}]
        reason = reasons[0].get("reason") or error.get("status") or ""
        return _plain(str(reason)) or "error", _plain(str(error.get("message", "")))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return "", ""


def is_known(answer: Response, reason: str) -> bool:
    """Return whether an error response is from the service.

    Errors of uploads and downloads have bare text.
    """
    return bool(reason) or "x-guploader-uploadid" in answer.headers


def says_no_bucket(answer: Response) -> bool:
    """Return whether the response reports a missing bucket."""
    return answer.status == 404 and bool(_NO_BUCKET.match(explain(answer)[1]))


def says_not_empty(answer: Response) -> bool:
    """Return whether a folder was kept for its content or a running operation."""
    reason, message = explain(answer)
    return bool(reason) and (answer.status in (409, 412) or "not empty" in message.lower())


def _failed(request: GcsRequest, answer: Response, detail: str) -> StoreError:
    """Translate a server failure: the outcome of the request is unknown."""
    busy = answer.status == 503
    if request.writes:
        return OutcomeUnknownError(request.op, request.path, detail, busy=busy)
    if busy:
        return ThrottledError(request.op, request.path, detail, _retry_after(answer))
    return UnavailableError(request.op, request.path, detail)


def _kind(request: GcsRequest, status: int) -> type[StoreError]:
    """Return what a plain no means by its status."""
    if status == 404:
        return NotFoundError
    if status == 412:
        # With two conditions it is unknown which one failed: a caller that sets both has to read.
        return ExistsError if request.new and not request.generation else PreconditionError
    # 409: something else is under way with it, as the rename of its folder. 410: the session of an
    # upload or the token of a rewrite is gone, and with it what they did.
    return UnavailableError if status in (409, 410) else RejectedError


def _detail(request: GcsRequest, status: int, reason: str, message: str) -> str:
    to = f" (to {request.dest})" if request.dest else ""
    one = f" (generation {request.generation} was asked for)" if request.generation else ""
    said = reason if reason != "error" else ""
    return (
        f"{' '.join(filter(None, (str(status), said)))}{': ' if message else ''}{message}{to}{one}"
    )


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
