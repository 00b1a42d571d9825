"""The index of a plan: round trips, and what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from asynccommit.errors import ManifestError
from asynccommit.formats.plan_index import PlanIndex, decode_index, encode_index

INDEX = PlanIndex("plan-1", ("sha256:" + "0a" * 32,), {"task_1": "attempt_1"})


def test_round_trip() -> None:
    """An index is read as it was written, whatever a later version adds."""
    data = encode_index(INDEX)

    assert decode_index(data, "x", "plan-1") == INDEX
    later = orjson.dumps(orjson.loads(data) | {"later": 1})
    assert decode_index(later, "x", "plan-1") == INDEX


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"type": "asynccommit.CommitPlan/1"}, "type is"),
        ({"plan": "plan-2"}, "plan is not 'plan-1'"),
        ({"chunks": ["sha256:0"]}, "chunks[0] is the string 'sha256:0', not a digest"),
        ({"tasks": {"t": "../x"}}, "tasks.'t' holds '../x', not a plain name"),
        ({"tasks": None}, "tasks is null or missing"),
    ],
)
def test_a_damaged_index_is_refused(change: dict[str, Any], reason: str) -> None:
    """The error names the field."""
    data = orjson.dumps(orjson.loads(encode_index(INDEX)) | change)

    with pytest.raises(ManifestError) as caught:
        decode_index(data, "x", "plan-1")

    assert reason in caught.value.reason
