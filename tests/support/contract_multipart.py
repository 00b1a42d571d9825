"""The rules of the ``MultipartStore`` contract, as ``contract`` has those of every store.

@pytest.mark.parametrize("rule", MULTIPART_RULES, ids=name_of)
async def test_contract(rule: MultipartRule, store: MultipartStore) -> None:
    await rule(store, "/root")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.stores.base import Info, Kind, Multipart
from asynccommit.stores.multipart import MultipartStore, Upload
from asynccommit.stores.parts import Part
from asynccommit.stores.tree import tree_pages
from tests.support.contract import LIMIT, NAMES, names_in

MultipartRule = Callable[[MultipartStore, str], Awaitable[None]]
MULTIPART_RULES: list[MultipartRule] = []

_MOST = 64 << 20  # bytes that are read back


def rule(function: MultipartRule) -> MultipartRule:
    """Add a rule to the suite."""
    MULTIPART_RULES.append(function)
    return function


def bounds(store: MultipartStore) -> Multipart:
    """Return what the parts of uploads may be."""
    found = store.traits.multipart
    assert found is not None
    return found


def pieces(store: MultipartStore, count: int, mark: bytes = b"p") -> list[bytes]:
    """Return the content of parts: all but the last as small as may be, each another one."""
    room = max(bounds(store).smallest, 8)
    full = [(mark + b"%d." % number).ljust(room, b"-") for number in range(count - 1)]
    return [*full, mark + b"the last"]


async def begin(store: MultipartStore, path: str, datas: Sequence[bytes]) -> tuple[str, list[Part]]:
    """Begin an upload and send its parts."""
    upload_id = await store.create_upload(path)
    numbered = enumerate(datas, 1)
    return upload_id, [await store.put_part(path, upload_id, at, data) for at, data in numbered]


async def upload(store: MultipartStore, path: str, mark: bytes = b"p") -> tuple[str, list[Part]]:
    """Upload a file in two parts; return the upload's id, which is over, and the parts."""
    upload_id, parts = await begin(store, path, pieces(store, 2, mark))
    await store.complete_upload(path, upload_id, parts)
    return upload_id, parts


async def uploads_below(store: MultipartStore, path: str) -> list[Upload]:
    """Return all uploads below a directory."""
    return [one async for page in upload_pages(store, path) for one in page]


async def upload_pages(store: MultipartStore, path: str) -> AsyncIterator[tuple[Upload, ...]]:
    """Yield the pages of uploads below a directory."""
    token: str | None = None
    while True:
        page = await store.list_uploads(path, token)
        yield page.entries
        token = page.token
        if token is None:
            return


async def parts_of(store: MultipartStore, path: str, upload_id: str) -> list[tuple[int, Part, int]]:
    """Return all parts of an upload."""
    found: list[tuple[int, Part, int]] = []
    token: str | None = None
    while True:
        page = await store.list_parts(path, upload_id, token)
        found += page.entries
        token = page.token
        if token is None:
            return found


def requests_of(
    store: MultipartStore, path: str, upload_id: str, part: Part
) -> list[Callable[[], Awaitable[object]]]:
    """Return every request that needs an upload to be there."""
    return [
        lambda: store.put_part(path, upload_id, 1, b"late"),
        lambda: store.complete_upload(path, upload_id, [part]),
        lambda: store.complete_upload(path, upload_id, [part], overwrite=False),
        lambda: store.list_parts(path, upload_id),
        lambda: store.abort_upload(path, upload_id),
    ]


# --- completing ------------------------------------------------------------------------------


@rule
async def nothing_is_visible_before_it_is_completed(store: MultipartStore, root: str) -> None:
    """However many parts were sent, no request shows the file; then it is there whole."""
    path, datas = f"{root}/d/f", pieces(store, 3)
    upload_id, parts = await begin(store, path, datas)
    with pytest.raises(NotFoundError):
        await store.head(path)
    with pytest.raises(NotFoundError):
        await store.get(path, LIMIT)
    assert await names_in(store, root) == []
    assert [info async for page in tree_pages(store, root) for info in page] == []
    made = await store.complete_upload(path, upload_id, parts)
    assert await store.get(path, _MOST) == b"".join(datas)
    found = await store.head(path)
    assert (found.path, found.kind, found.size) == (path, Kind.FILE, len(b"".join(datas)))
    assert (made.path, made.etag) == (path, found.etag)
    assert made.size in (0, found.size)  # The answer of a service may not tell.
    assert await names_in(store, f"{root}/d") == ["f"]


@rule
async def one_part_may_be_empty(store: MultipartStore, root: str) -> None:
    """A file of no bytes is one part of none."""
    upload_id, parts = await begin(store, f"{root}/f", [b""])
    made = await store.complete_upload(f"{root}/f", upload_id, parts)
    assert (made.path, await store.get(f"{root}/f", LIMIT)) == (f"{root}/f", b"")


@rule
async def parts_may_be_sent_in_any_order(store: MultipartStore, root: str) -> None:
    """The numbers give the order, whichever part comes first."""
    path, datas = f"{root}/f", pieces(store, 4)
    upload_id = await store.create_upload(path)
    sent = [store.put_part(path, upload_id, at, datas[at - 1]) for at in (4, 2, 1, 3)]
    fourth, second, first, third = await asyncio.gather(*sent)
    await store.complete_upload(path, upload_id, [first, second, third, fourth])
    assert await store.get(path, _MOST) == b"".join(datas)


@rule
async def the_last_sending_of_a_part_counts(store: MultipartStore, root: str) -> None:
    """A part can be sent again; what it was before is refused, and the upload goes on."""
    path = f"{root}/f"
    upload_id, [old] = await begin(store, path, [b"old"])
    new = await store.put_part(path, upload_id, 1, b"new")
    with pytest.raises(PreconditionError):
        await store.complete_upload(path, upload_id, [old])
    await store.complete_upload(path, upload_id, [new])
    assert await store.get(path, LIMIT) == b"new"


@rule
async def parts_that_were_not_sent_are_refused(store: MultipartStore, root: str) -> None:
    """A part too many, or two that changed places: the upload stays, and nothing is visible."""
    path = f"{root}/f"
    upload_id, parts = await begin(store, path, pieces(store, 2))
    wrong = ([*parts, parts[0]], [parts[1], parts[0]], [Part("0" * 32)])
    for named in wrong:
        with pytest.raises(PreconditionError):
            await store.complete_upload(path, upload_id, named)
    with pytest.raises((PreconditionError, RejectedError)):
        await store.complete_upload(path, upload_id, [])
    assert await names_in(store, root) == []
    await store.complete_upload(path, upload_id, parts)


@rule
async def only_the_last_part_may_be_small(store: MultipartStore, root: str) -> None:
    """A part that is too small and not the last one is refused; the upload stays."""
    if bounds(store).smallest < 2:
        return
    path = f"{root}/f"
    upload_id, parts = await begin(store, path, [b"1", *pieces(store, 2)])
    with pytest.raises(PreconditionError):
        await store.complete_upload(path, upload_id, parts)
    assert [one.upload_id for one in await uploads_below(store, root)] == [upload_id]
    assert await names_in(store, root) == []


@rule
async def parts_that_are_not_named_are_left_out(store: MultipartStore, root: str) -> None:
    """What was sent and is not among the parts is no part of the file."""
    upload_id, parts = await begin(store, f"{root}/f", pieces(store, 2))
    await store.complete_upload(f"{root}/f", upload_id, parts[:1])
    assert await store.get(f"{root}/f", _MOST) == pieces(store, 2)[0]
    assert await uploads_below(store, root) == []


@rule
async def an_upload_is_completed_once(store: MultipartStore, root: str) -> None:
    """The same again is answered as before, or that there is no such upload, and does nothing."""
    path = f"{root}/f"
    upload_id, parts = await upload(store, path)
    assert await uploads_below(store, root) == []
    await store.put(path, b"newer")
    try:
        await store.complete_upload(path, upload_id, parts)
    except StoreError as error:
        assert isinstance(error, NotFoundError)  # noqa: PT017  either may come
    assert await store.get(path, LIMIT) == b"newer"


@rule
async def completing_replaces_unless_told_not_to(store: MultipartStore, root: str) -> None:
    """What is there stays when it is not to be overwritten; the upload waits, and replaces it."""
    path, datas = f"{root}/f", pieces(store, 2)
    await store.put(path, b"old")
    upload_id, parts = await begin(store, path, datas)
    with pytest.raises(ExistsError):
        await store.complete_upload(path, upload_id, parts, overwrite=False)
    assert await store.get(path, LIMIT) == b"old"
    assert [one.upload_id for one in await uploads_below(store, root)] == [upload_id]
    await store.complete_upload(path, upload_id, parts)
    assert await store.get(path, _MOST) == b"".join(datas)
    other = f"{root}/g"
    upload_id, parts = await begin(store, other, datas)
    await store.complete_upload(other, upload_id, parts, overwrite=False)
    assert await store.get(other, _MOST) == b"".join(datas)


@rule
async def completing_lets_one_of_many_win(store: MultipartStore, root: str) -> None:
    """Of many uploads of one file that must not overwrite exactly one becomes it."""
    if not bounds(store).conditional:
        return
    path = f"{root}/f"
    datas = [f"writer {number}".encode() for number in range(8)]
    begun = [await begin(store, path, [data]) for data in datas]
    results = await asyncio.gather(
        *(store.complete_upload(path, name, parts, overwrite=False) for name, parts in begun),
        return_exceptions=True,
    )
    won = [data for data, result in zip(datas, results, strict=True) if isinstance(result, Info)]
    assert len(won) == 1
    assert sum(isinstance(result, ExistsError | PreconditionError) for result in results) == 7
    assert await store.get(path, LIMIT) == won[0]


@rule
async def readers_see_whole_uploads(store: MultipartStore, root: str) -> None:
    """While one upload after the other replaces a file, each reader gets one of them whole."""
    path = f"{root}/f"
    versions = {bytes([number]) * 50_000 for number in range(6)}
    await store.put(path, min(versions))
    begun = [await begin(store, path, [data]) for data in versions]
    writes = [store.complete_upload(path, name, parts) for name, parts in begun]
    reads = [store.get(path, LIMIT) for _ in range(12)]
    _, seen = await asyncio.gather(asyncio.gather(*writes), asyncio.gather(*reads))
    assert set(seen) <= versions


@rule
async def completing_may_ask_for_an_etag(store: MultipartStore, root: str) -> None:
    """It replaces what has the etag; another's file, or none, stays, and so does the upload."""
    path, datas = f"{root}/f", pieces(store, 2)
    upload_id, parts = await begin(store, path, datas)
    meant = await store.put(path, b"meant")
    await store.delete(path)
    with pytest.raises(PreconditionError):
        await store.complete_upload(path, upload_id, parts, etag=meant.etag)
    other = await store.put(path, b"another")
    with pytest.raises(PreconditionError):
        await store.complete_upload(path, upload_id, parts, etag=meant.etag)
    assert await store.get(path, LIMIT) == b"another"
    assert [one.upload_id for one in await uploads_below(store, root)] == [upload_id]
    made = await store.complete_upload(path, upload_id, parts, overwrite=False, etag=other.etag)
    assert await store.get(path, _MOST) == b"".join(datas)
    last, parts = await begin(store, path, pieces(store, 2, b"last"))
    await store.complete_upload(path, last, parts, etag=made.etag)


@rule
async def an_etag_lets_one_of_many_replace(store: MultipartStore, root: str) -> None:
    """Of many uploads that are to replace one version of a file exactly one does."""
    if not bounds(store).matches:
        return
    path = f"{root}/f"
    old = await store.put(path, b"old")
    datas = [f"writer {number}".encode() for number in range(8)]
    begun = [await begin(store, path, [data]) for data in datas]
    results = await asyncio.gather(
        *(store.complete_upload(path, name, parts, etag=old.etag) for name, parts in begun),
        return_exceptions=True,
    )
    won = [data for data, result in zip(datas, results, strict=True) if isinstance(result, Info)]
    assert len(won) == 1
    assert sum(isinstance(result, PreconditionError) for result in results) == 7
    assert await store.get(path, LIMIT) == won[0]


# --- aborting --------------------------------------------------------------------------------


@rule
async def an_aborted_upload_is_gone(store: MultipartStore, root: str) -> None:
    """After its end no request finds it, and it leaves nothing visible."""
    path = f"{root}/f"
    upload_id, parts = await begin(store, path, pieces(store, 2))
    await store.abort_upload(path, upload_id)
    for request in requests_of(store, path, upload_id, parts[0]):
        with pytest.raises(NotFoundError) as caught:
            await request()
        assert caught.value.path == path
    assert await uploads_below(store, root) == []
    assert await names_in(store, root) == []


@rule
async def a_completed_upload_cannot_be_aborted(store: MultipartStore, root: str) -> None:
    """To abort what was completed finds no upload, and leaves the file."""
    upload_id, _ = await upload(store, f"{root}/f")
    with pytest.raises(NotFoundError):
        await store.abort_upload(f"{root}/f", upload_id)
    assert await names_in(store, root) == ["f"]


@rule
async def uploads_of_one_file_are_apart(store: MultipartStore, root: str) -> None:
    """To abort one upload of a file leaves the others as they are."""
    path, datas = f"{root}/f", pieces(store, 2)
    first, _ = await begin(store, path, pieces(store, 2, b"other"))
    second, parts = await begin(store, path, datas)
    assert first != second
    await store.abort_upload(path, first)
    await store.complete_upload(path, second, parts)
    assert await store.get(path, _MOST) == b"".join(datas)


@rule
async def an_upload_belongs_to_its_path(store: MultipartStore, root: str) -> None:
    """Under another path there is no such upload, for any request."""
    upload_id, parts = await begin(store, f"{root}/f", [b"data"])
    for request in requests_of(store, f"{root}/g", upload_id, parts[0]):
        with pytest.raises(NotFoundError):
            await request()
    await store.complete_upload(f"{root}/f", upload_id, parts)
    assert await names_in(store, root) == ["f"]


# --- completed -------------------------------------------------------------------------------


@rule
async def completed_tells_what_became_of_an_upload(store: MultipartStore, root: str) -> None:
    """Nothing before, what head says after, and nothing again once it is replaced or deleted."""
    path = f"{root}/f"
    upload_id, parts = await begin(store, path, pieces(store, 2))
    assert await store.completed(path, parts) is None
    await store.put(path, b"another")
    assert await store.completed(path, parts) is None
    await store.complete_upload(path, upload_id, parts)
    assert await store.completed(path, parts) == await store.head(path)
    await store.put(path, b"another")
    assert await store.completed(path, parts) is None
    await store.delete(path)
    assert await store.completed(path, parts) is None


@rule
async def completed_never_takes_another_upload_for_this_one(
    store: MultipartStore, root: str
) -> None:
    """An object of other parts is another, whether of as many or of more; or nobody can tell."""
    path = f"{root}/f"
    _, mine = await begin(store, path, pieces(store, 2))
    await upload(store, path, b"other")
    try:
        assert await store.completed(path, mine) is None
    except StoreError as error:
        assert isinstance(error, OutcomeUnknownError)  # noqa: PT017  where etags are no MD5s
    longer, parts = await begin(store, path, pieces(store, 3))
    await store.complete_upload(path, longer, parts)
    assert await store.completed(path, mine) is None


@rule
async def an_upload_is_told_by_its_token(store: MultipartStore, root: str) -> None:
    """What bears the token is the upload's, and nothing else is: not even of the same parts."""
    if not store.traits.put_tokens:
        return
    path, datas = f"{root}/f", pieces(store, 2)
    mine, other = "0b0e7c6e-0000-4000-8000-000000000001", "0b0e7c6e-0000-4000-8000-000000000002"
    upload_id = await store.create_upload(path, token=mine)
    parts = [await store.put_part(path, upload_id, at, data) for at, data in enumerate(datas, 1)]
    assert await store.completed(path, parts, mine) is None
    await store.complete_upload(path, upload_id, parts, token=mine)
    found = await store.head(path)
    assert found.token == mine
    assert await store.completed(path, parts, mine) == found
    assert await store.completed(path, [], mine) == found
    assert await store.completed(path, parts, other) is None
    _, parts = await upload(store, path)
    assert await store.completed(path, parts, mine) is None
    assert (await store.completed(path, parts)) == await store.head(path)
    await store.delete(path)
    assert await store.completed(path, parts, mine) is None


# --- listing ---------------------------------------------------------------------------------


@rule
async def uploads_are_listed_by_directory(store: MultipartStore, root: str) -> None:
    """A listing has the uploads below a directory, each once, and those of no other name."""
    names = ["t/a", "t/d=1/b", "t/d=1/b", "t2/a", "t"]
    begun = [(f"{root}/{name}", await store.create_upload(f"{root}/{name}")) for name in names]
    shown = await uploads_below(store, root)
    assert sorted((one.path, one.upload_id) for one in shown) == sorted(begun)
    assert all(one.initiated > 0 for one in shown)
    found = [one.path.removeprefix(root) for one in await uploads_below(store, f"{root}/t")]
    assert sorted(found) == ["/t/a", "/t/d=1/b", "/t/d=1/b"]
    assert await uploads_below(store, f"{root}/t/d") == []
    assert (await store.list_uploads(f"{root}/gone")).entries == ()


@rule
async def pages_of_uploads_show_everything_once(store: MultipartStore, root: str) -> None:
    """All pages together hold every upload once; a page can be asked for again."""
    paths = [f"{root}/d{number % 3}/f{number % 5}" for number in range(30)]
    begun = [(path, await store.create_upload(path)) for path in paths]
    found: list[tuple[str, str]] = []
    token: str | None = None
    while True:
        page = await store.list_uploads(root, token)
        assert page.entries == (await store.list_uploads(root, token)).entries
        found += [(one.path, one.upload_id) for one in page.entries]
        token = page.token
        if token is None:
            break
    assert sorted(found) == sorted(begun)


@rule
async def uploads_that_end_between_two_pages_hide_no_other(
    store: MultipartStore, root: str
) -> None:
    """Who aborts what each page shows has ended them all."""
    for number in range(20):
        await store.create_upload(f"{root}/f{number % 4}")
    async for page in upload_pages(store, root):
        for one in page:
            await store.abort_upload(one.path, one.upload_id)
    assert await uploads_below(store, root) == []


@rule
async def parts_are_listed_as_they_were_acknowledged(store: MultipartStore, root: str) -> None:
    """A listing has every part by number, with its bytes; the file can be completed by it."""
    path, datas = f"{root}/f", pieces(store, 12)
    upload_id, parts = await begin(store, path, datas)
    listed = await parts_of(store, path, upload_id)
    assert [(number, size) for number, _, size in listed] == [
        (number, len(data)) for number, data in enumerate(datas, 1)
    ]
    assert [part.etag.strip('"') for _, part, _ in listed] == [
        part.etag.strip('"') for part in parts
    ]
    await store.complete_upload(path, upload_id, [part for _, part, _ in listed])
    assert await store.get(path, _MOST) == b"".join(datas)


# --- others ----------------------------------------------------------------------------------


@rule
async def a_marker_is_an_empty_file(store: MultipartStore, root: str) -> None:
    """It takes the place of what is there, and what is said of it is not shown."""
    await store.put(f"{root}/f", b"old")
    made = await store.put_marker(f"{root}/f", {"x-hadoop-s3a-magic-data-length": "12"})
    found = await store.head(f"{root}/f")
    assert (found.kind, found.size, found.token) == (Kind.FILE, 0, None)
    assert (made.path, made.size, made.etag) == (found.path, 0, found.etag)
    assert await store.get(f"{root}/f", LIMIT) == b""


@rule
async def a_copy_may_ask_for_an_etag(store: MultipartStore, root: str) -> None:
    """A file is copied over what is there while it has its etag, and never with another one."""
    await store.put(f"{root}/b", b"old")
    meant = await store.put(f"{root}/a", b"meant")
    assert meant.etag is not None
    await store.copy_if(f"{root}/a", f"{root}/b", meant.etag)
    assert await store.get(f"{root}/b", LIMIT) == b"meant"
    await store.put(f"{root}/a", b"another")
    with pytest.raises(PreconditionError):
        await store.copy_if(f"{root}/a", f"{root}/b", meant.etag)
    with pytest.raises(NotFoundError) as caught:
        await store.copy_if(f"{root}/gone", f"{root}/b", meant.etag)
    assert caught.value.path == f"{root}/gone"
    assert await store.get(f"{root}/b", LIMIT) == b"meant"


@rule
async def a_copy_may_ask_for_what_it_replaces(store: MultipartStore, root: str) -> None:
    """It takes the place of one version of a file: of another, or of nothing, it is refused."""
    source, dest = f"{root}/a", f"{root}/b"
    meant = await store.put(source, b"meant")
    old = await store.put(dest, b"old")
    assert meant.etag is not None
    assert old.etag is not None
    await store.copy_if(source, dest, meant.etag, replaces=old.etag)
    assert await store.get(dest, LIMIT) == b"meant"
    await store.put(dest, b"another")
    with pytest.raises(PreconditionError):
        await store.copy_if(source, dest, meant.etag, replaces=old.etag)
    assert await store.get(dest, LIMIT) == b"another"
    await store.delete(dest)
    with pytest.raises(PreconditionError):
        await store.copy_if(source, dest, meant.etag, replaces=old.etag)
    await store.put(dest, b"old")
    with pytest.raises(NotFoundError) as caught:
        await store.copy_if(f"{root}/gone", dest, meant.etag, replaces=old.etag)
    assert caught.value.path == f"{root}/gone"


@rule
async def uploads_keep_names_as_they_are(store: MultipartStore, root: str) -> None:
    """Spaces, percent signs, emoji and every other hostile name survive a whole upload."""
    made = []
    for name in NAMES:
        path = f"{root}/in/{name}"
        try:
            upload_id = await store.create_upload(path)
        except RejectedError:
            assert name == "new\nline"
            continue
        made.append(name)
        part = await store.put_part(path, upload_id, 1, name.encode())
        assert [one.path for one in await uploads_below(store, f"{root}/in")] == [path]
        assert (await parts_of(store, path, upload_id))[0][0] == 1
        await store.complete_upload(path, upload_id, [part], overwrite=False)
        assert await store.completed(path, [part]) == await store.head(path)
        assert await store.get(path, LIMIT) == name.encode()
    assert await names_in(store, f"{root}/in") == sorted(made)


@rule
async def an_upload_under_a_name_that_is_too_long_is_refused(
    store: MultipartStore, root: str
) -> None:
    """It is refused when it is begun, and said to be so."""
    with pytest.raises(RejectedError):
        await store.create_upload(f"{root}/{'n' * 2000}")
    assert await uploads_below(store, root) == []
