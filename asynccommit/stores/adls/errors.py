"""Translate responses of ADLS Gen2, and missing ones, to errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

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
from asynccommit.stores.http.base import Response
from asynccommit.stores.http.errors import ErrorTranslator, plain, retry_after

_SKEW = 300.0  # seconds between two clocks that are worth saying; the service refuses 900

_REFUSED_FOR_NOW = frozenset(
    {
        "DestinationPathIsBeingDeleted",
        "FilesystemBeingDeleted",
        "ContainerBeingDeleted",
        "AccountBeingCreated",
        "Md5Mismatch",
        "PendingCopyOperation",
    }
)
# A caller that took these for a missing path would continue in vain.
_NO_STORE = frozenset({"FilesystemNotFound", "ContainerNotFound", "AccountNotFound"})
# The last: the caller may make files there, but not write over one.
_THERE = frozenset(
    {"PathAlreadyExists", "BlobAlreadyExists", "DirectoryNotEmpty", "UnauthorizedBlobOverwrite"}
)
_OTHER_KIND = frozenset(
    {
        "InvalidSourceOrDestinationResourceType",
        "ResourceTypeMismatch",
        "PathConflict",
        "InvalidBlobType",
    }
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
    "AuthenticationFailed": "the credential was rejected",
    "NoAuthenticationInformation": "give a credential: account_key, sas_token or credential",
    "InvalidAuthenticationInfo": "the token was rejected: is it from the account's tenant?",
    "AuthorizationPermissionMismatch": "the identity lacks the permission: it needs the role "
    "'Storage Blob Data Contributor' or the directory's ACL, a SAS the letters racwdlme",
    "AuthorizationFailure": "the identity lacks the permission, or the account's firewall "
    "blocks it",
    "KeyBasedAuthenticationNotPermitted": "the account accepts no keys: use a token credential",
    "AccountIsDisabled": "the account is disabled: ask its owner",
}

_IN_FABRIC = (
    "is the identity permitted to read and write the item in Fabric, and is the path below "
    "ITEM.Lakehouse/Files or Tables, of an item that is there?"
)

# What keeps a blob as it is, and what its owner can do about it.
_KEPT = {
    "BlobImmutableDueToPolicy": "an immutability policy keeps the blob: wait until it ends, or "
    "give the file another name",
    "BlobImmutableDueToLegalHold": "a legal hold keeps the blob: clear it, or give the file "
    "another name",
    "SnapshotsPresent": "the blob has snapshots, which are not deleted here: delete them first",
    "LeaseIdMissing": "somebody holds a lease on the blob: release or break it, then resume",
    "LeaseNotPresentWithBlobOperation": "its lease has changed hands: resume",
    "InvalidBlobType": "a blob of another type has this name: delete it, or choose another name",
    "BlobArchived": "the blob is archived: rehydrate it, then resume",
}

_XML = re.compile(r"<Code>([^<]*)</Code>\s*<Message>([^<\n]*)")


class AdlsRequest(NamedTuple):
    """The facts about a request that decide the meaning of its response.

    It is a tuple because each rename makes one.

    Attributes:
        op: the store method.
        path: the path of the call.
        writes: whether it has a visible effect.
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

    @property
    def look(self) -> AdlsRequest:
        """The same as a question that goes with it: it changes nothing."""
        return AdlsRequest(self.op, self.path)


class AdlsErrorTranslator(ErrorTranslator[AdlsRequest]):
    """Tells the errors of one store.

    Args:
        place: its container.
        credential: what authorises its requests; no error shows its secrets.
        now: seconds since the epoch.
    """

    endpoint = "a Data Lake endpoint"
    settings = "the account's name, account_host and the proxy"
    room = 300

    def __init__(
        self, place: AdlsEndpoint, credential: AdlsCredential, now: Callable[[], float]
    ) -> None:
        super().__init__(place.origin.partition("://")[2], credential)
        self._place = place
        self._renewals = credential
        self._now = now

    def advise(self) -> str:
        return f"is {self._place.account} the account's name, and the network there?"

    def refusal(self, request: AdlsRequest, answer: Response) -> StoreError:
        status = answer.status
        code, message = explain(answer)
        detail = _detail(request, answer, self.told(code), self.told(message))
        detail = self.credential.hide(detail)
        if status == 429 or (status == 503 and code == "ServerBusy"):
            return ThrottledError(request.op, request.path, detail, retry_after(answer))
        known = bool(code) or "x-ms-request-id" in answer.headers
        if status >= 500 or status == 408:  # if not known: of something between here and there
            return _failed(request, code, detail if known else self.stranger(answer))
        if status < 400 or not known:
            return self.unknown(request, answer, self.stranger(answer))
        if status in (401, 403) and code not in _THERE:
            # What the service says of a signature repeats it.
            return self.error(DeniedError, request, self._denial(answer, code))
        if code in _NO_STORE:
            detail += f": there is no container {self._place.container!r} in the account "
            detail += f"{self._place.account!r}; create it, or correct the URL"
        if code in _KEPT:
            detail += f": {_KEPT[code]}"
        return self.error(_kind(request, status, code), request, detail)

    def _denial(self, answer: Response, code: str) -> str:
        """Explain why a request was not permitted, with the remedy."""
        why = _REMEDIES.get(code, "not permitted")
        if self._place.onelake:
            why = _IN_FABRIC
        if answer.status == 401:
            why = self._renewals.explain() or why
        if code in _NOT_KNOWN:
            why = self._fault(parse_date(answer.headers.get("date")) or self._now()) or why
        return f"{answer.status} {self.told(code) or 'denied'}: {why}{_request_id(answer)}"

    def _fault(self, there: float) -> str:
        """Explain the fault in the credential; ``there`` is the service's time."""
        ahead = self._now() - there
        if abs(ahead) > _SKEW:
            way = "ahead of" if ahead > 0 else "behind"
            return f"this machine's clock is {_span(abs(ahead))} {way} the service's: set it"
        if isinstance(self.credential, SharedKey):
            return f"the account key does not belong to the account {self._place.account!r}"
        if isinstance(self.credential, Sas):
            return self.credential.fault(there)
        return ""


def explain(answer: Response) -> tuple[str, str]:
    """Return the code and message of an error response."""
    code = plain(answer.headers.get("x-ms-error-code", ""))
    try:
        error: dict[str, Any] = orjson.loads(answer.body)["error"]
        return code or plain(str(error["code"])), plain(str(error["message"]).split("\n")[0])
    except (ValueError, TypeError, KeyError):
        found = _XML.search(answer.body.decode("utf-8", "replace"))
        return (code or plain(found[1]), plain(found[2])) if found else (code, "")


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
    known = short(plain(answer.headers.get("x-ms-request-id", "")), 100)
    return f" [x-ms-request-id {known}]" if known else ""


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days"
