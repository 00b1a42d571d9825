"""Files and directories are deleted in as few requests as the store allows."""

from __future__ import annotations

import random

import pytest

from asynccommit import NotFoundError, OptionError
from asynccommit.engine import BulkError, BulkReport, delete_files, delete_tree
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from asynccommit.testing import Fault
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.fault_rules import TWICE
from asynccommit.testing.models.gcs.model import BucketOptions
from tests.engine.conftest import KINDS, Place, on
from tests.loadtest.accounts import Account, on_account

FILES = {f"t/p={i % 3}/f{i}": "xy" for i in range(30)}
every_kind = on(KINDS)
on_disk = pytest.mark.parametrize("place", ["local"], indirect=True)
on_adls = pytest.mark.parametrize("place", ["adls"], indirect=True)


@every_kind
async def test_files_are_deleted(place: Place) -> None:
    """Files given by path are gone, those that are missing are skipped, all others stay."""
    await place.write(FILES | {"keep": "k"})
    paths = [place(name) for name in FILES]

    report = await delete_files(place.store, iter([*paths[:20], place("t/none")]))

    assert len(await place.files("t")) == 10
    assert report.done + report.skipped == 21
    assert report.failed == 0

    await delete_files(place.store, paths[20:])
    assert await place.files() == {"keep": "k"}


@every_kind
async def test_a_tree_is_deleted(place: Place) -> None:
    """Nothing is left of the directory, and its neighbour with a common prefix stays."""
    await place.write(FILES | {"t2/f": "k"})

    report = await delete_tree(place.store, place("t"))

    assert await place.files() == {"t2/f": "k"}
    assert not await place.exists("t")
    if place.store.traits.recursive_delete:
        assert (report.directories, report.done) == (1, 0)
    else:
        assert (report.directories, report.done, report.bytes) == (0, 30, 60)


@on_adls
async def test_a_tree_whose_deletion_is_executed_twice(place: Place) -> None:
    """The directory counts, though the second execution finds nothing."""
    await place.write(FILES)
    place.weather.add(Fault(TWICE, "delete"))

    report = await delete_tree(place.store, place("t"))

    assert not await place.exists("t")
    assert (report.done, report.directories, report.skipped) == (0, 1, 0)
    assert place.weather.struck["twice delete"] == 1
    with pytest.raises(NotFoundError):
        await delete_tree(place.store, place("t"))


async def test_listed_files_whose_deletions_are_executed_twice() -> None:
    """Each counts, though the second execution finds nothing."""
    async with GcsEmulator(buckets={"data": BucketOptions()}) as gcs:
        options = {"endpoint_url": gcs.endpoint, "token": "anon"}
        settings = StoreSettings(random.Random(1), options=options)
        store = open_store(parse_url("gs://data/"), settings)
        for number in range(3):
            await store.put(f"/t/f{number}", b"xy")
        gcs.weather.add(Fault(TWICE, "delete"))
        report = await delete_tree(store, "/t")
        await store.aclose()

    assert (report.done, report.skipped, report.bytes) == (3, 0, 6)
    assert gcs.weather.struck["twice delete"] >= 3


@every_kind
async def test_dry_run_counts(place: Place) -> None:
    """A dry run has the number of files and their bytes, and deletes nothing."""
    await place.write(FILES)

    tree = await delete_tree(place.store, place("t"), dry_run=True)
    some = await delete_files(place.store, [place("t/p=0/f0"), place("t/none")], dry_run=True)

    assert (tree.done, tree.bytes, tree.dry_run) == (30, 60, True)
    assert (some.done, some.skipped) == (1, 1)
    assert len(await place.files()) == 30


@every_kind
async def test_a_missing_tree_is_an_error(place: Place) -> None:
    """Nothing at the path is a ``NotFoundError``, in a dry run as well."""
    for dry_run in (True, False):
        with pytest.raises(NotFoundError):
            await delete_tree(place.store, place("none"), dry_run=dry_run)


@on_disk
async def test_dangerous_paths_are_refused(place: Place) -> None:
    """The root of the store, and paths that lead elsewhere, are refused."""
    await place.write({"t/a": "a"})
    for path in ("/", "//", "t", f"{place.root}/t/../t", ""):
        with pytest.raises(OptionError):
            await delete_tree(place.store, path)
        with pytest.raises(OptionError):
            await delete_files(place.store, [place("t/a"), f"{place.root}/./t/a"])
    assert await place.files() == {"t/a": "a"}


@on_disk
async def test_a_directory_with_files_is_no_file(place: Place) -> None:
    """A path that holds a directory that is not empty fails, and the others are deleted."""
    await place.write({"t/a": "a", "b": "b"})

    report = await delete_files(place.store, [place("t"), place("b")], on_error="continue")

    assert await place.files() == {"t/a": "a"}
    assert [it.error for it in report.failures] == ["ExistsError"]


@on_adls
async def test_what_cannot_be_deleted_is_reported(place: Place) -> None:
    """A refusal stops with a report, for a file and for a directory."""
    await place.write({"t/a": "a"})
    place.weather.add(Fault("before", "delete", code="AuthorizationPermissionMismatch"))

    with pytest.raises(BulkError) as caught:
        await delete_tree(place.store, place("t"))
    assert caught.value.report.failures[0].error == "DeniedError"
    with pytest.raises(BulkError) as caught:
        await delete_files(place.store, [place("t/a")])
    assert caught.value.report.failures[0].path == place("t/a")
    assert await place.files() == {"t/a": "a"}


def test_refused_files_of_a_batch_are_sent_again() -> None:
    """Files of a batch that the service refuses for their rate are deleted a little later."""

    async def work(account: Account) -> tuple[BulkReport, list[str]]:
        store = account.world.wrapped()
        paths = [f"/table/f{number}" for number in range(50)]
        for path in paths:
            account.world.model.put_file(path, 1)
        return await delete_files(store, paths), await account.left()

    report, left = on_account(work, Fault("before", "delete", times=7), store="gcs")

    assert (report.done, report.failed) == (50, 0)
    assert left == []
