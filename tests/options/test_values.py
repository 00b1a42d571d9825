"""Values of options are read as Hadoop reads them."""

from __future__ import annotations

import pytest

from asynccommit.errors import OptionError
from asynccommit.options import values


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1", 1),
        (" 64M ", 64 << 20),
        ("64m", 64 << 20),
        ("2K", 2048),
        ("1g", 1 << 30),
        ("5MB", 5 << 20),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    """Units of sizes are powers of 1024, in either case."""
    assert values.size("key", text) == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5M", "M", "9999999P", "64 M M"])
def test_no_sizes(text: str) -> None:
    """What is no size, or none that a file can have, is refused with the key."""
    with pytest.raises(OptionError, match="key is"):
        values.size("key", text)


@pytest.mark.parametrize("text, expected", [("0", 1), ("1", 1), (" 9 ", 9)])
def test_threads(text: str, expected: int) -> None:
    """No threads are one, for there is always the caller's."""
    assert values.threads("key", text) == expected
