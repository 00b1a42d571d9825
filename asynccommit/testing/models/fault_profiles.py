"""Bad weather that has a name. No rule says a code: each service answers with its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from asynccommit.testing.models.fault_rules import Climate

LOSSY = Climate.from_json({"faults": [{"kind": "cut", "op": "*", "probability": 0.05}]})
"""5% of answers lost: the request is done, and nobody says so."""

THROTTLED = Climate.from_json({"faults": [{"kind": "before", "op": "*", "probability": 0.1}]})
"""10% of requests refused as too many, however few there are."""

STORM = Climate.from_json(
    {
        "faults": [
            {"kind": "cut", "op": "*", "probability": 0.05},
            {"kind": "after", "op": "*", "probability": 0.02},
            {
                "kind": "late",
                "op": "*",
                "probability": 0.01,
                "reply": "cut",
                "delay": {"model": "uniform", "low": 0.0, "high": 2.0},
            },
            {"kind": "before", "op": "*", "probability": 0.01},
        ]
    }
)
"""5% of answers lost, 2% errors after the effect, 1% late effects, 1% refusals."""

LATE = Climate.from_json(
    {
        "faults": [
            {
                "kind": "late",
                "op": "*",
                "probability": 0.1,
                "reply": "cut",
                "delay": {"model": "uniform", "low": 0.0, "high": 1.0},
            }
        ]
    }
)
"""10% of requests not answered, and done up to a second later: often after they are sent again."""

CLIMATES: Mapping[str, Climate] = MappingProxyType(
    {"none": Climate(), "lossy": LOSSY, "throttled": THROTTLED, "storm": STORM, "late": LATE}
)
