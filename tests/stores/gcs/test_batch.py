"""Deletions in batches: what is said of each, and of those that nothing is said of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import (
    DeniedError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.gcs.batch import KIND, batch_of, parts_of
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.http.base import NoAnswerError, NotSentError, Response
from asynccommit.testing.emulators.gcs.app import GcsApp
from tests.support.gcs_store import BUCKET, Direct, Sent, new_service, new_store

OK = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
GONE = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n{}"
BOUNDARY = "batch_x"


def page(*parts: tuple[str | None, bytes], end: bytes = b"--\r\n", kind: str = "") -> Response:
    """Return an answer to a batch: the id of each part, if it has one, and what it holds."""
    body = b""
    for name, content in parts:
        head = b"" if name is None else f"Content-ID: <response-{name}>\r\n".encode()
        body += b"--batch_x\r\nContent-Type: application/http\r\n" + head + b"\r\n" + content
        body += b"\r\n"
    kind = kind or f"multipart/mixed; boundary={BOUNDARY}"
    return Response(200, {"content-type": kind}, body + b"--batch_x" + end)


def statuses(answer: Response, count: int) -> list[int | None]:
    """Return the status of each part, ``None`` where nothing is said."""
    return [part and part.status for part in parts_of(answer, count)]


# --- the answer ------------------------------------------------------------------------------


def test_parts_are_found_by_their_ids() -> None:
    """In whatever order they come."""
    answer = page(("a+1", GONE), ("a+0", OK), ("a+2", OK))
    assert statuses(answer, 3) == [204, 404, 204]
    found = parts_of(answer, 3)[1]
    assert found == Response(404, {"content-type": "application/json"}, b"{}")


def test_parts_without_ids_are_in_order() -> None:
    """If there are as many as were asked for."""
    assert statuses(page((None, OK), (None, GONE)), 2) == [204, 404]
    with pytest.raises(ValueError, match="an unexpected part"):
        parts_of(page((None, OK)), 2)


def test_of_a_missing_part_nothing_is_known() -> None:
    """The others count."""
    assert statuses(page(("a+0", OK), ("a+2", GONE)), 3) == [204, None, 404]


def test_of_a_part_without_a_status_nothing_is_known() -> None:
    """It is no answer."""
    assert statuses(page(("a+0", b"hello"), ("a+1", OK)), 2) == [None, 204]


@pytest.mark.parametrize("name", ["a+2", "a+7777777", "x", "a+-1"])
def test_a_part_that_nobody_asked_for_is_refused(name: str) -> None:
    """Then the others are not believed either."""
    with pytest.raises(ValueError, match="an unexpected part"):
        parts_of(page(("a+0", OK), (name, OK)), 2)


def test_two_parts_of_one_id_are_refused() -> None:
    """Nobody knows which one counts."""
    with pytest.raises(ValueError, match="an unexpected part"):
        parts_of(page(("a+0", OK), ("a+0", GONE)), 2)


def test_what_is_cut_off_is_not_known() -> None:
    """A part counts once another boundary follows it."""
    whole = page(("a+0", OK), ("a+1", GONE))
    for cut in range(len(whole.body)):
        said = parts_of(whole._replace(body=whole.body[:cut]), 2)
        assert said[0] is None or said[0].status == 204
        assert said[1] is None or said[1].status == 404
        assert said[1] is None or said[0] is not None


@pytest.mark.parametrize(
    "kind",
    [
        'multipart/mixed; boundary="batch_x"',
        "Multipart/Mixed; charset=UTF-8; boundary=batch_x",
        "multipart/mixed;boundary=batch_x;other=1",
    ],
)
def test_a_boundary_is_found(kind: str) -> None:
    """With quotes or without."""
    assert statuses(page(("a+0", OK), kind=kind), 1) == [204]


@pytest.mark.parametrize("kind", ["", "text/html", "multipart/mixed", "multipart/mixed; boundary="])
def test_an_answer_that_is_no_batch_is_refused(kind: str) -> None:
    """As a portal's page."""
    answer = page(("a+0", OK))._replace(headers={"content-type": kind})
    with pytest.raises(ValueError, match="not a batch"):
        parts_of(answer, 1)


def test_bare_line_ends_are_read() -> None:
    """Some servers write them."""
    answer = page(("a+0", OK), ("a+1", GONE))
    assert statuses(answer._replace(body=answer.body.replace(b"\r\n", b"\n")), 2) == [204, 404]


@given(
    st.lists(
        st.sampled_from([b"--batch_x", b"\r\n", b"\n\n", OK, b"--", b"Content-ID: <"])
        | st.binary(max_size=9)
    )
)
def test_any_answer_is_read_or_refused(pieces: list[bytes]) -> None:
    """Nothing but a ValueError comes of it."""
    answer = page()._replace(body=b"".join(pieces))
    try:
        assert len(parts_of(answer, 3)) == 3
    except ValueError as error:
        assert "unexpected part" in str(error)  # noqa: PT017 - it may be read as well


def test_a_batch_of_many_is_one_body() -> None:
    """Each deletion is a part with a number."""
    body = batch_of(["/a?x=1", "/b"])
    assert body.count(b"DELETE /") == 2
    assert b"content-id: <asynccommit+1>\r\n\r\nDELETE /b HTTP/1.1\r\n" in body
    assert body.endswith(b"--=asynccommit=--\r\n")
    assert KIND.endswith('boundary="=asynccommit="')


# --- deletions -------------------------------------------------------------------------------


@pytest.fixture
def direct() -> Direct:
    """The emulator's application with a bucket."""
    return Direct(GcsApp(new_service()))


@pytest.fixture
def store(direct: Direct) -> GcsStore:
    """A store of that bucket."""
    return new_store(direct)


async def files(store: GcsStore, *names: str) -> list[Info]:
    """Make files, and return them as a listing has them."""
    for name in names:
        await store.put(f"/{name}", name.encode())
    return [info for info in (await store.list("/")).entries if not info.is_dir]


def kinds(said: object) -> list[type | None]:
    """Return the types of what is said of each entry."""
    assert isinstance(said, list)
    return [None if error is None else type(error) for error in said]


async def test_a_batch_is_one_request(store: GcsStore, direct: Direct) -> None:
    """Of up to a hundred deletions, names of every kind."""
    entries = await files(store, *(f"f {number}%ü&=?+" for number in range(100)))
    direct.seen.clear()

    assert await store.delete_many(entries) == [None] * 100
    assert [sent.path for sent in direct.seen] == ["/batch/storage/v1"]
    assert (await store.list_tree("/")).entries == ()


async def test_each_deletion_has_its_own_outcome(store: GcsStore) -> None:
    """Gone, replaced, not permitted, or done."""
    entries = await files(store, "a", "b", "c")
    await store.delete("/a")
    await store.put("/b", b"by another one")
    said = await store.delete_many(entries)

    assert kinds(said) == [NotFoundError, PreconditionError, None]
    assert [error and error.path for error in said] == ["/a", "/b", None]
    assert f"generation {(entries[1].etag or '').partition('-')[0]} was requested" in str(said[1])
    assert [info.path for info in (await store.list("/")).entries] == ["/b"]


async def test_an_entry_without_an_etag_is_deleted_whatever_it_is(store: GcsStore) -> None:
    """Of the others only what was seen."""
    entries = await files(store, "a", "b")
    await store.put("/a", b"new")
    said = await store.delete_many([info._replace(etag=None) for info in entries])
    assert said == [None, None]


async def test_an_etag_of_another_store_is_refused(store: GcsStore) -> None:
    """The rest is deleted."""
    entries = await files(store, "a", "b")
    said = await store.delete_many([entries[0]._replace(etag="0x8DABC"), entries[1]])
    assert kinds(said) == [RejectedError, None]


async def test_placeholders_are_deleted_as_objects(direct: Direct, store: GcsStore) -> None:
    """Directories of a flat bucket are."""
    await store.mkdir("/d/e")
    await store.put("/f", b"")
    page = await store.list_tree("/")
    assert kinds(await store.delete_many(page.entries)) == [None, None]
    assert (await store.list_tree("/")).entries == ()


async def test_folders_are_deleted_as_folders() -> None:
    """Where there are any."""
    store = new_store(Direct(GcsApp(new_service(hns=True))))
    await store.mkdir("/d")
    await store.mkdir("/e/f")
    said = await store.delete_many([Info("/d", Kind.DIRECTORY), Info("/e", Kind.DIRECTORY)])
    assert said[0] is None
    assert isinstance(said[1], StoreError)


async def test_names_that_no_path_has_are_deleted(direct: Direct, store: GcsStore) -> None:
    """What a tree's listing shows goes away."""
    assert direct.app is not None
    for name in ("t//x", "t/../y", "t/./z"):
        direct.app.service.insert(BUCKET, name, b"")
    page = await store.list_tree("/t")
    assert await store.delete_many(page.entries) == [None, None, None]


async def test_who_pays_is_said_in_every_part() -> None:
    """The bucket asks each of them."""
    store = new_store(Direct(GcsApp(new_service(requester_pays=True))), requester_pays="proj")
    entries = await files(store, "a", "b")
    await store.put("/b", b"2")
    bare = [entries[0], entries[1]._replace(etag=None)]
    assert await store.delete_many(bare) == [None, None]


async def test_a_denied_deletion_names_the_permission(direct: Direct, store: GcsStore) -> None:
    """Part by part."""
    entries = await files(store, "a", "b")
    assert direct.app is not None
    direct.app.service.denied.add("storage.objects.delete")
    said = await store.delete_many(entries)
    assert kinds(said) == [DeniedError, DeniedError]
    assert "storage.objects.delete" in str(said[0])


async def test_nothing_to_delete_asks_nothing(store: GcsStore, direct: Direct) -> None:
    """An empty batch is none."""
    assert await store.delete_many([]) == []
    assert not direct.seen


# --- one alone -------------------------------------------------------------------------------


async def test_one_alone_is_a_plain_request(store: GcsStore, direct: Direct) -> None:
    """With its generation."""
    (entry,) = await files(store, "a")
    direct.seen.clear()
    assert await store.delete_many([entry]) == [None]
    assert [(sent.method, sent.path) for sent in direct.seen] == [
        ("DELETE", f"/storage/v1/b/{BUCKET}/o/a")
    ]
    assert kinds(await store.delete_many([entry])) == [NotFoundError]


@pytest.mark.parametrize(
    "answer, expected",
    [
        (Response(429, {}, b""), ThrottledError),
        (Response(503, {}, b""), OutcomeUnknownError),
        (NotSentError("no connection"), UnavailableError),
        (NoAnswerError("cut"), OutcomeUnknownError),
    ],
)
async def test_what_may_pass_is_raised_of_one_alone(
    store: GcsStore,
    direct: Direct,
    answer: Response | NotSentError | NoAnswerError,
    expected: type[StoreError],
) -> None:
    """So that it is sent again like any other request."""
    (entry,) = await files(store, "a")
    direct.before = lambda sent: answer
    with pytest.raises(expected):
        await store.delete_many([entry])


# --- faults ----------------------------------------------------------------------------------


def of_batches(
    answer: Response | NoAnswerError,
) -> Callable[[Sent], Response | NoAnswerError | None]:
    """Return what answers batches so."""
    return lambda sent: answer if sent.path.startswith("/batch/") else None


async def test_a_lost_batch_is_unknown_and_can_be_sent_again(
    store: GcsStore, direct: Direct
) -> None:
    """It was done; the second one finds nothing."""
    entries = await files(store, "a", "b")
    direct.after = of_batches(NoAnswerError("cut"))
    with pytest.raises(OutcomeUnknownError):
        await store.delete_many(entries)
    direct.after = lambda sent: None
    assert kinds(await store.delete_many(entries)) == [NotFoundError, NotFoundError]


@pytest.mark.parametrize(
    "answer, expected",
    [
        (Response(429, {"retry-after": "3"}, b""), ThrottledError),
        (Response(503, {}, b""), OutcomeUnknownError),
        (Response(500, {}, b""), OutcomeUnknownError),
        (Response(302, {"location": "http://elsewhere.example/"}, b""), RejectedError),
        (Response(200, {"content-type": "text/html"}, b"<html>"), OutcomeUnknownError),
        (Response(200, {"content-type": KIND}, b"x" * 900_000), OutcomeUnknownError),
        (Response(200, {"content-type": KIND}, b"--=asynccommit=--"), None),
    ],
)
async def test_a_batch_that_fails_as_a_whole(
    store: GcsStore, direct: Direct, answer: Response, expected: type[StoreError] | None
) -> None:
    """Raises what that means; one that says nothing leaves each deletion unknown."""
    entries = await files(store, "a", "b")
    direct.before = of_batches(answer)
    if expected is None:
        assert kinds(await store.delete_many(entries)) == [OutcomeUnknownError] * 2
        return
    with pytest.raises(expected):
        await store.delete_many(entries)


async def test_parts_that_are_throttled_say_so(store: GcsStore, direct: Direct) -> None:
    """Each on its own, with the time that it is to wait."""
    entries = await files(store, "a", "b", "c")
    slow = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n\r\n"
    busy = b"HTTP/1.1 503 Service Unavailable\r\n\r\n"
    direct.before = of_batches(page(("a+0", OK), ("a+1", slow), ("a+2", busy)))
    first, second, third = await store.delete_many(entries)

    assert first is None
    assert isinstance(second, ThrottledError)
    assert second.retry_after == 7.0
    assert isinstance(third, OutcomeUnknownError)
    assert third.busy


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_server_without_batches_is_asked_one_by_one(
    store: GcsStore, direct: Direct, status: int
) -> None:
    """It is asked for a batch once; what is said of each stays what it was."""
    entries = await files(store, *"abcdefghijklm")
    await store.delete("/c")
    direct.before = of_batches(Response(status, {}, b"<html>"))
    said = await store.delete_many(entries)

    assert kinds(said) == [None, None, NotFoundError, *[None] * 10]
    assert store.traits.bulk_delete == 1
    entries = await files(store, "x", "y")
    assert await store.delete_many(entries) == [None, None]
    assert direct.count("/batch/") == 1


async def test_without_batches_an_error_that_may_pass_is_returned(
    store: GcsStore, direct: Direct
) -> None:
    """As of a batch: the others are done."""
    entries = await files(store, "a", "b")

    def answer(sent: Sent) -> Response | NoAnswerError | None:
        if sent.path.startswith("/batch/"):
            return Response(404, {}, b"")
        return NoAnswerError("cut") if sent.path.endswith("/b") else None

    direct.before = answer
    assert kinds(await store.delete_many(entries)) == [None, OutcomeUnknownError]
