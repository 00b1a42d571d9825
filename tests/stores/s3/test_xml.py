"""XML as a hostile server would write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.s3.wire import completed_etag
from asynccommit.stores.s3.xml import HEAD, SPACE, can_say, escape, parse, plain_etag, values

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
    with pytest.raises(ValueError, match="the response is not"):
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
        with pytest.raises(ValueError, match="not XML"):
            parse(f"<Key>{escape(text)}</Key>".encode())


DIGEST = "3858f62230ac3c915f300c664312c11f"
COMPLETED = (
    f'{HEAD}<CompleteMultipartUploadResult xmlns="{SPACE}">\n  '
    "<Location>https://b.s3.amazonaws.com/a%2Fb?c</Location><Bucket>b</Bucket><Key>a &amp; b</Key>"
    f"<ETag>&quot;{DIGEST}-2&quot;</ETag><ChecksumCRC32>rk7r3A==-2</ChecksumCRC32>"
    "<ChecksumType>COMPOSITE</ChecksumType></CompleteMultipartUploadResult>"
)


@pytest.mark.parametrize(
    "before, after",
    [
        ("", ""),
        (HEAD, "   \n" + HEAD),
        (HEAD, ""),
        (f' xmlns="{SPACE}"', ""),
        ("&quot;", "&#34;"),
        ("&quot;", '"'),
        ("-2&quot;", "&quot;"),
        ("<Bucket>b</Bucket>", ""),
        ("</ETag>", "</ETag>\r\n\t"),
    ],
)
def test_an_ordinary_completion_is_read_without_a_parser(before: str, after: str) -> None:
    """The forms that services are known to answer in give the etag that the parser finds."""
    body = COMPLETED.replace(before, after, 1 if before == HEAD else -1).encode()

    assert plain_etag(body) == completed_etag(body)


@pytest.mark.parametrize(
    "before, after",
    [
        ("</Key>", "\u00fc</Key>"),
        ("</Key>", "<ETag>x</ETag></Key>"),
        ("</Key>", "&unknown;</Key>"),
        ("</Key>", "]]></Key>"),
        ("<Key>", "<!-- <ETag> --><Key>"),
        ("<Key>", '<Key a="b">'),
        ("</Bucket>", "</Cup>"),
        ("</ETag>", "</ETag><ETag>another</ETag>"),
        (DIGEST, DIGEST.upper()),
        (SPACE, "http://www.w3.org/2000/xmlns/"),
        ("Result>", "Result><Error/>"),
        ("CompleteMultipartUploadResult", "Error"),
    ],
)
def test_any_other_completion_is_left_to_the_parser(before: str, after: str) -> None:
    """An answer that could mean something else, or nothing, gives no etag without the parser."""
    assert plain_etag(COMPLETED.replace(before, after).encode()) == ""


PIECES = st.one_of(
    st.sampled_from(
        ["<ETag>", "</ETag>", "<Key>", "</Key>", "<", ">", "&", ";", "&quot;", "/", '"']
    ),
    st.sampled_from([DIGEST, "\n", "<!--", "<![CDATA[", "\u00fc", "\0", HEAD, "<Error/>"]),
    st.characters(codec="utf-8", exclude_categories=["Cs"]),
    st.just(""),
)


@given(st.lists(st.tuples(st.integers(0, len(COMPLETED)), st.integers(0, 40), PIECES), max_size=4))
def test_an_etag_read_without_the_parser_is_the_parsers(edits: list[tuple[int, int, str]]) -> None:
    """Wherever an answer is damaged or forged: the parser finds the same etag, or is asked."""
    text = COMPLETED
    for place, length, piece in edits:
        text = text[:place] + piece + text[place + length :]
    found = plain_etag(text.encode())

    assert not found or found == completed_etag(text.encode())
