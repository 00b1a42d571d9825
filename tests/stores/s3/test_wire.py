"""Names, listings and dates of S3 as they go over the wire."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

import pytest
from botocore.utils import percent_encode
from hypothesis import example, given
from hypothesis import strategies as st

from asynccommit.stores.base import Info
from asynccommit.stores.http.base import check_url
from asynccommit.stores.http.flat import prefix_of
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.wire import (
    bare_etag,
    completed_etag,
    deletion,
    encode,
    encode_raw,
    info_of,
    list_query,
    listed,
    not_deleted,
    parse_date,
    parse_http_date,
    parts_listed,
    parts_query,
    upload_id_of,
    uploads_listed,
    uploads_query,
)

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=30)
NAMES = TEXT.filter(lambda name: name not in (".", ".."))


@given(st.lists(NAMES, min_size=1, max_size=4))
@example(["a b+c", "%41", "~", "...", "\r\n\t\x01\x7f", "ü\U0001f680", "&<>'\""])
def test_every_name_is_read_again(names: list[str]) -> None:
    """A key is encoded as botocore does it, can be sent as it is, and leads back to its path."""
    path = "/" + "/".join(names)
    key = encode(path)

    assert unquote(key) == path[1:]
    assert key == percent_encode(path[1:], safe="/~") == encode_raw(path[1:])
    check_url(f"https://h/{key}?{list_query(path, 1000, path, tree=False)}")


@given(st.lists(NAMES, min_size=1, max_size=4), st.booleans())
def test_a_listing_leads_back_to_its_paths(names: list[str], plus: bool) -> None:
    """A blank may come as a plus or as an escape; whatever the name, it is the path's."""
    path = "/d/" + "/".join(names)
    key = encode(path)
    shown = key.replace("%20", "+") if plus else key
    body = (
        "<ListBucketResult><EncodingType>url</EncodingType><Contents>"
        f"<Key>{shown}</Key><Size>1</Size><ETag>e</ETag></Contents></ListBucketResult>"
    )

    assert [info.path for info in listed(body.encode(), "/d", tree=True).entries] == [path]


@given(st.binary(max_size=200), st.sampled_from(["ListBucketResult", "DeleteResult", "Error", ""]))
@example(b"<Contents><Key>d/a</Key><Size>1</Size></Contents>", "ListBucketResult")
@example(
    b"<Contents><Key>d/a</Key><Size>\xd9\xa1</Size><ETag>e</ETag></Contents>", "ListBucketResult"
)
@example(b"<Upload><Key>d/a</Key></Upload>", "ListMultipartUploadsResult")
@example(b"<Part><PartNumber>-1</PartNumber><Size>1</Size><ETag>e</ETag></Part>", "ListPartsResult")
def test_hostile_answers_are_refused(inner: bytes, root: str) -> None:
    """Whatever comes is read as what it says or is refused; nothing else is ever raised."""
    body = b"<%b>%b</%b>" % (root.encode(), inner, root.encode()) if root else inner
    readers: list[Callable[[], object]] = [
        lambda: listed(body, "/d"),
        lambda: listed(body, "/d", tree=True),
        lambda: uploads_listed(body, "/d", None),
        lambda: parts_listed(body, None),
        lambda: not_deleted(body),
        lambda: upload_id_of(body),
        lambda: completed_etag(body),
    ]
    for read in readers:
        try:
            read()
        except ValueError as error:
            assert "the response" in str(error)  # noqa: PT017  most of them are refused


def test_queries_are_sorted() -> None:
    """A signature is over the names in order, so they are sent in order."""
    queries = [
        list_query("/a", 5, "t", tree=False),
        uploads_query("/a", 5, "key upload"),
        parts_query("u", 5, "3"),
    ]
    for query in queries:
        names = [pair.partition("=")[0] for pair in query.split("&")]
        assert names == sorted(names)


def test_prefixes() -> None:
    """Below the root is everything; below a directory what begins with it and a slash."""
    assert (prefix_of("/"), prefix_of("/a/b")) == ("", "a/b/")


@pytest.mark.parametrize("text", ['"e"', "e", 'W/"e"'])
def test_etags_lose_their_quotes(text: str) -> None:
    """Some servers leave them out, some say that the etag is a weak one."""
    assert bare_etag(text) == "e"


@pytest.mark.parametrize("text", ["", '""', '"a b"', "e" * 1001])
def test_etags_that_are_none(text: str) -> None:
    """Without one nothing is known of an object."""
    with pytest.raises(ValueError, match="no etag"):
        bare_etag(text)


def test_dates() -> None:
    """Whole seconds, as headers have them; what is no date is not known."""
    assert parse_http_date("Thu, 01 Jan 2026 00:00:00 GMT") == 1767225600.0
    assert parse_date("2026-01-01T00:00:00.999Z") == 1767225600.0
    for text in ("", "soon", "9999999999999"):
        assert parse_http_date(text) == parse_date(text) == 0.0


@pytest.mark.parametrize("size", ["", "-1", "1e3", "x"])
def test_a_size_that_is_none(size: str) -> None:
    """An object without a size is no object."""
    with pytest.raises(ValueError, match="no size"):
        info_of("/p", {"etag": "e", "content-length": size})


def test_what_is_listed_of_parts() -> None:
    """Number, etag as it came, checksum and bytes."""
    body = (
        b"<ListPartsResult><Part><PartNumber>3</PartNumber><ETag>&quot;e&quot;</ETag>"
        b"<Size>7</Size><ChecksumSHA256>c</ChecksumSHA256></Part></ListPartsResult>"
    )

    assert parts_listed(body, None).entries == ((3, Part('"e"', "SHA256", "c"), 7),)


def test_a_deletion_names_keys_as_they_are() -> None:
    """Line ends and angle brackets are read again as they were."""
    assert b"<Key>a&#13;&#10;&lt;b</Key></Object>" in deletion([("a\r\n<b", None)])


def test_an_object_knows_its_mark() -> None:
    """The token of the put that made it is in its metadata."""
    headers = {"etag": '"e"', "content-length": "1", "x-amz-meta-asynccommit-token": "t"}
    info: Info = info_of("/p", headers)

    assert info.token == "t"
