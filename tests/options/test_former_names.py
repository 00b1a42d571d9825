"""Former names of options, which work for one version."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.options.job import OnCleanupFailure, Options

RENAMED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"outside": True}, {"allow_outside_destination": True}),
    ({"logged": True}, {"readers_use_sink_log": True}),
    ({"cleanup_failures_ignored": None}, {"on_cleanup_failure": OnCleanupFailure.WARN}),
    ({"cleanup_failures_ignored": True}, {"on_cleanup_failure": OnCleanupFailure.IGNORE}),
    ({"cleanup_failures_ignored": False}, {"on_cleanup_failure": OnCleanupFailure.FAIL}),
]


@pytest.mark.parametrize("former, present", RENAMED)
def test_a_former_name_means_the_present_one(
    former: dict[str, Any], present: dict[str, Any]
) -> None:
    """The warning names the field to use, and the values are the same."""
    (name,) = present
    with pytest.warns(DeprecationWarning, match=f"deprecated: use {name}"):
        made = Options(**former)

    assert made == Options(**present)


def test_a_field_under_both_names_is_refused() -> None:
    """The error says which to remove."""
    both: dict[str, Any] = {"outside": True, "allow_outside_destination": False}
    with pytest.raises(OptionError, match="remove outside"):
        Options(**both)
