"""When the answers to requests suffice to judge a rate."""

from __future__ import annotations

from asynccommit.stores.policies.shared_quota import Quota


def test_one_refusal_in_a_second_lowers_the_rate() -> None:
    """A rate at which few requests go is judged by the one answer that a second brought."""
    quota = _used()
    before = quota.pace.rate

    quota.refused(quota.epoch, 1, None, 0.1)  # the first answer begins what is measured
    quota.refused(quota.epoch, 1, None, 0.9)
    assert (quota.epoch, quota.pace.rate) == (0, before)

    quota = _used()
    quota.refused(quota.epoch, 1, None, 0.1)
    quota.refused(quota.epoch, 1, None, 1.2)
    assert quota.epoch == 1
    assert quota.pace.rate < before


def test_a_refused_opening_does_not_lower_the_rate() -> None:
    """Refusals of the first requests, which left at once, end the opening and nothing else."""
    quota = Quota(0.0)
    before = quota.pace.rate
    quota.pay(100, 0.0)
    for _ in range(60):
        quota.refused(0, 1, None, 0.03)
    assert quota.pace.rate == before
    assert quota.epoch == 1
    assert _at_once(quota, 0.04) == 10
    assert _at_once(quota, 9.0) == 10


def test_an_account_at_its_limit_gets_no_burst() -> None:
    """Once the rate had to fall, a rest opens nothing."""
    quota = _used()
    for _ in range(60):
        quota.refused(0, 1, None, 0.3)
    assert quota.pace.rate < 1000
    assert _at_once(quota, 9.0) <= 10


def test_parts_open_together_as_one_does() -> None:
    """Eight processes of a job send no more at once than one."""
    assert _at_once(Quota(0.0), 0.0) == 250
    assert 240 <= 8 * _at_once(Quota(0.0, parts=8), 0.0) <= 256


def _at_once(quota: Quota, now: float) -> int:
    """Return how many requests may go now."""
    gone = 0
    while quota.bucket.fill(now):
        quota.pay(1, now)
        gone += 1
    return gone


def _used() -> Quota:
    """Return a quota whose opening is used up."""
    quota = Quota(0.0)
    quota.waited(0.0)
    return quota
