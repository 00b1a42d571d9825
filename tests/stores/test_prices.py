"""Requests have a price by their kind."""

from __future__ import annotations

import pytest

from asynccommit.errors import OptionError
from asynccommit.stores.prices import LIST_PRICES, Prices, read_prices


def test_requests_are_priced_by_their_kind() -> None:
    """Of the renames some are of directories; a request of another name writes."""
    prices = Prices(write=1, rename=2, rename_directory=300, list=4, read=5, delete=6)
    requests = {"rename": 10, "list_tree": 1, "get": 1, "delete_many": 1, "append": 1, "move": 1}

    assert prices.of(requests) == pytest.approx((20 + 4 + 5 + 6 + 1 + 2) / 10_000)
    assert prices.of(requests, 3) - prices.of(requests) == pytest.approx(3 * 298 / 10_000)


def test_list_prices_say_where_they_are_from() -> None:
    """Each built-in table has a source and a day."""
    assert all(one.source.startswith("https://") and one.day for one in LIST_PRICES.values())


def test_a_table_is_read() -> None:
    """A field that the table leaves out costs nothing."""
    assert read_prices('{"rename": 0.5, "day": "2026-11-27"}') == Prices(
        rename=0.5, day="2026-11-27"
    )


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("{", "not JSON"),
        ("[]", "no JSON object with fields among write"),
        ('{"renames": 1}', "no JSON object with fields among write"),
        ('{"rename": "1"}', "rename is '1': expected dollars"),
        ('{"rename": true}', "rename is True: expected dollars"),
        ('{"rename": NaN}', "rename is nan: expected dollars"),
        ('{"rename": -1}', "rename"),
        ('{"day": 1}', "day"),
    ],
)
def test_a_bad_table_is_named(text: str, wrong: str) -> None:
    """The error names the field and what is expected."""
    with pytest.raises(OptionError, match=wrong.replace("[", r"\[")):
        read_prices(text)
