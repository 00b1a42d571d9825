"""Forecasts of job commits, by the real engine in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.simulate.forecast import Forecast, simulate
    from asynccommit.simulate.setup import Setup
    from asynccommit.simulate.text import shown
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"forecast": ["Forecast", "simulate"], "setup": ["Setup"], "text": ["shown"]},
    )

__all__ = ["Forecast", "Setup", "shown", "simulate"]
