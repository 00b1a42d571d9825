"""A server that passes conditions over is found out before a commit rests on them."""

from __future__ import annotations

import random

import pytest

from asynccommit.commit.conditions import prove_conditions
from asynccommit.errors import RejectedError
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.testing.models.s3.model import UploadRules
from tests.testing.models.s3.bench import open_store

DATA = b"a chunk"


async def written(rules: UploadRules, *, known: bool) -> Wrapped:
    """Return a store with a file on it."""
    store = wrap(open_store(rules, known=known), StoreSettings(random.Random(1)))
    await store.put("/chunk", DATA, overwrite=False)
    return store


def requests(store: Wrapped) -> int:
    """Return how many writes were sent."""
    [stats] = [one for one in store.policies if isinstance(one, Stats) and one.name == "sent"]
    return stats.counts["put"].n


async def test_a_server_that_passes_the_condition_over_is_refused() -> None:
    """The error names the file and says why; what is in it stays the same."""
    store = await written(UploadRules(conditional_writes=False), known=False)
    with pytest.raises(RejectedError, match=r"/chunk.*If-None-Match"):
        await prove_conditions(store, "/chunk", DATA)
    assert await store.get("/chunk", 100) == DATA


async def test_a_server_that_keeps_it_is_asked_once() -> None:
    """It costs one write more."""
    store = await written(UploadRules(), known=False)
    await prove_conditions(store, "/chunk", DATA)
    assert requests(store) == 2


async def test_where_it_is_known_nobody_is_asked() -> None:
    """The service's own word is enough."""
    store = await written(UploadRules(), known=True)
    await prove_conditions(store, "/chunk", DATA)
    assert requests(store) == 1
