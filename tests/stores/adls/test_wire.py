"""Paths, queries, listings and statuses as they are on the wire."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.adls.wire import bare_etag, encode, entries_of, info_of, parse_date, query
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.base import check_url
from tests.support.contract import NAMES

DATE = "Tue, 05 Mar 2024 17:09:08 GMT"
SECONDS = datetime(2024, 3, 5, 17, 9, 8, tzinfo=UTC).timestamp()

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1)
legal = names.filter(lambda name: not name.endswith("."))


# --- paths -----------------------------------------------------------------------------------


@given(st.lists(legal, max_size=4))
def test_an_encoded_path_decodes_to_itself_and_can_be_sent(path: list[str]) -> None:
    """Whatever the names are: no other path, and nothing that a transport would change."""
    decoded = "/" + "/".join(path)
    encoded = encode(decoded)

    check_url(f"https://account.dfs.core.windows.net/data{encoded}")
    assert unquote(encoded, errors="strict") == decoded


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(".")])
def test_hostile_names_are_encoded_alike_as_directory_and_as_file(name: str) -> None:
    """A name is written the same wherever in a path it is."""
    assert encode(f"/{name}/f") == f"{encode(f'/{name}')}/f"


def test_a_plain_path_is_its_own_encoding() -> None:
    """Letters, digits and ``-._~`` stay; the equals sign of a partition does not, as in Hadoop."""
    assert encode("/t/part-0_1.snappy~.parquet") == "/t/part-0_1.snappy~.parquet"
    assert encode("/t/day=1/a b+c") == "/t/day%3D1/a%20b%2Bc"
    assert encode("/") == "/"


@pytest.mark.parametrize("path", ["/a.", "/a./b", "/.", "/..", "/a/../b", "/...", "/é.", "/a b."])
def test_a_name_that_ends_in_a_dot_is_refused(path: str) -> None:
    """The service would cut the dot off, and answer about another path."""
    with pytest.raises(ValueError, match="ends in a dot"):
        encode(path)


@pytest.mark.parametrize("path", ["/a\0", "/\0/b", "/\ud800", "/a/\udcff/b"])
def test_what_is_no_text_is_refused(path: str) -> None:
    """Neither NUL nor the bytes of a name that is not UTF-8 can be sent."""
    with pytest.raises(ValueError, match=r"NUL|Unicode"):
        encode(path)


# --- queries ---------------------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_query_decodes_to_what_was_asked(value: str) -> None:
    """Values are encoded for the URL and as they are in what is signed."""
    asked = query(directory=value, maxResults=5)

    assert dict(parse_qsl(asked.text, True)) == {"directory": value, "maxResults": "5"}
    assert asked.signed == f"\ndirectory:{value}\nmaxresults:5"


def test_no_query_is_empty() -> None:
    """There is neither text nor anything to sign."""
    assert query() == ("", "")


# --- etags and dates -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ('"0x8D"', "0x8D"),
        ("0x8D", "0x8D"),
        ('W/"0x8D"', "0x8D"),
        ("", None),
        (None, None),
    ],
)
def test_an_etag_is_kept_without_quotes(text: str | None, expected: str | None) -> None:
    """It is the same from a status and from a listing, and as Hadoop writes it."""
    assert bare_etag(text) == expected


@given(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_a_date_is_read_to_the_second(moment: datetime) -> None:
    """An HTTP date is the moment that was written."""
    text = format_datetime(moment, usegmt=True)

    assert parse_date(text) == moment.replace(microsecond=0).timestamp()


@pytest.mark.parametrize(
    "text", [None, "", "yesterday", DATE[:-12], "Tue, 99 Mar 2024 17:09:08 GMT"]
)
def test_what_is_no_date_is_no_time(text: str | None) -> None:
    """A date that cannot be read is unknown."""
    assert parse_date(text) == 0.0


# --- statuses and listings -------------------------------------------------------------------


def test_the_status_of_a_file_is_read() -> None:
    """Size, etag, time and token come from the headers."""
    token = "6f0e1d9c-0000-4000-8000-000000000001"
    headers = {
        "etag": '"0x8D"',
        "last-modified": DATE,
        "content-length": "12",
        "x-ms-resource-type": "file",
        "x-ms-client-transaction-id": token,
    }

    assert info_of("/f", headers) == Info("/f", Kind.FILE, 12, "0x8D", SECONDS, token=token)


def test_the_status_of_a_directory_has_no_size() -> None:
    """Whatever length is said."""
    headers = {"etag": '"0x8D"', "content-length": "5", "x-ms-resource-type": "directory"}

    assert info_of("/d", headers) == Info("/d", Kind.DIRECTORY, 0, "0x8D")


@pytest.mark.parametrize("headers", [{}, {"etag": '"1"', "content-length": "many"}])
def test_a_status_that_is_none_is_refused(headers: dict[str, str]) -> None:
    """Something else answered."""
    with pytest.raises(ValueError, match=r"ETag|many"):
        info_of("/f", headers)


def test_a_listing_is_read_as_the_service_writes_it() -> None:
    """All values are text; a file has no isDirectory; temporary files of ours are left out."""
    entry = {
        "etag": "0x8D",
        "lastModified": DATE,
        "owner": "$superuser",
        "permissions": "rw-r-----",
    }
    paths = [
        {**entry, "name": "t/d", "isDirectory": "true", "contentLength": "0"},
        {**entry, "name": "t/é f", "contentLength": "7"},
        {**entry, "name": "t/.asynccommit-1-1.tmp", "contentLength": "7"},
        {**entry, "name": "t/.asynccommit-1.tmp.parquet", "contentLength": "8"},
    ]

    assert entries_of(json.dumps({"paths": paths}).encode(), "/t") == [
        Info("/t/d", Kind.DIRECTORY, 0, "0x8D", SECONDS),
        Info("/t/é f", Kind.FILE, 7, "0x8D", SECONDS),
        Info("/t/.asynccommit-1.tmp.parquet", Kind.FILE, 8, "0x8D", SECONDS),
    ]


def test_a_listing_of_other_hands_is_read() -> None:
    """Some servers write truth values, numbers and another spelling of etag."""
    paths = [
        {"name": "d", "isDirectory": True, "eTag": '"1"'},
        {"name": "f", "isDirectory": False, "contentLength": 3, "eTag": '"2"'},
    ]

    assert entries_of(json.dumps({"paths": paths}).encode(), "/") == [
        Info("/d", Kind.DIRECTORY, 0, "1"),
        Info("/f", Kind.FILE, 3, "2"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Sign in</html>",
        b"[]",
        b"{}",
        b'{"paths": 1}',
        b'{"paths": [1]}',
        b'{"paths": [{"size": 1}]}',
        b'{"paths": [{"name": 1}]}',
        b'{"paths": [{"name": "f", "contentLength": "?"}]}',
        b'{"paths": [{"name": "f", "contentLength": []}]}',
        b'{"paths": [{"name": "f", "etag": 5}]}',
        b'{"paths": [{"name": "f", "contentLength": "-1"}]}',
        b'{"paths": [{"name": "d/f"}]}',
        b'{"paths": [{"name": ".."}]}',
        b'{"paths": [{"name": "."}]}',
        b'{"paths": [',
        b"\xff\xfe",
    ],
)
def test_what_is_no_listing_is_refused(body: bytes) -> None:
    """Whatever is wrong with it, it is one kind of error."""
    with pytest.raises(ValueError, match="the response is not a listing"):
        entries_of(body, "/")


def test_a_listing_is_of_the_directory_that_was_asked_for() -> None:
    """An entry from elsewhere would be taken for one of the job's; a file lists itself."""
    for name in ("u/f", "t", "t/d/f", "t/..", "tt/f"):
        body = json.dumps({"paths": [{"name": name}]}).encode()
        if name == "t":
            assert [info.path for info in entries_of(body, "/t")] == ["/t"]
            continue
        with pytest.raises(ValueError, match="not a listing of /t"):
            entries_of(body, "/t")
