"""Settings of an emulator of Google Cloud Storage from a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.emulators.gcs.config import read_gcs_settings
from asynccommit.testing.models.gcs.model import BucketOptions
from asynccommit.testing.models.gcs.quotas import HIERARCHICAL, Quotas


def test_settings_hold_everything() -> None:
    """Buckets with options, pages, latency, limit and faults."""
    given = {
        "buckets": {
            "flat": {},
            "deep": {"hns": True, "quotas": "hierarchical"},
            "kept": {"soft_delete": 60, "location": "EU", "quotas": {"writes": 5, "burst": 1}},
        },
        "pages": {"page": 7, "empty_pages": True, "rewrite_bytes": 9, "operation_seconds": 0.5},
        "latency": 0.01,
        "limit": 1000,
        "faults": [{"kind": "cut", "op": "move", "probability": 0.02}],
    }
    settings = read_gcs_settings(json.dumps(given))

    assert settings.buckets["flat"] == BucketOptions()
    assert settings.buckets["deep"] == BucketOptions(hns=True, quotas=HIERARCHICAL)
    assert settings.buckets["kept"] == BucketOptions(
        soft_delete=60.0, location="EU", quotas=Quotas(writes=5.0, burst=1.0)
    )
    assert settings.pages == (7, True, 9, 0.5)
    assert settings.climate.faults[0].op == "move"
    assert settings.climate.limit is not None


def test_buckets_may_be_names_alone() -> None:
    """And there may be none."""
    assert list(read_gcs_settings('{"buckets": ["a", "b"]}').buckets) == ["a", "b"]
    assert read_gcs_settings("{}").buckets == {}


@pytest.mark.parametrize(
    "given, named",
    [
        ({"accounts": {}}, "'accounts'"),
        ({"buckets": 5}, "buckets"),
        ({"buckets": {"a": {"deep": True}}}, "buckets.a.deep"),
        ({"buckets": {"a": {"hns": 1}}}, "buckets.a.hns"),
        ({"buckets": {"a": {"retention": -1}}}, "buckets.a.retention"),
        ({"buckets": {"a": {"quotas": "many"}}}, "buckets.a.quotas"),
        ({"buckets": {"a": {"quotas": {"x": 1}}}}, "buckets.a.quotas.x"),
        ({"pages": {"page": 0}}, "pages.page"),
        ({"faults": [{"kind": "cut", "op": "rename"}]}, "faults[0].op"),
    ],
)
def test_settings_that_are_wrong_are_named(given: Any, named: str) -> None:
    """The file and what is wrong in it."""
    with pytest.raises(OptionError) as error:
        read_gcs_settings(json.dumps(given), "file.json")

    assert str(error.value).startswith("file.json")
    assert named in str(error.value)
