"""Names keeps two changes of one name apart, and costs nothing where stores do not mind."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.per_object_rate import _MOST, Changes, PerObjectRate
from asynccommit.stores.policies.retry import Retry
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.stack import Answers, Random, head

LATENCY = 0.03


def put(path: str) -> Op:
    """A write of a whole file."""
    return Op("put", (path, b""), True, True)


def delete(path: str) -> Op:
    """A delete of one file."""
    return Op("delete", (path,), True, True)


def rename(source: str, dest: str) -> Op:
    """A move from one name to another."""
    return Op("rename", (source, dest), True, False)


def copy(source: str, dest: str) -> Op:
    """A copy, which leaves its source as it is."""
    return Op("copy", (source, dest), True, False)


def delete_many(*paths: str) -> Op:
    """Deletes of several files in one request."""
    return Op("delete_many", ([Info(path, Kind.FILE) for path in paths],), True, True)


def changed(op: Op) -> list[str]:
    """What names an operation changes, told in another way than the policy does."""
    first = op.args[0]
    return {
        "put": lambda: [first],
        "delete": lambda: [first],
        "rename": lambda: list(op.args),
        "copy": lambda: [op.args[1]],
        "delete_many": lambda: [info.path for info in first],
    }.get(op.name, list)()


class Service:
    """Changes names after half of the latency, and refuses what comes too soon for one of them."""

    def __init__(self, interval: float = 1.0) -> None:
        self.interval = interval
        self.last: dict[str, float] = {}
        self.times: dict[str, list[float]] = defaultdict(list)
        self.refused = 0

    async def __call__(self, op: Op) -> Any:
        """Answer after the latency."""
        await asyncio.sleep(LATENCY / 2)
        now = asyncio.get_running_loop().time()
        names = changed(op)
        hot = any(now - self.last.get(name, -9.0) < self.interval for name in names)
        if not hot:
            for name in names:
                self.last[name] = now
                self.times[name].append(now)
        await asyncio.sleep(LATENCY / 2)
        if hot:
            self.refused += 1
            raise ThrottledError(op.name, names[0], "one change a second")
        return None


def in_virtual_time(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run an async test on a loop whose time only jumps."""

    def run() -> None:
        async def main() -> None:
            await test()

        run_virtual(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def now() -> float:
    """The time of the running loop."""
    return asyncio.get_running_loop().time()


PAIRS = [
    (put("/a"), put("/a")),
    (rename("/a", "/b"), put("/a")),
    (rename("/a", "/b"), rename("/b", "/a")),
    (delete("/a"), put("/a")),
    (delete_many("/a", "/b"), rename("/x", "/b")),
    (Op("complete_upload", ("/a", "id", ()), True, False), put("/a")),
    (put("/a"), Op("put_marker", ("/a", {}), True, True)),
    (put("/a"), Op("copy_if", ("/x", "/a", "e"), True, True)),
]


@pytest.mark.parametrize("first, second", PAIRS, ids=str)
def test_a_second_change_waits_the_rest(first: Op, second: Op) -> None:
    """Whatever changes a name again waits until a second has passed since the last answer."""

    async def main() -> None:
        names, service = PerObjectRate(1.0), Service()
        call = names.around(service)
        await call(first)
        await asyncio.sleep(0.4)
        await call(second)
        assert now() == pytest.approx(1 + 2 * LATENCY, abs=1e-6)
        assert names.waited["name"] == pytest.approx(0.6, abs=1e-6)
        assert service.refused == 0

    run_virtual(main())


APART = [
    (put("/tmp"), rename("/tmp", "/a")),
    (rename("/tmp", "/a"), delete("/a")),
    (copy("/x", "/a"), rename("/a", "/b")),
    (put("/b"), delete_many("/a", "/b", "/c")),
    (put("/a"), put("/b")),
    (copy("/a", "/b"), put("/a")),
    (put("/a"), copy("/a", "/b")),
    (put("/a"), head()),
    (Op("mkdir", ("/a",), True, True), Op("mkdir", ("/a",), True, True)),
    (rename("/a", "/b"), rename("/c", "/d")),
    (Op("copy_if", ("/a", "/b", "e"), True, True), put("/a")),
    (put("/a"), Op("put_part", ("/a", "id", 1, b""), True, True)),
]


@pytest.mark.parametrize("first, second", APART, ids=str)
def test_what_changes_another_name_or_none_does_not_wait(first: Op, second: Op) -> None:
    """Reads and other names are free; so is what moves or deletes what was just written."""

    async def main() -> None:
        names = PerObjectRate(1.0)
        call = names.around(Service(interval=0.0))
        await call(first)
        await call(second)
        assert names.waited["name"] == 0
        assert now() == pytest.approx(2 * LATENCY)

    run_virtual(main())


@in_virtual_time
async def test_many_at_once_go_one_a_second() -> None:
    """Ten writes of one name that are asked for together take nine seconds, and none is refused."""
    names, service = PerObjectRate(1.0), Service()
    call = names.around(service)
    await asyncio.gather(*[call(put("/_SUCCESS")) for _ in range(10)])
    assert service.refused == 0
    assert 9 <= now() < 10.5


@in_virtual_time
async def test_a_slow_change_counts_from_its_answer() -> None:
    """Nobody knows when a request that took three seconds took effect: the next one waits."""
    times: list[float] = []

    async def slow(op: Op) -> None:
        times.append(now())
        await asyncio.sleep(3)

    call = PerObjectRate(1.0).around(slow)
    await call(put("/a"))
    await call(put("/a"))
    assert times == [0, pytest.approx(4)]


@pytest.mark.parametrize(
    "error, waits",
    [
        (ThrottledError("put", "/a"), True),
        (OutcomeUnknownError("put", "/a"), True),
        (UnavailableError("put", "/a"), False),
        (ExistsError("put", "/a"), False),
        (NotFoundError("put", "/a"), False),
        (DeniedError("put", "/a"), False),
    ],
)
def test_an_answer_that_says_no_is_no_change(error: StoreError, waits: bool) -> None:
    """A refusal for the rate and a lost response keep the next one away; other errors do not."""

    async def main() -> None:
        names = PerObjectRate(1.0)
        call = names.around(Answers(error))
        with pytest.raises(type(error)):
            await call(put("/a"))
        await call(put("/a"))
        assert now() == pytest.approx(1.0 if waits else 0.0)

    run_virtual(main())


@in_virtual_time
async def test_what_a_stranger_made_hot_is_tried_again_with_distance() -> None:
    """After 429 for a name that another process changed, each attempt keeps its second."""
    names, service = PerObjectRate(1.0), Service()
    service.last["/a"] = 0.9  # in the future: refused for almost two seconds
    retry = Retry(Random(0.0), attempts=3)
    await retry.around(names.around(service))(put("/a"))
    assert service.refused <= 2
    assert service.times["/a"][0] == pytest.approx(2.0, abs=0.1)


@in_virtual_time
async def test_stores_of_one_bucket_know_of_each_other() -> None:
    """Two stores with one account share what they remember; without a name they do not."""
    for account, waits in (("gs://b", True), ("", False)):
        one, other = PerObjectRate(1.0, account), PerObjectRate(1.0, account)
        service = Service()
        await one.around(service)(put("/a"))
        begin = now()
        await other.around(Answers())(put("/a"))
        assert (now() - begin > 0.9) is waits


async def test_without_an_interval_it_is_not_there() -> None:
    """Stores that do not mind are called directly."""
    answers = Answers()
    assert PerObjectRate(0.0).around(answers) is answers


@in_virtual_time
async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    """Who gives up while it waits for a name does not hold up others."""
    names, service = PerObjectRate(1.0), Service()
    call = names.around(service)
    await call(put("/a"))
    waiting = [asyncio.ensure_future(call(put("/a"))) for _ in range(5)]
    await asyncio.sleep(0.1)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await call(put("/a"))
    assert now() < 1.2


@in_virtual_time
async def test_what_is_remembered_is_bounded() -> None:
    """Of thirty thousand renames in two seconds some thousand names are known at a time."""
    names, most = PerObjectRate(1.0), 0
    call = names.around(Answers())
    for number in range(30_000):
        await call(rename(f"/s{number}", f"/d{number}"))
        if number % 50 == 0:
            await asyncio.sleep(0.003)
            changes = names._changes
            assert changes is not None
            most = max(most, len(changes.late) + len(changes.before))
    assert most <= 2 * (_MOST + 2)
    assert names.waited["name"] == 0
    assert repr(changes).startswith("Changes(")


@in_virtual_time
async def test_names_are_known_again_after_a_crowd() -> None:
    """When there was no room, there is again a second later."""
    names = PerObjectRate(1.0)
    call = names.around(Answers())
    for number in range(_MOST):
        await call(rename(f"/s{number}", f"/d{number}"))
    await call(put("/late"))
    await call(put("/late"))
    assert now() == 0
    await asyncio.sleep(1.01)
    await call(put("/a"))
    await call(put("/a"))
    assert now() == pytest.approx(2.01)


@in_virtual_time
async def test_what_is_old_is_forgotten() -> None:
    """After two intervals nothing is known of a name that was changed once."""
    changes = Changes(1.0, asyncio.get_running_loop())
    changes.mark(["/a"])
    assert changes.rest("/a") == 1
    for _ in range(2):
        await asyncio.sleep(1.1)
        changes.mark(["/b"])
    assert "/a" not in {**changes.late, **changes.before}
    await asyncio.sleep(60)
    changes.mark(["/c"])
    assert changes.before == {}


@pytest.mark.parametrize("interval", [-1.0, float("inf"), float("nan")])
def test_an_interval_that_is_none_is_refused(interval: float) -> None:
    """Less than nothing, for ever and no number are mistakes."""
    with pytest.raises(ValueError, match="interval"):
        PerObjectRate(interval)


def test_it_says_what_it_is() -> None:
    """Its text has the interval."""
    assert repr(PerObjectRate(1.0)) == "Names(1.0)"


PATHS = st.sampled_from(["/a", "/b", "/c"])
OPS = st.one_of(st.builds(put, PATHS), st.builds(copy, PATHS, PATHS))


@given(st.lists(st.tuples(OPS, st.sampled_from([0.0, 0.01, 0.02, 0.4, 0.98, 1.5])), max_size=8))
def test_no_name_is_written_twice_in_a_second(steps: list[tuple[Op, float]]) -> None:
    """Whatever is asked for, one after the other or side by side, the service refuses nothing."""

    async def main() -> None:
        service = Service()
        call = PerObjectRate(1.0).around(service)
        async with asyncio.TaskGroup() as group:
            for op, pause in steps:
                group.create_task(call(op))  # type: ignore[arg-type]
                await asyncio.sleep(pause)
        assert service.refused == 0
        for times in service.times.values():
            gaps = [late - early for early, late in pairwise(times)]
            assert all(gap >= 1 - 1e-6 for gap in gaps)

    run_virtual(main())
