"""Quotas: rates with their ramp, and changes of one name."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.gcs.quotas import FLAT, HIERARCHICAL, READS, WRITES, Meter, Quotas
from tests.testing.models.gcs.model import refused


def passed(meter: Meter, op: str, rate: float, seconds: float, start: float = 0.0) -> int:
    """Return how many requests pass of those that come at an even rate."""
    count = 0
    for number in range(round(rate * seconds)):
        try:
            meter.check(op, (), start + number / rate)
        except Exception:
            continue
        count += 1
    return count


def test_rates_are_those_of_the_documentation() -> None:
    """1,000 writes and 5,000 reads, eight times that with folders, doubling in 20 minutes."""
    flat, tree = Meter(FLAT, "data"), Meter(HIERARCHICAL, "data")

    assert (flat.rate("move"), flat.rate("list")) == (1000, 5000)
    assert (tree.rate("move"), tree.rate("list")) == (8000, 40_000)
    assert (flat.rate("bucket"), Meter(Quotas(), "data").rate("move")) == (None, None)
    assert FLAT.doubling == 1200
    assert not READS & WRITES


def test_more_than_the_rate_is_refused() -> None:
    """In ten seconds no more pass than rate and burst allow, and others are not touched."""
    meter = Meter(Quotas(writes=100, reads=1000, burst=0.1), "data")

    assert passed(meter, "insert", 300, 10) == pytest.approx(1010, abs=2)
    assert passed(meter, "get", 100, 1, start=10) == 100
    meter.check("bucket", (), 10)
    with refused(429, "rateLimitExceeded", "exceeded your bucket's IO capacity") as caught:
        for _ in range(12):
            meter.check("delete", (), 11)
    assert caught.value.headers == {}


def test_a_rate_that_is_used_doubles_in_its_time() -> None:
    """And one that is not used stays; so do fixed rates."""
    busy, idle, fixed = (Meter(Quotas(20, None, doubling), "data") for doubling in (60, 60, 0))
    passed(busy, "insert", 60, 60)
    passed(idle, "insert", 5, 60)
    passed(fixed, "insert", 60, 60)

    assert busy.rate("insert") == pytest.approx(40, rel=0.05)
    assert idle.rate("insert") == 20
    assert fixed.rate("insert") == 20


def test_a_pause_does_not_count_as_use() -> None:
    """What was burst into one second is measured over all that passed since."""
    meter = Meter(Quotas(20, None, 60), "data")
    passed(meter, "insert", 60, 1)
    meter.check("insert", (), 100)
    meter.check("insert", (), 102)

    assert meter.rate("insert") == 20


def test_one_name_is_changed_once_a_second() -> None:
    """The message names the object, in Google's words; other names go on."""
    meter = Meter(Quotas(name_interval=1.0, name_burst=1.0), "data")
    meter.check("insert", ("a/_SUCCESS",), 0.0)
    with refused(429, "rateLimitExceeded") as caught:
        meter.check("delete", ("a/_SUCCESS",), 0.9)
    meter.check("insert", ("b",), 0.9)
    meter.check("get", ("a/_SUCCESS",), 0.9)
    meter.check("insert", ("a/_SUCCESS",), 1.0)

    assert caught.value.message == (
        "The object data/a/_SUCCESS exceeded the rate limit for object mutation operations "
        "(create, update, and delete). Please reduce your request rate. "
        "See https://cloud.google.com/storage/docs/gcs429."
    )
    assert caught.value.domain == "usageLimits"


def test_what_was_made_can_be_moved_at_once() -> None:
    """A name may be changed twice in a row by default; a move changes both of its names."""
    meter = Meter(FLAT, "data")
    meter.check("insert", ("a",), 0.0)
    meter.check("move", ("a", "b"), 0.0)
    meter.check("delete", ("b",), 0.0)
    with refused(429, "rateLimitExceeded", "object data/a "):
        meter.check("insert", ("a",), 0.0)
    with refused(429, "rateLimitExceeded", "object data/b "):
        meter.check("move", ("c", "b"), 0.5)
    meter.check("move", ("c", "b"), 1.0)


def test_a_refused_request_does_not_count_for_its_name() -> None:
    """What the bucket's rate refuses has changed nothing."""
    meter = Meter(Quotas(writes=1, burst=1, name_interval=1.0, name_burst=1.0), "data")
    meter.check("insert", ("a",), 0.0)
    with refused(429, "rateLimitExceeded", "bucket's IO capacity"):
        meter.check("insert", ("b",), 0.5)
    meter.check("insert", ("b",), 1.0)


def test_old_names_are_forgotten() -> None:
    """A job of many files does not fill the memory, and hot names stay hot."""
    meter = Meter(Quotas(name_interval=1.0, name_burst=1.0), "data")
    for number in range(30_000):
        meter.check("insert", (f"{number}",), number / 1000)

    assert len(meter._names) < 21_000
    with refused(429, "rateLimitExceeded"):
        meter.check("insert", ("29999",), 30.0)


def test_a_copy_counts_by_itself() -> None:
    """From what was left."""
    meter = Meter(Quotas(writes=1, reads=1, burst=2, name_interval=9.0), "data")
    meter.check("insert", ("a",), 0.0)
    other = meter.copy()
    other.check("insert", ("a",), 0.0)
    with refused(429, "rateLimitExceeded"):
        other.check("insert", ("b",), 0.0)
    meter.check("insert", ("a",), 0.0)
