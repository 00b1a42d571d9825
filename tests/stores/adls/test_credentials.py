"""Keys and shared access signatures: what they add to a request, and that they stay secret."""

from __future__ import annotations

import base64
import hmac
import traceback
from urllib.parse import parse_qs, parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.stores.adls.credentials import AdlsAnonymous, Sas, SharedKey
from asynccommit.stores.adls.wire import SignedQuery, query

KEY = base64.b64encode(b"a key of an account, and not any").decode()
NOW = 1709658548.5  # Tue, 05 Mar 2024 17:09:08 GMT


def test_a_key_signs_what_the_service_reads() -> None:
    """The text that is signed has the service's form, line by line."""
    headers = {"x-ms-rename-source": "/data/a%20b", "if-none-match": "*", "x-ms-version": "v"}
    SharedKey("name", KEY, lambda: NOW).authorize(
        "PUT", "/data/c", query(mode="legacy", continuation="a b"), headers, 12
    )

    signed = (
        "PUT\n\n\n12\n\n\n\n\n\n*\n\n\n"
        "x-ms-date:Tue, 05 Mar 2024 17:09:08 GMT\n"
        "x-ms-rename-source:/data/a%20b\n"
        "x-ms-version:v\n"
        "/name/data/c\ncontinuation:a b\nmode:legacy"
    )
    digest = hmac.digest(base64.b64decode(KEY), signed.encode(), "sha256")
    assert headers["authorization"] == f"SharedKey name:{base64.b64encode(digest).decode()}"
    assert headers["x-ms-date"] == "Tue, 05 Mar 2024 17:09:08 GMT"


@given(st.binary(min_size=1, max_size=200), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_signature_is_that_of_the_library(key: bytes, directory: str) -> None:
    """Whatever the length of key and text."""
    headers: dict[str, str] = {}
    signer = SharedKey("name", base64.b64encode(key).decode(), lambda: 0.0)
    for _ in range(2):  # the first leaves no trace in the second
        signer.authorize("GET", "/data", query(directory=directory), headers, 0)

    date = "x-ms-date:Thu, 01 Jan 1970 00:00:00 GMT"
    signed = "GET" + "\n" * 12 + f"{date}\n/name/data\ndirectory:{directory}"
    digest = hmac.digest(key, signed.encode(), "sha256")
    assert headers["authorization"].endswith(base64.b64encode(digest).decode())


def test_the_date_follows_the_clock() -> None:
    """It is written anew each second."""
    clock = [NOW]
    key = SharedKey("name", KEY, lambda: clock[0])
    dates = []
    for clock[0] in (NOW, NOW + 0.1, NOW + 1):
        headers: dict[str, str] = {}
        key.authorize("GET", "/", SignedQuery("", ""), headers, 0)
        dates.append(headers["x-ms-date"][-6:-4])

    assert dates == ["08", "08", "09"]


@pytest.mark.parametrize("key", ["not base64!", "abc", "====", "sig=abc", "ключ", "\n"])
def test_a_key_that_is_no_base64_is_refused_and_not_shown(key: str) -> None:
    """The error says what to do, and repeats nothing of the key."""
    with pytest.raises(OptionError, match="account key is not base64") as caught:
        SharedKey("name", key, lambda: NOW)
    assert key.strip() == "" or key not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "token",
    [
        "sv=2024-11-04&sp=rl&sig=a%2Bb%2Fc%3D",
        "?sv=2024-11-04&sp=rl&sig=a%2Bb%2Fc%3D",
        " sv=2024-11-04&sp=rl&sig=a+b/c=\n",
    ],
)
def test_a_signature_is_taken_as_it_was_copied(token: str) -> None:
    """With a question mark or not, encoded or not, it is sent encoded once."""
    assert Sas(token).suffix == "sv=2024-11-04&sp=rl&sig=a%2Bb%2Fc%3D"


@given(st.binary(min_size=1).map(base64.b64encode), st.booleans())
def test_any_signature_arrives_as_it_is(signature: bytes, encoded: bool) -> None:
    """What the service decodes is the signature."""
    text = signature.decode()
    given = text.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D") if encoded else text

    assert parse_qs(Sas(f"sv=1&sig={given}&se=2").suffix)["sig"] == [text]


def test_a_signature_adds_no_header() -> None:
    """It is in the URL alone."""
    headers: dict[str, str] = {}
    Sas("sig=x").authorize("GET", "/", query(), headers, 0)

    assert headers == {}


@pytest.mark.parametrize("token", ["", "sv=2024-11-04", "sig=", "?", "the whole URL"])
def test_a_token_without_signature_is_refused(token: str) -> None:
    """The error says what a SAS token looks like."""
    with pytest.raises(OptionError, match="sig="):
        Sas(token)


@pytest.mark.parametrize(
    "times, fault",
    [
        ("se=2024-03-05T17%3A00%3A00Z", "expired at 2024-03-05T17:00:00Z: get a new one"),
        ("se=2024-03-05", "expired at 2024-03-05"),
        ("st=2024-03-06&se=2024-03-07", "not valid before 2024-03-06"),
        ("st=2024-03-05&se=2024-03-06", "signature of the SAS token"),
        ("si=policy", "signature of the SAS token"),
        ("se=never", "signature of the SAS token"),
    ],
)
def test_a_refused_signature_is_told_by_its_times(times: str, fault: str) -> None:
    """An expired one, one of tomorrow, and one that is of something else."""
    assert fault in Sas(f"{times}&sig=x").fault(NOW)


def test_secrets_are_hidden_in_every_spelling() -> None:
    """The key, and the signature plain or encoded; what has no secrets hides nothing."""
    text = f"{KEY} a+b/c= a%2Bb%2Fc%3D a%2Bb/c%3D"

    assert SharedKey("name", KEY, lambda: NOW).hide(text).startswith("*** a+b")
    assert Sas("sig=a%2Bb%2Fc%3D").hide(text) == f"{KEY} *** *** ***"
    assert AdlsAnonymous().hide(text) == text


def test_no_repr_shows_a_secret() -> None:
    """A debugger shows the kind only."""
    assert repr(SharedKey("name", KEY, lambda: NOW)) == "SharedKey()"
    assert repr(Sas("sig=secret")) == "Sas()"


def test_every_part_of_a_signature_is_kept() -> None:
    """Names and their order stay."""
    token = "ss=b&srt=co&sp=rwdlacx&se=2030-01-01T00%3A00%3A00Z&spr=https&sv=2024-11-04&sig=x"

    assert parse_qsl(Sas(token).suffix) == parse_qsl(token)
