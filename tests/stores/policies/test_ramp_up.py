"""The ramp is a ceiling that grows while it is used, on a bucket that has the same rule."""

from __future__ import annotations

import asyncio
import gc
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import StoreError, ThrottledError
from asynccommit.stores.base import Info, Kind, Ramp, Traits
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.ramp_up import Growths, RampState, lowest
from asynccommit.stores.policies.rate_queue import Ceilings
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.stores.policies.servers import LATENCY, share, together
from tests.support.stack import Answers, head, rename

GOOGLE = Ramp(5000, 1000, 1200)


def growth(start: float = 1000.0, doubling: float = 1200.0) -> RampState:
    """What a ramp allows, looked at for the first time at 0."""
    found = RampState()
    found.start, found.doubling = start, doubling
    found.count(0, 0.0)
    return found


def use(found: RampState, begin: int, seconds: int, share: float = 1.0) -> None:
    """Send so long this share of what is allowed."""
    for second in range(begin, begin + seconds):
        found.count(math.ceil(share * found.ceiling), second + 1.0)


def test_it_doubles_in_twenty_minutes_of_use() -> None:
    """From 1,000 a second a full load comes to 2,000 in twenty minutes and 8,000 in an hour."""
    found = growth()
    assert found.ceiling == 1000
    use(found, 0, 1200)
    assert found.ceiling == pytest.approx(2000)
    use(found, 1200, 2400)
    assert found.ceiling == pytest.approx(8000)
    assert repr(found) == "Growth(8000/s)"


@pytest.mark.parametrize("share, after", [(0.5, 2000), (0.49, 1000), (0.0, 1000)])
def test_what_is_not_used_does_not_grow(share: float, after: float) -> None:
    """Half of the ceiling is use enough, less is not."""
    found = growth()
    use(found, 0, 1200, share)
    assert found.ceiling == pytest.approx(after)


def test_the_ceiling_is_no_more_than_double_of_what_was_asked() -> None:
    """A steady load of 600 a second stops growing at 1,200."""
    found = growth()
    for second in range(7200):
        found.count(600, second + 1.0)
    assert found.ceiling == pytest.approx(1200, rel=0.01)


def test_trouble_is_a_pause() -> None:
    """Seconds in which the rate had to fall do not count, but they are no rest either."""
    found = growth()
    for second in range(3000):
        if second % 2:
            found.pause()
        use(found, second, 1)
    assert found.used == 1500


def test_a_long_rest_takes_back_what_was_reached() -> None:
    """Half an hour of silence changes nothing; after that twenty minutes halve the ceiling."""
    found = growth()
    use(found, 0, 2400)
    assert found.ceiling == pytest.approx(4000)
    found.count(0, 2400 + 1800.0)
    assert found.ceiling == pytest.approx(4000)
    found.count(0, 2400 + 1800.0 + 1200)
    assert found.ceiling == pytest.approx(2000)
    found.count(0, 2400 + 86_400.0)
    assert found.ceiling == 1000


def test_a_rest_that_is_looked_at_late_is_the_same() -> None:
    """A silence of an hour counts as one, whether anybody asked meanwhile or not."""
    late, often = growth(), growth()
    for found in (late, often):
        use(found, 0, 2400)
    for second in range(3600):
        often.count(0, 2401.0 + second)
    late.count(0, 6000.0)
    assert late.ceiling == pytest.approx(often.ceiling)
    assert late.ceiling == pytest.approx(4000 / 2**1.5)


def test_a_short_rest_begins_anew() -> None:
    """What counts is rest without a break: a used second in between begins the half hour anew."""
    found = growth()
    use(found, 0, 1200)
    found.count(0, 2900.0)
    use(found, 2900, 1)
    found.count(0, 4600.0)
    assert found.ceiling == pytest.approx(2000, rel=0.01)


def test_no_ramp_is_no_ceiling() -> None:
    """Without a start there is nothing to hold."""
    found = RampState()
    for second in range(10):
        found.count(10**6, float(second))
    assert found.ceiling == math.inf


STEPS = st.lists(st.tuples(st.floats(0, 4000), st.integers(0, 10**7), st.booleans()), max_size=50)


@given(STEPS)
def test_no_span_of_doubling_more_than_doubles(steps: list[tuple[float, int, bool]]) -> None:
    """Whatever is sent and when, the ceiling is at its start at least and grows by the rule."""
    found, now, seen = growth(), 0.0, [(0.0, 1000.0)]
    for pause, sent, trouble in steps:
        now += pause
        if trouble:
            found.pause()
        found.count(sent, now)
        assert found.ceiling >= 1000
        for then, ceiling in seen:
            assert found.ceiling <= ceiling * 2 ** ((now - then + 1) / 1200) * (1 + 1e-9)
        seen.append((now, found.ceiling))


def test_the_most_careful_of_several_holds() -> None:
    """Of the ramps that stores name, the lowest rates and the longest doubling hold."""
    assert lowest([]) is None
    assert lowest([None, None]) is None
    assert lowest([GOOGLE, None, Ramp(100, 2000, 2400)]) == Ramp(100, 1000, 2400)


def test_it_says_what_it_is() -> None:
    """Its text has the two ceilings."""
    found = Growths()
    found.allow(GOOGLE)
    assert repr(found) == "Growths(Growth(5000/s), Growth(1000/s))"


class Rule:
    """What one kind of requests is allowed on a bucket that grows as it is used.

    Every second in which half of it was taken, it grows by as much as doubles it in ``doubling``
    seconds. A twentieth of a second's worth may come at once.
    """

    def __init__(self, rate: float, doubling: float) -> None:
        self.rate = rate
        self.taken: list[float] = []
        self.refused: list[float] = []
        self.allowed: list[float] = []
        self._doubling = doubling
        self._left = 0.0
        self._at = 0.0
        self._second = 0
        self._sent = 0

    def takes(self, now: float) -> bool:
        """Judge a request that comes now."""
        while self._second + 1 <= now:
            self._second += 1
            self.allowed.append(self.rate)
            if self._sent >= self.rate / 2:
                self.rate *= 2 ** (1 / self._doubling)
            self._sent = 0
        self._left = min(self._left + (now - self._at) * self.rate, max(2.0, self.rate / 20))
        self._at = now
        if self._left < 1:
            self.refused.append(now)
            return False
        self._left -= 1
        self._sent += 1
        self.taken.append(now)
        return True

    def used(self, begin: int, end: int) -> float:
        """Return the share of what was allowed that was taken."""
        return share(self.taken, begin, end) * (end - begin) / sum(self.allowed[begin:end])

    def refusals(self, begin: float, end: float) -> float:
        """Return the share of the requests that was refused."""
        bad = share(self.refused, begin, end)
        return bad / (bad + share(self.taken, begin, end))


class Bucket:
    """Counts reads apart from all else, as Google does; answers after the latency."""

    def __init__(self, ramp: Ramp, seed: int = 1) -> None:
        self.reads = Rule(ramp.reads, ramp.doubling)
        self.writes = Rule(ramp.writes, ramp.doubling)
        self._rng = random.Random(seed)

    async def __call__(self, op: Op) -> Any:
        """Answer a request, or each part of a ``delete_many``."""
        way = LATENCY * self._rng.uniform(0.3, 0.7)
        await asyncio.sleep(way)
        now = asyncio.get_running_loop().time()
        rule = self.writes if op.writes else self.reads
        count = len(op.args[0]) if op.name == "delete_many" else 1
        answers = [None if rule.takes(now) else self._refusal(op) for _ in range(count)]
        await asyncio.sleep(LATENCY - way)
        if op.name == "delete_many":
            return answers
        if answers[0] is not None:
            raise answers[0]
        return None

    def _refusal(self, op: Op) -> StoreError:
        return ThrottledError(op.name, "/a", "slow down")


def client(name: str, ramp: Ramp | None, ceilings: Ceilings | None = None) -> Adaptive:
    """A policy of a process of its own."""
    return Adaptive(Traits("bucket", account=name, ramp=ramp), ceilings)


async def press(
    policy: Adaptive,
    bucket: Bucket,
    seconds: float,
    workers: int,
    make: Callable[[], Op] = rename,
    done: list[float] | None = None,
) -> None:
    """Ask as fast as the policy lets it, until the clock says so."""
    loop = asyncio.get_running_loop()
    call = policy.around(bucket)

    async def work() -> None:
        while loop.time() < seconds:
            try:
                await call(make())
            except ThrottledError:
                await asyncio.sleep(0.05)
            else:
                if done is not None:
                    done.append(loop.time())

    await asyncio.gather(*[work() for _ in range(workers)])


RAMP = Ramp(1000, 200, 30)


@pytest.mark.full
def test_a_bucket_is_used_as_it_grows() -> None:
    """Over two doublings 98% of what is allowed are used, and hardly anything is refused."""
    bucket = Bucket(RAMP)
    run_virtual(press(client("a", RAMP), bucket, 62, 40))
    assert bucket.writes.rate == pytest.approx(800, rel=0.1)
    assert bucket.writes.used(1, 61) > 0.98
    assert bucket.writes.refusals(0, 62) < 0.001


def test_without_the_rule_a_bucket_refuses() -> None:
    """The same bucket refuses a client that does not know of it, over and over."""
    bucket = Bucket(RAMP)
    run_virtual(press(client("a", None), bucket, 20, 40))
    assert len(bucket.writes.refused) > 100


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [1, 2])
def test_two_processes_share_a_bucket_as_it_grows(seed: int) -> None:
    """Together they use 95% of what is allowed; each has half of it, within a fifth."""
    bucket, done = Bucket(RAMP, seed), (list[float](), list[float]())
    runs = [press(client(str(n), RAMP), bucket, 92, 30, done=done[n]) for n in range(2)]
    run_virtual(together(*runs))
    assert bucket.writes.rate == pytest.approx(1600, rel=0.1)
    assert bucket.writes.used(2, 91) > 0.95
    assert bucket.writes.refusals(2, 92) < 0.01
    whole = share(bucket.writes.taken, 30, 92)
    for one in done:
        assert share(one, 30, 92) == pytest.approx(whole / 2, rel=0.2)


def test_a_bucket_that_takes_less_than_the_ramp_is_found_out() -> None:
    """The ramp is a bound from above only: below it the rate is what the answers say."""
    bucket = Bucket(Ramp(1000, 300, 10**6))
    run_virtual(press(client("a", Ramp(1000, 600, 30)), bucket, 40, 40))
    assert bucket.writes.used(5, 40) > 0.95
    assert bucket.writes.refusals(5, 40) < 0.02


def test_refused_writes_do_not_hold_up_reads() -> None:
    """Reads are counted apart: they go at their full rate while writes are refused."""
    bucket = Bucket(RAMP)
    bucket.writes.rate, policy = 50, client("a", RAMP)
    reads = press(policy, bucket, 20, 40, head)
    run_virtual(together(reads, press(policy, bucket, 20, 40)))
    assert bucket.reads.used(3, 20) > 0.98
    assert bucket.reads.refused == []
    assert bucket.writes.refused != []


def test_all_stores_of_a_bucket_have_one_ramp() -> None:
    """Two stores of one process do not double what is allowed."""
    bucket = Bucket(RAMP)
    runs = [press(client("a", RAMP), bucket, 20, 20) for _ in range(2)]
    run_virtual(together(*runs))
    assert bucket.writes.refusals(0, 20) < 0.001
    assert bucket.writes.used(1, 20) > 0.98


def test_what_has_grown_is_kept_for_the_next_job() -> None:
    """A store that is opened after another was closed begins where that one was."""
    bucket = Bucket(RAMP)

    async def jobs() -> float:
        await press(client("a", RAMP), bucket, 31, 40)
        gc.collect()
        await press(client("a", RAMP), bucket, 33, 40)
        return share(bucket.writes.taken, 31.5, 33)

    assert run_virtual(jobs()) == pytest.approx(400, rel=0.06)


def test_a_ramp_may_become_known_later() -> None:
    """A store that learns with its first answer what its bucket takes is asked again."""
    known: list[Ramp | None] = [Ramp(100, 20, 30)]
    bucket = Bucket(RAMP)

    async def learn() -> None:
        policy = Adaptive(Traits("bucket", account="a"), None, lambda: known[-1])
        asyncio.get_running_loop().call_later(2, known.append, RAMP)
        await press(policy, bucket, 5, 40)
        assert policy.rate == pytest.approx(200, rel=0.15)

    run_virtual(learn())
    assert share(bucket.writes.taken, 0, 2) < 23
    assert share(bucket.writes.taken, 3, 5) > 190


def test_a_ceiling_on_all_requests_holds_for_both_kinds_together() -> None:
    """What is counted apart has one bound, if the user says so, and each kind its share."""
    bucket = Bucket(Ramp(1000, 1000, 30))
    policy = client("a", Ramp(1000, 1000, 30), Ceilings(300))
    reads = press(policy, bucket, 10, 40, head)
    run_virtual(together(reads, press(policy, bucket, 10, 40)))
    assert share(bucket.reads.taken, 1, 10) == pytest.approx(150, rel=0.03)
    assert share(bucket.writes.taken, 1, 10) == pytest.approx(150, rel=0.03)


def batch() -> Op:
    """Twenty files to be deleted in one request."""
    entries: Sequence[Info] = [Info(f"/f{number}", Kind.FILE) for number in range(20)]
    return Op("delete_many", (entries,), True, True)


def test_files_of_a_batch_pay_for_themselves() -> None:
    """Deletes a hundred at a time are no way around the ramp, nor do they leave it unused."""
    bucket = Bucket(Ramp(5000, 1000, 30))
    run_virtual(press(client("a", Ramp(5000, 1000, 30)), bucket, 20, 40, batch))
    assert bucket.writes.used(1, 20) > 0.95
    assert bucket.writes.refusals(0, 20) < 0.01


async def test_the_parts_of_a_batch_answer_for_themselves() -> None:
    """What is refused inside an answer that says yes is a refusal; all of it is given back."""
    said = [None, ThrottledError("delete", "/f1"), *[None] * 18]
    policy = client("a", GOOGLE)
    assert await policy.around(Answers(said))(batch()) == said
    assert policy.refused == 1
    with pytest.raises(ThrottledError):
        await policy.around(Answers(ThrottledError("delete_many", "/f0")))(batch())
    assert policy.refused == 21


def test_a_batch_of_nothing_is_one_request() -> None:
    """There is nothing to pay for but the request."""

    async def main() -> None:
        call = client("a", Ramp(1, 1, 30)).around(Answers([], []))
        for _ in range(2):
            assert await call(Op("delete_many", ([],), True, True)) == []
        assert asyncio.get_running_loop().time() == pytest.approx(1, abs=0.01)

    run_virtual(main())
