"""Text from elsewhere, made fit for a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.runtime.terminal import count_of, plain, show_bytes, show_seconds


@given(st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Lu"])))
def test_plain_text_does_nothing_to_a_terminal(text: str) -> None:
    """What comes out has no control characters and can be encoded, whatever goes in."""
    said = plain(text)

    assert said.encode().decode() == said
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in said)
    assert not {"\u202e", "\u2066", "\u2028"} & set(said)


def test_plain_keeps_what_is_harmless() -> None:
    """Other alphabets, emoji made of several characters, and markup stay as they are."""
    for text in ("día=1 %2F+é", "日本", "👩‍🚀 [red]", "می‌خواهم"):
        assert plain(text) == text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("https://a/b?sv=1&sig=a%2Fb&se=2", "https://a/b?sv=1&sig=***&se=2"),
        ("abfs://user:pass@host/x", "abfs://***@host/x"),
        ("abfs://container@account.example/x", "abfs://container@account.example/x"),
        ("/table/key=1/token=2/part-0", "/table/key=1/token=2/part-0"),
        ("/table/password=a/signature=b/part-0", "/table/password=a/signature=b/part-0"),
        ("?X-Amz-Signature=abc'", "?X-Amz-Signature=***'"),
        ("it sent Authorization: Bearer ya29.abcdef", "it sent Authorization: ***"),
        ("<SecretAccessKey>abcdefgh</SecretAccessKey>", "<SecretAccessKey>***</SecretAccessKey>"),
    ],
)
def test_plain_hides_secrets_and_nothing_else(text: str, shown: str) -> None:
    """Whatever holds credentials is hidden; partition values that look alike are not."""
    assert plain(text) == shown


@pytest.mark.parametrize(
    "number, shown",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_960, "100 kB"),
        (999_600, "1.0 MB"),
        (1_234_567, "1.2 MB"),
        (5 * 10**18, "5000 PB"),
    ],
)
def test_sizes(number: int, shown: str) -> None:
    """A size has two or three digits and a unit."""
    assert show_bytes(number) == shown


@pytest.mark.parametrize(
    "seconds, shown",
    [
        (0.0, "0 ms"),
        (0.4821, "482 ms"),
        (0.9996, "1.00 s"),
        (3.214, "3.21 s"),
        (59.4, "59.4 s"),
        (59.6, "1 min 00 s"),
        (125.0, "2 min 05 s"),
        (3_725.0, "1 h 02 min"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    """A duration is as exact as a reader needs."""
    assert show_seconds(seconds) == shown


def test_counts() -> None:
    """One is singular, and thousands have commas."""
    assert [count_of(n, "file") for n in (0, 1, 1460)] == ["0 files", "1 file", "1,460 files"]
