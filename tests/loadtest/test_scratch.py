"""Directories of dead runs are deleted, those of living runs are kept."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.cli import main
from asynccommit.loadtest.scratch import PREFIX, LoadPlace, OwnDirectory, remove_dead
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.fault_rules import BEFORE, Fault
from tests.loadtest.accounts import Account, on_account
from tests.support.jobs import write

LATE = 3_600.0


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[LoadPlace]:
    """A directory on a disk."""
    store = wrap(LocalStore(), StoreSettings(random.Random(1)))
    yield LoadPlace(store, parse_url(str(tmp_path)), this_host())
    await store.aclose()


def _elsewhere(place: LoadPlace) -> LoadPlace:
    """Return the same place as another machine sees it."""
    return place._replace(host=replace(place.host, name="another-machine", process=""))


def _later(place: LoadPlace) -> LoadPlace:
    now = place.host.now
    return place._replace(host=replace(place.host, now=lambda: now() + LATE))


async def test_a_living_run_is_kept(place: LoadPlace) -> None:
    """By this process, and by one of another machine, which sees its heartbeats."""
    own = OwnDirectory(place)
    async with own.kept_alive(lambda: None):
        for observer in (place, _elsewhere(place)):
            found = await remove_dead(observer)
            assert found.removed == []
            assert list(found.kept) == [str(own.address)]
            assert (
                "heartbeat" in found.kept[str(own.address)]
                or "this process" in (found.kept[str(own.address)])
            )
        assert Path(own.address.path).is_dir()

    assert not Path(own.address.path).exists()


async def test_a_run_without_heartbeats_is_dead(place: LoadPlace, tmp_path: Path) -> None:
    """Once its lease is over; files that are none of a load test stay."""
    (tmp_path / "mine").mkdir()
    own = OwnDirectory(_elsewhere(place))
    await place.owner(own.address).setup_job()
    data = Path(own.data.path)
    data.mkdir()
    (data / "f").write_text("1")

    assert (await remove_dead(place)).removed == []
    _silence(Path(own.address.path))
    found = await remove_dead(_later(place))

    assert found.removed == [str(own.address)]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def _silence(directory: Path) -> None:
    """Let the owner be of a machine that nobody can ask, and an hour old."""
    for owner in directory.rglob("job-owner.json"):
        text = owner.read_text().replace(this_host().name, "gone-machine")
        owner.write_text(text)
        when = owner.stat().st_mtime - LATE
        os.utime(owner, (when, when))


@pytest.mark.parametrize("content", ["", "data/", "notes", "owner/_temporary/loadtest/00/tasks/x"])
async def test_a_directory_without_owner(content: str, place: LoadPlace, tmp_path: Path) -> None:
    """Its name proves nothing: it stays for ever, with the command that deletes it."""
    theirs = tmp_path / f"{PREFIX}a b"
    theirs.mkdir()
    write(theirs, {content: "theirs"} if content else {})

    found = await remove_dead(place)

    assert found.removed == []
    assert list(found.kept) == [f"file:{theirs}"]
    assert await remove_dead(_later(place)) == found
    assert theirs.is_dir()
    typed = shlex.split(found.kept[f"file:{theirs}"].partition("use: ")[2])
    assert await asyncio.to_thread(main, typed[1:]) == 0
    assert not theirs.exists()


async def test_the_top_directory_is_as_before(place: LoadPlace, tmp_path: Path) -> None:
    """One that the run has made is deleted, one that was there stays."""
    for name, stays in (("new", False), ("old", True)):
        if stays:
            (tmp_path / name).mkdir()
        below = place._replace(top=place.top.child(name))
        async with OwnDirectory(below).kept_alive(lambda: None):
            assert (tmp_path / name).is_dir()
        assert (tmp_path / name).is_dir() == stays


def test_what_cannot_be_deleted_is_told() -> None:
    """With the reason; an error that ends the run names the directory."""

    async def work(account: Account) -> None:
        denied = Fault(BEFORE, "delete", code="AuthorizationPermissionMismatch")
        host: Host = account.world.host
        place = LoadPlace(account.world.wrapped(), account.top, host)
        own = OwnDirectory(place)
        async with own.kept_alive(lambda: account.world.model.weather.add(denied)):
            pass
        assert "AuthorizationPermissionMismatch" in own.left
        another = OwnDirectory(place)
        with pytest.raises(ZeroDivisionError) as caught:
            async with another.kept_alive(lambda: None):
                raise ZeroDivisionError
        assert f"{another.address} is still there: " in caught.value.__notes__[0]

    on_account(work)
