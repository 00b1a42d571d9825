"""Load tests: the rate and the latency of an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.loadtest.report import (
        LoadReport,
        MillionForecast,
        RateFound,
        RequestTimes,
        StepTimes,
        load_report,
    )
    from asynccommit.loadtest.run import load_test
    from asynccommit.loadtest.settings import LoadSettings
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "report": [
                "LoadReport",
                "MillionForecast",
                "RateFound",
                "RequestTimes",
                "StepTimes",
                "load_report",
            ],
            "run": ["load_test"],
            "settings": ["LoadSettings"],
        },
    )

__all__ = [
    "LoadReport",
    "LoadSettings",
    "MillionForecast",
    "RateFound",
    "RequestTimes",
    "StepTimes",
    "load_report",
    "load_test",
]
