"""Pace finds a rate by arithmetic alone: what a window of answers does to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.policies.rate_controller import FLOOR, START, Pace, Window


def quiet(rate: float, bound: float = 0.1) -> Window:
    """A tenth of a second in which nothing was refused."""
    return Window(0.1, bound, int(rate / 10), int(rate / 10), 0)


def refused(rate: float, share: float) -> Window:
    """A tenth of a second in which this share was refused."""
    sent = int(rate / 10)
    bad = round(sent * share)
    return Window(0.1, 0.1, sent, sent - bad, bad)


def settled(rate: float) -> Pace:
    """A pace that has found ``rate``, a moment ago."""
    pace = Pace()
    while pace.rate < rate / 0.7:
        pace.step(quiet(pace.rate))
    while pace.rate > rate:
        pace.step(refused(pace.rate, 0.3))
    pace._set(rate)  # exactly there
    return pace


def test_it_begins_as_hadoop_does_and_doubles_twice_a_second() -> None:
    """From 1,000 requests a second the rate is fourfold after each second of use."""
    pace = Pace()
    assert pace.rate == START == 1000
    for _ in range(10):
        pace.step(quiet(pace.rate))
    assert pace.rate == pytest.approx(4000)


def test_a_service_without_a_limit_has_no_rate_until_it_refuses() -> None:
    """The first window with many refusals sets the rate to what was sent, less the refusals."""
    pace = Pace(unlimited=True)
    assert pace.rate == math.inf
    pace.step(quiet(20_000))
    assert pace.rate == math.inf

    assert pace.step(refused(20_000, 0.3))
    assert 0.6 * 20_000 < pace.rate < 0.8 * 20_000
    for _ in range(20):
        pace.step(quiet(pace.rate))
    assert pace.rate > 0.85 * 20_000


def test_a_service_that_refuses_everything_is_asked_slowly_and_then_faster() -> None:
    """As in a failover: the rate falls below what was sent, and doubles twice a second again."""
    pace = Pace(unlimited=True)
    pace.step(refused(1000, 1.0))
    fallen = pace.rate
    assert FLOOR <= fallen <= 500
    for _ in range(10):
        pace.step(quiet(fallen))
    assert pace.rate == pytest.approx(4 * fallen)


def test_a_ceiling_holds_without_a_limit() -> None:
    """A rate that the user sets counts, and refusals lower it."""
    pace = Pace(800, unlimited=True)
    assert pace.rate == 800
    pace.step(refused(800, 0.5))
    assert pace.rate < 800


def test_a_rate_that_nobody_uses_does_not_rise() -> None:
    """Time in which no request waited says nothing of a higher rate."""
    pace = Pace()
    for _ in range(100):
        pace.step(quiet(pace.rate, bound=0.0))
    assert pace.rate == START


def test_a_window_without_answers_changes_nothing() -> None:
    """Silence is no reason to ask faster or more slowly."""
    pace = settled(2000)
    assert not pace.step(Window(1.0, 1.0, 100, 0, 0))
    assert pace.rate == 2000


def test_some_refusals_take_a_twentieth() -> None:
    """At the limit the rate falls by 5%, and rises from there by some percent a second."""
    pace = settled(2000)
    assert pace.step(refused(2000, 0.01))
    assert pace.rate == pytest.approx(1900)
    for _ in range(10):
        assert not pace.step(quiet(pace.rate))
    assert 1920 < pace.rate < 2000


def test_the_beginning_ends_at_the_first_window_with_many_refusals() -> None:
    """A single refusal does not end the doubling; a fifth of all does."""
    pace = Pace()
    assert not pace.step(refused(1000, 0.01))
    assert pace.rate > 1100
    assert pace.step(refused(pace.rate, 0.2))
    rate = pace.rate
    pace.step(quiet(rate))
    assert pace.rate < rate * 1.02


def test_at_a_ceiling_nothing_is_sought() -> None:
    """Two percent refused are many for a rate that does not rise any more."""
    pace = Pace(800)
    assert pace.step(refused(pace.rate, 0.02))
    assert pace.rate == pytest.approx(760)
    pace.step(quiet(pace.rate))
    assert pace.rate < 770


@pytest.mark.parametrize("before, after", [(5000, 1000), (20_000, 1000), (20_000, 15_000)])
def test_a_limit_that_falls_is_followed_in_some_windows(before: int, after: int) -> None:
    """A window takes off all that was refused: a second is enough for a twentieth of the limit."""
    pace = settled(before)
    for _ in range(10):
        pace.step(refused(pace.rate, max(0.0, 1 - after / pace.rate)))
    assert 0.9 * after < pace.rate < 1.05 * after


@pytest.mark.parametrize("rate", [200, 1000, 5000])
def test_the_rate_is_fivefold_after_a_minute_without_refusals(rate: int) -> None:
    """A limit that rises is found within a minute."""
    pace = settled(rate)
    for _ in range(600):
        pace.step(quiet(pace.rate))
    assert pace.rate > 5 * rate


@pytest.mark.parametrize("less, more", [(700, 1200), (2000, 8000), (10_000, 11_000)])
def test_unequal_shares_rise_by_the_same(less: int, more: int) -> None:
    """So falls, which are in proportion, bring them nearer to each other."""
    paces = [settled(less), settled(more)]
    for pace in paces:
        for _ in range(20):
            pace.step(quiet(pace.rate))
    assert paces[0].rate - less == pytest.approx(paces[1].rate - more)
    assert paces[0].rate - less > 90


def test_few_refusals_are_no_measure() -> None:
    """Ten refusals of twenty answers take off a quarter, a hundred of two hundred almost half."""
    few, many = settled(2000), settled(2000)
    few.step(Window(0.01, 0.01, 20, 10, 10))
    many.step(Window(0.1, 0.1, 200, 100, 100))
    assert few.rate == pytest.approx(1474, rel=0.01)
    assert many.rate == pytest.approx(1150, rel=0.01)


def test_a_rate_that_was_not_used_falls_to_what_was() -> None:
    """Refusals at 2,500 a second leave no rate of 5,000, of which nobody knows anything."""
    pace = settled(5000)
    pace.step(Window(0.1, 0.0, 250, 247, 3))
    assert pace.rate == pytest.approx(2500)


def test_an_account_that_refuses_all_is_found_anew() -> None:
    """An outage ends in a slow rate that doubles again, not in minutes of creeping."""
    pace = settled(5000)
    for _ in range(20):
        pace.step(refused(max(pace.rate, 200), 1.0))
    assert pace.rate <= 2 * FLOOR
    for _ in range(50):
        pace.step(quiet(max(pace.rate, 200)))
    assert pace.rate > 5000


def test_refusals_that_do_not_end_are_no_reason() -> None:
    """One percent that is refused at any rate is found out, and the rate comes back."""
    pace = settled(5000)
    lowest = 5000.0
    for _ in range(300):
        pace.step(refused(pace.rate, 0.01))
        lowest = min(lowest, pace.rate)
    assert 2000 < lowest < 5000
    assert pace.expected == pytest.approx(0.01, rel=0.3)
    assert pace.rate > 5000


def test_a_check_that_finds_nothing_costs_little() -> None:
    """Refusals that end when the rate falls are the limit's: the rate stays below it."""
    pace = settled(5000)
    for _ in range(10):
        pace.step(refused(pace.rate, 0.005 if pace.rate > 4200 else 0.0))
    assert 3900 < pace.rate < 4300
    assert pace.expected < 0.001


def test_what_is_expected_is_forgotten() -> None:
    """Refusals without a reason are expected for half a minute, and then asked about again."""
    pace = settled(5000)
    for _ in range(20):
        pace.step(refused(pace.rate, 0.01))
    assert pace.expected > 0.005
    for _ in range(301):
        pace.step(quiet(pace.rate, bound=0.0))
    assert pace.expected < 0.001


WINDOWS = st.builds(
    Window,
    st.floats(0.1, 2),
    st.floats(0, 2),
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.integers(0, 500),
)


@given(st.lists(WINDOWS, max_size=60), st.floats(FLOOR, 1e6) | st.just(math.inf))
def test_the_rate_keeps_its_bounds(windows: list[Window], most: float) -> None:
    """Whatever comes, the rate is between the floor and the ceiling, and falls by 70% at most."""
    pace = Pace(most)
    for window in windows:
        before = pace.rate
        fell = pace.step(window)
        assert min(FLOOR, most) <= pace.rate <= most
        assert pace.rate >= min(before * 0.3, most)
        assert fell or pace.rate >= before


def test_a_ceiling_hides_what_was_found() -> None:
    """A ceiling that comes holds at once; when it goes, the rate is where it was."""
    pace = settled(5000)
    pace.most = 300
    for _ in range(100):
        pace.step(quiet(pace.rate))
    assert pace.rate == pace.most == 300
    assert repr(pace) == "Pace(300/s)"
    pace.most = math.inf
    assert pace.rate == 5000


def test_a_hiccup_is_taken_back_in_seconds() -> None:
    """Five seconds after one window with half of it refused the rate is almost where it was."""
    pace = settled(5000)
    pace.step(refused(5000, 0.5))
    assert 2500 < pace.rate < 2800
    for _ in range(50):
        pace.step(quiet(pace.rate))
    assert 4400 < pace.rate < 5500


def test_a_loop_that_came_late_did_use_its_rate() -> None:
    """Few requests in a window of waiting are no sign of a rate that nobody wants."""
    pace = settled(1000)
    pace.step(Window(0.1, 0.1, 60, 58, 2))
    assert pace.rate == pytest.approx(950)


def shared(parts: int, each: int, limit: int, seconds: int) -> tuple[float, float]:
    """Return the share of refusals and that of the limit used by clients of one account.

    Each of ``each`` clients takes itself for one of ``parts``. The limit falls to half and rises
    again.
    """
    paces, sent, bad, could = [Pace(parts=parts) for _ in range(each)], 0.0, 0.0, 0.0
    for window in range(seconds * 10):
        now = limit / 2 if seconds * 4 <= window < seconds * 6 else limit
        asked = [pace.rate / 10 for pace in paces]
        share = max(0.0, 1 - now / 10 / sum(asked))
        for pace, count in zip(paces, asked, strict=True):
            wrong = round(count * share)
            pace.step(Window(0.1, 0.1, round(count), round(count) - wrong, wrong))
        sent, bad = sent + sum(asked), bad + sum(asked) * share
        could += now / 10
    return bad / sent, (sent - bad) / could


@pytest.mark.parametrize("parts", [2, 8])
def test_parts_of_a_client_take_what_the_whole_does(parts: int) -> None:
    """Also while the limit falls to half, and rises again."""
    _, whole = shared(1, 1, 20_000, 60)
    bad, used = shared(parts, parts, 20_000, 60)

    assert bad < 0.01
    assert used > whole - 0.05


def test_many_parts_are_refused_less_than_as_many_clients() -> None:
    """Those would begin at many times the rate, and rise as much faster."""
    assert shared(64, 64, 20_000, 60)[0] < 0.6 * shared(1, 64, 20_000, 60)[0]


def test_parts_begin_together_at_the_rate_of_one() -> None:
    """And fall to the lowest rate together."""
    pace = Pace(parts=4)

    assert pace.rate == START / 4
    for _ in range(100):
        pace.step(Window(0.1, 0.1, 20, 0, 20))
    assert pace.rate == pytest.approx(FLOOR / 4)
