"""When the answers to requests suffice to judge a rate."""

from __future__ import annotations

from asynccommit.stores.policies.shared_quota import Quota


def test_one_refusal_in_a_second_lowers_the_rate() -> None:
    """A rate at which few requests go is judged by the one answer that a second brought."""
    quota = Quota(0.0)
    before = quota.pace.rate

    quota.refused(quota.epoch, 1, None, 0.1)  # the first answer begins what is measured
    quota.refused(quota.epoch, 1, None, 0.9)
    assert (quota.epoch, quota.pace.rate) == (0, before)

    quota = Quota(0.0)
    quota.refused(quota.epoch, 1, None, 0.1)
    quota.refused(quota.epoch, 1, None, 1.2)
    assert quota.epoch == 1
    assert quota.pace.rate < before
