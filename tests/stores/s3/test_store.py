"""The store of S3: what it says of itself, its directories and listings, copies, and wrappers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from asynccommit.errors import (
    ExistsError,
    PreconditionError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.stores.base import Kind
from asynccommit.stores.http.base import NoAnswerError, Response, TransportError
from asynccommit.stores.registry import StoreSettings, open_store, wrap
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.s3.wire import TOKEN
from asynccommit.stores.urls import parse_url
from tests.support.s3_answers import HERE, Direct, Sent, answering, bare, error, found, new_s3

COPIED = Response(200, {}, b"<CopyObjectResult><ETag>e</ETag></CopyObjectResult>")


def listing(
    *keys: str, prefixes: tuple[str, ...] = (), more: str = "", url: bool = True
) -> Response:
    """Return a page of a listing; names are as they stand in the XML."""
    entry = (
        "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.789Z</LastModified>"
        "<ETag>&quot;e&quot;</ETag><Size>5</Size></Contents>"
    )
    text = "".join(entry.format(key) for key in keys)
    text += "".join(
        f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in prefixes
    )
    text += "<EncodingType>url</EncodingType>" if url else ""
    text += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
    text += f"<NextContinuationToken>{more}</NextContinuationToken>" if more else ""
    return Response(200, {}, f"<ListBucketResult>{text}</ListBucketResult>".encode())


def test_the_store_says_what_it_is() -> None:
    """No directories, no renames, uploads in parts, and limits that a bucket has."""
    traits = new_s3(Direct()).traits

    assert not any((traits.directories, traits.atomic_rename, traits.recursive_delete))
    assert not any((traits.fences, traits.tokens, traits.content_etags))
    assert traits.put_tokens
    assert traits.conditional_put
    assert traits.conditional_delete
    assert traits.multipart is not None
    assert (traits.multipart.smallest, traits.multipart.parts) == (5 << 20, 10_000)
    assert traits.multipart.conditional
    assert traits.conditions_proven
    assert traits.multipart.matches
    assert traits.multipart.abort_tells
    assert traits.multipart.checked
    bare_parts = new_s3(Direct(), checksum="none").traits.multipart
    assert bare_parts is not None
    assert not bare_parts.checked
    assert (traits.bulk_delete, traits.longest_path, traits.account) == (1000, 1025, "s3://data")
    assert traits.ramp is None


def test_a_server_without_conditions_is_said_to_have_none() -> None:
    """Whoever says that nothing is conditional gets a store that says so."""
    traits = new_s3(Direct(), conditional_put="false", conditional_delete="none").traits

    assert traits.multipart is not None
    assert not any((traits.conditional_put, traits.conditional_delete))
    assert not traits.multipart.conditional


def test_little_is_known_of_other_servers() -> None:
    """Which conditions one keeps is known if somebody says so; what its aborts tell is not."""
    other: dict[str, Any] = {"endpoint_url": "https://s3.example.com"}
    traits = new_s3(Direct(), **other).traits

    assert traits.multipart is not None
    assert (traits.conditional_put, traits.multipart.conditional) == (True, True)
    assert not any((traits.conditions_proven, traits.conditional_delete))
    assert not any((traits.multipart.matches, traits.multipart.abort_tells))
    traits = new_s3(Direct(), **other, conditional_put=True, conditional_replace=True).traits
    assert traits.multipart is not None
    assert (traits.conditions_proven, traits.multipart.matches) == (True, True)
    traits = new_s3(Direct(), conditional_put=False).traits
    assert traits.multipart is not None
    assert not traits.multipart.matches


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_it_is_opened_by_its_schemes(scheme: str) -> None:
    """Both names lead to the same store."""
    opened = open_store(
        parse_url(f"{scheme}://data/x"), StoreSettings(random.Random(1), options=HERE)
    )

    assert opened.traits.account == "s3://data"


async def test_it_has_no_rename() -> None:
    """The error says what to do instead."""
    with pytest.raises(UnsupportedError, match="magic or staging"):
        await new_s3(Direct()).rename("/a", "/b")


# --- listings --------------------------------------------------------------------------------


async def test_names_of_a_listing_are_decoded() -> None:
    """What the service encoded for the XML's sake is decoded; what it did not is left."""
    direct = answering(listing("d/a%2Bb+c%0A%C3%BC", prefixes=("d/x%25/",)))
    page = await new_s3(direct).list("/d")
    plain = await new_s3(answering(listing("d/a%2Bb+c", url=False))).list("/d")

    assert [info.path for info in page.entries] == ["/d/a+b c\nü", "/d/x%"]
    assert [info.path for info in plain.entries] == ["/d/a%2Bb+c"]
    assert page.entries[0].modified == 1767225600.0
    assert (
        direct.seen[0].query
        == "delimiter=%2F&encoding-type=url&list-type=2&max-keys=1000&prefix=d%2F"
    )


async def test_what_no_path_can_name_is_not_shown() -> None:
    """Empty segments and dots are no names; of a whole tree they can be deleted."""
    keys = ("d/", "d/a", "d/.", "d//", "d/b/")
    page = await new_s3(answering(listing(*keys, prefixes=("d//", "d/../")))).list("/d")
    tree = await new_s3(answering(listing(*keys, "d//x", "d/../y"))).list_tree("/d")

    assert [(info.path, info.kind) for info in page.entries] == [
        ("/d/a", Kind.FILE),
        ("/d/b", Kind.DIRECTORY),
    ]
    assert [(info.path, info.kind, info.etag) for info in tree.entries] == [
        ("/d/a", Kind.FILE, "e"),
        ("/d/.", Kind.FILE, "e"),
        ("/d//", Kind.FILE, "e"),
        ("/d/b", Kind.DIRECTORY, "e"),
        ("/d//x", Kind.FILE, "e"),
        ("/d/../y", Kind.FILE, "e"),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        listing("other/a"),
        listing("d/a", prefixes=("e/",)),
        listing(prefixes=("d/x",)),
        listing("d/a")._replace(body=b"<ListBucketResult><Contents/></ListBucketResult>"),
        listing("d/a")._replace(
            body=b"<ListBucketResult><Contents><Key>d/a</Key><Size>-1</Size></Contents>"
            b"</ListBucketResult>"
        ),
        listing("d/a")._replace(
            body=b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"
        ),
        listing("d/a")._replace(body=b"<!DOCTYPE x><ListBucketResult/>"),
    ],
)
async def test_a_listing_that_is_none(answer: Response) -> None:
    """Names of elsewhere, half entries, pages without an end: all are refused."""
    with pytest.raises(RejectedError, match="is it an endpoint of S3"):
        await new_s3(answering(answer)).list_tree("/d")


async def test_a_page_that_leads_to_itself_is_refused() -> None:
    """A token that comes back would be asked for again for ever."""
    store = new_s3(answering(listing("d/a", more="t")))
    assert (await store.list_tree("/d")).token == "t"
    with pytest.raises(RejectedError, match="token"):
        await store.list_tree("/d", "t")


async def test_empty_pages_are_gone_through() -> None:
    """Whether a directory is there is known when a page has something, or there are no more."""
    direct = answering(listing(more="1"), listing(more="2"), listing("d/a"))
    page = await new_s3(direct).list("/d")

    assert [info.path for info in page.entries] == ["/d/a"]


async def test_empty_pages_without_end_are_left() -> None:
    """A server that gives nothing but tokens is given up."""
    direct, tokens = Direct(), iter(range(10_000))
    direct.before = lambda _: listing(more=f"t{next(tokens)}")
    with pytest.raises(UnavailableError, match="empty pages"):
        await new_s3(direct).list("/d")


# --- copies ----------------------------------------------------------------------------------


async def test_a_copy_is_one_request() -> None:
    """It names its source with every character of it encoded."""
    direct = answering(COPIED)
    await new_s3(direct, storage_class="STANDARD_IA").copy("/a b/ü+", "/c", overwrite=True)
    [sent] = direct.seen

    assert sent.headers["x-amz-copy-source"] == "/data/a%20b/%C3%BC%2B"
    assert sent.headers["x-amz-storage-class"] == "STANDARD_IA"
    assert "if-none-match" not in sent.headers


async def test_a_copy_that_must_not_replace() -> None:
    """It is looked first, and a server that knows the condition is told it."""
    direct = answering(bare(404), COPIED)
    await new_s3(direct).copy("/a", "/b")
    assert [(sent.method, sent.path) for sent in direct.seen] == [("HEAD", "/b"), ("PUT", "/b")]
    assert direct.seen[1].headers["if-none-match"] == "*"

    with pytest.raises(ExistsError, match="something is at /b"):
        await new_s3(answering(found("e"))).copy("/a", "/b")
    with pytest.raises(ExistsError):
        await new_s3(answering(bare(404), error("PreconditionFailed", 412))).copy("/a", "/b")


async def test_a_server_that_does_not_know_the_condition_is_asked_without_it() -> None:
    """It says so once, and is believed."""
    direct = Direct()

    def answer(sent: Sent) -> Response:
        if sent.method == "HEAD":
            return bare(404)
        return error("NotImplemented", 501) if "if-none-match" in sent.headers else COPIED

    direct.before = answer
    store = new_s3(direct)
    await store.copy("/a", "/b")
    await store.copy("/a", "/c")

    assert [sent.method for sent in direct.seen] == ["HEAD", "PUT", "PUT", "HEAD", "PUT"]


async def test_a_copy_by_etag() -> None:
    """The service looks at it; of another server it is looked at beforehand."""
    direct = answering(COPIED)
    await new_s3(direct).copy_if("/a", "/b", "e")
    assert direct.seen[0].headers["x-amz-copy-source-if-match"] == '"e"'

    direct = answering(found("another"))
    with pytest.raises(PreconditionError, match="its etag is another, not e"):
        await new_s3(direct, endpoint_url="http://127.0.0.1:1").copy_if("/a", "/b", "e")
    assert [sent.method for sent in direct.seen] == ["HEAD"]


async def test_a_copy_in_the_place_of_an_etag() -> None:
    """The service looks at both; a refusal is of the source only if that is not there."""
    direct = answering(COPIED)
    await new_s3(direct).copy_if("/a", "/b", "e", replaces="old")
    [sent] = direct.seen
    assert sent.headers["if-match"] == '"old"'

    direct = answering(error("NoSuchKey", 404), found("e"))
    with pytest.raises(PreconditionError, match="the source, or the file to replace"):
        await new_s3(direct).copy_if("/a", "/b", "e", replaces="old")
    assert [(sent.method, sent.path) for sent in direct.seen] == [("PUT", "/b"), ("HEAD", "/a")]


async def test_elsewhere_both_ends_of_a_copy_are_looked_at() -> None:
    """Another server may pass either condition over, or not know it."""
    elsewhere: dict[str, Any] = {"endpoint_url": "http://127.0.0.1:1"}
    direct = answering(found("old"), found("e"), error("NotImplemented", 501), COPIED)
    await new_s3(direct, **elsewhere).copy_if("/a", "/b", "e", replaces="old")
    assert [sent.method for sent in direct.seen] == ["HEAD", "HEAD", "PUT", "PUT"]

    direct = answering(found("another"))
    with pytest.raises(PreconditionError, match="the file to replace has changed or is gone"):
        await new_s3(direct, **elsewhere).copy_if("/a", "/b", "e", replaces="old")
    assert [sent.method for sent in direct.seen] == ["HEAD"]


# --- lost responses ----------------------------------------------------------------------------


@pytest.mark.parametrize("mine", [True, False])
async def test_a_put_whose_answer_is_lost_is_known_by_its_mark(mine: bool) -> None:
    """What is there with the mark of the put is the put's; anything else was there before."""
    direct, marks = Direct(), list[str]()

    def answer(sent: Sent) -> Response | TransportError:
        if sent.method == "PUT":
            marks.append(sent.headers["x-amz-meta-asynccommit-token"])
            return NoAnswerError("cut")
        return found("e", **{TOKEN: marks[0] if mine else "another"})

    direct.before = answer
    store = wrap(new_s3(direct), StoreSettings(random.Random(1)))
    if not mine:
        with pytest.raises(ExistsError):
            await store.put("/p", b"12345", overwrite=False)
        return
    assert (await store.put("/p", b"12345", overwrite=False)).etag == "e"
    assert len(marks) == 1


# --- markers ---------------------------------------------------------------------------------


async def test_a_marker_says_how_long_a_file_will_be() -> None:
    """Its metadata are headers of the service's kind."""
    direct = answering(found("e"))
    info = await new_s3(direct).put_marker("/m", {"x-hadoop-s3a-magic-data-length": "17"})
    [sent] = direct.seen

    assert (info.path, info.size, info.etag) == ("/m", 0, "e")
    assert sent.headers["x-amz-meta-x-hadoop-s3a-magic-data-length"] == "17"
    assert "if-none-match" not in sent.headers


async def test_it_closes_its_connections() -> None:
    """With the store, its transport is closed."""
    direct = Direct()
    store: S3Store = new_s3(direct)
    await store.aclose()

    assert direct.closed
