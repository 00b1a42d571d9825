"""What the translators of all services share: silence, strangers, secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import (
    DeniedError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.adls.wire import entries_of
from asynccommit.stores.gcs.wire import folders_listed, listed
from asynccommit.stores.http.base import (
    NoAnswerError,
    NotSentError,
    Response,
    TooLargeError,
    UntrustedError,
)
from asynccommit.stores.http.errors import (
    Answer,
    CutShortError,
    ErrorTranslator,
    failed,
    plain,
    retry_after,
)
from asynccommit.stores.http.tokens import TokenError
from asynccommit.stores.s3.wire import listed as s3_listed


class Asked(NamedTuple):
    """A request of some store."""

    op: str
    path: str
    writes: bool = False


class Credential:
    """A credential with one secret."""

    def hide(self, text: str) -> str:
        """Replace the secret."""
        return text.replace("hunter2", "***")


class Translator(ErrorTranslator[Asked]):
    """A translator that takes every response for one of another server."""

    endpoint = "an endpoint of Tests"
    settings = "the option host"
    room = 20

    def refusal(self, request: Asked, answer: Response) -> StoreError:
        """Translate a response."""
        return self.unknown(request, answer, self.stranger(answer))


READ, WRITE = Asked("head", "/p"), Asked("put", "/p", writes=True)
TRANSLATOR = Translator("server:1", Credential())


@pytest.mark.parametrize(
    "answer, of_a_read, of_a_write, text",
    [
        (NotSentError("no route"), UnavailableError, UnavailableError, "server:1 the right host?"),
        (NoAnswerError("cut"), UnavailableError, OutcomeUnknownError, "cut"),
        (UntrustedError("bad"), RejectedError, RejectedError, "set ca_file"),
        (TooLargeError("big"), RejectedError, OutcomeUnknownError, "is server:1 an endpoint of"),
        (TokenError("later", again=True), UnavailableError, UnavailableError, "later"),
        (TokenError("never", again=False), DeniedError, DeniedError, "never"),
        (ValueError("no name"), RejectedError, RejectedError, "no name"),
        (
            Response(200, {}, b"hello"),
            RejectedError,
            OutcomeUnknownError,
            "unlike an endpoint of Tests",
        ),
        (Response(407, {}, b""), RejectedError, RejectedError, "the proxy needs a user name"),
    ],
)
def test_what_did_not_come_from_the_service(
    answer: Answer, of_a_read: type[StoreError], of_a_write: type[StoreError], text: str
) -> None:
    """A read can be sent again or not; of a write it may be unknown whether it was done."""
    read, write = TRANSLATOR.translate(READ, answer), TRANSLATOR.translate(WRITE, answer)

    assert (type(read), type(write)) == (of_a_read, of_a_write)
    assert text in str(read)
    assert text in str(write)


def test_content_that_is_too_large_is_not_blamed_on_the_server() -> None:
    """The caller of ``get`` chose the limit; elsewhere no answer is that large."""
    error = TRANSLATOR.translate(Asked("get", "/p"), TooLargeError("more than 5 bytes"))

    assert str(error).endswith("more than 5 bytes")


def test_a_redirect_names_its_target_only() -> None:
    """The host is told, cut to some length; its path and query may be secret."""
    there = {"location": "https://elsewhere.example/a?sig=hunter2"}

    said = str(TRANSLATOR.translate(READ, Response(302, there, b"")))

    assert "a redirect to elsewhere.example, which is not followed; check the option host" in said
    assert "hunter2" not in said


def test_secrets_are_hidden_before_a_text_is_cut() -> None:
    """A secret at the edge would else be shown by half."""
    assert "hunt" not in TRANSLATOR.told("0123456789abcdef hunter2")
    assert "hunter2" not in str(TRANSLATOR.error(RejectedError, READ, "it is hunter2"))


@pytest.mark.parametrize(
    "error, request_, kind",
    [
        (CutShortError("cut short"), READ, UnavailableError),
        (ValueError("no JSON"), READ, RejectedError),
        (CutShortError("cut short"), WRITE, OutcomeUnknownError),
        (ValueError("no JSON"), WRITE, OutcomeUnknownError),
    ],
)
def test_a_success_that_cannot_be_read(
    error: ValueError, request_: Asked, kind: type[StoreError]
) -> None:
    """A read that was cut short is sent again; a write may have happened."""
    found = TRANSLATOR.unread(request_, error)

    assert type(found) is kind
    assert "is it an endpoint of Tests?" in str(found)


@pytest.mark.parametrize(
    "status, request_, kind, busy",
    [
        (503, READ, ThrottledError, None),
        (500, READ, UnavailableError, None),
        (503, WRITE, OutcomeUnknownError, True),
        (500, WRITE, OutcomeUnknownError, False),
    ],
)
def test_a_failure_of_the_server(
    status: int, request_: Asked, kind: type[StoreError], busy: bool | None
) -> None:
    """A busy server is asked more slowly; what it did to a write is not known."""
    error = failed(request_, Response(status, {"retry-after": "3"}, b""), "it failed")

    assert type(error) is kind
    assert getattr(error, "busy", None) is busy
    assert getattr(error, "retry_after", None) == (3.0 if kind is ThrottledError else None)


@pytest.mark.parametrize(
    "text, seconds", [("3", 3.0), ("0.5", 0.5), ("soon", None), ("-1", None), ("inf", None)]
)
def test_seconds_to_wait(text: str, seconds: float | None) -> None:
    """A number that is no time to wait counts as none."""
    assert retry_after(Response(429, {"retry-after": text}, b"")) == seconds


def test_a_message_is_one_line() -> None:
    """Control characters, which a terminal would obey, are blanks."""
    assert plain("a\r\n\x1b[31mb\u2028c") == "a [31mb c"


Read = Callable[[bytes], object]

ADLS = (
    b'{"paths":[{"contentLength":"1","etag":"0x1","lastModified":"Mon, 23 Nov 2026 00:00:00 GMT",'
    b'"name":"d/\xc3\xa9"},{"contentLength":"0","etag":"0x2","isDirectory":"true",'
    b'"lastModified":"Mon, 23 Nov 2026 00:00:00 GMT","name":"d/e"}]}'
)
GCS = b'{"kind":"storage#objects","prefixes":["d/e/"],"items":[]}'
FOLDERS = b'{"items":[{"name":"d/e/"}]}'
S3 = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false'
    b"</IsTruncated><CommonPrefixes><Prefix>d/\xc3\xa9/</Prefix></CommonPrefixes>"
    b"</ListBucketResult>\n"
)
ANSWERS: dict[str, tuple[bytes, Read]] = {
    "adls": (ADLS, lambda body: entries_of(body, "/d")),
    "gcs": (GCS, lambda body: listed(body, "/d", tree=False)),
    "folders": (FOLDERS, lambda body: folders_listed(body, "/d")),
    "s3": (S3, lambda body: s3_listed(body, "/d")),
}


@pytest.mark.parametrize("store", ANSWERS)
@given(st.data())
def test_an_answer_that_ends_in_the_middle(store: str, data: st.DataObject) -> None:
    """An answer that is cut at any byte is told from a whole one."""
    body, read = ANSWERS[store]
    read(body)
    end = data.draw(st.integers(0, len(body.rstrip()) - 1))
    with pytest.raises(CutShortError, match="cut short"):
        read(body[:end])


@pytest.mark.parametrize("store", ANSWERS)
@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><body>Sign in<br></body></html>",
        b"<html><body>Sign in",
        b"<html><body>Sign in</body></html>",
        b"[]",
        b"{]}",
        b"<a></b>",
    ],
)
def test_an_answer_of_another_kind(store: str, body: bytes) -> None:
    """A page of a proxy, or of another service, is no answer that was cut short."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # any text
        ANSWERS[store][1](body)

    assert not isinstance(caught.value, CutShortError)
