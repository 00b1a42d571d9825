"""Files are renamed once each, and a report says what became of every pair."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from asynccommit import NotFoundError, OptionError, UnsupportedError
from asynccommit.engine import BulkError, BulkProgress, FileRename, delete_files, rename_files
from asynccommit.stores.tree import list_if_there
from asynccommit.testing import Fault
from tests.engine.conftest import KINDS, RENAMING, Place, on

FILES = {f"in/p={i % 3}/f{i}": str(i) for i in range(40)}
every_kind = on(KINDS)
every_renaming_kind = on(RENAMING)
on_disk = pytest.mark.parametrize("place", ["local"], indirect=True)
on_adls = pytest.mark.parametrize("place", ["adls"], indirect=True)


def _pairs(place: Place) -> list[tuple[str, str]]:
    return [(place(name), place(f"out/new/{name[3:]}")) for name in FILES]


def _later(pairs: Sequence[tuple[str, str]]) -> AsyncIterator[tuple[str, str]]:
    async def each() -> AsyncIterator[tuple[str, str]]:
        for pair in pairs:
            await asyncio.sleep(0)
            yield pair

    return each()


@every_kind
async def test_files_arrive_with_their_directories(place: Place) -> None:
    """Every file is at its destination, whose directories were made, and nowhere else."""
    await place.write(FILES)

    report = await rename_files(place.store, _pairs(place), copy=place.kind == "s3")

    assert await place.files() == {f"out/new/{name[3:]}": text for name, text in FILES.items()}
    assert (report.done, report.failed, report.skipped) == (40, 0, 0)
    assert report.requests >= 3


@every_kind
async def test_nothing_is_replaced_unless_asked(place: Place) -> None:
    """A destination that exists fails its pair and keeps both files; ``replace`` replaces it."""
    await place.write({"in/a": "new", "in/b": "b", "out/a": "old"})
    pairs = [(place("in/a"), place("out/a")), (place("in/b"), place("out/b"))]
    copy = place.kind == "s3"

    report = await rename_files(place.store, pairs, copy=copy, on_error="continue")

    assert await place.files() == {"in/a": "new", "out/a": "old", "out/b": "b"}
    assert (report.done, report.failed) == (1, 1)
    assert [(it.path, it.dest, it.error) for it in report.failures] == [(*pairs[0], "ExistsError")]

    await rename_files(place.store, pairs[:1], copy=copy, replace=True)

    assert await place.files() == {"out/a": "new", "out/b": "b"}


@every_renaming_kind
async def test_the_same_call_finishes_what_was_left(place: Place) -> None:
    """Pairs with etags whose files have arrived are done; without etags nothing tells."""
    await place.write({"in/a": "a", "in/b": "b"})
    etags = [(await place.store.head(place(f"in/{name}"))).etag for name in "ab"]
    pairs = [
        FileRename(place(f"in/{name}"), place(f"out/{name}"), etag, 1)
        for name, etag in zip("ab", etags, strict=True)
    ]
    await rename_files(place.store, pairs[:1])

    for dry_run in (True, False):
        report = await rename_files(place.store, pairs, dry_run=dry_run)
        assert (report.done, report.failed, report.bytes) == (2, 0, 2)

    with pytest.raises(BulkError, match="/in/") as caught:
        await rename_files(place.store, [pair[:2] for pair in pairs])
    assert isinstance(caught.value.cause, NotFoundError)


@every_renaming_kind
async def test_another_version_is_not_renamed(place: Place) -> None:
    """A file with another etag than its pair stays where it is."""
    await place.write({"in/a": "first"})
    etag = (await place.store.head(place("in/a"))).etag
    await delete_files(place.store, [place("in/a")])
    await place.write({"in/a": "second, and longer"})

    with pytest.raises(BulkError) as caught:
        await rename_files(place.store, [(place("in/a"), place("out/a"), etag)])

    assert caught.value.report.failures[0].error == "PreconditionError"
    assert await place.files() == {"in/a": "second, and longer"}


@on_adls
async def test_a_lost_response_is_settled(place: Place) -> None:
    """A rename that was done although its response was lost counts once, without an error."""
    await place.write(FILES)
    place.weather.add(Fault("cut", "rename", "/out/new/", every=3))

    report = await rename_files(place.store, _pairs(place))

    assert (report.done, report.failed) == (40, 0)
    assert report.recovered["rename"] >= 10


@on_adls
async def test_refused_requests_are_sent_again(place: Place) -> None:
    """Requests that the service refuses for their rate are counted and sent again."""
    await place.write(FILES)
    place.weather.add(Fault("before", "rename", "/out/new/", code="ServerBusy", times=3))

    report = await rename_files(place.store, _pairs(place))

    assert (report.done, report.refused) == (40, 3)


@on_disk
async def test_pairs_come_from_any_iterable(place: Place) -> None:
    """A list, a generator and an asynchronous generator give the same result."""
    for pairs in (_pairs(place), iter(_pairs(place)), _later(_pairs(place))):
        await place.write(FILES)
        report = await rename_files(place.store, pairs, replace=True)
        assert report.done == 40


@on_disk
async def test_errors_stop_or_are_collected(place: Place) -> None:
    """``stop`` raises the first error with a report; ``continue`` renames all others."""
    await place.write({"in/a": "a", "in/c": "c"})
    pairs = [(place(f"in/{name}"), place(f"out/{name}")) for name in "abc"]

    with pytest.raises(BulkError) as caught:
        await rename_files(place.store, iter(pairs))
    assert (caught.value.report.done, caught.value.report.failed) == (1, 1)
    assert "in/b" in str(caught.value)
    assert "1 done, 1 failed" in str(caught.value)

    report = await rename_files(place.store, pairs[1:], on_error="continue")
    assert (report.done, report.failed) == (1, 1)
    assert report.to_json()["failures"][0]["path"] == place("in/b")


@on_disk
async def test_an_invalid_pair_is_refused(place: Place) -> None:
    """Pairs of which one is invalid change nothing, whatever they come from."""
    await place.write({"in/a": "a"})
    good = (place("in/a"), place("out/a"))
    for bad in [("relative", "/x"), ("/x", "/x"), ("/x/../y", "/z"), ("/x",), ("/x", "/a\0")]:
        with pytest.raises(OptionError):
            await rename_files(place.store, [good, bad])
        with pytest.raises(OptionError):
            await rename_files(place.store, iter([good, bad]))
    assert await place.files() == {"in/a": "a"}


@every_kind
@pytest.mark.parametrize("replace", [False, True])
async def test_a_listing_does_not_see_what_its_move_has_made(place: Place, replace: bool) -> None:
    """A directory that is listed while its files go below it: each file is moved once."""
    await place.write({f"d/f{i}": str(i) for i in range(40)} | {"d/z/old": "old"})
    moved: list[str] = []

    async def listed() -> AsyncIterator[tuple[str, str]]:
        for folder in ("d", "d/z"):  # as a walk does, the inner directory after the outer
            for info in sorted(await list_if_there(place.store, place(folder))):
                if not info.is_dir:
                    moved.append(info.path)
                    yield info.path, place(f"d/z/{info.path[len(place('d/')) :]}")

    report = await rename_files(place.store, listed(), replace=replace, copy=place.kind == "s3")

    expected = {f"d/z/f{i}": str(i) for i in range(40)} | {"d/z/z/old": "old"}
    assert await place.files() == expected
    assert (report.done, len(moved)) == (41, 41)


@every_kind
async def test_no_pair_ends_where_another_begins(place: Place) -> None:
    """Such pairs are refused with nothing moved or replaced, from a list or a generator."""
    files = {"a": "a", "b": "b", "c": "c"}
    await place.write(files)
    chains = [[("a", "b"), ("b", "d")], [("b", "d"), ("a", "b")], [("a", "b"), ("b", "a")]]
    ways: list[dict[str, Any]] = [{"copy": True}]
    ways += [{"journal": place("journal")}] * (place.kind != "s3")

    for chain, how in itertools.product(chains, ways):
        pairs = [(place("c"), place("e")), *[(place(one), place(two)) for one, two in chain]]
        for given in (pairs, iter(pairs), _later(pairs)):
            with pytest.raises(OptionError, match="in two steps"):
                await rename_files(place.store, given, replace=True, **how)
    assert await place.files() == files


@every_renaming_kind
async def test_dry_run_changes_nothing(place: Place) -> None:
    """A dry run counts what would be renamed and names what would fail."""
    await place.write({"in/a": "aa", "in/b": "b", "out/b": "old"})
    before = await place.files()
    pairs = [(place(f"in/{name}"), place(f"out/{name}")) for name in "abc"]

    report = await rename_files(place.store, pairs, dry_run=True, on_error="continue")

    assert await place.files() == before
    assert (report.done, report.bytes, report.dry_run) == (1, 2, True)
    assert {it.error for it in report.failures} == {"ExistsError", "NotFoundError"}


@pytest.mark.parametrize("place", ["s3"], indirect=True)
async def test_a_store_without_renames_copies_only_if_asked(place: Place) -> None:
    """S3 is refused with the remedy before anything is done."""
    await place.write({"in/a": "a"})

    with pytest.raises(UnsupportedError, match="copy=True"):
        await rename_files(place.store, [(place("in/a"), place("out/a"))])

    assert await place.files() == {"in/a": "a"}


@on_adls
async def test_progress_is_told(place: Place) -> None:
    """The last call has all items, of the known total."""
    await place.write(FILES)
    told: list[BulkProgress] = []

    await rename_files(place.store, _pairs(place), on_progress=told.append)

    assert (told[-1].done, told[-1].total, told[-1].failed) == (40, 40, 0)


@on_adls
async def test_a_directory_that_goes_away_is_made_again(place: Place) -> None:
    """A destination directory that another job removes is made again, once."""
    await place.write({"in/a": "a"})
    place.weather.add(
        Fault("before", "rename", "/out/", code="RenameDestinationParentPathNotFound")
    )

    with pytest.raises(BulkError):
        await rename_files(place.store, [(place("in/a"), place("out/a"))])

    place.weather.clear()
    place.weather.add(
        Fault("before", "rename", "/out/", code="RenameDestinationParentPathNotFound", times=1)
    )
    await rename_files(place.store, [(place("in/a"), place("out/a"))])
    assert await place.files() == {"out/a": "a"}


@every_renaming_kind
async def test_one_destination_takes_one_file(place: Place) -> None:
    """A second file for the same destination stays where it is, also where files are replaced."""
    await place.write({"in/a": "a", "in/b": "b", "out": "old"})
    pairs = [(place("in/a"), place("out")), (place("in/b"), place("out"))]

    for dry_run in (True, False):
        report = await rename_files(
            place.store, pairs, replace=True, on_error="continue", dry_run=dry_run
        )
        assert (report.done, report.failed) == (1, 1)

    files = await place.files()
    assert sorted(files.values()) == ["a", "b"]
    assert {"out"} < files.keys()
