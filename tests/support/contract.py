"""The rules of the ``Store`` contract as tests that any store and any wrapper can run.

Each rule is an async function of a store and of a path that is a fresh, empty directory. A store's
own test module runs them all:

    @pytest.mark.parametrize("rule", RULES, ids=name_of)
    async def test_contract(rule: Rule, store: Store, root: str) -> None:
        await rule(store, root)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.stores.base import (
    BatchStore,
    BulkStore,
    DirectoryStore,
    DraftingStore,
    Info,
    Kind,
    Move,
    OwnedStore,
    Store,
    TaggedStore,
)
from asynccommit.stores.tree import list_all, remove_tree, tree_pages, walk

Rule = Callable[[Store, str], Awaitable[None]]
RULES: list[Rule] = []

LIMIT = 1 << 20
NAMES = [
    "part-00000.snappy.parquet",
    "with space and  two",
    "100%",
    "a%20b",
    "a+b=c&d",
    "day=2024-01-01 00:00:00",
    "Grüße-Ελλάδα-日本語",
    "cafe\u0301",
    "rocket-🚀",
    "quote'\"`",
    "back\\slash",
    "[glob]*?{x}",
    "#frag?query",
    "-rf",
    "~",
    ".hidden",
    "_underscore",
    "...",
    "new\nline",
    "x" * 200,
]


def rule(function: Rule) -> Rule:
    """Add a rule to the suite."""
    RULES.append(function)
    return function


def name_of(function: Rule) -> str:
    """Return the name of a rule, for the name of a test."""
    return getattr(function, "__name__", "rule")


def as_listed(store: Store, info: Info) -> Info:
    """Return the facts that a listing has of what ``head`` has said."""
    whole = store.traits.whole_listings or info.etag is None
    etag = info.etag if whole else str(info.etag).partition("-")[0]
    return info._replace(made=0, etag=etag)


def can_rename(store: Store) -> bool:
    """Whether the store knows renames at all."""
    traits = store.traits
    return traits.atomic_rename or traits.rename_no_replace or traits.rename_replaces


async def move(store: Store, source: str, dest: str) -> None:
    """Rename a file, or copy and delete it where there are no renames."""
    if can_rename(store):
        await store.rename(source, dest)
        return
    await store.copy(source, dest)
    await store.delete(source)


async def names_in(store: Store, path: str) -> list[str]:
    """Return the sorted names in a directory."""
    return sorted(info.path.rpartition("/")[2] for info in await list_all(store, path))


# --- head, list ------------------------------------------------------------------------------


@rule
async def head_tells_a_file_by_kind_and_size(store: Store, root: str) -> None:
    """Head of a file answers its path, kind and size, and an etag."""
    await store.put(f"{root}/f", b"four")
    info = await store.head(f"{root}/f")
    assert (info.path, info.kind, info.size) == (f"{root}/f", Kind.FILE, 4)
    assert info.etag


@rule
async def content_is_told_with_its_etag(store: Store, root: str) -> None:
    """Where contents have etags, that of a read is that of ``head``, and changes with the file."""
    if not store.traits.tagged_get:
        return
    tagged, etags = cast(TaggedStore, store), []
    for data in (b"four", b"other"):
        await store.put(f"{root}/f", data)
        found, etag = await tagged.get_tagged(f"{root}/f", 100)
        assert found == data
        assert store.traits.same(etag, (await store.head(f"{root}/f")).etag)
        etags.append(etag)
    assert not store.traits.same(*etags)
    with pytest.raises(NotFoundError):
        await tagged.get_tagged(f"{root}/none", 100)


@rule
async def head_tells_a_directory(store: Store, root: str) -> None:
    """Head of a directory answers its kind and no size."""
    await store.mkdir(f"{root}/d")
    info = await store.head(f"{root}/d")
    assert (info.path, info.kind, info.size) == (f"{root}/d", Kind.DIRECTORY, 0)


@rule
async def entries_belong_to_who_made_them(store: Store, root: str) -> None:
    """Where entries have owners, head and listing name the same one, for a file and a directory."""
    made = await store.put(f"{root}/f", b"")
    await store.mkdir(f"{root}/d")
    heads = [(await store.head(f"{root}/{name}")).owner for name in ("d", "f")]
    listed = [info.owner for info in await list_all(store, root)]
    owned = store.traits.user is not None
    assert {(owner is not None, owner) for owner in [*heads, *listed]} == {(owned, heads[0])}
    assert made.owner in (None, heads[0])
    if store.traits.user:
        assert heads[0] == store.traits.user


@rule
async def nothing_is_found_where_nothing_is(store: Store, root: str) -> None:
    """Every request about a missing path says that there is none, and names it."""
    gone = f"{root}/gone"
    requests: list[Callable[[], Awaitable[object]]] = [
        lambda: store.head(gone),
        lambda: store.list(gone),
        lambda: store.get(gone, LIMIT),
        lambda: store.delete(gone),
        lambda: remove_tree(store, gone),
        lambda: store.copy(gone, f"{root}/x"),
    ]
    if can_rename(store):
        requests.append(lambda: store.rename(gone, f"{root}/x"))
        requests.append(lambda: store.rename(gone, f"{root}/x", replace=True))
    for request in requests:
        with pytest.raises(NotFoundError, match="gone") as caught:
            await request()
        assert caught.value.path == gone
    assert await names_in(store, root) == []


@rule
async def nothing_is_found_below_a_file(store: Store, root: str) -> None:
    """A path below a file is a path that is not there."""
    await store.put(f"{root}/f", b"")
    for request in (store.head, store.list, store.delete):
        with pytest.raises(NotFoundError):
            await request(f"{root}/f/x")
    with pytest.raises(NotFoundError):
        await remove_tree(store, f"{root}/f/x")
    with pytest.raises(NotFoundError):
        await store.get(f"{root}/f/x", LIMIT)


@rule
async def list_shows_direct_children_as_head_does(store: Store, root: str) -> None:
    """A listing holds each direct child once, with what head says of it, and nothing below."""
    await store.mkdir(f"{root}/d/e")
    await store.put(f"{root}/d/inner", b"1")
    await store.put(f"{root}/f", b"22")
    found = {info.path: info for info in await list_all(store, root)}
    assert sorted(found) == [f"{root}/d", f"{root}/f"]
    assert found[f"{root}/f"] == as_listed(store, await store.head(f"{root}/f"))
    assert found[f"{root}/d"].is_dir


@rule
async def list_of_an_empty_directory_is_empty(store: Store, root: str) -> None:
    """An empty directory has nothing in it, and is not missing."""
    assert await list_all(store, root) == []


@rule
async def list_refuses_a_file(store: Store, root: str) -> None:
    """A file is no directory."""
    await store.put(f"{root}/f", b"")
    with pytest.raises(PreconditionError):
        await store.list(f"{root}/f")


@rule
async def list_pages_show_everything_once(store: Store, root: str) -> None:
    """All pages together hold every name once; a page can be asked for again."""
    expected = [f"n{number:04d}" for number in range(60)]
    await asyncio.gather(*(store.put(f"{root}/{name}", b"") for name in expected))
    found: list[Info] = []
    token = None
    while True:
        page = await store.list(root, token)
        assert page.entries == (await store.list(root, token)).entries
        found += page.entries
        token = page.token
        if token is None:
            break
    assert sorted(info.path for info in found) == [f"{root}/{name}" for name in expected]


@rule
async def list_shows_what_was_acknowledged(store: Store, root: str) -> None:
    """A listing shows each change made before it, if the store says so."""
    if not store.traits.consistent_listing:
        return
    for number in range(5):
        await store.put(f"{root}/{number}", b"")
        assert f"{number}" in await names_in(store, root)
        await move(store, f"{root}/{number}", f"{root}/{number}b")
        assert await names_in(store, root) == [f"{number}b"]
        await store.delete(f"{root}/{number}b")
        assert await names_in(store, root) == []


@rule
async def walk_finds_everything_below(store: Store, root: str) -> None:
    """A walk yields every file and directory below once, directories before what they hold."""
    for directory in ("a/b/c", "a/d", "e"):
        await store.mkdir(f"{root}/{directory}")
        await store.put(f"{root}/{directory}/f", b"")
    order = [info.path.removeprefix(root) async for info in walk(store, root)]
    assert sorted(order) == [
        *("/a", "/a/b", "/a/b/c", "/a/b/c/f", "/a/d", "/a/d/f"),
        *("/e", "/e/f"),
    ]
    assert order.index("/a") < order.index("/a/b") < order.index("/a/b/c/f")


# --- put, get --------------------------------------------------------------------------------


@rule
async def get_returns_what_was_put(store: Store, root: str) -> None:
    """The content is the bytes that were put, empty ones and big ones too."""
    for data in (b"", b"x", bytes(range(256)) * 2048):
        info = await store.put(f"{root}/f", data)
        assert await store.get(f"{root}/f", LIMIT) == data
        found = (await store.head(f"{root}/f"))._replace(made=0)
        # Not every service says in its answer to a put when that was.
        assert info in (found, found._replace(modified=0.0))


@rule
async def get_refuses_more_than_the_limit(store: Store, root: str) -> None:
    """A file of exactly the limit is read, one byte more is refused."""
    await store.put(f"{root}/f", b"12345")
    assert await store.get(f"{root}/f", 5) == b"12345"
    with pytest.raises(RejectedError):
        await store.get(f"{root}/f", 4)


@rule
async def get_refuses_a_directory(store: Store, root: str) -> None:
    """A directory has no content."""
    await store.mkdir(f"{root}/d")
    with pytest.raises(PreconditionError):
        await store.get(f"{root}/d", LIMIT)


@rule
async def put_replaces_unless_told_not_to(store: Store, root: str) -> None:
    """A put replaces by default, and leaves what is there when told not to overwrite."""
    await store.put(f"{root}/f", b"old", overwrite=False)
    with pytest.raises(ExistsError):
        await store.put(f"{root}/f", b"new", overwrite=False)
    assert await store.get(f"{root}/f", LIMIT) == b"old"
    await store.put(f"{root}/f", b"new")
    assert await store.get(f"{root}/f", LIMIT) == b"new"
    assert await names_in(store, root) == ["f"]


@rule
async def put_needs_its_parent(store: Store, root: str) -> None:
    """Where there are directories, a file needs the one it is in."""
    if not store.traits.directories:
        return
    with pytest.raises(NotFoundError):
        await store.put(f"{root}/d/f", b"")
    assert await names_in(store, root) == []


@rule
async def put_never_replaces_a_directory(store: Store, root: str) -> None:
    """A file is not put in the place of a directory."""
    if not store.traits.directories:
        return
    await store.mkdir(f"{root}/d")
    with pytest.raises(PreconditionError):
        await store.put(f"{root}/d", b"")
    with pytest.raises(ExistsError):
        await store.put(f"{root}/d", b"", overwrite=False)
    assert (await store.head(f"{root}/d")).is_dir


@rule
async def a_draft_is_hidden_until_it_is_renamed(store: Store, root: str) -> None:
    """It is complete, each has a name of its own, and its etag is that of the renamed file."""
    if not store.traits.drafts:
        return
    drafting = cast(DraftingStore, store)
    one, two = await drafting.draft(root, b"one"), await drafting.draft(root, b"")
    assert one.path != two.path
    assert one.path.rpartition("/")[0] == root
    assert await names_in(store, root) == []
    await store.rename(one.path, f"{root}/f", etag=one.etag)
    assert await store.get(f"{root}/f", 100) == b"one"
    assert (await store.head(f"{root}/f")).etag == one.etag
    await store.rename(two.path, f"{root}/f", replace=True, etag=two.etag)
    assert await store.get(f"{root}/f", 100) == b""


@rule
async def a_reserved_file_is_filled_where_it_is(store: Store, root: str) -> None:
    """It is hidden until it is renamed; once its directory is gone, nothing is created again."""
    if not store.traits.drafts:
        return
    drafting = cast(DraftingStore, store)
    await store.mkdir(f"{root}/d")
    one, two, three = [await drafting.reserve(f"{root}/d") for _ in range(3)]
    assert await names_in(store, f"{root}/d") == []
    full, empty = await drafting.fill(one, b"one"), await drafting.fill(two, b"")
    assert (full.path, full.size, empty.size) == (one, 3, 0)
    await store.rename(one, f"{root}/f", etag=full.etag)
    assert await store.get(f"{root}/f", 100) == b"one"
    await store.rename(two, f"{root}/g", etag=empty.etag)
    await store.rename(f"{root}/d", f"{root}/away")
    with pytest.raises(NotFoundError):
        await drafting.fill(three, b"late")
    assert await names_in(store, root) == ["away", "f", "g"]


@rule
async def put_lets_one_of_many_win(store: Store, root: str) -> None:
    """Of many puts that must not overwrite exactly one succeeds, and its data is there."""
    if not store.traits.conditional_put:
        return
    datas = [f"writer {number}".encode() for number in range(32)]
    results = await asyncio.gather(
        *(store.put(f"{root}/f", data, overwrite=False) for data in datas), return_exceptions=True
    )
    won = [data for data, result in zip(datas, results, strict=True) if isinstance(result, Info)]
    assert len(won) == 1
    assert sum(isinstance(result, ExistsError) for result in results) == 31
    assert await store.get(f"{root}/f", LIMIT) == won[0]
    assert await names_in(store, root) == ["f"]


@rule
async def readers_see_whole_files(store: Store, root: str) -> None:
    """While a file is replaced again and again, each reader gets one version whole."""
    versions = {bytes([number]) * 100_000 for number in range(8)}
    await store.put(f"{root}/f", min(versions))
    writes = [store.put(f"{root}/f", data) for data in versions]
    reads = [store.get(f"{root}/f", LIMIT) for _ in range(16)]
    _, seen = await asyncio.gather(asyncio.gather(*writes), asyncio.gather(*reads))
    assert set(seen) <= versions


@rule
async def etag_changes_with_the_content(store: Store, root: str) -> None:
    """Two contents of the same size have two etags, and two files have two as well.

    Where files come in parts, etags are of the content alone.
    """
    first = await store.put(f"{root}/f", b"one")
    second = await store.put(f"{root}/f", b"two")
    other = await store.put(f"{root}/g", b"two")
    assert first.etag != second.etag
    if store.traits.multipart is None:
        assert len({first.etag, second.etag, other.etag}) == 3


# --- delete ----------------------------------------------------------------------------------


@rule
async def delete_removes_a_file_or_an_empty_directory(store: Store, root: str) -> None:
    """Delete takes one file or one empty directory, and nothing beside it."""
    await store.put(f"{root}/f", b"")
    await store.put(f"{root}/f2", b"")
    await store.mkdir(f"{root}/d")
    await store.delete(f"{root}/f")
    await store.delete(f"{root}/d")
    assert await names_in(store, root) == ["f2"]


@rule
async def delete_keeps_a_directory_that_holds_something(store: Store, root: str) -> None:
    """Delete refuses a directory with something in it, and removes nothing of that."""
    await store.mkdir(f"{root}/d")
    await store.put(f"{root}/d/f", b"")
    with pytest.raises(ExistsError):
        await store.delete(f"{root}/d")
    assert await names_in(store, f"{root}/d") == ["f"]


@rule
async def delete_tree_removes_all_below(store: Store, root: str) -> None:
    """Delete of a tree removes it with all it holds, files as well, and nothing beside it."""
    await store.mkdir(f"{root}/d/e/f")
    await store.put(f"{root}/d/e/g", b"")
    await store.put(f"{root}/d2", b"")
    await remove_tree(store, f"{root}/d")
    assert await names_in(store, root) == ["d2"]
    await remove_tree(store, f"{root}/d2")
    assert await names_in(store, root) == []


@rule
async def a_file_and_a_directory_may_have_one_name(store: Store, root: str) -> None:
    """Where files bring their directories along, both are there and neither hides the other."""
    if store.traits.directories:
        return
    await store.put(f"{root}/d/f", b"inner")
    await store.put(f"{root}/d", b"file")
    assert (await store.head(f"{root}/d")).kind is Kind.FILE
    shown = [(info.path, info.kind) for info in await list_all(store, root)]
    assert sorted(shown, key=str) == [(f"{root}/d", Kind.DIRECTORY), (f"{root}/d", Kind.FILE)]
    assert await store.get(f"{root}/d", LIMIT) == b"file"
    assert await names_in(store, f"{root}/d") == ["f"]


# --- many at once ----------------------------------------------------------------------------


@rule
async def a_tree_is_listed_and_deleted_in_bulk(store: Store, root: str) -> None:
    """Everything below is listed as head says it; a file goes only while it is the one meant."""
    if not store.traits.bulk_delete:
        return
    bulk = cast(BulkStore, store)
    for name in ("a/b/f", "a/g", "a/h", "ab"):
        await store.put(f"{root}/{name}", name.encode())
    await store.mkdir(f"{root}/a/empty")
    listed = [info async for page in tree_pages(store, f"{root}/a") for info in page]
    listed.sort(key=lambda info: info.path)
    files = {info.path: info for info in listed if not info.is_dir}
    assert list(files) == [f"{root}/a/b/f", f"{root}/a/g", f"{root}/a/h"]
    assert f"{root}/a/empty" in [info.path for info in listed if info.is_dir]
    assert files[f"{root}/a/g"] == as_listed(store, await store.head(f"{root}/a/g"))

    await store.put(f"{root}/a/g", b"another")
    gone = files[f"{root}/a/h"]._replace(path=f"{root}/a/gone")
    said = await bulk.delete_many([*files.values(), gone])
    kinds = [type(error) for error in said]
    assert (kinds[0], kinds[2]) == (type(None), type(None))
    # S3 has deleted what is not there.
    assert kinds[3] is NotFoundError or (store.traits.multipart and kinds[3] is type(None))
    if store.traits.conditional_delete:
        assert kinds[1] is PreconditionError
        assert await store.get(f"{root}/a/g", LIMIT) == b"another"
    await remove_tree(store, f"{root}/a")
    assert await names_in(store, root) == ["ab"]


# --- mkdir -----------------------------------------------------------------------------------


@rule
async def mkdir_makes_parents_and_likes_what_is_there(store: Store, root: str) -> None:
    """Missing parents are made; a directory that exists is fine and keeps what it holds."""
    await store.mkdir(f"{root}/a/b/c")
    await store.put(f"{root}/a/b/f", b"")
    await store.mkdir(f"{root}/a/b")
    assert await names_in(store, f"{root}/a/b") == ["c", "f"]


@rule
async def a_private_directory_is_made_with_its_parents(store: Store, root: str) -> None:
    """It is a directory like any other for its owner, and one that exists is left as it is."""
    if store.traits.user is None:
        return
    owned = cast(OwnedStore, store)
    for _ in range(2):
        await owned.mkdir(f"{root}/a/b/private", private=True)
        await store.put(f"{root}/a/b/private/f", b"1")
    assert await names_in(store, f"{root}/a/b/private") == ["f"]
    with pytest.raises(PreconditionError):
        await owned.mkdir(f"{root}/a/b/private/f", private=True)


@rule
async def mkdir_refuses_a_file(store: Store, root: str) -> None:
    """A file at the path, and where files need their directories above it, stays."""
    await store.put(f"{root}/f", b"")
    above = (f"{root}/f/d", f"{root}/f/d/e") if store.traits.directories else ()
    for path in (f"{root}/f", *above):
        with pytest.raises(PreconditionError):
            await store.mkdir(path)
    assert (await store.head(f"{root}/f")).kind is Kind.FILE


@rule
async def mkdir_of_many_at_once_succeeds(store: Store, root: str) -> None:
    """Any number of callers may make the same directory and its parents at the same time."""
    await asyncio.gather(*(store.mkdir(f"{root}/a/b/c{number % 4}") for number in range(32)))
    assert await names_in(store, f"{root}/a/b") == ["c0", "c1", "c2", "c3"]


# --- mkdir_new -------------------------------------------------------------------------------


@rule
async def mkdir_new_makes_a_directory_once(store: Store, root: str) -> None:
    """Of many callers at once one makes the directory; the others are told that it is there."""
    if not store.traits.directories:
        return
    maker = cast(DirectoryStore, store)
    made = (maker.mkdir_new(f"{root}/a/b/new") for _ in range(16))
    answers = await asyncio.gather(*made, return_exceptions=True)
    assert answers.count(None) == 1
    assert {type(answer) for answer in answers if answer is not None} == {ExistsError}
    assert (await store.head(f"{root}/a/b/new")).is_dir


@rule
async def mkdir_new_refuses_a_file(store: Store, root: str) -> None:
    """A file at the path stays, and so does one above it."""
    if not store.traits.directories:
        return
    maker = cast(DirectoryStore, store)
    await store.put(f"{root}/f", b"")
    with pytest.raises(ExistsError):
        await maker.mkdir_new(f"{root}/f")
    with pytest.raises(PreconditionError):
        await maker.mkdir_new(f"{root}/f/d")
    assert (await store.head(f"{root}/f")).kind is Kind.FILE


# --- copy ------------------------------------------------------------------------------------


@rule
async def copy_makes_a_second_file(store: Store, root: str) -> None:
    """A copy has the same content and leaves the source."""
    await store.put(f"{root}/a", b"data" * 50_000)
    await store.copy(f"{root}/a", f"{root}/b")
    assert await store.get(f"{root}/b", LIMIT) == b"data" * 50_000
    assert await names_in(store, root) == ["a", "b"]


@rule
async def copy_overwrites_only_when_told(store: Store, root: str) -> None:
    """What is at the destination stays unless the copy may overwrite it."""
    await store.put(f"{root}/a", b"new")
    await store.put(f"{root}/b", b"old")
    with pytest.raises(ExistsError):
        await store.copy(f"{root}/a", f"{root}/b")
    assert await store.get(f"{root}/b", LIMIT) == b"old"
    await store.copy(f"{root}/a", f"{root}/b", overwrite=True)
    assert await store.get(f"{root}/b", LIMIT) == b"new"


@rule
async def copy_refuses_directories(store: Store, root: str) -> None:
    """A directory is neither copied nor replaced by a copy."""
    await store.mkdir(f"{root}/d")
    await store.put(f"{root}/f", b"")
    with pytest.raises(PreconditionError):
        await store.copy(f"{root}/d", f"{root}/x")
    if store.traits.directories:
        with pytest.raises(PreconditionError):
            await store.copy(f"{root}/f", f"{root}/d", overwrite=True)
    assert await names_in(store, root) == ["d", "f"]


# --- rename ----------------------------------------------------------------------------------


@rule
async def rename_moves_a_file(store: Store, root: str) -> None:
    """The file is at the destination with its content and no longer at the source."""
    await store.mkdir(f"{root}/d")
    await store.put(f"{root}/f", b"data")
    await store.rename(f"{root}/f", f"{root}/d/g")
    assert await store.get(f"{root}/d/g", LIMIT) == b"data"
    assert await names_in(store, root) == ["d"]


@rule
async def rename_keeps_the_etag(store: Store, root: str) -> None:
    """The etag is the same after a rename, if the store says so."""
    if not store.traits.etag_survives_rename:
        return
    before = await store.put(f"{root}/f", b"data")
    await store.rename(f"{root}/f", f"{root}/g")
    assert (await store.head(f"{root}/g")).etag == before.etag


@rule
async def rename_moves_only_what_has_its_etag(store: Store, root: str) -> None:
    """A source that was replaced or changed since its etag was noted is refused, and stays."""
    if not (store.traits.conditional_rename or store.traits.file_etags):
        return
    known = (await store.put(f"{root}/f", b"one")).etag
    kept = (await store.put(f"{root}/f", b"two")).etag
    with pytest.raises(PreconditionError):
        await store.rename(f"{root}/f", f"{root}/g", etag=known)
    assert await names_in(store, root) == ["f"]
    assert await store.get(f"{root}/f", LIMIT) == b"two"
    await store.rename(f"{root}/f", f"{root}/g", etag=kept)
    with pytest.raises(NotFoundError):
        await store.rename(f"{root}/f", f"{root}/h", etag=kept)
    assert await names_in(store, root) == ["g"]


@rule
async def rename_moves_a_directory_with_all_it_holds(store: Store, root: str) -> None:
    """A directory arrives whole, if the store can move one at all."""
    if not store.traits.atomic_directory_rename:
        return
    await store.mkdir(f"{root}/a/b")
    await store.put(f"{root}/a/b/f", b"data")
    await store.rename(f"{root}/a", f"{root}/c")
    assert await names_in(store, root) == ["c"]
    assert await store.get(f"{root}/c/b/f", LIMIT) == b"data"


@rule
async def rename_does_not_replace_unasked(store: Store, root: str) -> None:
    """Whatever is at the destination, an empty directory too, stays and so does the source."""
    await store.put(f"{root}/f", b"new")
    await store.put(f"{root}/g", b"old")
    with pytest.raises(ExistsError):
        await store.rename(f"{root}/f", f"{root}/g")
    assert await store.get(f"{root}/g", LIMIT) == b"old"
    if not store.traits.directories:
        return
    await store.mkdir(f"{root}/d")
    await store.mkdir(f"{root}/e")
    for source in ("f", "e"):
        for dest in ("g", "d"):
            with pytest.raises(ExistsError):
                await store.rename(f"{root}/{source}", f"{root}/{dest}")
    assert await names_in(store, root) == ["d", "e", "f", "g"]
    assert await names_in(store, f"{root}/d") == []
    assert await store.get(f"{root}/g", LIMIT) == b"old"


@rule
async def rename_replaces_a_file_when_asked(store: Store, root: str) -> None:
    """With replace, the new file is there and the old one is gone."""
    await store.put(f"{root}/f", b"new")
    await store.put(f"{root}/g", b"old")
    await store.rename(f"{root}/f", f"{root}/g", replace=True)
    assert await store.get(f"{root}/g", LIMIT) == b"new"
    assert await names_in(store, root) == ["g"]


@rule
async def rename_replaces_never_another_kind(store: Store, root: str) -> None:
    """With replace, no file takes a directory's place, and no directory a file's."""
    if not store.traits.directories:
        return
    await store.put(f"{root}/f", b"file")
    await store.mkdir(f"{root}/d")
    for source, dest in (("f", "d"), ("d", "f")):
        with pytest.raises(PreconditionError):
            await store.rename(f"{root}/{source}", f"{root}/{dest}", replace=True)
    assert await store.get(f"{root}/f", LIMIT) == b"file"
    assert await names_in(store, f"{root}/d") == []


@rule
async def rename_never_moves_into_a_directory(store: Store, root: str) -> None:
    """A directory that holds something is neither replaced nor moved into."""
    if not store.traits.atomic_directory_rename:
        return
    for name in ("a", "b"):
        await store.mkdir(f"{root}/{name}")
        await store.put(f"{root}/{name}/{name}", b"")
    for replace in (False, True):
        with pytest.raises(ExistsError):
            await store.rename(f"{root}/a", f"{root}/b", replace=replace)
    assert await names_in(store, f"{root}/a") == ["a"]
    assert await names_in(store, f"{root}/b") == ["b"]


@rule
async def rename_needs_the_parent_of_its_destination(store: Store, root: str) -> None:
    """Where there are directories, the destination's must be there; the source stays."""
    if not store.traits.directories:
        return
    await store.put(f"{root}/f", b"")
    with pytest.raises(NotFoundError):
        await store.rename(f"{root}/f", f"{root}/d/f")
    assert await names_in(store, root) == ["f"]


@rule
async def rename_refuses_to_move_a_directory_below_itself(store: Store, root: str) -> None:
    """A directory cannot be moved into itself; it stays as it is."""
    if not store.traits.atomic_directory_rename:
        return
    await store.mkdir(f"{root}/d")
    for replace in (False, True):
        with pytest.raises(StoreError):
            await store.rename(f"{root}/d", f"{root}/d/e", replace=replace)
    assert await names_in(store, root) == ["d"]
    assert await names_in(store, f"{root}/d") == []


@rule
async def rename_lets_one_of_many_win(store: Store, root: str) -> None:
    """Of 32 renames to one destination exactly one succeeds; the others keep their source."""
    if not store.traits.rename_no_replace:
        return
    sources = [f"{root}/s{number}" for number in range(32)]
    for source in sources:
        await store.put(source, source.encode())
    results = await asyncio.gather(
        *(store.rename(source, f"{root}/dest") for source in sources), return_exceptions=True
    )
    won = [source for source, result in zip(sources, results, strict=True) if result is None]
    assert len(won) == 1
    assert sum(isinstance(result, ExistsError) for result in results) == 31
    assert await store.get(f"{root}/dest", LIMIT) == won[0].encode()
    assert len(await names_in(store, root)) == 32


@rule
async def rename_of_one_source_to_many_succeeds_once(store: Store, root: str) -> None:
    """Of many renames of one source exactly one succeeds; the others find it gone."""
    await store.put(f"{root}/f", b"")
    results = await asyncio.gather(
        *(store.rename(f"{root}/f", f"{root}/d{number}") for number in range(16)),
        return_exceptions=True,
    )
    assert sum(result is None for result in results) == 1
    assert sum(isinstance(result, NotFoundError) for result in results) == 15
    assert len(await names_in(store, root)) == 1


@rule
async def renames_together_end_at_the_first_that_fails(store: Store, root: str) -> None:
    """Files before it are moved, it and those behind it are not; nothing is ever replaced."""
    if not store.traits.bulk_rename:
        return
    batch = cast(BatchStore, store)
    for name in "abcd":
        await store.put(f"{root}/{name}", name.encode())
    await store.mkdir(f"{root}/to")
    await store.put(f"{root}/to/c", b"there")

    moves: list[Move] = [(f"{root}/{name}", f"{root}/to/{name}", None) for name in "abcd"]
    done, error = await batch.rename_many(moves)

    assert (done, type(error)) == (2, ExistsError)
    assert await names_in(store, root) == ["c", "d", "to"]
    assert await store.get(f"{root}/to/a", LIMIT) == b"a"
    assert await store.get(f"{root}/to/c", LIMIT) == b"there"

    assert await batch.rename_many(moves[3:]) == (1, None)
    assert await names_in(store, f"{root}/to") == ["a", "b", "c", "d"]
    done, error = await batch.rename_many(moves[3:])
    assert (done, type(error)) == (0, NotFoundError)
    done, error = await batch.rename_many([(f"{root}/c", f"{root}/none/c", None)])
    assert (done, type(error)) == (0, NotFoundError)


@rule
async def renames_together_end_at_a_source_that_was_replaced(store: Store, root: str) -> None:
    """It is refused and stays, as does what is behind it; files before it are moved."""
    if not (
        store.traits.bulk_rename and (store.traits.conditional_rename or store.traits.file_etags)
    ):
        return
    batch, moves = cast(BatchStore, store), list[Move]()
    for name in "abc":
        etag = (await store.put(f"{root}/{name}", name.encode())).etag
        moves.append((f"{root}/{name}", f"{root}/to/{name}", etag))
    await store.mkdir(f"{root}/to")
    await store.put(f"{root}/b", b"B")

    done, error = await batch.rename_many(moves)

    assert (done, type(error)) == (1, PreconditionError)
    assert await names_in(store, f"{root}/to") == ["a"]
    assert await store.get(f"{root}/b", LIMIT) == b"B"
    assert await batch.rename_many(moves[2:]) == (1, None)
    done, error = await batch.rename_many(moves[:1])
    assert (done, type(error)) == (0, NotFoundError)


# --- sync ------------------------------------------------------------------------------------


@rule
async def sync_changes_nothing(store: Store, root: str) -> None:
    """What is at a path is the same after its sync, of a file and of a directory, any time."""
    await store.mkdir(f"{root}/d")
    await store.put(f"{root}/d/f", b"data")
    before = await store.head(f"{root}/d/f")
    for path in (f"{root}/d/f", f"{root}/d", root, f"{root}/d/f"):
        await store.sync(path)
    assert await store.head(f"{root}/d/f") == before
    assert await store.get(f"{root}/d/f", LIMIT) == b"data"
    assert await names_in(store, root) == ["d"]


@rule
async def sync_needs_something_to_make_last(store: Store, root: str) -> None:
    """Where it has something to do, sync of a missing path says that there is nothing."""
    if store.traits.durable:
        await store.sync(f"{root}/gone")
        return
    await store.put(f"{root}/f", b"")
    for path in (f"{root}/gone", f"{root}/f/x"):
        with pytest.raises(NotFoundError) as caught:
            await store.sync(path)
        assert caught.value.path == path


# --- names -----------------------------------------------------------------------------------


@rule
async def names_are_kept_as_they_are(store: Store, root: str) -> None:
    """Spaces, percent signs, emoji and every other hostile name survive, or are refused at once."""
    await store.mkdir(f"{root}/in")
    kept = []
    for name in NAMES:
        try:
            await store.put(f"{root}/{name}", name.encode())
        except RejectedError:
            colon = ":" in name and store.traits.name == "HDFS"
            assert name == "new\nline" or colon
            continue
        kept.append(name)
        await move(store, f"{root}/{name}", f"{root}/in/{name}")
        await store.copy(f"{root}/in/{name}", f"{root}/in/c{name}")
        await store.delete(f"{root}/in/c{name}")
        assert (await store.head(f"{root}/in/{name}")).path == f"{root}/in/{name}"
        assert await store.get(f"{root}/in/{name}", LIMIT) == name.encode()
    assert await names_in(store, f"{root}/in") == sorted(kept)
    await remove_tree(store, f"{root}/in")


@rule
async def a_name_that_is_too_long_is_refused(store: Store, root: str) -> None:
    """A name longer than any store takes is refused and said to be so, not to be missing."""
    name = "n" * 2000
    await store.put(f"{root}/f", b"")
    with pytest.raises(RejectedError):
        await store.put(f"{root}/{name}", b"")
    with pytest.raises(RejectedError):
        await move(store, f"{root}/f", f"{root}/{name}")
    assert await names_in(store, root) == ["f"]


FLAT_RULES = [function for function in RULES if not name_of(function).startswith("rename_")]
"""What a store without renames keeps."""
