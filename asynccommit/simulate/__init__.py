"""Forecasts of job commits, by the real engine in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.simulate.forecast import Forecast, shown
    from asynccommit.simulate.setup import Setup
    from asynccommit.simulate.steady import simulate
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"forecast": ["Forecast", "shown"], "setup": ["Setup"], "steady": ["simulate"]},
    )

__all__ = ["Forecast", "Setup", "shown", "simulate"]
