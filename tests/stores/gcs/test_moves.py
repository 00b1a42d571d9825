"""Renames: one request where there are moves, two steps where there are none, and folders."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from asynccommit.errors import (
    AsyncCommitError,
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.stores.gcs.moves import Moves
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.http.base import NoAnswerError, NotSentError, Response, TransportError
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.models.gcs import copies
from asynccommit.testing.models.gcs.bucket import GcsBucket
from asynccommit.testing.models.gcs.model import GcsLimits
from asynccommit.testing.models.gcs.objects import Details, GcsObject
from tests.support.contract import LIMIT
from tests.support.gcs_store import BUCKET, Direct, Sent, new_service, new_store

OBJECTS = f"/storage/v1/b/{BUCKET}/o"
NO_SUCH_ROUTE: dict[str, Response] = {
    "404 text": Response(404, {}, b"Not Found\n"),
    "404 page": Response(404, {"content-type": "text/html"}, b"<html>not found</html>"),
    "404 json": Response(404, {}, b'{"error":{"message":"Not Found","errors":[{"reason":"x"}]}}'),
    "400 json": Response(400, {}, b'{"error":{"message":"cannot decode"}}'),
    "405": Response(405, {}, b"method not allowed"),
    "501": Response(501, {}, b""),
}
BUSY = Response(503, {}, b"")


@pytest.fixture
def direct() -> Direct:
    """The emulator's application with a bucket."""
    return Direct(GcsApp(new_service()))


@pytest.fixture
def store(direct: Direct) -> GcsStore:
    """A store of that bucket, which knows already what it is."""
    return new_store(direct, hns=False)


def to(part: str, answer: Response | TransportError, times: int = 99) -> Callable[[Sent], Any]:
    """Return what answers so, a number of times, to requests with ``part`` in method and path."""
    left = [times]

    def answered(sent: Sent) -> Response | TransportError | None:
        if part not in f"{sent.method} {sent.path}" or not left[0]:
            return None
        left[0] -= 1
        return answer

    return answered


def says(status: int, reason: str, message: str = "no") -> Response:
    """Return an answer that says no."""
    body = {"error": {"code": status, "message": message, "errors": [{"reason": reason}]}}
    return Response(status, {}, json.dumps(body).encode())


async def there(store: GcsStore) -> dict[str, bytes]:
    """Return all files of the bucket."""
    found = (await store.list_tree("/")).entries
    return {info.path: await store.get(info.path, LIMIT) for info in found if not info.is_dir}


def generation(etag: str | None) -> str:
    """Return what an etag begins with."""
    return (etag or "").partition("-")[0]


# --- a move ----------------------------------------------------------------------------------


async def test_a_rename_is_one_request(store: GcsStore, direct: Direct) -> None:
    """With the conditions that make it safe to send again."""
    info = await store.put("/a b", b"data")
    direct.seen.clear()
    await store.rename("/a b", "/d/c", etag=info.etag)

    (sent,) = direct.seen
    assert (sent.method, sent.path) == ("POST", f"{OBJECTS}/a%20b/moveTo/o/d%2Fc")
    assert sent.query == (
        f"fields=generation&ifGenerationMatch=0&ifSourceGenerationMatch={generation(info.etag)}"
    )
    assert await there(store) == {"/d/c": b"data"}


async def test_a_rename_without_conditions_has_none(store: GcsStore, direct: Direct) -> None:
    """Where it may replace, and any source will do."""
    await store.put("/a", b"1")
    await store.put("/b", b"2")
    direct.seen.clear()
    await store.rename("/a", "/b", replace=True)
    assert [sent.query for sent in direct.seen] == ["fields=generation"]
    assert await there(store) == {"/b": b"1"}


async def test_a_renamed_file_has_another_generation_and_the_same_checksum(store: GcsStore) -> None:
    """The one names the object, the other what it holds; metadata stay."""
    before = await store.put("/a", b"data", token="1-2-3")
    await store.rename("/a", "/b", etag=before.etag)
    after = await store.head("/b")

    assert generation(after.etag) != generation(before.etag)
    assert (after.etag or "").partition("-")[2] == (before.etag or "").partition("-")[2] != ""
    assert (after.token, after.size) == ("1-2-3", 4)


async def test_the_etag_of_the_service_is_a_condition_too(store: GcsStore, direct: Direct) -> None:
    """As other clients write it into manifests."""
    await store.put("/a", b"data")
    assert direct.app is not None
    etag = direct.app.service.get(BUCKET, "a").etag
    await store.put("/b", b"data")
    with pytest.raises(PreconditionError):
        await store.rename("/b", "/c", etag=etag)
    await store.rename("/a", "/c", etag=etag)


@pytest.mark.parametrize("etag", ["0x8DC3D4", "", "a\r\nb", "é"])
async def test_an_etag_of_another_store_is_refused(
    store: GcsStore, direct: Direct, etag: str
) -> None:
    """Before anything is sent."""
    with pytest.raises(RejectedError, match="is not an etag of Google Cloud Storage"):
        await store.rename("/a", "/b", etag=etag)
    assert not direct.seen


async def test_a_rename_to_the_same_place_is_refused(store: GcsStore, direct: Direct) -> None:
    """Before anything is sent: copied and deleted, it would be gone."""
    for replace in (False, True):
        with pytest.raises(RejectedError, match="source and destination are the same"):
            await store.rename("/a", "/a", replace=replace)
    assert not direct.seen


async def test_a_source_that_was_changed_is_named_with_both_generations(
    store: GcsStore, direct: Direct
) -> None:
    """A stranger wrote it anew: nothing is overwritten, and one question finds out."""
    old = await store.put("/a", b"ours")
    new = await store.put("/a", b"a stranger's")
    await store.put("/b", b"what was there")
    direct.seen.clear()
    with pytest.raises(PreconditionError) as caught:
        await store.rename("/a", "/b", replace=True, etag=old.etag)

    assert len(direct.seen) == 2
    assert f"generation {generation(new.etag)} exists, not {generation(old.etag)}" in str(
        caught.value
    )
    assert caught.value.path == "/a"
    assert await there(store) == {"/a": b"a stranger's", "/b": b"what was there"}


async def test_of_two_conditions_the_one_that_failed_is_told(store: GcsStore) -> None:
    """The service does not say which; what is there does."""
    info = await store.put("/a", b"1")
    taken = await store.put("/b", b"2")
    with pytest.raises(ExistsError, match=f"generation {generation(taken.etag)} is already at /b"):
        await store.rename("/a", "/b", etag=info.etag)
    await store.delete("/b")
    await store.put("/a", b"3")
    with pytest.raises(PreconditionError, match="exists, not"):
        await store.rename("/a", "/b", etag=info.etag)


async def test_a_condition_that_holds_again_leaves_nothing_done(
    store: GcsStore, direct: Direct
) -> None:
    """What stood in the way is gone: it may be sent again."""
    info = await store.put("/a", b"1")
    direct.before = to("moveTo", says(412, "conditionNotMet"))
    with pytest.raises(UnavailableError, match="changed and restored"):
        await store.rename("/a", "/b", etag=info.etag)
    await store.delete("/a")
    with pytest.raises(NotFoundError, match="it is gone"):
        await store.rename("/a", "/b", etag=info.etag)


async def test_a_question_that_is_not_answered_leaves_nothing_done(
    store: GcsStore, direct: Direct
) -> None:
    """The move was refused before."""
    info = await store.put("/a", b"1")
    await store.put("/b", b"1")
    direct.before = to("GET", NoAnswerError("cut"))
    with pytest.raises(UnavailableError):
        await store.rename("/a", "/b", etag=info.etag)


@pytest.mark.parametrize(
    "answer, expected",
    [
        (says(429, "rateLimitExceeded"), ThrottledError),
        (BUSY, OutcomeUnknownError),
        (says(500, "internalError"), OutcomeUnknownError),
        (NoAnswerError("cut"), OutcomeUnknownError),
        (NotSentError("no connection"), UnavailableError),
        (says(403, "forbidden"), DeniedError),
        (says(403, "retentionPolicyNotMet"), RejectedError),
        (says(409, "conflict"), UnavailableError),
        (says(404, "notFound", "The specified bucket does not exist."), RejectedError),
        (says(404, "notFound", "No such object: data/a"), NotFoundError),
        (says(400, "required", "Bucket is a requester pays bucket but no"), RejectedError),
        (Response(200, {}, b"<html>hello</html>"), OutcomeUnknownError),
        (Response(200, {}, b""), OutcomeUnknownError),
        (Response(201, {}, b'{"generation":"1"}'), OutcomeUnknownError),
        (Response(302, {}, b""), RejectedError),
    ],
)
async def test_a_move_that_fails(
    store: GcsStore,
    direct: Direct,
    answer: Response | TransportError,
    expected: type[StoreError],
) -> None:
    """Means what its answer means; nothing else is tried."""
    info = await store.put("/a", b"1")
    direct.before = to("moveTo", answer)
    with pytest.raises(expected) as caught:
        await store.rename("/a", "/b", etag=info.etag)
    assert type(caught.value) is expected
    assert not direct.count("rewriteTo")


async def test_a_lost_move_that_is_sent_again_tells_that_it_was_done(
    store: GcsStore, direct: Direct
) -> None:
    """The source is gone, the destination has its checksum."""
    info = await store.put("/a", b"1")
    direct.after = to("moveTo", NoAnswerError("cut"), times=1)
    with pytest.raises(OutcomeUnknownError):
        await store.rename("/a", "/b", etag=info.etag)
    with pytest.raises(NotFoundError):
        await store.rename("/a", "/b", etag=info.etag)
    assert store.traits.lasting((await store.head("/b")).etag) == store.traits.lasting(info.etag)


# --- where there are no moves ----------------------------------------------------------------


@pytest.mark.parametrize("kind", NO_SUCH_ROUTE)
async def test_where_moves_are_unknown_it_is_copied_and_deleted(
    store: GcsStore, direct: Direct, kind: str
) -> None:
    """Whatever the server says to what it does not know; it is asked once."""
    direct.before = to("moveTo", NO_SUCH_ROUTE[kind])
    for number in range(3):
        info = await store.put(f"/a{number}", b"data", token="1-2-3")
        await store.rename(f"/a{number}", f"/b{number}", etag=info.etag)

    assert await there(store) == {f"/b{number}": b"data" for number in range(3)}
    first = (await store.head("/b0")).token or ""
    assert first.startswith("/a0#")
    assert direct.count("moveTo") == 1
    assert store.traits.costs["rename"] == 2


async def test_a_twin_at_the_destination_is_not_taken_for_a_copy(direct: Direct) -> None:
    """Another's object of the same content, and younger, is not what this rename has made."""
    store = new_store(direct, move=False)
    info = await store.put("/a", b"data")
    await store.put("/b", b"data")
    with pytest.raises(ExistsError):
        await store.rename("/a", "/b", etag=info.etag)
    assert await there(store) == {"/a": b"data", "/b": b"data"}


async def test_a_copy_keeps_what_was_said_of_its_source(direct: Direct) -> None:
    """Type, encoding and the user's metadata go with it; the mark of the put does not."""
    store = new_store(direct, move=False)
    assert direct.app is not None
    service = direct.app.service
    info = await store.put("/a", b"data", token="1-2-3")
    said = {"content_type": "text/csv", "cache_control": "no-store", "metadata": {"by": "me"}}
    service.patch("data", "a", said)
    await store.rename("/a", "/b", etag=info.etag)

    details = service.get("data", "b").details
    assert (details.content_type, details.cache_control) == ("text/csv", "no-store")
    generation = (info.etag or "").partition("-")[0]
    assert dict(details.metadata or {}) == {"by": "me", "asynccommit-source": f"/a#{generation}"}


async def test_an_option_says_that_there_are_no_moves(direct: Direct) -> None:
    """Then none is tried."""
    store = new_store(direct, move=False)
    info = await store.put("/a", b"data")
    assert store.traits.costs["rename"] == 2
    await store.rename("/a", "/b", etag=info.etag)
    assert not direct.count("moveTo")
    assert direct.count("rewriteTo") == direct.count("/o/a", "DELETE") == 1


@pytest.mark.parametrize("kind", ["404 text", "404 page", "404 json"])
@pytest.mark.parametrize("etag", [None, "17-0a1b2c3d"])
async def test_a_file_that_is_not_there_does_not_say_that_moves_are_unknown(
    store: GcsStore, direct: Direct, kind: str, etag: str | None
) -> None:
    """404 is said of both."""
    direct.before = to("moveTo", NO_SUCH_ROUTE[kind], times=1)
    with pytest.raises(NotFoundError):
        await store.rename("/gone", "/b", etag=etag)
    await store.put("/a", b"data")
    await store.rename("/a", "/b")
    assert not direct.count("rewriteTo")


async def test_a_server_that_has_moved_once_knows_moves(store: GcsStore, direct: Direct) -> None:
    """What it refuses later, it refuses for another reason."""
    await store.put("/a", b"data")
    await store.rename("/a", "/b")
    direct.before = to("moveTo", NO_SUCH_ROUTE["400 json"])
    with pytest.raises(RejectedError):
        await store.rename("/b", "/c")
    assert not direct.count("rewriteTo")


async def test_moves_are_known_as_missing_only_once_a_copy_went_through(
    store: GcsStore, direct: Direct
) -> None:
    """A name that the service refuses, both refuse."""
    await store.put("/a", b"data")
    direct.before = lambda sent: says(400, "invalid") if "To/" in sent.path else None
    with pytest.raises(RejectedError):
        await store.rename("/a", "/b")
    direct.before = lambda sent: None
    await store.rename("/a", "/b")
    assert direct.count("moveTo") == 2
    assert "rename" not in store.traits.costs


async def test_what_a_key_of_the_caller_encrypts_is_copied_if_it_cannot_be_moved(
    direct: Direct,
) -> None:
    """Object by object: others can; and what was cut off in between is finished."""
    key = base64.b64encode(bytes(range(32))).decode()
    store = new_store(direct, hns=False, encryption_key=key)
    for name in ("a", "b"):
        await store.put(f"/{name}", b"data")
    await store.rename("/a", "/c")
    info = await store.head("/b")
    refused = says(400, "resourceIsEncryptedWithCustomerEncryptionKey")
    lost = to("DELETE", NoAnswerError("cut"), times=1)
    direct.before = lambda sent: refused if "moveTo" in sent.path else lost(sent)
    with pytest.raises(OutcomeUnknownError):
        await store.rename("/b", "/d", etag=info.etag)
    await store.rename("/b", "/d", etag=info.etag)
    assert [info.path for info in (await store.list("/")).entries] == ["/c", "/d"]
    assert "rename" not in store.traits.costs


@pytest.fixture
def slow() -> Direct:
    """A bucket without moves, where a copy takes several requests."""
    return Direct(GcsApp(new_service(GcsLimits(rewrite_bytes=1000), moves=False)))


async def test_a_copy_of_many_requests_is_one_copy(slow: Direct) -> None:
    """Each has the token of the one before."""
    store = new_store(slow)
    info = await store.put("/a", b"x" * 4500)
    await store.rename("/a", "/b", etag=info.etag)
    assert await there(store) == {"/b": b"x" * 4500}
    assert slow.count("rewriteTo") == 5


async def test_the_two_steps_keep_every_condition(slow: Direct) -> None:
    """Nothing is replaced unasked, nothing but the named source is moved."""
    store = new_store(slow)
    old = await store.put("/a", b"1")
    await store.put("/b", b"2")
    with pytest.raises(ExistsError, match="is already at /b"):
        await store.rename("/a", "/b", etag=old.etag)
    with pytest.raises(ExistsError):
        await store.rename("/a", "/b")
    new = await store.put("/a", b"3")
    said = f"generation {generation(new.etag)} exists, not {generation(old.etag)}"
    with pytest.raises(PreconditionError, match=said):
        await store.rename("/a", "/b", replace=True, etag=old.etag)
    with pytest.raises(PreconditionError, match=said):
        await store.rename("/a", "/c", etag=old.etag)
    assert await there(store) == {"/a": b"3", "/b": b"2"}
    await store.rename("/a", "/b", replace=True, etag=new.etag)
    assert await there(store) == {"/b": b"3"}
    with pytest.raises(NotFoundError):
        await store.rename("/a", "/c", etag=new.etag)
    with pytest.raises(NotFoundError):
        await store.rename("/a", "/c")


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("part", ["rewriteTo", "DELETE"])
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("given", [False, True])
async def test_whatever_is_lost_of_the_two_steps_the_next_sending_finishes(
    slow: Direct, part: str, done: bool, given: bool, replace: bool
) -> None:
    """Cut before or after either step, with the etag or without: one file in the end."""
    store = new_store(slow)
    info = await store.put("/a", b"data")
    etag = info.etag if given else None
    lost = to(part, NoAnswerError("cut"), times=1)
    if done:
        slow.after = lost
    else:
        slow.before = lost
    with pytest.raises(OutcomeUnknownError):
        await store.rename("/a", "/b", etag=etag, replace=replace)
    if part == "DELETE" and done:
        with pytest.raises(NotFoundError):
            await store.rename("/a", "/b", etag=etag, replace=replace)
    else:
        await store.rename("/a", "/b", etag=etag, replace=replace)
    assert await there(store) == {"/b": b"data"}


async def test_another_process_finishes_what_was_cut_off_in_between(slow: Direct) -> None:
    """It knows nothing of the first sending; the copy is at its place with the same checksum."""
    first = new_store(slow)
    info = await first.put("/a", b"data")
    slow.before = to("DELETE", NoAnswerError("the process is gone"), times=1)
    with pytest.raises(OutcomeUnknownError):
        await first.rename("/a", "/b", etag=info.etag)
    assert await there(first) == {"/a": b"data", "/b": b"data"}
    await new_store(slow).rename("/a", "/b", etag=info.etag)
    assert await there(first) == {"/b": b"data"}


async def test_a_server_that_merges_the_metadata_of_a_copy(
    slow: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is found by its mark although the token of its source is beside it."""

    def merged(dest: GcsBucket, copied: GcsObject, details: Details | None) -> Details:
        made = whole(dest, copied, details)
        return made._replace(metadata={**copied.details.metadata, **made.metadata})

    whole = copies._copied
    monkeypatch.setattr(copies, "_copied", merged)
    store = new_store(slow)
    info = await store.put("/a", b"data", token="the-token")
    slow.after = to("rewriteTo", NoAnswerError("cut"), times=1)
    with pytest.raises(OutcomeUnknownError):
        await store.rename("/a", "/b", etag=info.etag)
    await store.rename("/a", "/b", etag=info.etag)

    assert await there(store) == {"/b": b"data"}


@pytest.mark.parametrize("content", [b"data", b"DATA", b"longer data"])
async def test_what_was_there_before_is_no_copy(slow: Direct, content: bytes) -> None:
    """It is older than the source, or something else."""
    store = new_store(slow)
    if content == b"data":
        await store.put("/b", content)
        info = await store.put("/a", b"data")
    else:
        info = await store.put("/a", b"data")
        await store.put("/b", content)
    with pytest.raises(ExistsError):
        await store.rename("/a", "/b", etag=info.etag)
    assert await there(store) == {"/a": b"data", "/b": content}


async def test_a_source_that_is_replaced_in_between_stays(slow: Direct) -> None:
    """What is deleted is what was copied, and nothing else."""
    store = new_store(slow)
    info = await store.put("/a", b"ours")

    def replace(sent: Sent) -> None:
        if sent.method == "DELETE":
            assert slow.app is not None
            slow.app.service.insert(BUCKET, "a", b"a stranger's")

    slow.before = replace
    await store.rename("/a", "/b", etag=info.etag)
    assert await there(store) == {"/a": b"a stranger's", "/b": b"ours"}


@pytest.mark.parametrize(
    "answer, busy",
    [
        (says(429, "rateLimitExceeded"), True),
        (BUSY, True),
        (says(500, "internalError"), False),
        (NotSentError("no connection"), False),
    ],
)
async def test_a_copy_whose_source_is_not_deleted_yet_is_unknown(
    slow: Direct, answer: Response | TransportError, busy: bool
) -> None:
    """Not refused: something was done. The next sending deletes it."""
    store = new_store(slow)
    info = await store.put("/a", b"data")
    slow.before = to("DELETE", answer, times=1)
    with pytest.raises(OutcomeUnknownError, match="copied to /b, and the source") as caught:
        await store.rename("/a", "/b", etag=info.etag)
    assert caught.value.busy is busy
    await store.rename("/a", "/b", etag=info.etag)
    assert await there(store) == {"/b": b"data"}


async def test_a_source_that_may_not_be_deleted_says_so(slow: Direct) -> None:
    """With the reason, and that there is a copy."""
    store = new_store(slow)
    info = await store.put("/a", b"data")
    assert slow.app is not None
    slow.app.service.denied.add("storage.objects.delete")
    with pytest.raises(DeniedError, match=r"storage\.objects\.delete") as caught:
        await store.rename("/a", "/b", etag=info.etag)
    assert caught.value.__notes__ == ["it was copied to /b; the source is still there"]


async def test_a_copy_that_never_ends_is_left(
    slow: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that always has more to do is not asked for ever."""
    monkeypatch.setattr("asynccommit.stores.gcs.objects._CALLS", 5)
    store = new_store(slow)
    await store.put("/a", b"x" * 9000)
    with pytest.raises(RejectedError, match="not copied after 5 requests"):
        await store.copy("/a", "/b")


# --- folders ---------------------------------------------------------------------------------


def folders(**limits: Any) -> Direct:
    """Return a bucket with folders."""
    return Direct(GcsApp(new_service(GcsLimits(**limits), hns=True)))


async def test_a_folder_is_moved_with_all_it_holds() -> None:
    """By one request that is looked at until it has ended."""
    direct = folders(operation_seconds=0.03)
    store = patient(new_store(direct), Waits())
    await store.put("/a/b/f", b"1")
    await store.mkdir("/a/empty")
    direct.seen.clear()
    await store.rename("/a", "/z")

    assert direct.count("/renameTo/folders/z%2F") == 1
    assert direct.count("/operations/") >= 1
    assert await there(store) == {"/z/b/f": b"1"}
    assert (await store.head("/z/empty")).is_dir
    with pytest.raises(NotFoundError):
        await store.head("/a")


async def test_the_folder_that_it_goes_to_is_made() -> None:
    """As files bring theirs along."""
    store = new_store(folders())
    await store.put("/a/f", b"1")
    await store.rename("/a", "/x/y/z")
    assert await there(store) == {"/x/y/z/f": b"1"}


async def test_a_folder_replaces_nothing() -> None:
    """Neither a folder, empty or not, nor a file."""
    store = new_store(folders())
    await store.put("/a/f", b"1")
    await store.mkdir("/d")
    await store.put("/g", b"2")
    for replace in (False, True):
        with pytest.raises(ExistsError, match="a folder is at /d"):
            await store.rename("/a", "/d", replace=replace)
    with pytest.raises(ExistsError, match="a file is at /g"):
        await store.rename("/a", "/g")
    with pytest.raises(PreconditionError, match="a file is at /g"):
        await store.rename("/a", "/g", replace=True)
    with pytest.raises(RejectedError, match="into itself"):
        await store.rename("/a", "/a/b")
    assert await there(store) == {"/a/f": b"1", "/g": b"2"}


async def test_what_has_an_etag_is_no_folder() -> None:
    """A file is meant, and it is not there."""
    store = new_store(folders())
    await store.mkdir("/a")
    with pytest.raises(NotFoundError):
        await store.rename("/a", "/b", etag="17-0a1b2c3d")


async def test_a_directory_of_a_flat_bucket_is_not_moved(store: GcsStore) -> None:
    """It is many objects, and no request moves them all."""
    await store.put("/a/f", b"1")
    with pytest.raises(UnsupportedError, match="without a hierarchical namespace"):
        await store.rename("/a", "/b")


class Waits:
    """Waits for nothing, and notes for how long."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        """Note it."""
        self.seconds.append(seconds)


def patient(store: GcsStore, waits: Waits, **more: float) -> GcsStore:
    """Return the store with other waits between looks at an operation."""
    store._moves = Moves(store._client, store._files, lambda: None, sleep=waits, **more)
    return store


async def test_waits_between_two_looks_grow() -> None:
    """Up to a bound; trouble with a look is no answer."""
    direct, waits = folders(operation_seconds=0.2), Waits()
    store = patient(new_store(direct), waits, first=0.1, most=0.3)
    await store.put("/a/f", b"1")
    looks: list[Response | TransportError]
    looks = [says(429, "rateLimitExceeded"), NoAnswerError("cut"), BUSY]
    direct.before = lambda sent: looks.pop() if looks and "/operations/" in sent.path else None
    await store.rename("/a", "/b")

    assert waits.seconds[:5] == pytest.approx([0.1, 0.15, 0.225, 0.3, 0.3])
    assert await there(store) == {"/b/f": b"1"}


async def test_an_operation_that_does_not_end_is_unknown() -> None:
    """After a while; it is named."""
    direct = folders(operation_seconds=1e9)
    store = patient(new_store(direct), Waits(), patience=0.0)
    await store.put("/a/f", b"1")
    with pytest.raises(OutcomeUnknownError, match=r"operations/\w+ did not end within 0 s"):
        await store.rename("/a", "/b")


@pytest.mark.parametrize(
    "answer",
    [
        says(403, "forbidden"),
        says(404, "notFound", "The specified operation does not exist."),
        Response(200, {}, b"<html>"),
        Response(200, {}, b'{"done":true}'),
    ],
)
async def test_an_operation_that_cannot_be_looked_at_is_unknown(answer: Response) -> None:
    """It goes on all the same."""
    direct = folders(operation_seconds=1e9)
    store = patient(new_store(direct), Waits())
    await store.put("/a/f", b"1")
    direct.before = to("/operations/", answer)
    with pytest.raises(OutcomeUnknownError):
        await store.rename("/a", "/b")


@pytest.mark.parametrize(
    "code, expected",
    [
        (5, NotFoundError),
        (6, ExistsError),
        (7, DeniedError),
        (8, ThrottledError),
        (9, PreconditionError),
        (10, UnavailableError),
        (14, UnavailableError),
        (1, RejectedError),
        ("x", RejectedError),
        (None, RejectedError),
    ],
)
async def test_an_operation_that_failed_left_everything_as_it_was(
    code: object, expected: type[AsyncCommitError]
) -> None:
    """Its code says why."""
    direct = folders()
    store = new_store(direct)
    await store.put("/a/f", b"1")
    said = {
        "name": "operations/7",
        "done": True,
        "error": {"code": code, "message": "for a reason"},
    }
    direct.before = to("/renameTo/", Response(200, {}, json.dumps(said).encode()))
    with pytest.raises(expected, match=r"for a reason \(to /b; operations/7\)") as caught:
        await store.rename("/a", "/b")
    assert type(caught.value) is expected


async def test_an_operation_that_was_called_off_is_told() -> None:
    """By somebody else, while it was under way."""
    direct = folders(operation_seconds=1e9)
    store = patient(new_store(direct), Waits())
    await store.put("/a/f", b"1")

    def cancel(sent: Sent) -> None:
        if "/operations/" in sent.path:
            assert direct.app is not None
            direct.app.service.cancel_operation(BUCKET, sent.path.rpartition("/")[2])

    direct.before = cancel
    with pytest.raises(RejectedError):
        await store.rename("/a", "/b")
    assert await there(store) == {"/a/f": b"1"}


async def test_a_lost_rename_of_a_folder_is_unknown() -> None:
    """It may have begun."""
    direct = folders()
    store = new_store(direct)
    await store.put("/a/f", b"1")
    direct.after = to("/renameTo/", NoAnswerError("cut"))
    with pytest.raises(OutcomeUnknownError):
        await store.rename("/a", "/b")


async def test_what_is_written_below_a_folder_that_moves_waits() -> None:
    """It is refused for now, and nothing is done."""
    direct = folders(operation_seconds=1e9)
    store = patient(new_store(direct), Waits(), patience=0.0)
    await store.put("/a/f", b"1")
    await store.put("/g", b"1")
    with pytest.raises(OutcomeUnknownError):
        await store.rename("/a", "/b")
    with pytest.raises(UnavailableError):
        await store.put("/a/g", b"")
    with pytest.raises(UnavailableError):
        await store.rename("/g", "/a/g")
