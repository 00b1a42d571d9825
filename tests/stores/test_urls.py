"""Addresses, what users type, what manifests hold, and what lies below a directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import UrlError
from asynccommit.stores.urls import Address, Under, UnderBoth, decode_uri, encode_path, parse_url

# Made by Hadoop's own Path class; "about" in the file says how.
HADOOP = json.loads((Path(__file__).parents[1] / "fixtures" / "hadoop_paths.json").read_text())
ABFS = "abfs://c@acc.dfs.core.windows.net"

names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\x00"), min_size=1, max_size=12
).filter(lambda name: name not in (".", ".."))
paths = st.lists(names, max_size=5).map(lambda parts: "/" + "/".join(parts))
addresses = st.builds(
    lambda store, path: Address(store[0], store[1], path),
    st.sampled_from(
        [
            ("file", ""),
            ("abfs", "c@acc.dfs.core.windows.net"),
            ("gs", "my_bucket.example.com"),
            ("hdfs", "nn:8020"),
        ]
    ),
    paths,
)


def test_encode_path_is_that_of_hadoop_for_every_character() -> None:
    """Each character of the Basic Multilingual Plane is written as Hadoop's Path writes it."""
    every = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code <= 0xDFFF]
    ours = {f"U+{ord(c):04X}": encode_path(c) for c in every if encode_path(c) != c}
    assert ours == HADOOP["encoded"]


def test_encode_path_leaves_astral_characters_raw() -> None:
    """Emoji and rare ideographs stay as they are."""
    assert encode_path("/😀\U0002070e\U0010ffff") == "/😀\U0002070e\U0010ffff"


@pytest.mark.parametrize("text", ["/a\x00b", "/a\udcff"])
def test_encode_path_refuses_what_is_no_text(text: str) -> None:
    """NUL and lone surrogates (names that are not UTF-8) have no encoding."""
    with pytest.raises(UrlError, match="not allowed in a path"):
        encode_path(text)


@given(addresses)
def test_encode_and_decode_are_inverse(address: Address) -> None:
    """The URI text of an address reads back as the address."""
    assert decode_uri(address.encode()) == address


@given(addresses)
def test_str_and_parse_are_inverse(address: Address) -> None:
    """The text for users reads back as the address."""
    assert parse_url(str(address)) == address


@pytest.mark.parametrize("row", HADOOP["typed"], ids=lambda row: repr(row["text"]))
def test_parse_url_splits_as_hadoop(row: dict[str, Any]) -> None:
    """An absolute path means what it means to Hadoop; what is relative to it is refused."""
    absolute = "error" not in row and row["path"].startswith("/")
    if not absolute:
        with pytest.raises(UrlError):
            parse_url(row["text"])
        return
    address = parse_url(row["text"])
    expected = (row["scheme"] or "file", row["authority"] or "", row["path"])
    assert (address.scheme, address.authority, address.path) == expected
    assert decode_uri(address.encode()) == address


@pytest.mark.parametrize(
    "text, message",
    [
        ("data/t", "relative path"),
        ("", "path is empty"),
        ("//host/x", "no scheme"),
        ("/a/../../b", "above the root"),
        ("file://host/x", "expected file:/path for a local path"),
        ("abfs://c a/x", "no valid host"),
        ("s3a://bücket/x", "no valid host"),
        ("1a:/x", "no valid scheme"),
        ("/a\x00", "not allowed in a path"),
    ],
)
def test_parse_url_says_why_it_refuses(text: str, message: str) -> None:
    """The error quotes the text and says what is wrong with it."""
    with pytest.raises(UrlError, match=message):
        parse_url(text)


def test_parse_url_takes_a_store_without_a_path() -> None:
    """A container alone means its root, and the case of the scheme does not matter."""
    assert parse_url("ABFS://c@a") == Address("abfs", "c@a", "/")


@pytest.mark.parametrize(
    "uri, path",
    [
        ("file:/a%20b", "/a b"),
        ("file:///a%20b", "/a b"),
        ("file:/p=50%2525", "/p=50%25"),
        ("file:/%c3%a9é", "/éé"),
        ("file:/", "/"),
        ("file:///", "/"),
        ("abfs://c@a", "/"),
        ("file:/a/../b/.", "/a/../b/."),
        ("file:/%2E%2E/x", "/../x"),
        ("file:/a:b+c", "/a:b+c"),
    ],
)
def test_decode_uri_reads(uri: str, path: str) -> None:
    """Escapes are decoded once, plus signs are none, and dot segments are kept."""
    assert decode_uri(uri).path == path


@pytest.mark.parametrize(
    "uri, message",
    [
        ("", "path is empty"),
        ("/a", "no scheme"),
        (":/a", "no scheme"),
        ("file:a", "relative"),
        ("file:", "relative"),
        ("file:/a b", "percent-encoded"),
        ("file:/a\nb", "percent-encoded"),
        ("file:/a\u2028b", "percent-encoded"),
        ("file:/a?q", "percent-encoded"),
        ("file:/a#f", "percent-encoded"),
        ("file:/a%", "escape '%'"),
        ("file:/a%2", "escape '%2'"),
        ("file:/a%zz", "escape '%zz'"),
        ("file:/a%2fb", "escape '%2f'"),
        ("file:/a%00", "escape '%00'"),
        ("file:/a%FF", "not UTF-8"),
        ("file:/%C0%AE", "not UTF-8"),
        ("file:/%ED%A0%80", "not UTF-8"),
        ("file:/a//b", "empty segment"),
        ("file:/a/", "empty segment"),
        ("file:////a", "empty segment"),
        ("file://host/a", "names a host"),
        ("file:/\ud800", "not allowed in a path"),
    ],
)
def test_decode_uri_refuses(uri: str, message: str) -> None:
    """What Hadoop would not have written is refused, with the reason."""
    with pytest.raises(UrlError, match=message):
        decode_uri(uri)


@given(st.text())
def test_decode_uri_gives_an_address_or_a_url_error(text: str) -> None:
    """No text makes it fail in another way, with any scheme or none."""
    for uri in (text, f"file:/{text}", f"{ABFS}/{text}"):
        try:
            address = decode_uri(uri)
        except UrlError:
            continue
        assert decode_uri(address.encode()) == address


@given(st.text())
def test_parse_url_gives_an_address_or_a_url_error(text: str) -> None:
    """No text makes it fail in another way."""
    try:
        address = parse_url(text)
    except UrlError:
        return
    assert parse_url(str(address)) == address


def test_errors_show_long_and_hostile_text_cut_and_escaped() -> None:
    """A message cannot flood a log or carry control characters into it."""
    with pytest.raises(UrlError) as caught:
        decode_uri("file:/\x1b[2J" + "x" * 10_000)
    assert len(str(caught.value)) < 500
    assert "\x1b" not in str(caught.value)


def test_child_joins_names() -> None:
    """Names are added below a directory, and below the root without a second slash."""
    assert Address("file", "", "/a").child("b", "c").path == "/a/b/c"
    assert Address("file", "", "/").child("b").path == "/b"
    assert Address("file", "", "/").child().path == "/"


def test_at_stays_in_the_store() -> None:
    """Another path of the same store has the same scheme and authority."""
    address = parse_url(f"{ABFS}/a")
    assert address.at("/b").same_store(address)
    assert not address.at("/b").same_store(Address("abfss", address.authority, "/b"))
    assert address.same_store(Address("abfs", address.authority.upper(), "/"))


@given(addresses, st.lists(names, min_size=1, max_size=4))
def test_under_reads_what_is_below(base: Address, below: list[str]) -> None:
    """Any place below the directory is found there, however its path has to be encoded."""
    place = base.child(*below)
    under = Under(base)
    assert under.path(place.encode()) == place.path
    assert under.path(place.encode()) == place.path, "and again, from the directory it remembers"


@given(addresses, addresses)
def test_under_agrees_with_decode_uri(base: Address, other: Address) -> None:
    """A place is accepted exactly if it decodes to a path below, in the same store."""
    root = base.path.rstrip("/")
    inside = base.same_store(other) and other.path.startswith(f"{root}/") and other.path != "/"
    if inside:
        assert Under(base).path(other.encode()) == other.path
    else:
        with pytest.raises(UrlError):
            Under(base).path(other.encode())


ends = st.one_of(
    st.lists(names, min_size=1, max_size=3).map(lambda parts: encode_path("/" + "/".join(parts))),
    st.sampled_from(["/a/b", "/a/../b", "/é", "/a%20b", "", "/", "//a", "/%2e%2e/x", "/a b"]),
)


@given(addresses, addresses, st.lists(st.tuples(ends, ends, st.booleans(), st.booleans())))
def test_under_both_reads_as_two_unders(
    source: Address, dest: Address, files: list[tuple[str, str, bool, bool]]
) -> None:
    """Both at once are what each is alone, paths and refusals, whatever came before."""
    both = UnderBoth(Under(source), Under(dest))
    for here, there, same, slashes in files:
        one = source.encode().rstrip("/") + here
        other = dest.encode().rstrip("/") + (here if same else there)
        if slashes:
            one = one.replace("file:/", "file:///", 1)
        try:
            expected = Under(source).path(one), Under(dest).path(other)
        except UrlError:
            with pytest.raises(UrlError):
                both.paths(one, other)
        else:
            assert both.paths(one, other) == expected
            root, end = source.path.rstrip("/"), dest.path.rstrip("/")
            differs = expected[0][len(root) :] != expected[1][len(end) :]
            assert both.differed or not differs


@pytest.mark.parametrize("base", ["/t x", "/"])
def test_under_takes_both_forms_of_a_local_uri(base: str) -> None:
    """``file:/x`` and ``file:///x`` are the same place."""
    address = parse_url(base)
    under = Under(address)
    for name in ("part-0", "é/part-0", "é/part-1", "a%20b/.hidden"):
        uri = address.child("").encode() + name
        expected = decode_uri(uri).path
        assert under.path(uri) == under.path(uri.replace(":", "://", 1)) == expected


@pytest.mark.parametrize(
    "uri, message",
    [
        ("a", "no scheme"),
        ("file:/t", "not below"),
        ("file:/tx/a", "not below"),
        ("file:/u/a", "not below"),
        ("file:/", "not below"),
        ("file:/t/", "empty segment"),
        ("file:/t//a", "empty segment"),
        ("file:/t/a/", "empty segment"),
        ("file:/t/..", "segment '..'"),
        ("file:/t/a/../b", "segment '..'"),
        ("file:/t/./b", "segment '.'"),
        ("file:/t/%2E%2e/b", "segment '..'"),
        ("file:/t/a%2F..%2Fb", "escape"),
        ("file:/t/../t/a", "segment '..'"),
        ("abfs://c@a/t/a", "the same store"),
        ("file://host/t/a", "names a host"),
        ("/t/a", "no scheme"),
        ("file:/t/a b", "percent-encoded"),
        ("file:/t/a\n", "percent-encoded"),
    ],
)
def test_under_refuses_and_names_the_uri(uri: str, message: str) -> None:
    """What is outside, or could mean something else to another reader, is refused."""
    with pytest.raises(UrlError, match=message) as caught:
        Under(parse_url("/t")).path(uri)
    assert repr(uri) in str(caught.value)


@given(
    st.lists(st.sampled_from(["..", ".", "%2e%2e", "%2F", "a", "é", "%20", "", "/"]), max_size=8)
)
def test_under_never_lets_a_path_out(parts: list[str]) -> None:
    """However dots, slashes and escapes are combined, a path that is accepted is below."""
    under = Under(parse_url("/t"))
    under.path("file:/t/é/warm")
    try:
        path = under.path("file:/t/" + "/".join(parts))
    except UrlError:
        return
    assert path.startswith("/t/")
    assert not {"", ".", ".."} & set(path[3:].split("/"))


# --- Google Cloud Storage --------------------------------------------------------------------


@pytest.mark.parametrize("bucket", ["data", "my-bucket_1", "my_bucket.example.com", "0a.b"])
def test_a_bucket_is_the_authority(bucket: str) -> None:
    """With all the characters that its name may have."""
    assert parse_url(f"gs://{bucket}/a b/c") == Address("gs", bucket, "/a b/c")
    assert parse_url(f"gs://{bucket}") == Address("gs", bucket, "/")


def test_gcs_is_another_name_of_gs() -> None:
    """Users type either; manifests have the one that Hadoop knows, and either reads back."""
    address = parse_url("gcs://bucket/t")

    assert address == parse_url("gs://bucket/t") == parse_url("GCS://bucket/t")
    assert address.encode() == str(address) == "gs://bucket/t"
    assert decode_uri("gcs://bucket/t/a%20b") == address.child("a b")
    assert Under(address).path("gcs://bucket/t/a%20b") == "/t/a b"
    assert Under(address).path("gs://bucket/t/f") == "/t/f"
    with pytest.raises(UrlError, match="is not in the same store"):
        Under(address).path("gcs://other/t/f")


@pytest.mark.parametrize(
    "text",
    [
        "s3a://AKID:hunter2@data/t",
        "s3a://AKID:hun/ter2@data/t",
        "S3://AKID:hunter2+@data/t",
        "s3n://AKID:hunter2@data",
        "s3a://AKID:hunter2@data/../..",
        "hdfs://user:hunter2@host/..",
        "gs://user:hun+/ter2@data",
        "hdfs://user:hunter2@host/\0",
    ],
)
def test_keys_in_a_url_are_refused_and_not_repeated(text: str) -> None:
    """Hadoop once took keys from the URLs of buckets: no error shows those of any URL."""
    with pytest.raises(UrlError) as caught:
        parse_url(text)

    assert "ter2" not in str(caught.value)


def test_ports_and_accounts_are_no_keys() -> None:
    """A colon or an at sign alone stays, in URLs and in the errors that show them."""
    assert parse_url("hdfs://host:8020/a@b").authority == "host:8020"
    assert parse_url("s3://data/a:b@c").path == "/a:b@c"
    with pytest.raises(UrlError, match=r"hdfs://host:8020/\.\./a'"):
        parse_url("hdfs://host:8020/../a")
    with pytest.raises(UrlError, match=r"abfs://c@acc/\.\./a"):
        parse_url("abfs://c@acc/../a")
