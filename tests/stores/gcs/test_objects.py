"""Objects: what is at a path, their bytes, and how they are written, whole or in pieces."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Kind
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.gcs.wire import TOKEN
from asynccommit.stores.http.base import NoAnswerError, Response, TransportError
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.models.gcs.model import GcsLimits
from tests.support.gcs_store import BUCKET, Direct, Sent, new_service, new_store

LIMIT = 1 << 20
CHUNK = 256 << 10
KEY = base64.b64encode(bytes(range(32))).decode()
KMS = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
UPLOADS = f"/upload/storage/v1/b/{BUCKET}/o"


@pytest.fixture
def direct() -> Direct:
    """The emulator's application with a bucket."""
    return Direct(GcsApp(new_service()))


@pytest.fixture
def store(direct: Direct) -> GcsStore:
    """A store of that bucket, which knows already what it is."""
    return new_store(direct, hns=False)


def asked(sent: Sent) -> dict[str, str]:
    """Return the query of a request."""
    return {name: values[0] for name, values in parse_qs(sent.query).items()}


def model_object(direct: Direct, name: str) -> Any:
    """Return what the service holds."""
    assert direct.app is not None
    return direct.app.service.get(BUCKET, name)


# --- writing ---------------------------------------------------------------------------------


async def test_bytes_alone_are_sent_as_they_are(store: GcsStore, direct: Direct) -> None:
    """Where there is nothing to say about them."""
    info = await store.put("/a b/ü", b"data")
    (sent,) = direct.seen
    assert (sent.method, sent.path, sent.body) == ("POST", UPLOADS, b"data")
    assert asked(sent)["uploadType"] == "media"
    assert asked(sent)["name"] == "a b/ü"
    assert "ifGenerationMatch" not in asked(sent)
    assert info == await store.head("/a b/ü")
    assert (info.kind, info.size, info.token) == (Kind.FILE, 4, None)


async def test_a_token_goes_with_the_object(store: GcsStore, direct: Direct) -> None:
    """As custom metadata: the head tells it, a listing does not."""
    info = await store.put("/f", b"data", overwrite=False, token="1-2-3")
    (sent,) = direct.seen
    assert asked(sent)["uploadType"] == "multipart"
    assert asked(sent)["ifGenerationMatch"] == "0"
    assert model_object(direct, "f").details.metadata == {TOKEN: "1-2-3"}
    assert info.token == (await store.head("/f")).token == "1-2-3"
    assert [found.token for found in (await store.list("/")).entries] == [None]
    assert await store.get("/f", LIMIT) == b"data"


async def test_a_write_that_must_not_replace_does_not(store: GcsStore) -> None:
    """With a token or without."""
    await store.put("/f", b"old")
    for token in (None, "1-2-3"):
        with pytest.raises(ExistsError, match="412 conditionNotMet"):
            await store.put("/f", b"new", overwrite=False, token=token)
    assert await store.get("/f", LIMIT) == b"old"


@pytest.mark.parametrize(
    "answer, expected",
    [
        (Response(503, {}, b""), OutcomeUnknownError),
        (Response(429, {}, b""), ThrottledError),
        (NoAnswerError("cut"), OutcomeUnknownError),
        (Response(200, {}, b"<html>"), OutcomeUnknownError),
        (Response(200, {}, b"{}"), OutcomeUnknownError),
        (Response(404, {}, b"<html>"), RejectedError),
        (
            Response(200, {}, b'{"name":"f","size":"3","generation":"1","crc32c":"AAAAAA=="}'),
            OutcomeUnknownError,
        ),
        (
            Response(200, {}, b'{"name":"g","size":"4","generation":"1","crc32c":"AAAAAA=="}'),
            OutcomeUnknownError,
        ),
    ],
)
async def test_a_write_that_fails(
    store: GcsStore, direct: Direct, answer: Response | TransportError, expected: type[StoreError]
) -> None:
    """Is unknown unless it was refused; a yes must be about what was written."""
    direct.before = lambda sent: answer
    for token in (None, "1-2-3"):
        with pytest.raises(expected):
            await store.put("/f", b"data", token=token)


# --- reading ---------------------------------------------------------------------------------


async def test_a_missing_file_is_missing(store: GcsStore, direct: Direct) -> None:
    """Downloads say so in bare text, so the metadata are asked."""
    with pytest.raises(NotFoundError):
        await store.get("/gone", LIMIT)
    await store.put("/d/f", b"")
    with pytest.raises(PreconditionError, match="is a directory"):
        await store.get("/d", LIMIT)


async def test_a_file_that_comes_in_between_is_asked_for_again(
    store: GcsStore, direct: Direct
) -> None:
    """What was said first was true then."""

    def make(sent: Sent) -> None:
        assert direct.app is not None
        direct.app.service.insert(BUCKET, "f", b"data")

    direct.after = lambda sent: make(sent) if "/download/" in sent.path else None
    with pytest.raises(UnavailableError, match="was created or deleted during the request"):
        await store.get("/f", LIMIT)


@pytest.mark.parametrize(
    "answer, expected",
    [
        (Response(200, {"content-type": "text/html"}, b"<html>"), RejectedError),
        (Response(404, {"x-guploader-uploadid": "A"}, b"The specified bucket"), NotFoundError),
        (Response(503, {}, b""), ThrottledError),
        (Response(500, {}, b""), UnavailableError),
        (Response(302, {}, b""), RejectedError),
        (NoAnswerError("cut"), UnavailableError),
    ],
)
async def test_a_read_that_fails(
    store: GcsStore, direct: Direct, answer: Response | TransportError, expected: type[StoreError]
) -> None:
    """A page that says hello is no content of a file."""
    direct.before = lambda sent: answer if "/download/" in sent.path else None
    with pytest.raises(expected):
        await store.get("/f", LIMIT)


async def test_a_denied_read_names_the_permission(store: GcsStore, direct: Direct) -> None:
    """Whether in text or in JSON."""
    await store.put("/f", b"")
    assert direct.app is not None
    direct.app.service.denied.add("storage.objects.get")
    with pytest.raises(DeniedError, match=r"storage\.objects\.get"):
        await store.head("/f")


async def test_a_file_of_more_than_the_limit_is_refused(store: GcsStore) -> None:
    """With its size."""
    await store.put("/f", b"12345")
    with pytest.raises(RejectedError, match="holds 5 bytes, more than 4"):
        await store.get("/f", 4)


@pytest.mark.parametrize(
    "body, expected",
    [
        (b"<html>", RejectedError),
        (b'{"kind":"storage#objects","nextPageToken":"more"}', UnavailableError),
    ],
)
async def test_what_cannot_be_told_of_a_directory_is_an_error(
    store: GcsStore,
    direct: Direct,
    body: bytes,
    expected: type[StoreError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not that there is none."""
    monkeypatch.setattr("asynccommit.stores.http.flat.PAGES", 5)
    direct.before = lambda sent: Response(200, {}, body) if sent.path.endswith("/o") else None
    with pytest.raises(expected):
        await store.head("/d")


# --- large files -----------------------------------------------------------------------------


def large(direct: Direct, **options: Any) -> GcsStore:
    """Return a store that uploads more than 256 KiB in pieces of that."""
    return new_store(direct, hns=False, chunk=CHUNK, **options)


async def test_a_large_file_is_sent_in_pieces(direct: Direct) -> None:
    """It is there once the last one is."""
    store, data = large(direct), bytes(range(256)) * 2560
    seen = []

    def look(sent: Sent) -> None:
        assert direct.app is not None
        seen.append("f" in [item.name for item in direct.app.service.list(BUCKET).items])

    direct.before = look
    info = await store.put("/f", data, overwrite=False, token="1-2-3")

    assert seen == [False] * 4
    assert [sent.method for sent in direct.seen] == ["POST", "PUT", "PUT", "PUT"]
    assert direct.seen[-1].headers["content-range"] == f"bytes 524288-655359/{len(data)}"
    assert model_object(direct, "f").content.data == data
    assert info == await store.head("/f")
    assert info.token == "1-2-3"


async def test_a_file_of_one_piece_is_one_request(direct: Direct) -> None:
    """Exactly as large as a piece."""
    await large(direct).put("/f", b"x" * CHUNK)
    assert len(direct.seen) == 1


async def test_a_large_file_does_not_replace_unasked(direct: Direct) -> None:
    """Whether it was there at the beginning or came meanwhile."""
    store, data = large(direct), b"x" * (2 * CHUNK)
    await store.put("/f", b"old")
    with pytest.raises(ExistsError):
        await store.put("/f", data, overwrite=False)
    await store.delete("/f")

    def make(sent: Sent) -> None:
        if sent.method == "PUT":
            assert direct.app is not None
            direct.app.service.insert(BUCKET, "f", b"old")

    direct.before = make
    with pytest.raises(ExistsError):
        await store.put("/f", data, overwrite=False)
    assert model_object(direct, "f").content.data == b"old"


@pytest.mark.parametrize(
    "at, answer, expected",
    [
        (1, Response(503, {}, b""), ThrottledError),
        (1, NoAnswerError("cut"), UnavailableError),
        (1, Response(200, {}, b""), RejectedError),
        (1, Response(200, {"location": "http://x/"}, b""), RejectedError),
        (2, NoAnswerError("cut"), UnavailableError),
        (2, Response(503, {}, b""), ThrottledError),
        (2, Response(500, {}, b""), UnavailableError),
        (2, Response(200, {}, b"{}"), RejectedError),
        (3, NoAnswerError("cut"), OutcomeUnknownError),
        (3, Response(503, {}, b""), OutcomeUnknownError),
        (3, Response(200, {}, b"<html>"), OutcomeUnknownError),
    ],
)
async def test_only_the_last_piece_can_leave_it_unknown(
    direct: Direct, at: int, answer: Response | TransportError, expected: type[StoreError]
) -> None:
    """Before that nothing is there that anybody sees."""
    store = large(direct)
    direct.before = lambda sent: answer if len(direct.seen) == at else None
    with pytest.raises(expected) as caught:
        await store.put("/f", b"x" * (2 * CHUNK))
    assert type(caught.value) is expected


async def test_what_the_service_kept_less_of_is_sent_again(direct: Direct) -> None:
    """It says how far it has got."""
    store, data = large(direct), bytes(range(256)) * 3072
    kept = [Response(308, {"range": "bytes=0-99"}, b""), Response(308, {}, b"")]
    starts = []

    def answer(sent: Sent) -> Response | None:
        if sent.method != "PUT":
            return None
        starts.append(sent.headers["content-range"].split()[1].partition("-")[0])
        return kept.pop() if kept else Response(500, {}, b"")

    direct.before = answer
    with pytest.raises(UnavailableError):
        await store.put("/f", data)
    assert starts == ["0", "0", "100"]


async def test_an_upload_that_gets_nowhere_is_given_up(direct: Direct) -> None:
    """A server that keeps nothing is not asked for ever."""
    direct.before = lambda sent: Response(308, {}, b"") if sent.method == "PUT" else None
    with pytest.raises(UnavailableError, match="did not end"):
        await large(direct).put("/f", b"x" * (2 * CHUNK))
    assert len(direct.seen) == 7


async def test_pieces_go_to_the_endpoint_that_was_named(direct: Direct) -> None:
    """Wherever the server says that the session is: credentials are for one host."""
    there = (
        "https://elsewhere.example/upload/storage/v1/b/data/o?upload_id=7&userProject=my-project"
    )
    seen = []

    def answer(sent: Sent) -> Response | None:
        if sent.method == "POST":
            return Response(200, {"location": there}, b"")
        seen.append(sent)
        return Response(500, {}, b"")

    direct.before = answer
    with pytest.raises(UnavailableError):
        await large(direct, requester_pays="my-project").put("/f", b"x" * (2 * CHUNK))
    assert [(sent.path, sent.query) for sent in seen] == [
        (UPLOADS, "upload_id=7&userProject=my-project")
    ]


# --- copies ----------------------------------------------------------------------------------


async def test_a_copy_takes_as_many_requests_as_the_service_wants() -> None:
    """Its conditions are in each of them."""
    direct = Direct(GcsApp(new_service(GcsLimits(rewrite_bytes=1000))))
    store = new_store(direct, hns=False)
    await store.put("/a", b"x" * 3500)
    await store.copy("/a", "/b")
    assert await store.get("/b", LIMIT) == b"x" * 3500
    copies = [asked(sent) for sent in direct.seen if "rewriteTo" in sent.path]
    assert [one["ifGenerationMatch"] for one in copies] == ["0"] * 4
    assert ["rewriteToken" in one for one in copies] == [False, True, True, True]


async def test_a_copy_takes_no_more_at_once_than_is_said(direct: Direct) -> None:
    """Hadoop's key says how much one request copies."""
    options: dict[str, Any] = {"fs.gs.rewrite.max.chunk.size": str(1 << 20)}
    store = new_store(direct, hns=False, **options)
    await store.put("/a", b"data")
    await store.copy("/a", "/b")
    assert asked(direct.seen[-1])["maxBytesRewrittenPerCall"] == str(1 << 20)


@pytest.mark.parametrize(
    "body", [b"<html>", b"{}", b'{"done":false}', b'{"done":false,"rewriteToken":7}', b"[]"]
)
async def test_a_copy_whose_answer_cannot_be_read_is_unknown(
    store: GcsStore, direct: Direct, body: bytes
) -> None:
    """It may have been done."""
    direct.before = lambda sent: Response(200, {}, body)
    with pytest.raises(OutcomeUnknownError):
        await store.copy("/a", "/b")


async def test_a_copy_token_that_is_gone_leaves_nothing_done(
    store: GcsStore, direct: Direct
) -> None:
    """It can be begun again."""
    said = b'{"error":{"message":"gone","errors":[{"reason":"gone"}]}}'
    direct.before = lambda sent: Response(410, {}, said)
    with pytest.raises(UnavailableError):
        await store.copy("/a", "/b")


# --- keys and payers -------------------------------------------------------------------------


async def test_a_key_of_the_caller_goes_with_what_holds_content(direct: Direct) -> None:
    """And with the source of a copy; listings are known to say less of such objects."""
    store = new_store(direct, hns=False, encryption_key=KEY)
    sha = base64.b64encode(hashlib.sha256(bytes(range(32))).digest()).decode()
    info = await store.put("/a", b"data", overwrite=False)
    await store.copy("/a", "/b")
    direct.before = lambda sent: Response(500, {}, b"")
    with pytest.raises(UnavailableError):
        await store.get("/a", LIMIT)

    put, copy, get = direct.seen
    for sent in (put, copy, get):
        assert sent.headers["x-goog-encryption-key"] == KEY
        assert sent.headers["x-goog-encryption-key-sha256"] == sha
    assert copy.headers["x-goog-copy-source-encryption-key"] == KEY
    assert store.traits.lasting(info.etag)
    assert not store.traits.whole_listings
    assert KEY not in repr(store)


@pytest.mark.parametrize(
    "reason",
    ["resourceNotEncryptedWithCustomerEncryptionKey", "customerEncryptionKeyIsIncorrect"],
)
async def test_what_others_wrote_is_seen_without_the_key(direct: Direct, reason: str) -> None:
    """An object that is encrypted otherwise is looked at, and read, as if there were none."""
    store = new_store(direct, hns=False, encryption_key=KEY)
    info = await store.put("/a", b"data")
    said = orjson.dumps({"error": {"message": "no", "errors": [{"reason": reason}]}})
    refused = Response(400, {}, said)
    direct.before = lambda sent: refused if "x-goog-encryption-key" in sent.headers else None

    assert await store.head("/a") == info
    assert await store.get("/a", LIMIT) == b"data"
    with pytest.raises(RejectedError, match=reason):
        await store.put("/a", b"data")


async def test_a_key_of_the_service_is_named_where_objects_are_made(direct: Direct) -> None:
    """By uploads, small and large, by placeholders and by copies."""
    store = large(direct, kms_key_name=KMS)
    await store.put("/a", b"1")
    await store.put("/b", b"1", token="1-2-3")
    await store.put("/c", b"x" * (CHUNK + 1))
    await store.mkdir("/d")
    await store.copy("/a", "/e")
    for name in ("a", "b", "c", "d/", "e"):
        assert model_object(direct, name).details.kms_key_name == KMS


async def test_who_pays_is_said_in_every_request() -> None:
    """Else the bucket refuses each of them."""
    direct = Direct(GcsApp(new_service(requester_pays=True)))
    store = new_store(direct, requester_pays="my-project")
    info = await store.put("/a/f", b"1")
    await store.put("/a/g", b"1", token="1-2-3")
    await store.rename("/a/f", "/a/h", etag=info.etag)
    await store.copy("/a/h", "/a/i")
    await store.get("/a/i", LIMIT)
    await store.mkdir("/b")
    await store.delete("/b")
    await store.delete("/a/h")
    await store.list_tree("/")
    assert all(asked(sent)["userProject"] == "my-project" for sent in direct.seen)

    direct.seen.clear()
    with pytest.raises(RejectedError, match="set requester_pays"):
        await new_store(direct, hns=False).head("/a/i")


async def test_extra_headers_go_with_every_request(direct: Direct) -> None:
    """As Hadoop's keys say; those of a request come first."""
    options: dict[str, Any] = {"fs.gs.storage.http.headers.X-Own": "1"}
    store = new_store(direct, hns=False, **options)
    await store.put("/a", b"1")
    await store.rename("/a", "/b")
    assert [sent.headers["x-own"] for sent in direct.seen] == ["1", "1"]
