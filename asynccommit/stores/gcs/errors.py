"""Translate responses of Google Cloud Storage to errors.

A missing response is translated as well.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.gcs.credentials import GcsCredential
from asynccommit.stores.gcs.endpoint import GcsEndpoint
from asynccommit.stores.http.base import Response
from asynccommit.stores.http.errors import ErrorTranslator, failed, plain, retry_after

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
        writes: whether it has a visible effect.
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


class GcsErrorTranslator(ErrorTranslator[GcsRequest]):
    """A translator from responses to errors, for one store.

    Args:
        place: its bucket.
        credential: what authorises its requests; no error shows its secrets.
    """

    endpoint = "an endpoint of Google Cloud Storage"
    settings = "the endpoint (STORAGE_EMULATOR_HOST, endpoint_url) and the proxy"

    def __init__(self, place: GcsEndpoint, credential: GcsCredential) -> None:
        super().__init__(place.origin.partition("://")[2], credential)
        self._bucket = place.bucket
        self._anonymous = credential.anonymous
        self._renewals = credential

    def refusal(self, request: GcsRequest, answer: Response) -> StoreError:
        status = answer.status
        reason, message = explain(answer)
        detail = self._shown(request, status, reason, message)
        if status == 429 or (status == 403 and reason in _TOO_MANY):
            return ThrottledError(request.op, request.path, detail, retry_after(answer))
        if status < 400 or status == 407 or not is_known(answer, reason):
            what = self.stranger(answer)
            if status == 408 or status >= 500:  # of something between here and there
                return failed(request, answer, what)
            return self.unknown(request, answer, what)
        if (status >= 500 and status != 501) or status == 408:
            return failed(request, answer, detail)
        if status in (401, 403) and not _HELD.search(detail):
            return self.error(DeniedError, request, self._denial(request, answer))
        return self._no(request, status, reason, message, detail)

    def _shown(self, request: GcsRequest, status: int, reason: str, message: str) -> str:
        """Return the service's message without secrets, cut after their removal."""
        detail = _detail(request, status, self.told(reason), self.told(message))
        return self.credential.hide(detail)

    def _no(
        self, request: GcsRequest, status: int, reason: str, message: str, detail: str
    ) -> StoreError:
        """Return the error for a refusal that is not about a condition."""
        kind: type[StoreError] = _kind(request, status)
        if status == 403:
            kind, detail = RejectedError, f"{detail}; it is under a hold: release it, then resume"
        elif reason in _NO_PROJECT or (status == 400 and _PAYS.search(message)):
            detail += "; set requester_pays to the project that pays"
            kind = RejectedError
        elif status == 404 and _NO_BUCKET.match(message):
            detail += f": there is no bucket {self._bucket!r}; create it, or correct the URL"
            kind = RejectedError
        return kind(request.op, request.path, detail)

    def _denial(self, request: GcsRequest, answer: Response) -> str:
        """Explain why a request was not permitted, with the remedy."""
        reason, message = explain(answer)
        detail = self._shown(request, answer.status, reason, message)
        if answer.status == 401:
            if self._anonymous:
                return f"{detail}; no credential was given: see the option token"
            return f"{detail}; {self._renewals.explain() or 'the credential was rejected'}"
        if "storage.objects.move" in message:
            return f"{detail}; without it, set move=false to copy and delete instead"
        if _NAMED.search(message):
            return detail
        return f"{detail}; it needs {_PERMISSIONS.get(request.op, 'more permissions')}"


def explain(answer: Response) -> tuple[str, str]:
    """Return the reason and message of an error response, empty if another server sent it."""
    try:
        error = orjson.loads(answer.body)["error"]
        reasons = error.get("errors") or error.get("details") or [{}]
        reason = reasons[0].get("reason") or error.get("status") or ""
        return plain(str(reason)) or "error", plain(str(error.get("message", "")))
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
    one = f" (generation {request.generation} was requested)" if request.generation else ""
    code = reason if reason != "error" else ""
    return (
        f"{' '.join(filter(None, (str(status), code)))}{': ' if message else ''}{message}{to}{one}"
    )
