"""Settings of an emulator from a file and from the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asynccommit.testing.emulators.config import (
    check_account,
    read_settings,
    read_share,
)
from asynccommit.testing.models.latency import read_latency


def test_empty_settings_are_those_of_development() -> None:
    """One account with the published key, a hierarchical namespace, fair weather."""
    settings = read_settings("{}")

    assert settings.accounts == {DEVELOPMENT_ACCOUNT: DEVELOPMENT_KEY}
    assert not settings.flat
    assert settings.climate.limit is None


def test_settings_hold_everything() -> None:
    """Accounts, filesystems, pages, latency, limit and faults."""
    settings = read_settings(
        json.dumps(
            {
                "accounts": {"mine": "a2V5"},
                "flat": True,
                "filesystems": ["data"],
                "pages": {"page": 7, "empty_pages": True},
                "latency": {"model": "uniform", "low": 0.01, "high": 0.02},
                "limit": 1000,
                "faults": [{"kind": "cut", "op": "rename", "probability": 0.02}],
            }
        )
    )

    assert settings.accounts == {"mine": "a2V5"}
    assert settings.flat
    assert settings.filesystems == ("data",)
    assert (settings.pages.page, settings.pages.empty_pages) == (7, True)
    assert settings.climate.limit is not None
    assert settings.climate.limit.rate == 1000
    assert settings.climate.faults[0].kind == "cut"


@pytest.mark.parametrize(
    "given, named",
    [
        ([], "one object"),
        ({"fault": []}, "'fault'"),
        ({"flat": 1}, "flat"),
        ({"filesystems": "data"}, "filesystems"),
        ({"pages": {"leaf": 1}}, "pages.leaf"),
        ({"pages": {"page": 0}}, "pages.page"),
        ({"pages": {"empty_pages": 1}}, "empty_pages"),
        ({"accounts": {}}, "accounts"),
        ({"accounts": []}, "accounts"),
        ({"accounts": {"Mine": "a2V5"}}, "'Mine'"),
        ({"accounts": {"mine": "key!"}}, "mine"),
        ({"limit": {"rate": "fast"}}, "limit.rate"),
        ({"faults": [{"kind": "quake"}]}, "faults[0].kind"),
        ({"latency": {"model": "fixed", "seconds": -1}}, "latency.seconds"),
    ],
)
def test_settings_that_are_wrong_are_named(given: Any, named: str) -> None:
    """The file and what is wrong in it."""
    with pytest.raises(OptionError) as error:
        read_settings(json.dumps(given), "file.json")

    assert str(error.value).startswith("file.json")
    assert named in str(error.value)


def test_settings_that_are_no_json_are_named() -> None:
    """The place in the file is told."""
    with pytest.raises(OptionError, match=r"file\.json is no JSON: .* line 1"):
        read_settings("{", "file.json")


def test_key_that_is_wrong_is_not_repeated() -> None:
    """Keys are secrets even when they are none."""
    with pytest.raises(OptionError) as error:
        check_account("mine", "secret!")

    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "text, seconds", [("20ms", 0.02), ("0.5s", 0.5), ("2s", 2.0), (" 1.5ms ", 0.0015)]
)
def test_latency_is_one_time(text: str, seconds: float) -> None:
    """With its unit."""
    assert read_latency(text).to_json() == {"model": "fixed", "seconds": seconds}


def test_latency_is_between_two_times() -> None:
    """Any time between them."""
    expected = {"model": "uniform", "low": 0.01, "high": 0.5}

    assert read_latency("10ms-0.5s").to_json() == expected


@pytest.mark.parametrize("text", ["", "20", "fast", "1ms-2ms-3ms", "-1ms", "20ms-10ms"])
def test_latency_that_is_none(text: str) -> None:
    """A number without a unit could be anything."""
    with pytest.raises(OptionError):
        read_latency(text)


@pytest.mark.parametrize("text, share", [("2%", 0.02), ("0.5", 0.5), ("0", 0.0), ("100%", 1.0)])
def test_share(text: str, share: float) -> None:
    """Per cent, or a number up to 1."""
    assert read_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "2", "-1%", "many", "nan"])
def test_share_that_is_none(text: str) -> None:
    """2 is no share: 2% may be meant, or all and more."""
    with pytest.raises(OptionError):
        read_share(text)
