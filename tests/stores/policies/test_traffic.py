"""One value of what the policies around a store have counted."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from itertools import count

from asynccommit.errors import UnavailableError
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.per_object_rate import PerObjectRate
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.policies.traffic import Traffic, traffic_of, waiting_for
from asynccommit.stores.registry import StoreSettings, open_store, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import Climate, FaultInjector
from asynccommit.testing.models.virtual_loop import run_virtual

CLIMATE = Climate.from_json(
    {
        "faults": [
            {"kind": "cut", "op": "rename", "path": "moved", "times": 1},
            {"kind": "before", "op": "mkdir", "code": "ServerBusy", "times": 2},
        ]
    }
)


def test_what_happened_is_counted() -> None:
    """A lost response that was settled, refusals, and the waiting for them show up."""

    async def run() -> Traffic:
        ids = count()
        account = AdlsAccount("sim", now=lambda: 0.0, new_id=lambda: f"id-{next(ids)}")
        account.create_filesystem("data")
        weather = FaultInjector(random.Random(1), lambda: 0.0, CLIMATE)
        options = {"account": account, "weather": weather}
        address = parse_url("abfs://data@sim.dfs.core.windows.net/")
        store = wrap(SimStore(address, options), StoreSettings(random.Random(1)))
        await store.mkdir("/d")
        await store.put("/d/f", b"x")
        await store.rename("/d/f", "/d/moved")
        await store.aclose()
        return traffic_of(store)

    traffic = run_virtual(run())

    assert traffic.recovered == {"rename": 1}
    assert traffic.refused == 2
    assert traffic.sent == 6  # two refused, one taken, a put, a rename, and a look at its end
    assert traffic.waited.keys() <= {"rate", "backoff"}
    assert traffic.waited["backoff"] > 0


def test_the_wait_for_a_name_is_counted() -> None:
    """What waited because its name had just been changed shows up under that reason."""

    async def run() -> Traffic:
        account = AdlsAccount("sim", now=lambda: 0.0, new_id=lambda: "id")
        account.create_filesystem("data")
        address = parse_url("abfs://data@sim.dfs.core.windows.net/")
        store = Wrapped(SimStore(address, {"account": account}), PerObjectRate(1.0), Stats("sent"))
        await store.put("/f", b"x")
        await store.put("/f", b"y")
        return traffic_of(store)

    traffic = run_virtual(run())

    assert traffic.sent == 2
    assert traffic.waited == {"name": 1.0}


async def test_a_store_without_trouble_has_none() -> None:
    """Nothing was refused, recovered or waited for on a local disk."""
    store = open_store(parse_url("file:/"), StoreSettings(random.Random(1)))
    await store.head("/")
    await store.aclose()

    assert replace(traffic_of(store), series=None) == Traffic(sent=1)


def test_what_requests_wait_for_is_told() -> None:
    """The most frequent reason is told with the number of all that wait, and nothing otherwise."""

    async def run() -> tuple[str, str]:
        ids = count()
        account = AdlsAccount("sim", now=lambda: 0.0, new_id=lambda: f"id-{next(ids)}")
        account.create_filesystem("data")
        away = Climate.from_json({"faults": [{"kind": "before", "code": "InternalError"}]})
        weather = FaultInjector(random.Random(1), lambda: 0.0, away)
        address = parse_url("abfs://data@sim.dfs.core.windows.net/")
        options = {"account": account, "weather": weather}
        store = wrap(SimStore(address, options), StoreSettings(random.Random(1), retry_seconds=9))
        heads = [asyncio.ensure_future(store.head("/d")) for _ in range(3)]
        await asyncio.sleep(1)
        during = waiting_for(store)
        failed = await asyncio.gather(*heads, return_exceptions=True)
        assert all(isinstance(error, UnavailableError) for error in failed)
        assert asyncio.get_running_loop().time() < 10
        await store.aclose()
        return during, waiting_for(store)

    during, after = run_virtual(run())

    assert during.startswith("3 requests wait: ")
    assert "internal" in during.lower()
    assert after == ""
    assert waiting_for(LocalStore()) == ""
