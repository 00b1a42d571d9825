"""XML as a hostile server would write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.s3.xml import can_say, escape, parse, values

BOMB = b"""<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;&b;">]>
<Error><Code>&c;</Code></Error>"""
FILE = b"""<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><Error><Code>&b;</Code></Error>"""


def test_a_namespace_makes_no_difference() -> None:
    """Some servers leave the namespace out; blanks may come before the whole."""
    for space in (b"", b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'):
        text = b" \r\n <?xml version='1.0'?>\n<Error%b><Code>A</Code><Code>B</Code></Error>" % space

        assert values(parse(text, "Error")) == {"Code": "B"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"<Error>",
        b"<Error></Error><Error/>",
        b"<html><body>hi</body></html>",
        b"<Error>\xff</Error>",
        b"<Error>&unknown;</Error>",
        b"<Error>&#0;</Error>",
        BOMB,
        FILE,
        FILE.decode().encode("utf-16"),
        FILE.decode().encode("utf-16-le"),
        b'<?xml version="1.0" encoding="utf-16"?>' + FILE,
        b'<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE a+AD4<Error/>',
        b"<Error><![CDATA[x]]></Error>",
    ],
)
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    """Neither text that is no XML, nor declarations, in whatever encoding, get through."""
    with pytest.raises(ValueError, match="the answer is no"):
        parse(body, "Error")


def test_what_is_nested_deep_is_read_or_refused() -> None:
    """A deep nest of elements ends neither in a crash nor in an error of another kind."""
    deep = b"<Error>" * 20_000 + b"</Error>" * 20_000

    assert parse(deep, "Error").tag == "Error"


@pytest.mark.parametrize("one", [b"<a>", b"<a/>"])
def test_what_takes_long_is_refused(one: bytes) -> None:
    """More tags than any answer has are refused before they are parsed."""
    with pytest.raises(ValueError, match="more than 200,000 tags"):
        parse(one * 200_001, "a")


@given(st.text(st.characters(codec="utf-8")))
def test_what_can_be_said_is_read_again(text: str) -> None:
    """Every text that XML has a way to say is read as it was written, line ends too."""
    if can_say(text):
        assert (parse(f"<Key>{escape(text)}</Key>".encode()).text or "") == text
    else:
        with pytest.raises(ValueError, match="no XML"):
            parse(f"<Key>{escape(text)}</Key>".encode())
