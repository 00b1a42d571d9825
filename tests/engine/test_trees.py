"""A directory is moved whole where it can be, and merged file by file where it cannot."""

from __future__ import annotations

import pytest

from asynccommit import NotFoundError, OptionError, UnsupportedError
from asynccommit.engine import BulkError, move_tree
from asynccommit.testing import Fault
from tests.engine.conftest import KINDS, RENAMING, Place, on

FILES = {f"in/p={i % 3}/q/f{i}": str(i) for i in range(12)} | {"in/top": "t"}
every_kind = on(KINDS)
whole_kinds = on(("local", "adls", "gcs with folders"))


def _moved(text: dict[str, str]) -> dict[str, str]:
    return {f"out{name[2:]}": content for name, content in text.items()}


@every_kind
async def test_a_tree_arrives_and_its_source_is_gone(place: Place) -> None:
    """Every file is at the same place below the destination, and the source does not exist."""
    await place.write(FILES)

    report = await move_tree(place.store, place("in"), place("out"), copy=place.kind == "s3")

    assert await place.files() == _moved(FILES)
    assert not await place.exists("in")
    if place.moves_directories:
        assert (report.directories, report.done) == (1, 0)
    else:
        assert (report.directories, report.done, report.bytes) == (0, 13, 15)


@every_kind
async def test_trees_are_merged(place: Place) -> None:
    """What the destination has stays; files of the source come to it."""
    await place.write(FILES | {"out/p=1/q/own": "own", "out/top2": "t2"})

    report = await move_tree(place.store, place("in"), place("out"), copy=place.kind == "s3")

    assert await place.files() == _moved(FILES) | {"out/p=1/q/own": "own", "out/top2": "t2"}
    assert not await place.exists("in")
    if place.moves_directories:
        assert (report.directories, report.done) == (2, 5)  # p=0 and p=2; q's files and top


@every_kind
async def test_files_in_the_way_stay(place: Place) -> None:
    """A file of the same name fails and stays at both ends; all others are moved."""
    await place.write(FILES | {"out/p=1/q/f4": "mine"})
    copy = place.kind == "s3"

    report = await move_tree(place.store, place("in"), place("out"), on_error="continue", copy=copy)

    left = {"in/p=1/q/f4": "4"}
    assert await place.files() == _moved(FILES) | {"out/p=1/q/f4": "mine"} | left
    assert [(it.path, it.error) for it in report.failures] == [
        (place("in/p=1/q/f4"), "ExistsError")
    ]

    await move_tree(place.store, place("in"), place("out"), replace=True, copy=copy)
    assert await place.files() == _moved(FILES)


@every_kind
async def test_the_first_error_stops(place: Place) -> None:
    """The error has a report, and the same call with ``replace`` moves the rest."""
    await place.write(FILES | dict.fromkeys(_moved(FILES), "mine"))
    copy = place.kind == "s3"

    with pytest.raises(BulkError) as caught:
        await move_tree(place.store, place("in"), place("out"), copy=copy)
    assert caught.value.report.failed >= 1
    assert caught.value.report.done == 0

    await move_tree(place.store, place("in"), place("out"), replace=True, copy=copy)
    assert await place.files() == _moved(FILES)


@whole_kinds
async def test_a_whole_directory_is_a_few_requests(place: Place) -> None:
    """The number of files makes no difference where the destination is free."""
    await place.write({f"in/p={i % 5}/f{i}": "x" for i in range(100)})

    report = await move_tree(place.store, place("in"), place("far/away/out"))

    assert report.requests <= 8
    assert len(await place.files("far/away/out")) == 100


@pytest.mark.parametrize("place", ["adls"], indirect=True)
async def test_a_directory_that_appears_meanwhile_is_merged(place: Place) -> None:
    """Another writer's directory at the destination is no failure."""
    await place.write(FILES | {"out/p=1/q/own": "own"})
    place.weather.add(Fault("before", "rename", "/p=0$", code="PathAlreadyExists", times=1))

    await move_tree(place.store, place("in"), place("out"))

    assert await place.files() == _moved(FILES) | {"out/p=1/q/own": "own"}


@every_kind
async def test_dry_run_changes_nothing(place: Place) -> None:
    """A dry run reports what would fail, and moves nothing."""
    await place.write(FILES | {"out/p=1/q/f4": "mine"})
    before = await place.files()

    report = await move_tree(
        place.store,
        place("in"),
        place("out"),
        dry_run=True,
        on_error="continue",
        copy=place.kind == "s3",
    )

    assert await place.files() == before
    assert [it.path for it in report.failures] == [place("in/p=1/q/f4")]
    assert report.dry_run


@every_kind
async def test_one_file_is_moved_too(place: Place) -> None:
    """A source that is a file goes to the destination itself."""
    await place.write({"in/a": "a"})

    await move_tree(place.store, place("in/a"), place("out/b"), copy=place.kind == "s3")

    assert await place.files() == {"out/b": "a"}


@every_kind
async def test_a_missing_source_is_an_error(place: Place) -> None:
    """Nothing is made at the destination."""
    with pytest.raises(NotFoundError, match="in: the source does not exist"):
        await move_tree(place.store, place("in"), place("out"), copy=place.kind == "s3")

    assert not await place.exists("out")


@pytest.mark.parametrize("place", ["local"], indirect=True)
async def test_a_tree_cannot_go_into_itself(place: Place) -> None:
    """Source and destination that overlap are refused, and those with a common prefix are not."""
    await place.write({"in/a": "a"})
    for dest in ("in", "in/b"):
        with pytest.raises(OptionError, match="within the other"):
            await move_tree(place.store, place("in"), place(dest))
    with pytest.raises(OptionError, match="within the other"):
        await move_tree(place.store, place("in"), place.root)

    await move_tree(place.store, place("in"), place("in2"))
    assert await place.files() == {"in2/a": "a"}


@pytest.mark.parametrize("place", ["s3"], indirect=True)
async def test_a_store_without_renames_copies_only_if_asked(place: Place) -> None:
    """S3 is refused with the remedy before anything is done."""
    with pytest.raises(UnsupportedError, match="copy=True"):
        await move_tree(place.store, place("in"), place("out"))


@on(RENAMING)
async def test_empty_directories_move_as_well(place: Place) -> None:
    """A directory without files is at the destination in the end, and not at the source."""
    await place.write({"in/a": "a", "out/b": "b"})
    await place.store.mkdir(place("in/empty/inner"))

    await move_tree(place.store, place("in"), place("out"))

    assert (await place.store.head(place("out/empty/inner"))).is_dir
    assert not await place.exists("in")


@on(["adls"])
async def test_an_emptied_directory_that_stays_is_reported(place: Place) -> None:
    """A refusal after all files have moved has the report of them."""
    await place.write({"in/a": "a", "out/b": "b"})
    place.weather.add(Fault("before", "delete", code="AuthorizationPermissionMismatch"))

    with pytest.raises(BulkError) as caught:
        await move_tree(place.store, place("in"), place("out"))

    assert await place.files() == {"out/a": "a", "out/b": "b"}
    report = caught.value.report
    assert (report.done, report.failures[0].error) == (1, "DeniedError")
