"""Find the rate that a store bears, by asking for more than it bears."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from itertools import count

from asynccommit.loadtest.measure import BudgetSpentError, RequestBudget
from asynccommit.loadtest.report import RateFound
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.traffic import traffic_of

_SMALL = 1_000  # bytes

Turn = Callable[[int], Awaitable[object]]
"""Sends one request; called with the number of the worker."""


async def press(
    store: Wrapped,
    turn: Turn,
    budget: RequestBudget,
    *,
    method: str,
    workers: int,
    seconds: float,
    requests: int,
) -> RateFound:
    """Send requests as fast as the store accepts them.

    The rate counts in the second half of the time: in the first the policies of the store still
    find it.

    Args:
        store: the store.
        turn: sends one request.
        budget: counts the requests.
        method: the store method that ``turn`` calls.
        workers: number of requests to keep in flight.
        seconds: maximum duration.
        requests: maximum number of requests.

    Raises:
        StoreError: a request failed, for another reason than its rate.
    """
    clock = asyncio.get_running_loop().time
    begin, most = clock(), budget.sent + requests
    refused, times = traffic_of(store).refused, array("d")

    async def work(number: int) -> None:
        while clock() < begin + seconds and budget.sent < most:
            try:
                await turn(number)
            except BudgetSpentError:
                return
            times.append(clock())

    await for_each(range(workers), work, workers=workers)
    end = times[-1] if times else clock()
    middle = begin + (end - begin) / 2
    accepted = len(times) - bisect_left(times, middle)
    half = end - middle
    return RateFound(
        accepted / half if half > 0 else 0.0,
        traffic_of(store).refused > refused,
        accepted,
        half,
        method,
    )


def reads_of(store: Store, paths: list[str]) -> tuple[str, Turn]:
    """Return the method by which the rate of reads is found, and its turns.

    It is one that sends one request: where files imply their directories, ``head`` sends two.
    """

    async def head(number: int) -> None:
        await store.head(paths[number])

    async def get(number: int) -> None:
        await store.get(paths[number], _SMALL)

    return ("head", head) if store.traits.directories else ("get", get)


def renaming(store: Store, paths: list[str]) -> Turn:
    """Return turns that rename files, each to and fro; ``paths`` follows them."""
    there = [f"{path}.moved" for path in paths]

    async def turn(number: int) -> None:
        await store.rename(paths[number], there[number])
        paths[number], there[number] = there[number], paths[number]

    return turn


def writing(store: Store, directory: str, *, new_names: bool) -> Turn:
    """Return turns that write small files.

    Each worker replaces one file, or each write has a new name where names may change only
    now and then.
    """
    numbers = count()

    async def turn(number: int) -> None:
        name = f"{next(numbers)}" if new_names else f"{number}"
        await store.put(f"{directory}/w{name}", b"1")

    return turn


def writes_of(store: Store, directory: str, paths: list[str]) -> tuple[str, Turn]:
    """Return the method by which the rate of writes is found, and its turns."""
    traits = store.traits
    if traits.atomic_rename and not traits.name_interval:
        return "rename", renaming(store, paths)
    return "put", writing(store, directory, new_names=bool(traits.name_interval))
