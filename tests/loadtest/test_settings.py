"""Bounds give a plan, and bad amounts a clear error."""

from __future__ import annotations

import pytest

from asynccommit.errors import OptionError
from asynccommit.loadtest.settings import LoadSettings, plan_of
from asynccommit.stores.base import Traits

TREES, FLAT = Traits("with trees"), Traits("flat", directories=False, recursive_delete=False)


@pytest.mark.parametrize("traits", [TREES, FLAT], ids=lambda it: it.name)
@pytest.mark.parametrize("most", [1_432, 5_000, 200_000])
def test_the_parts_fit_into_the_whole(traits: Traits, most: int) -> None:
    """The job, twice a rate and the clean-up together send no more than is allowed."""
    plan = plan_of(LoadSettings(max_requests=most), traits)

    assert 12 * plan.files + 400 + 2 * plan.press <= plan.measured
    assert plan.measured < most
    if not traits.recursive_delete:
        assert plan.measured + plan.press + plan.files <= most


def test_files_are_those_asked_for_if_possible() -> None:
    """And the tasks some fifty files each."""
    assert plan_of(LoadSettings(files=120), TREES)[:2] == (120, 3)
    assert plan_of(LoadSettings(files=10_000, max_requests=20_000), TREES).files == 797


@pytest.mark.parametrize("traits", [TREES, FLAT], ids=lambda it: it.name)
def test_too_few_requests_name_the_least(traits: Traits) -> None:
    """The amount in the message is the least that is accepted."""
    with pytest.raises(OptionError, match="expected at least") as caught:
        plan_of(LoadSettings(max_requests=10), traits)
    least = int(str(caught.value).rpartition(" ")[2].replace(",", ""))

    assert plan_of(LoadSettings(max_requests=least), traits).files == 1
    with pytest.raises(OptionError):
        plan_of(LoadSettings(max_requests=least - 2), traits)


def test_amounts_are_checked() -> None:
    """A value out of bounds names the setting."""
    with pytest.raises(OptionError, match="files"):
        LoadSettings(files=0)
