"""A forecast of a commit, and its text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from asynccommit.commit.meter import OUTERMOST
from asynccommit.progress.stage_names import stage_name
from asynccommit.results import Printed
from asynccommit.runtime.cells import columns, facts_table, safe, sheet
from asynccommit.runtime.terminal import count_of, show_bytes, show_seconds
from asynccommit.simulate.run import Figures
from asynccommit.simulate.setup import Setup, kind_of_setup
from asynccommit.stores.prices import Prices
from asynccommit.testing.models.latency import FIXED, Latency

_STRUCK = {
    "limit": "refused, over the limit",
    "before": "refused, a fault",
    "after": "done, and answered with an error",
    "cut_before": "lost before they were done",
    "cut": "done, and the response lost",
    "late": "done late, and the response lost",
    "slow": "answered slowly",
    "twice": "done twice, and answered by the second",
    "again": "done again later, and answered by the first",
}


@dataclass(frozen=True, slots=True)
class Forecast(Printed):
    """The forecast of a commit.

    Attributes:
        setup: requested job and store.
        figures: figures of the requested commit.
        simulated: simulated commits: this one, or two smaller ones.
        free: figures of the same commit on a store without a rate limit; only for stores whose
            limit grows with use.
    """

    setup: Setup
    figures: Figures
    simulated: tuple[Figures, ...]
    free: Figures | None = None

    def __rich__(self) -> Any:
        return shown(self)

    @property
    def extrapolated(self) -> bool:
        """Return whether the figures are extrapolated from smaller commits."""
        return len(self.simulated) > 1

    @property
    def rate(self) -> float:
        """Files per second, from beginning to end."""
        return self.figures.rate

    @property
    def dollars(self) -> float | None:
        """Return the price of the requests; ``None`` without a table."""
        prices, figures = self.setup.prices, self.figures
        return None if prices is None else prices.of(figures.requests, figures.renamed_directories)

    @property
    def real(self) -> float:
        """Wall-clock seconds of the whole simulation."""
        return self.figures.real + (self.free.real if self.free else 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        found = self.figures.to_json()
        del found["real"]
        return {
            **found,
            "files_per_second": self.rate,
            "dollars": self.dollars,
            "all_requests": sum(self.figures.requests.values()),
            "extrapolated": self.extrapolated,
            "simulated": [
                {"files": one.files, "tasks": one.tasks, "seconds": one.seconds, "real": one.real}
                for one in self.simulated
            ],
            "unlimited": None
            if self.free is None
            else {"seconds": self.free.seconds, "files_per_second": self.free.rate},
            "real_seconds": self.real,
            "setup": self.setup.to_json(),
        }


def shown(forecast: Forecast) -> RenderableType:
    """Return the forecast as text, with its method."""
    figures, setup = forecast.figures, forecast.setup
    head = (
        f"a commit of {count_of(setup.files, 'file')} of {count_of(setup.tasks, 'task')} "
        f"in {count_of(setup.partitions, 'partition')} takes {show_seconds(figures.seconds)} "
        f"({forecast.rate:,.0f} files/s)"
    )
    notes = []
    if forecast.extrapolated:
        sizes = " and ".join(f"{one.files:,}" for one in forecast.simulated)
        text = f"EXTRAPOLATED from the steady rate of simulated commits of {sizes} files"
        notes.append(Text(text, "yellow"))
    return sheet(head, _facts(forecast), _stages(forecast), _requests(forecast), notes=notes)


def _facts(forecast: Forecast) -> Table:
    figures, setup = forecast.figures, forecast.setup
    table = facts_table({"store": store_of(setup)})
    if forecast.free is not None:
        table.add_row("ramp", safe(_ramp(setup, figures, forecast.free)))
    if struck := _named(figures.struck):
        table.add_row("trouble", safe(struck))
    recovered = sum(figures.recovered.values())
    if recovered:
        table.add_row("recovered", f"{count_of(recovered, 'lost response')} settled by identity")
    if figures.waited:
        waits = ", ".join(f"{why} {show_seconds(took)}" for why, took in figures.waited.items())
        table.add_row("waited", safe(f"{waits}, total of all requests"))
    if forecast.dollars is not None and setup.prices is not None:
        table.add_row("cost", safe(_cost(forecast.dollars, setup.prices)))
    memory = figures.memory
    measured = f" at {memory.files:,} files" if forecast.extrapolated else ""
    table.add_row(
        "memory",
        safe(
            f"{show_bytes(memory.engine)} of the engine{measured}: {memory.how}, "
            f"{show_bytes(memory.grown)}, less {show_bytes(memory.model)} of the model"
        ),
    )
    how = "two smaller commits" if forecast.extrapolated else "this commit"
    table.add_row("simulated", f"{how}, in {show_seconds(forecast.real)} of real time")
    return table


def _cost(dollars: float, prices: Prices) -> str:
    """Return what the requests cost, and by which prices."""
    when = f", read on {prices.day}" if prices.day else ""
    source = f": {prices.source}{when}" if prices.source else " by the given prices"
    return f"${dollars:,.{2 if dollars >= 1 else 4}f} of requests{source}"


def _ramp(setup: Setup, figures: Figures, free: Figures) -> str:
    """Return the cost of a limit that grows only under load."""
    more = figures.seconds - free.seconds
    costs = show_seconds(more) if more > 0 else "nothing"
    return (
        f"costs {costs}: the rate may at most double every {setup.doubling / 60:g} min. Without "
        f"that limit it is {show_seconds(free.seconds)} ({free.rate:,.0f} files/s)"
    )


def store_of(setup: Setup) -> str:
    """Describe the simulated store in one line."""
    limit = setup.climate.limit
    rate = "no limit" if limit is None else f"{limit.rate:,.0f} {kind_of_setup(setup).counted}/s"
    if setup.doubling:
        rate += " at first"
    parts = [setup.store, _latency(setup.climate.latency), rate, f"{setup.in_flight:,} in flight"]
    if setup.workers > 1:
        parts.append(f"{setup.workers} workers")
    if setup.cpu:
        parts.append(f"{setup.cpu * 1e6:g} us of CPU a request")
    if setup.faults != "none":
        parts.append(f"faults {setup.faults}")
    return ", ".join([*parts, f"seed {setup.seed}"])


def _latency(latency: Latency) -> str:
    first, second = latency.first * 1000, latency.second
    if latency.model == FIXED:
        text = f"{first:g} ms a response"
    elif latency.model == "uniform":
        text = f"{first:g} to {second * 1000:g} ms a response"
    else:
        text = f"{first:g} ms a response in the median"
    return text if latency.tail is None else f"{text}, with a slow tail"


def _named(struck: Mapping[str, int]) -> str:
    return "; ".join(f"{struck[kind]:,} {what}" for kind, what in _STRUCK.items() if kind in struck)


def _stages(forecast: Forecast) -> Table:
    table = columns("stage", numbers=("time", "share"), gap=3)
    whole = forecast.figures.seconds or 1.0
    inner = {name: took for name, took in forecast.figures.stages.items() if name != OUTERMOST}
    rows = {stage_name(name): took for name, took in inner.items()}
    rows["time between them"] = max(0.0, whole - sum(inner.values()))
    for name, took in rows.items():
        table.add_row(safe(name), show_seconds(took), f"{took / whole:.1%}")
    return table


def _requests(forecast: Forecast) -> Table:
    table = columns("requests", numbers=("number", "for a file"), gap=3)
    figures = forecast.figures
    for name, number in sorted(figures.requests.items(), key=lambda item: -item[1]):
        table.add_row(safe(name), f"{number:,}", f"{number / figures.files:.3f}")
    total = sum(figures.requests.values())
    table.add_row(Text("all", "bold"), f"{total:,}", f"{total / figures.files:.3f}")
    return table
