"""The markers of one job on every kind of store: written once, and taken back by identity."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import (
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    UnsupportedError,
)
from asynccommit.mapreduce.marker_store import MarkerStore
from asynccommit.mapreduce.markers import STARTED, MarkerState
from asynccommit.stores.base import Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.testing.models.crashes import Process
from asynccommit.testing.models.s3.model import UploadRules
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.worlds import KINDS, new_world
from tests.support.faults import Fault, Faults
from tests.testing.models.s3.bench import open_store

JOB = "job_1700000000000_0007"
STORES = ("local", "s3", *KINDS)
Scene = Callable[[MarkerStore], Coroutine[Any, Any, None]]


def play(kind: str, root: Path, scene: Scene) -> None:
    """Run a scene in the staging directory of a job on this kind of store."""

    async def run() -> None:
        store: Store
        path = "/staging/job"
        if kind == "local":
            store, path = LocalStore(), f"{root}/job"
            await store.mkdir(path)
        elif kind.endswith("s3"):
            rules = UploadRules(conditional_writes=kind != "careless s3")
            store = open_store(rules, known=kind == "s3")
        else:
            world = new_world(kind)
            world.place(f"{path}/job.split", "splits")
            store = world.store(Process("one"))
        await store.put(f"{path}/job.xml", b"<configuration/>")
        try:
            await scene(MarkerStore(store, path, JOB))
        finally:
            await store.aclose()

    if kind == "local":
        asyncio.run(run())  # its threads are none of the virtual loop's
    else:
        run_virtual(run())


@pytest.mark.parametrize("kind", STORES)
def test_a_file_is_written_once(kind: str, tmp_path: Path) -> None:
    """Whose file is there is told; what is there already counts as written."""

    async def scene(place: MarkerStore) -> None:
        assert await place.write(STARTED, b"one")
        assert await place.write(STARTED, b"one")
        assert not await place.write(STARTED, b"two")
        assert await place.store.get(place.at(STARTED), 10) == b"one"

    play(kind, tmp_path, scene)


@pytest.mark.parametrize("kind", STORES)
def test_a_file_is_taken_back(kind: str, tmp_path: Path) -> None:
    """One's own goes and leaves nothing, another's stays, and what is gone is no error."""

    async def scene(place: MarkerStore) -> None:
        await place.write(STARTED, b"one")
        await place.take_back(STARTED, b"two", "id")
        assert await place.store.get(place.at(STARTED), 10) == b"one"
        for _ in range(2):
            await place.take_back(STARTED, b"one", "id")
        with pytest.raises(NotFoundError):
            await place.store.head(place.at(STARTED))
        left = (await place.store.list(place.path)).entries
        assert [info.path for info in left if "COMMIT" in info.path] == []

    play(kind, tmp_path, scene)


class Meanwhile:
    """A policy: before the first rename or delete, another puts its own file there."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self._done = False

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def act(op: Op) -> Any:
            if not self._done and op.name in ("rename", "delete", "delete_many"):
                self._done = True
                await self._store.delete(self._path)
                await self._store.put(self._path, b"another's")
            return await call(op)

        return act


@pytest.mark.parametrize("kind", ["local", "adls", "s3", "flat"])
def test_what_came_meanwhile_stays(kind: str, tmp_path: Path) -> None:
    """A file that took the place of one's own in the last moment is not deleted."""

    async def scene(place: MarkerStore) -> None:
        await place.write(STARTED, b"one")
        path = place.at(STARTED)
        store = Wrapped(place.store, Meanwhile(place.store, path))
        with suppress(PreconditionError):
            await MarkerStore(store, place.path, JOB).take_back(STARTED, b"one", "id")
        assert await place.store.get(path, 10) == b"another's"

    play(kind, tmp_path, scene)


def test_an_answer_that_is_lost_for_good(tmp_path: Path) -> None:
    """Where nothing is there after a lost response, nobody can tell: it may come late."""

    async def scene(place: MarkerStore) -> None:
        lost = Fault("put", lambda op, path: OutcomeUnknownError(op, path, "no answer"))
        unsure = MarkerStore(Wrapped(place.store, Faults(lost)), place.path, JOB)
        with pytest.raises(OutcomeUnknownError):
            await unsure.write(STARTED, b"one")

    play("local", tmp_path, scene)


@pytest.mark.parametrize("kind", STORES)
def test_what_is_there(kind: str, tmp_path: Path) -> None:
    """A directory without markers has begun nothing; one that is not there is told apart."""

    async def scene(place: MarkerStore) -> None:
        there = await place.look()
        nowhere = await MarkerStore(place.store, f"{place.path}-gone", JOB).look()

        assert there == MarkerState(there.markers)
        assert (there.markers.staging, there.markers.started) == (True, False)
        assert not nowhere.markers.staging

    play(kind, tmp_path, scene)


def test_a_server_that_keeps_no_conditions(tmp_path: Path) -> None:
    """It is found out when the first marker is written, and that is taken back."""

    async def scene(place: MarkerStore) -> None:
        with pytest.raises(RejectedError, match="ignores the condition"):
            await place.claim(STARTED, b"one", "id")
        assert not (await place.look()).markers.started

    play("careless s3", tmp_path, scene)


@pytest.mark.parametrize("kind", [*STORES, "unknown s3"])
def test_one_of_two_claims(kind: str, tmp_path: Path) -> None:
    """What only one may write only one has written."""

    async def scene(place: MarkerStore) -> None:
        assert await place.claim(STARTED, b"one", "id-1")
        assert not await place.claim(STARTED, b"two", "id-2")
        assert await place.store.get(place.at(STARTED), 10) == b"one"

    play(kind, tmp_path, scene)


async def test_a_store_without_conditions(tmp_path: Path) -> None:
    """Where two could both write the first marker nobody writes it."""
    store = LocalStore()
    store.traits = replace(store.traits, conditional_put=False)
    with pytest.raises(UnsupportedError, match="cannot create a file only if it does not exist"):
        await MarkerStore(store, str(tmp_path), JOB).claim(STARTED, b"one", "id")
    await store.aclose()

    assert list(tmp_path.iterdir()) == []
