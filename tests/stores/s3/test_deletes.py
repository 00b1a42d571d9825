"""Many deletions in one request, and what each depends on."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from asynccommit.errors import (
    DeniedError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
    ThrottledError,
)
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.base import Response
from tests.support.s3_answers import Direct, Sent, answering, bare, error, error_body, new_s3

FILES = [Info(f"/d/{name}", Kind.FILE, 1, etag) for name, etag in (("a", "1"), ("b&<", None))]


def result(*errors: tuple[str, str]) -> Response:
    """Return the answer to a batch, of which these keys were not deleted."""
    text = "".join(
        f"<Error><Key>{key}</Key><Code>{code}</Code><Message>m</Message></Error>"
        for key, code in errors
    )
    return Response(200, {}, f"<DeleteResult>{text}</DeleteResult>".encode())


def kinds(said: Sequence[StoreError | None]) -> list[type[object]]:
    """Return what became of each."""
    return [type(one) for one in said]


async def test_a_batch_names_each_with_its_etag() -> None:
    """Keys are written so that they are read again; the digest is one that every server knows."""
    direct = answering(result())
    said = await new_s3(direct).delete_many([*FILES, Info("/d/e", Kind.DIRECTORY, etag="2")])
    [sent] = direct.seen
    keys = [[child.text for child in one] for one in ElementTree.fromstring(sent.body)]

    assert said == [None, None, None]
    assert keys == [["d/a", '"1"'], ["d/b&<"], ["d/e/", '"2"'], []]
    assert (sent.method, sent.query) == ("POST", "delete")
    digest = hashlib.md5(sent.body, usedforsecurity=False).digest()
    assert base64.b64decode(sent.headers["content-md5"]) == digest


async def test_each_key_has_an_error_of_its_own() -> None:
    """What is said of one key does not touch the others."""
    direct = answering(result(("d/a", "PreconditionFailed"), ("d/c", "AccessDenied")))
    said = await new_s3(direct).delete_many([*FILES, Info("/d/c", Kind.FILE)])

    assert kinds(said) == [PreconditionError, type(None), DeniedError]
    assert [one.path for one in said if one] == ["/d/a", "/d/c"]


async def test_each_key_may_fail_for_now() -> None:
    """A key that was refused for the load, and one of which nobody knows, are told apart."""
    direct = answering(result(("d/a", "SlowDown"), ("d/b&amp;&lt;", "InternalError")))

    said = await new_s3(direct).delete_many(FILES)
    expected: list[type[object]] = [ThrottledError, OutcomeUnknownError]

    assert kinds(said) == expected


async def test_a_single_one_that_may_pass_is_raised() -> None:
    """So that it is sent again like any other request."""
    with pytest.raises(ThrottledError):
        await new_s3(answering(error("SlowDown", 503))).delete_many(FILES[:1])


@pytest.mark.parametrize("answer", [result(("not/asked", "X")), Response(200, {}, b"<html/>")])
async def test_an_answer_about_something_else(answer: Response) -> None:
    """Whoever answers so may have deleted, or not."""
    with pytest.raises(OutcomeUnknownError):
        await new_s3(answering(answer)).delete_many(FILES)


async def test_a_batch_that_fails_late() -> None:
    """A yes with an error in its body is that error."""
    with pytest.raises(ThrottledError):
        await new_s3(answering(Response(200, {}, error_body("SlowDown")))).delete_many(FILES)


async def test_what_xml_cannot_say_goes_alone() -> None:
    """A key with a control character has no place in a batch."""
    direct = Direct()
    direct.before = lambda sent: bare(204) if sent.method == "DELETE" else result()
    said = await new_s3(direct).delete_many([*FILES, Info("/d/\x01", Kind.FILE, etag="3")])

    assert said == [None, None, None]
    assert sorted((sent.method, sent.path) for sent in direct.seen) == [
        ("DELETE", "/d/%01"),
        ("POST", "/"),
    ]
    [alone] = [sent for sent in direct.seen if sent.method == "DELETE"]
    assert alone.headers["if-match"] == '"3"'


async def test_one_by_one_where_only_that_is_conditional() -> None:
    """Those with an etag go alone, the others together."""

    def answer(sent: Sent) -> Response:
        if sent.method == "POST":
            return result()
        return error("PreconditionFailed", 412) if sent.path == "/d/a" else error("NoSuchKey", 404)

    direct = Direct()
    direct.before = answer
    more = [Info("/d/x", Kind.FILE, etag="9"), Info("/d/y", Kind.FILE)]
    said = await new_s3(direct, conditional_delete="single").delete_many([*FILES, *more])

    assert kinds(said) == [PreconditionError, type(None), NotFoundError, type(None)]


async def test_no_condition_is_sent_where_none_is_kept() -> None:
    """A server that passes an etag over is not asked with one."""
    direct = answering(result())
    store = new_s3(direct, conditional_delete="none")
    await store.delete_many(FILES)

    assert b"ETag" not in direct.seen[0].body
    assert not store.traits.conditional_delete


@pytest.mark.parametrize("there", [True, False])
async def test_whether_a_directory_was_there_is_told(there: bool) -> None:
    """The service says yes to the deletion of what is not there, so it is looked at first."""
    direct = Direct()
    direct.before = lambda sent: bare(204 if sent.method == "DELETE" else 200 if there else 404)
    said = await new_s3(direct).delete_many([Info("/d", Kind.DIRECTORY)])

    assert kinds(said) == [type(None) if there else NotFoundError]
    assert [(sent.method, sent.path) for sent in direct.seen] == [
        ("HEAD", "/d/"),
        ("DELETE", "/d/"),
    ][: 1 + there]
