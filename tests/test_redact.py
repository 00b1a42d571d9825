"""No credential is left of a text, however it is escaped and wherever the text is cut."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus, unquote

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asynccommit.redact import HIDDEN, redact, short
from tests.support.selection import amount

SIGNATURE = "AbC+dEf/GhI+jKl/MnO0123456789+/xyzABCDEFGHI="

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_~."
secrets = st.text(ALPHABET, min_size=8, max_size=60)
around = st.text(" abc&=?%/:;<>\"'é\n\\u0026", max_size=40)


def lower(text: str) -> str:
    """Return percent-escapes in lower case."""
    first, *rest = text.split("%")
    return "%".join((first, *(part[:2].lower() + part[2:] for part in rest)))


def xml(text: str) -> str:
    """Return a text as XML may hold it."""
    return text.replace("&", "&amp;").replace("+", "&#43;").replace("=", "&#x3D;")


def json(text: str) -> str:
    """Return a text as careful writers of JSON hold it."""
    return orjson.dumps(text).decode()[1:-1].replace("/", "\\/").replace("+", "\\u002b")


ENCODINGS: list[Callable[[str], str]] = [
    str,
    quote,
    lambda text: quote(text, safe=""),
    lambda text: lower(quote(text, safe="")),
    quote_plus,
    lambda text: quote(quote(text, safe=""), safe=""),
    lambda text: lower(quote(quote(text, safe=""), safe="")),
    lambda text: quote(quote(quote(text, safe=""), safe=""), safe=""),
    lambda text: text.replace("+", " "),
    lambda text: quote(text.replace("+", " ")),
    lambda text: "".join(f"%{ord(letter):02x}" for letter in text),
    lambda text: text.replace("+", "-").replace("/", "_"),
    xml,
    json,
    lambda text: json(quote(text, safe="")),
    lambda text: xml(quote(text, safe="")),
    str.upper,
    str.lower,
    lambda text: quote(text, safe="").upper(),
    lambda text: xml(text).upper(),
    lambda text: json(text).upper(),
]
"""How a service may repeat what it was sent."""


def decoded(text: str) -> str:
    """Return a text with all its escapes undone, by other means than those that are tested."""
    for _ in range(8):
        text = html.unescape(unquote(text, errors="replace"))
        text = text.replace("\\/", "/").replace("\\u002b", "+")
    return text.replace(" ", "+").replace("-", "+").replace("_", "/")


def decode_base64(text: str, at: int) -> str:
    """Return what a part of a text says as base64 from a place on."""
    standard = text[at:].replace("-", "+").replace("_", "/")
    return base64.b64decode(standard[: len(standard) // 4 * 4]).decode("latin-1")


def leaks(secret: str, text: str, least: int = 6) -> list[str]:
    """Return the parts of a secret that a text shows, in either case."""
    shown, plain = decoded(text.lower()), decoded(secret.lower())
    parts = {plain[at : at + least] for at in range(len(plain) - least + 1)}
    return sorted(part for part in parts if part in shown)


@given(
    secret=secrets,
    encode=st.sampled_from(ENCODINGS),
    before=st.integers(0, 400),
    after=around,
    room=st.integers(20, 400),
)
@example(SIGNATURE, ENCODINGS[3], 280, "&se=2", 300)
def test_a_known_secret_never_shows(
    secret: str, encode: Callable[[str], str], before: int, after: str, room: int
) -> None:
    """Wherever it stands, however it is written, and wherever the text is cut then."""
    text = "#" * before + encode(secret) + after
    told = short(redact(text, [secret]), room)

    assert not leaks(secret, told), told
    assert len(told) <= max(room, len(HIDDEN))


@given(secret=secrets, encode=st.sampled_from(ENCODINGS), kept=st.floats(0, 1))
def test_a_secret_that_others_have_cut(
    secret: str, encode: Callable[[str], str], kept: float
) -> None:
    """The service's own end of a text may be in the midst of it, or of an escape."""
    written = encode(secret)
    text = "it was sent " + written[: int(len(written) * kept)]

    assert not leaks(secret, redact(text, [secret])), text


@given(
    secret=secrets,
    encode=st.sampled_from(ENCODINGS),
    kept=st.floats(0, 1),
    mark=st.sampled_from(["...", " (truncated) more", "\u2026</Message>", "[cut]", "%", "&amp;"]),
    end=st.booleans(),
)
@example("AbCd+dEf/GhI0", str, 0.6, "... (truncated) more", False)
def test_a_secret_that_others_have_cut_in_the_middle_of_a_text(
    secret: str, encode: Callable[[str], str], kept: float, mark: str, end: bool
) -> None:
    """The service may go on after its cut, and show the end of what it has cut."""
    written = encode(secret)
    at = int(len(written) * kept)
    text = f"it was sent {written[:at]}{mark} {written[at + 3 :] if end else 'and more'}"

    # Of what is cut in two a part of an escape may be left over, which decodes to nothing.
    assert not leaks(secret, redact(text, [secret]), least=8), text


@given(
    secret=secrets, before=st.text(ALPHABET, max_size=9), url=st.booleans(), padded=st.booleans()
)
@example("hunter2-hunter2", "user:", False, True)
def test_the_base64_of_a_secret_never_shows(
    secret: str, before: str, url: bool, padded: bool
) -> None:
    """Alone or behind something else, as in a header for a user and a password."""
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    written = encode(f"{before}{secret}".encode()).decode()
    alone = encode(secret.encode()).decode()
    told = redact(f"sent {written if padded else written.rstrip('=')} and more", [secret])
    shown = re.findall(r"[A-Za-z0-9+/_-]+", told)

    assert "and more" in told
    assert alone not in told
    assert all(secret[:8] not in decode_base64(part, at) for part in shown for at in range(4))


@pytest.mark.more
def test_a_text_that_is_too_long_is_cut_without_showing() -> None:
    """The same where this package looks at no more."""
    step = amount("ASYNCCOMMIT_CUT_STEP", quick=9, full=1)
    for before in range(99_930, 100_010, step):
        told = redact("#" * before + quote(SIGNATURE, safe=""), [SIGNATURE])
        assert not leaks(SIGNATURE, told), before


@given(
    value=st.text("ABCDEFabcdef0123456789+/", min_size=12, max_size=44),
    encode=st.sampled_from([e for e in ENCODINGS if " " not in e("a+b")]),
    name=st.sampled_from(
        ["sig", "SIG", "X-Amz-Signature", "x-amz-security-token", "X-Goog-Signature", "AccountKey"]
    ),
)
def test_a_parameter_s_value_never_shows(
    value: str, encode: Callable[[str], str], name: str
) -> None:
    """Credentials of others are known by the names of their parameters."""
    text = encode(f"https://account/c/f?sv=1&{name}={encode(value)}&se=2030")
    told = redact(text)

    assert not leaks(value, told), told
    assert "2030" in decoded(told)


@pytest.mark.parametrize(
    "text, secret",
    [
        ("Authorization: Bearer ya29.abcdef", "ya29.abcdef"),
        ('{"authorization": "SharedKey acc:YWJjZGVmZ2hpag=="}', "YWJjZGVmZ2hpag"),
        ("sent SharedKey account1:YWJjZGVmZ2hpag== with it", "YWJjZGVmZ2hpag"),
        ("the token bearer eyJhbGciOi.JIUzI1NiIsInR5", "eyJhbGciOi"),
        ("AWS4-HMAC-SHA256 Credential=AK/1, SignedHeaders=h, Signature=deadbeef01", "deadbeef"),
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=YWJjZA==;x=1", "YWJjZA"),
        ('{"access_token":"ya29-xyz","expires_in":5}', "ya29-xyz"),
        ("client_secret=abc~DEF123&grant_type=x", "abc~DEF123"),
        ("proxy http://user:hunter22@proxy:3128 said no", "hunter22"),
        ("<SecretAccessKey>wJalrXUtn</SecretAccessKey>", "wJalrXUtn"),
        ('<sts:SessionToken x="1">\n FwoGZXIvYXdz\n</sts:SessionToken>', "FwoGZXIvYXdz"),
        ("<Signature><![CDATA[deadbeef01]]></Signature>", "deadbeef01"),
        ("&lt;SignatureProvided&gt;deadbeef01&lt;/SignatureProvided&gt;", "deadbeef01"),
        ("cut: <AccountKey>YWJjZA", "YWJjZA"),
        ('{"SecretAccessKey" : "wJalrXUtn"}', "wJalrXUtn"),
        ("https://host/?v=1;token=abcdef", "abcdef"),
        ("<AWSAccessKeyId>x</AWSAccessKeyId> X-Amz-Security-Token=FwoGZXIvYXdz", "FwoGZXIvYXdz"),
    ],
)
def test_what_is_known_by_its_name(text: str, secret: str) -> None:
    """Headers, connection strings, answers of identity services, proxies."""
    assert secret not in redact(text)
    assert HIDDEN in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "404 BlobNotFound: the specified blob does not exist",
        "the bearer of bad news: signature mismatch, design=1 and assign: x",
        "/table/day=1%2F2/part-0.parquet",
        "/table/password=a/sig=b/key=1/token=2/part-0.parquet?keys=1",
        "<Code>NoSuchKey</Code><Key>secret/signature</Key><Signature/>",
        "100% of 5 & more; C:\\users\\new &c.",
        "",
    ],
)
def test_what_holds_no_credential_stays(text: str) -> None:
    """Nothing else is changed, escapes neither."""
    assert redact(text, [SIGNATURE, ""]) == text


def test_a_secret_with_escapes_or_other_letters() -> None:
    """A secret may look escaped itself, or be no ASCII."""
    assert redact("a pass%41word b", ["pass%41word"]) == f"a {HIDDEN} b"
    assert redact("a p%C3%A4sswort-1 b", ["p\u00e4sswort-1"]) == f"a {HIDDEN} b"
    assert redact("a p\u00e4sswort-1 b", ["p\u00e4sswort-1"]) == f"a {HIDDEN} b"


def test_a_key_of_several_lines() -> None:
    """A private key does not show, be its lines kept, joined or escaped."""
    body = base64.b64encode(bytes(range(200))).decode()
    key = f"-----BEGIN PRIVATE KEY-----\n{body[:64]}\n{body[64:]}\n-----END PRIVATE KEY-----\n"
    for text in (key, " ".join(key.split("\n")), orjson.dumps(key).decode()):
        assert body[:20] not in redact(text, [key])


def test_both_ends_of_a_long_text_are_kept() -> None:
    """What a text ends with is often what to do."""
    told = short("a" * 500 + "; say region=eu-west-1", 100)

    assert len(told) == 100
    assert told.endswith("; say region=eu-west-1")
