"""A bucket as a store: the rules of such stores in good weather, and the errors of bad."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.policies.in_flight import InFlightLimit
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.testing.models.fault_rules import Climate, Fault, FaultInjector
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import UploadRules
from asynccommit.testing.models.s3.refusals import S3
from tests.support.contract import FLAT_RULES, Rule, name_of
from tests.support.contract_multipart import (
    MULTIPART_RULES,
    MultipartRule,
    completing_may_ask_for_an_etag,
)
from tests.testing.models.s3.bench import open_store

SMALL = UploadRules(smallest_part=16)
KINDS: dict[str, tuple[UploadRules, dict[str, Any]]] = {
    "plain": (SMALL, {}),
    "small pages": (SMALL._replace(page=7), {}),
    "pages asked for": (SMALL, {"page": 3}),
    "checksums": (SMALL, {"checksum": "CRC32C"}),
    "keys of the customer": (SMALL._replace(sse_kms=True), {"checksum": "SHA256"}),
    "forgets at once": (SMALL._replace(remembers=0.0), {}),
    "deletes without conditions": (SMALL._replace(conditional_deletes=False), {}),
    "not known": (SMALL, {"known": False}),
    "no If-Match": (SMALL._replace(matches=False), {"known": False}),
    "slow": (SMALL, {"latency": Latency("uniform", 0.0, 0.001)}),
}
POLICIES: dict[str, Callable[[SimS3Store], list[Policy]]] = {
    "stats": lambda _: [Stats("asked")],
    "recover": lambda store: [Recover(store.traits, random.Random(1)), Retry(random.Random(1))],
    "odd order": lambda _: [InFlightLimit(5), Stats("all"), Retry(random.Random(1))],
}


@pytest.fixture(params=[*KINDS, *POLICIES, "in full"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MultipartStore]:
    """The simulated store, in every way that it may answer and be wrapped."""
    kind: str = request.param
    rules, options = KINDS.get(kind, (SMALL, {}))
    climate = Climate((Fault("cut", path="never"),), options.get("latency", Latency()))
    weather = FaultInjector(random.Random(1), time.monotonic, climate, S3)
    bare = open_store(rules, **{**options, "weather": weather})
    opened: SimS3Store | Wrapped = bare
    if kind in POLICIES:
        opened = Wrapped(bare, *POLICIES[kind](bare))
    elif kind == "in full":
        opened = wrap(bare, StoreSettings(random.Random(1)))
    yield opened
    await opened.aclose()


@pytest.mark.rotate("store", keep=4)
@pytest.mark.parametrize("rule", FLAT_RULES, ids=name_of)
async def test_contract(rule: Rule, store: MultipartStore) -> None:
    """The store keeps the rules of those without renames."""
    await store.mkdir("/root")
    await rule(store, "/root")


@pytest.mark.rotate("store", keep=4)
@pytest.mark.parametrize("rule", MULTIPART_RULES, ids=lambda rule: rule.__name__)
async def test_contract_of_uploads(rule: MultipartRule, store: MultipartStore) -> None:
    """The store keeps the rules of those that take files in parts."""
    await store.mkdir("/root")
    await rule(store, "/root")


async def test_a_service_that_passes_conditions_over_is_looked_at_first() -> None:
    """Where nothing is known of a service, the store itself sees that an etag is there."""
    store = open_store(SMALL._replace(conditional_writes=False), known=False)
    bounds = store.traits.multipart
    assert bounds is not None
    assert not any((bounds.matches, bounds.abort_tells, store.traits.conditions_proven))
    await completing_may_ask_for_an_etag(store, "/root")
