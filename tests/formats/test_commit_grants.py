"""The grants of workers: round trips, and what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from asynccommit.errors import ManifestError
from asynccommit.formats.commit_grants import (
    MAX_GRANTS_BYTES,
    Grants,
    decode_grants,
    encode_grants,
)


def test_round_trip() -> None:
    """Grants are read as they were written."""
    grants = Grants(7, 4, stop=True)

    assert decode_grants(encode_grants(grants), "x") == grants


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"type": "x"}, "type is"),
        ({"number": -1}, "number is less than 0"),
        ({"parts": 0}, "parts is less than 1"),
        ({"parts": 10**6}, "parts is more than 4096"),
        ({"stop": 1}, "stop is a number, not true or false"),
        ({"later": "x" * MAX_GRANTS_BYTES}, "more than 65536"),
    ],
)
def test_damaged_grants_are_refused(change: dict[str, Any], reason: str) -> None:
    """The error names the field."""
    data = orjson.dumps(orjson.loads(encode_grants(Grants(1))) | change)

    with pytest.raises(ManifestError) as caught:
        decode_grants(data, "x")

    assert reason in caught.value.reason
