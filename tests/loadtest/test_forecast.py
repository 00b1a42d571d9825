"""A million files are forecast by the model of a store, or scaled where there is none."""

from __future__ import annotations

import pytest

from asynccommit.loadtest.forecast import MILLION, forecast_million
from asynccommit.loadtest.report import MillionForecast, RateFound, RequestTimes, StepTimes
from asynccommit.stores.base import Traits

STEPS = {"commit": StepTimes(1_000, 2.0, 1_100, 0)}
RENAMES = {"rename": RequestTimes(1_000, 0, 0, 0.01, 0.02, 0.03, 0.04)}


def _rate(per_second: float) -> dict[str, RateFound]:
    return {"writes": RateFound(per_second, True, 1_000, 1.0, "rename")}


def test_without_a_model_it_is_scaled() -> None:
    """By the number of files; nothing is forecast without a commit."""
    found = forecast_million("s3", Traits("S3"), STEPS, _rate(100), RENAMES, 64)

    assert found == MillionForecast(MILLION, 2_000.0, "scaled")
    assert forecast_million("file", Traits("disk"), {}, {}, {}, 64) is None


@pytest.mark.full
@pytest.mark.parametrize("scheme, folders", [("abfs", True), ("gs", False), ("gs", True)])
def test_the_rate_bounds_a_simulated_commit(scheme: str, folders: bool) -> None:
    """On ADLS a million renames take as long as the rate says; a bucket's rate grows."""
    traits = Traits("store", atomic_directory_rename=folders)
    found = forecast_million(scheme, traits, STEPS, _rate(2_000), RENAMES, 128)

    assert found is not None
    assert found.how == "simulated"
    assert 400 < found.seconds < 700
