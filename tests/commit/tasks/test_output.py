"""Files of a task on a store take no more requests than they need."""

from __future__ import annotations

import pytest

from asynccommit.commit.tasks.output import StoreWork
from tests.loadtest.accounts import Account, on_account


@pytest.mark.parametrize("store, request_name, made", [("adls", "mkdir", 2), ("gcs", "insert", 20)])
def test_a_directory_is_made_once(store: str, request_name: str, made: int) -> None:
    """Or never, where files imply theirs: its placeholder could change only once a second."""

    async def work(account: Account) -> tuple[int, float]:
        output = StoreWork(account.world.wrapped(), account.top, "/table/task")
        for number in range(20):
            await output.put(f"day={number % 2}/part-{number}", b"1")
        seconds = account.world.host.clock()
        return account.world.model.weather.requests[request_name], seconds

    sent, seconds = on_account(work, store=store, limit=1_000)

    assert sent == made
    assert seconds < 3
