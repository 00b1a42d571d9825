"""Forecast jobs: simulate small ones, extrapolate large ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from asynccommit.commit.meter import OnProgress
from asynccommit.simulate.forecast import Forecast
from asynccommit.simulate.run import Figures, run_commit
from asynccommit.simulate.setup import Setup

STEADY = (100_000, 300_000)
"""The sizes of the two simulated jobs: between them the rate is steady, start-up is over."""

FREE = 30_000
"""Maximum size of the job without a rate limit, simulated for comparison only."""


def simulate(setup: Setup, on_progress: OnProgress | None = None) -> Forecast:
    """Forecast the commit of a job.

    Up to ``setup.exact`` files the commit is simulated in full, and the forecast is exact. Beyond,
    two smaller commits of the same shape are simulated, and their difference gives the cost of each
    further file. Fixed costs of a job, such as start-up and the partitions, are in both of them and
    count once.

    If the store's limit grows with use, time is not proportional to the number of files. For a
    smaller commit the limit then doubles in proportionally less time: so the time of each is
    proportional to its files again, and to that of the larger one, however often its limit doubles.
    For comparison, the commit is also forecast for a store without such a limit.

    Args:
        setup: job and store to simulate.
        on_progress: called with the progress, in wall-clock time.

    Raises:
        OptionError: an option of the commit leads out of the simulation.
        CommitError: the commit failed, as it would with such faults.
    """
    figures, simulated = _tell(setup, on_progress)
    free = None
    if setup.doubling:
        few = replace(setup.unlimited(), exact=min(setup.exact, FREE))
        free, _ = _tell(few, on_progress)
    return Forecast(setup, figures, simulated, free)


def _tell(setup: Setup, on_progress: OnProgress | None) -> tuple[Figures, tuple[Figures, ...]]:
    """Return the figures of one commit, and those that were simulated for it."""
    if setup.files <= setup.exact:
        figures = run_commit(setup, on_progress)
        return figures, (figures,)
    small, large = (max(1, min(size, setup.exact * size // STEADY[1])) for size in STEADY)
    # The larger one first: after another run the process has free memory, and grows less.
    second = run_commit(setup.of(large), on_progress)
    first = run_commit(setup.of(small), on_progress)
    return extrapolate(first, second, setup), (first, second)


def extrapolate(first: Figures, second: Figures, setup: Setup) -> Figures:
    """Extrapolate linearly from what ``second`` adds to ``first``.

    Memory is that of the second: the size of a process is too rough a measure to extrapolate.
    """
    more = second.files - first.files
    far = (setup.files - second.files) / more if more else 0.0

    def count(name: str) -> dict[str, int]:
        return {key: round(value) for key, value in seconds(name).items()}

    def seconds(name: str) -> dict[str, float]:
        return _beyond(getattr(first, name), getattr(second, name), far)

    return Figures(
        files=setup.files,
        tasks=setup.tasks,
        partitions=setup.partitions,
        seconds=_line(first.seconds, second.seconds, far),
        stages=seconds("stages"),
        requests=count("requests"),
        struck=count("struck"),
        refused=round(_line(first.refused, second.refused, far)),
        recovered=count("recovered"),
        waited=seconds("waited"),
        warnings=second.warnings,
        memory=second.memory,
        real=first.real + second.real,
        renamed_directories=round(
            _line(first.renamed_directories, second.renamed_directories, far)
        ),
    )


def _beyond(
    first: Mapping[str, float], second: Mapping[str, float], far: float
) -> dict[str, float]:
    return {key: _line(first.get(key, 0), value, far) for key, value in second.items()}


def _line(first: float, second: float, far: float) -> float:
    """Extrapolate a line by ``far`` times the distance of the two values.

    A value that is smaller in the larger job counts as independent of the size.
    """
    return second + max(0.0, second - first) * far
