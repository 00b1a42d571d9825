"""Load tests on the models of accounts, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from asynccommit.engine.listing import list_tree
from asynccommit.loadtest.report import LoadReport
from asynccommit.loadtest.run import LoadRun
from asynccommit.loadtest.settings import LoadSettings
from asynccommit.simulate.run import World
from asynccommit.simulate.setup import Setup
from asynccommit.stores.registry import StoreSettings
from asynccommit.stores.urls import Address
from asynccommit.testing.models.fault_rules import Climate, Fault
from asynccommit.testing.models.latency import Latency, RequestLimit
from asynccommit.testing.models.virtual_loop import run_virtual

T = TypeVar("T")


class Account:
    """A model of an account, on the running loop of virtual time.

    Attributes:
        world: the model and its host.
        top: the directory below which load tests run.
    """

    def __init__(self, setup: Setup) -> None:
        self.world = World(setup, asyncio.get_running_loop())
        self.top: Address = self.world.model.dest

    @property
    def requests(self) -> int:
        """Number of requests that the account was sent."""
        return sum(self.world.model.weather.requests.values())

    def load_run(self, settings: LoadSettings, *, rate: float | None = None) -> LoadRun:
        """Return a load test."""
        host = replace(self.world.host, rng=random.Random(1))
        found = StoreSettings(random.Random(1), rate=rate, clock=host.clock)
        return LoadRun(self.world.model.store, found, self.top, settings, host)

    async def run(self, rate: float | None = None, **settings: Any) -> LoadReport:
        """Run a load test without a forecast."""
        return await self.load_run(LoadSettings(forecast=False, **settings), rate=rate).run()

    async def left(self) -> list[str]:
        """Return the paths of all that the account holds."""
        return [info.path async for info in list_tree(self.world.model.store, "/")]


def on_account(
    work: Callable[[Account], Coroutine[Any, Any, T]],
    *faults: Fault,
    latency: float = 0.02,
    limit: float | None = None,
    store: str = "adls",
    in_flight: int = 64,
) -> T:
    """Run ``work`` on a new account in virtual time."""
    known = None if limit is None else RequestLimit(limit, max(1.0, limit / 10))
    climate = Climate(faults, Latency(first=latency), known)

    async def main() -> T:
        return await work(Account(Setup(climate=climate, store=store, in_flight=in_flight)))

    return run_virtual(main())
