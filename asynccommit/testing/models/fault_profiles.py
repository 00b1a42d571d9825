"""Named fault profiles for any service."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from asynccommit.testing.models.fault_rules import Climate

LOSSY = Climate.from_json({"faults": [{"kind": "cut", "op": "*", "probability": 0.05}]})
"""5% of the responses are lost: the request takes effect, and there is no response."""

THROTTLED = Climate.from_json({"faults": [{"kind": "before", "op": "*", "probability": 0.1}]})
"""10% of the requests are rejected as too many, whatever the rate."""

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
"""5% lost responses, 2% errors after the effect, 1% late effects, 1% rejected requests."""

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
"""10% of the requests get no response and take effect up to a second later, often after a retry."""

CLIMATES: Mapping[str, Climate] = MappingProxyType(
    {"none": Climate(), "lossy": LOSSY, "throttled": THROTTLED, "storm": STORM, "late": LATE}
)
