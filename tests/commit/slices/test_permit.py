"""The permit of a worker: when it may send requests, by what it reads of its owner."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.orders import GRANT, Order
from asynccommit.commit.slices.permit import Permit
from asynccommit.commit.slices.worker import worker_context
from asynccommit.errors import LeaseLostError
from asynccommit.formats.commit_grants import Grants, encode_grants
from asynccommit.testing.models.crashes import Process
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import host_of
from tests.support.crashes import DEST, SimWorld


class Owner:
    """An owner that writes numbers, and a worker of it."""

    def __init__(self) -> None:
        self.world = SimWorld.new()
        self.process = Process("worker@machine-1")
        layout = Layout(self.world.address(DEST), "job_1")
        self.path = layout.grants(1, fenced=True)
        host = host_of(self.world, self.process, "machine-1", None, 0.0)  # type: ignore[arg-type]
        store = self.world.store(self.process)
        self.permit = Permit(worker_context(Order(layout, "1"), store, host))

    async def say(self, grants: Grants | bytes) -> None:
        """Write the grants as another process."""
        store = self.world.store(Process("owner"))
        with suppress(Exception):
            await store.mkdir(self.path.rpartition("/")[0])
        data = grants if isinstance(grants, bytes) else encode_grants(grants)
        await store.put(self.path, data)

    async def look(self) -> None:
        """Let the worker read them."""
        await self.permit.look()

    @property
    def allowed(self) -> bool:
        """Return whether the worker may send a request now."""
        try:
            self.permit.check()
        except LeaseLostError:
            return False
        return True


def test_a_number_allows_nothing_until_it_changes() -> None:
    """The first number may have been written by an owner that is dead."""

    async def run() -> list[bool]:
        owner = Owner()
        await owner.say(Grants(1))
        await owner.look()
        await owner.look()
        before = owner.allowed
        await owner.say(Grants(2))
        await owner.look()
        return [before, owner.allowed]

    assert run_virtual(run()) == [False, True]


def test_a_permit_lasts_from_the_look_before_the_change() -> None:
    """The owner may have died right after the earlier look."""

    async def run() -> list[bool]:
        owner = Owner()
        await owner.say(Grants(1))
        await owner.look()
        await owner.say(Grants(2))
        await asyncio.sleep(15)
        await owner.look()
        await asyncio.sleep(GRANT - 16)
        there = owner.allowed
        await asyncio.sleep(2)
        return [there, owner.allowed]

    assert run_virtual(run()) == [True, False]


@pytest.mark.parametrize("said", [b"{}", b"not JSON", b"[" * 100_000])
def test_damaged_grants_are_as_good_as_unread(said: bytes) -> None:
    """They end nothing, and allow nothing."""

    async def run() -> bool:
        owner = Owner()
        await owner.say(Grants(1))
        await owner.look()
        await owner.say(said)
        with suppress(Exception):
            await owner.look()
        return owner.allowed

    assert run_virtual(run()) is False


def test_a_stop_ends_the_permit_for_ever() -> None:
    """A renewal that comes late allows nothing any more."""

    async def run() -> list[bool]:
        owner = Owner()
        for number in (1, 2):
            await owner.say(Grants(number))
            await owner.look()
        before = owner.allowed
        await owner.say(Grants(3, stop=True))
        await owner.look()
        await owner.say(Grants(4))
        await owner.look()
        return [before, owner.allowed]

    assert run_virtual(run()) == [True, False]


def test_a_worker_of_an_owner_without_grants_ends_at_once() -> None:
    """A takeover has renamed the directory that they are in."""

    async def run() -> str:
        owner = Owner()
        try:
            async with owner.permit.held():
                return "held"
        except LeaseLostError as error:
            return str(error)

    assert "another owner" in run_virtual(run())


def test_a_worker_waits_for_a_silent_owner_no_longer_than_two_grants() -> None:
    """Its owner may have died before the worker began."""

    async def run() -> float:
        owner = Owner()
        await owner.say(Grants(1))
        begin = asyncio.get_running_loop().time()
        with pytest.raises(LeaseLostError):
            async with owner.permit.held():
                pass
        return asyncio.get_running_loop().time() - begin

    assert GRANT < run_virtual(run()) < 3 * GRANT


def test_a_look_that_hangs_is_given_up_for_the_next() -> None:
    """A refused request waits ever longer before it is sent again."""

    async def run() -> tuple[float, list[bool]]:
        owner = Owner()
        await owner.say(Grants(1))
        await owner.look()
        await owner.say(Grants(2))
        get, clock = owner.permit._run.store.get, asyncio.get_running_loop().time

        async def hung(*arguments: object) -> bytes:
            await asyncio.sleep(1000)
            return b""

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner.permit._run.store, "get", hung)
            begin = clock()
            await owner.look()
            took = clock() - begin
        assert owner.permit._run.store.get == get
        before = owner.allowed
        await owner.look()
        return took, [before, owner.allowed]

    took, allowed = run_virtual(run())
    assert took < GRANT / 2
    assert allowed == [False, True]
