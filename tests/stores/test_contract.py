"""Every store, bare and in every kind of wrapping, keeps the rules of the contract."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from asynccommit.stores.base import Store
from asynccommit.stores.local import files
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.policies.in_flight import InFlightLimit
from asynccommit.stores.policies.rate import Throttle
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from tests.support.contract import RULES, Rule, name_of

POLICIES: dict[str, Callable[[], list[Policy]]] = {
    "none": list,
    "stats": lambda: [Stats("asked")],
    "retry": lambda: [Retry(random.Random(1))],
    "throttle": lambda: [Throttle(100_000)],
    "limit": lambda: [InFlightLimit(3)],
    "odd order": lambda: [
        InFlightLimit(5),
        Throttle(100_000),
        Stats("all"),
        Retry(random.Random(1)),
    ],
}


@pytest.fixture(params=["bare", "small pages", "opened", "opened in full", *POLICIES])
async def store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Store]:
    """The local store, in every way it can be had."""
    kind: str = request.param
    opened: LocalStore | Wrapped
    if kind == "opened":
        opened = open_store(parse_url("file:/"), StoreSettings(random.Random(1)))
    elif kind == "opened in full":
        settings = StoreSettings(random.Random(1), rate=100_000, in_flight=7)
        opened = open_store(parse_url("file:/"), settings)
    elif kind in POLICIES:
        opened = Wrapped(LocalStore(), *POLICIES[kind]())
    else:
        opened = LocalStore()
    if kind == "small pages":
        monkeypatch.setattr(files, "PAGE", 7)
    yield opened
    await opened.aclose()


@pytest.mark.rotate("store", keep=4)
@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: Store, tmp_path: Path) -> None:
    """The store keeps the rule."""
    await rule(store, str(tmp_path))
