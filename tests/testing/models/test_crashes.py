"""Processes die where they are told to, and nothing of them happens afterwards."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from asynccommit.errors import NotFoundError
from asynccommit.stores.base import Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import Address
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.crashes import (
    Crash,
    Crashed,
    Mortal,
    MortalStore,
    Process,
    Suspension,
    When,
)
from asynccommit.testing.models.fault_rules import Climate, FaultInjector
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import run_virtual

ADDRESS = Address("abfs", "data@x", "/")


def account() -> AdlsAccount:
    """Return an account with an empty filesystem."""
    ids = iter(range(1000))
    made = AdlsAccount("x", now=lambda: 0.0, new_id=lambda: f"id-{next(ids)}")
    made.create_filesystem("data")
    return made


async def names(made: AdlsAccount) -> list[str]:
    """Return the names in the root, hidden ones too."""
    return [name for name, _ in made.list("data").entries]


async def directories(store: Store) -> None:
    """Make one directory after the other."""
    for name in ("/a", "/b", "/c"):
        await store.mkdir(name)


LEFT = {When.BEFORE: ["a"], When.AFTER: ["a", "b"], When.LATE: ["a"]}


@pytest.mark.parametrize("when", When)
def test_a_process_dies_at_a_write(when: When) -> None:
    """Its last write has taken effect, or not, or does so later; none comes after it."""

    async def run() -> tuple[list[str], list[str]]:
        made, process = account(), Process("one", Crash(2, when, late=5.0))
        store = MortalStore(ADDRESS, {"account": made}, process)
        with pytest.raises(Crashed):
            await directories(store)
        for act in (store.mkdir("/d"), store.head("/a"), store.list("/")):
            with pytest.raises(Crashed):
                await act
        at_once = await names(made)
        await asyncio.sleep(6)
        assert process.dead
        assert process.writes == ["mkdir /a", "mkdir /b"]
        return at_once, await names(made)

    later = ["a"] if when is When.BEFORE else ["a", "b"]
    assert run_virtual(run()) == (LEFT[when], later)


def test_every_request_of_a_write_is_a_place_to_die() -> None:
    """A file is created, filled and renamed: a process can die between any two of these."""

    async def run(write: int) -> list[str]:
        made = account()
        store = MortalStore(ADDRESS, {"account": made}, Process("one", Crash(write)))
        with pytest.raises(Crashed):
            await store.put("/x", b"data")
        return await names(made)

    left = [run_virtual(run(write)) for write in (1, 2, 3)]

    assert left[0] == []
    assert [len(found) for found in left] == [0, 1, 1]
    assert "x" not in left[2]


def test_whoever_is_under_way_hears_nothing() -> None:
    """Requests on the wire take effect when their process dies, and nobody gets their answers."""

    async def run() -> tuple[list[str], list[BaseException]]:
        made, process = account(), Process("one", Crash(4))
        weather = FaultInjector(
            random.Random(0), lambda: 0.0, Climate(latency=Latency("fixed", 1.0))
        )
        store = MortalStore(ADDRESS, {"account": made, "weather": weather}, process)
        acts = [store.mkdir(f"/{name}") for name in "abcd"]
        answers = await asyncio.gather(*acts, return_exceptions=True)
        return await names(made), [answer for answer in answers if answer is not None]

    found, answers = run_virtual(run())

    assert found == ["a", "b", "c"]
    assert [type(answer) for answer in answers] == [Crashed] * 4


def test_what_is_cancelled_on_the_wire_takes_effect() -> None:
    """Who stops waiting for an answer has sent the request all the same, and it is done once."""

    async def run() -> list[str]:
        made = account()
        slow = Climate(latency=Latency("fixed", 1.0))
        options = {"account": made, "weather": FaultInjector(random.Random(0), lambda: 0.0, slow)}
        store = MortalStore(ADDRESS, options, Process("one"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await store.mkdir("/a")
        assert await names(made) == []
        await store.aclose()
        return await names(made)

    assert run_virtual(run()) == ["a"]


@pytest.mark.parametrize("after", [False, True])
def test_a_process_stands_still(after: bool) -> None:
    """All its requests wait, from one before or after it took effect, until it wakes."""

    async def run() -> tuple[list[str], list[str]]:
        made, process = account(), Process("one", stop=Suspension(2, 100.0, after))
        store = MortalStore(ADDRESS, {"account": made}, process)
        acting = asyncio.create_task(directories(store))
        await asyncio.sleep(50)
        states = [process.is_stopped]
        asleep = await names(made)
        await acting
        assert [*states, process.is_stopped] == [True, False]
        assert asyncio.get_running_loop().time() == 100
        return asleep, await names(made)

    assert run_virtual(run()) == (["a", "b"] if after else ["a"], ["a", "b", "c"])


def test_a_process_is_killed_in_its_sleep() -> None:
    """It never wakes, and its held request is never sent."""

    async def run() -> list[str]:
        made, process = account(), Process("one", stop=Suspension(2, 100.0))
        store = MortalStore(ADDRESS, {"account": made}, process)
        acting = asyncio.create_task(directories(store))
        await asyncio.sleep(50)
        process.kill()
        with pytest.raises(Crashed):
            await acting
        return await names(made)

    assert run_virtual(run()) == ["a"]


def test_no_wrapper_catches_a_crash() -> None:
    """Nothing is sent again, settled or tidied up by a process that is dead."""

    async def run() -> tuple[list[str], int]:
        made, process = account(), Process("one", Crash(3, When.AFTER))
        inner = MortalStore(ADDRESS, {"account": made}, process)
        store = wrap(inner, StoreSettings(random.Random(0)))
        with pytest.raises(Crashed):
            await store.put("/x", b"data", overwrite=False)
        return await names(made), process.requests

    found, requests = run_virtual(run())

    assert found == ["x"]
    assert requests == 4  # a look at the directory, and the three writes


Act = Callable[[Store, Path], Awaitable[object]]
ACTS: dict[str, Act] = {
    "mkdir": lambda store, path: store.mkdir(f"{path}/new"),
    "put": lambda store, path: store.put(f"{path}/new", b"x"),
    "rename": lambda store, path: store.rename(f"{path}/old", f"{path}/new"),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
async def test_the_policy_above_any_store(when: When, act: str, tmp_path: Path) -> None:
    """A write of a real store happens wholly or not at all, and the process is dead after it."""
    (tmp_path / "old").write_text("old")
    process = Process("one", Crash(1, when))
    inner = LocalStore()
    store = Wrapped(inner, Mortal(process))
    try:
        await store.head(f"{tmp_path}/old")
        with pytest.raises(Crashed):
            await ACTS[act](store, tmp_path)
        with pytest.raises(Crashed):
            await store.head(f"{tmp_path}/old")
    finally:
        await inner.aclose()

    assert (tmp_path / "new").exists() == (when is When.AFTER)
    assert process.writes[0].startswith(act)


def test_a_store_that_nobody_kills() -> None:
    """Without a crash it is the simulated store."""

    async def run() -> tuple[object, object]:
        made = account()
        store = MortalStore(ADDRESS, {"account": made}, Process("one"))
        await store.put("/x", b"data")
        with pytest.raises(NotFoundError):
            await store.head("/y")
        plain = SimStore(ADDRESS, {"account": made})
        return await store.head("/x"), await plain.head("/x")

    mine, plain = run_virtual(run())

    assert mine == plain
