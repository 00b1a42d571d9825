"""Translate responses of any service to errors: the common part.

A store's translator adds the codes of its service, in ``errors.py`` of its folder.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, TypeVar
from urllib.parse import urlsplit
from xml.etree.ElementTree import ParseError
from xml.parsers.expat import errors

import orjson

from asynccommit.errors import (
    DeniedError,
    OutcomeUnknownError,
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

Answer = Response | TransportError | TokenError | ValueError
"""The result of a request; a ``ValueError`` reports an invalid path or response."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff]+")


class Request(Protocol):
    """The facts about a request that decide what its response means."""

    @property
    def op(self) -> str:
        """The store method."""

    @property
    def path(self) -> str:
        """The path of the call."""

    @property
    def writes(self) -> bool:
        """True for a request with a visible effect."""


R = TypeVar("R", bound=Request)


class Secrets(Protocol):
    """A credential that knows its secrets."""

    def hide(self, text: str) -> str:
        """Return ``text`` with every secret in it replaced."""


class ErrorTranslator(ABC, Generic[R]):
    """Tells the errors of one store.

    Args:
        server: the host that answers, for messages.
        credential: what authorises its requests; no error shows its secrets.

    Attributes:
        endpoint: what the server should be, in messages.
        settings: what to check if another server answers.
        room: maximum number of characters of the service's message.
    """

    endpoint: ClassVar[str]
    settings: ClassVar[str]
    room: ClassVar[int] = 400

    def __init__(self, server: str, credential: Secrets) -> None:
        self.server = server
        self.credential = credential

    def translate(self, request: R, answer: Answer) -> StoreError:
        """Return the error that ``answer`` to ``request`` means."""
        match answer:
            case Response():
                return self.refusal(request, answer)
            case TransportError():
                return self._silence(request, answer)
            case TokenError():
                kind = UnavailableError if answer.again else DeniedError
                return self.error(kind, request, answer.detail)
        return self.error(RejectedError, request, str(answer))

    @abstractmethod
    def refusal(self, request: R, answer: Response) -> StoreError:
        """Return the error that a response means."""

    def advise(self) -> str:
        """Return what to check if no connection is made, as a question."""
        return f"is the network there, and {self.server} the right host?"

    def unread(self, request: R, error: ValueError) -> StoreError:
        """Return the error for an unreadable success: a write may have happened.

        A read whose answer is cut short is sent again.
        """
        read = UnavailableError if isinstance(error, CutShortError) else RejectedError
        kind = OutcomeUnknownError if request.writes else read
        return self.error(kind, request, f"{self.server}: {error}; is it {self.endpoint}?")

    def error(self, kind: type[StoreError], request: R, detail: str) -> StoreError:
        """Return an error of ``request`` without secrets in its text."""
        return kind(request.op, request.path, self.credential.hide(detail))

    def told(self, text: str) -> str:
        """Return a server's message without secrets, cut after their removal."""
        return short(self.credential.hide(text), self.room)

    def stranger(self, answer: Response, *, ours: bool = False) -> str:
        """Describe a response that the service itself never sends.

        Args:
            answer: the response.
            ours: whether the service may have sent it after all.
        """
        status, headers = answer.status, answer.headers
        what = f"{self.server} answered {status}"
        if 300 <= status < 400:
            target = urlsplit(headers.get("location", "")).hostname or "another place"
            what += f", a redirect to {short(plain(target), self.room)}, which is not followed"
        elif status == 407:
            what += ": the proxy needs a user name and a password"
        elif not ours:
            content = headers.get("content-type", "").partition(";")[0] or "no content type"
            what += f", unlike {self.endpoint} ({self.told(plain(content))})"
        return f"{what}; check {self.settings}"

    def unknown(self, request: R, answer: Response, detail: str) -> StoreError:
        """Return the error for a response of another server.

        It may have answered in the place of the service, which has had the request.
        """
        done = request.writes and answer.status < 300
        return self.error(OutcomeUnknownError if done else RejectedError, request, detail)

    def _silence(self, request: R, error: TransportError) -> StoreError:
        lost = OutcomeUnknownError if request.writes else UnavailableError
        match error:
            case UntrustedError():
                advice = "; set ca_file to the certificate of its authority"
                return self.error(RejectedError, request, error.detail + advice)
            case NotSentError():
                detail = self.credential.hide(f"{error.detail}; {self.advise()}")
                return UnavailableError(request.op, request.path, detail, reached=False)
            case TooLargeError():
                kind = OutcomeUnknownError if request.writes else RejectedError
                advice = f"; is {self.server} {self.endpoint}?" if request.op != "get" else ""
                return self.error(kind, request, error.detail + advice)
        return self.error(lost, request, error.detail)


def failed(request: Request, answer: Response, detail: str) -> StoreError:
    """Translate a server failure: the outcome of the request is unknown."""
    busy = answer.status == 503
    if request.writes:
        return OutcomeUnknownError(request.op, request.path, detail, busy=busy)
    if busy:
        return ThrottledError(request.op, request.path, detail, retry_after(answer))
    return UnavailableError(request.op, request.path, detail)


def retry_after(answer: Response) -> float | None:
    """Return the seconds that a response asks to wait."""
    try:
        seconds = float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0.0 <= seconds < math.inf else None


def plain(text: str) -> str:
    """Return a server's message as one safe line."""
    return _CONTROL.sub(" ", text)


_AT_THE_END = frozenset(
    errors.codes[name]
    for name in (
        errors.XML_ERROR_NO_ELEMENTS,
        errors.XML_ERROR_UNCLOSED_TOKEN,
        errors.XML_ERROR_PARTIAL_CHAR,
        errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
)
_HTML = (b"<!doctype", b"<html")


class CutShortError(ValueError):
    """Raised for a successful answer that ends in the middle.

    A proxy or a wrong Content-Length can cut it short without an error of the connection. The read
    is sent again; an answer that is whole and not the service's is final.
    """


def unread_json(body: bytes, error: orjson.JSONDecodeError, what: str) -> ValueError:
    """Return the error for invalid JSON; its text begins with ``what``."""
    body = body.strip()
    at_the_end = body[-1:] != b"}" or error.pos >= len(error.doc.rstrip())
    cut = not body or (body[:1] == b"{" and at_the_end)
    return _unread(cut, f"{what} ({error})")


def unread_xml(body: bytes, error: ParseError, what: str) -> ValueError:
    """Return the error for invalid XML; its text begins with ``what``."""
    body = body.strip()
    html = body[:9].lower().startswith(_HTML)
    cut = not body or (body[:1] == b"<" and not html and error.code in _AT_THE_END)
    return _unread(cut, f"{what} ({error})")


def _unread(cut: bool, text: str) -> ValueError:
    return CutShortError(f"{text}; it is cut short") if cut else ValueError(text)
