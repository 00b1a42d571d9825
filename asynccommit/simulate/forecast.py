"""Jobs of any size: simulated whole if they are not too large, else told from two smaller ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from asynccommit.commit.context import OnProgress
from asynccommit.simulate.run import Figures, run_commit
from asynccommit.simulate.setup import Setup

STEADY = (100_000, 300_000)
"""The two sizes: what lies between them is done at the steady rate, start-up is behind."""

FREE = 30_000
"""The largest job that is simulated whole where it is simulated for comparison only."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a commit would take.

    Attributes:
        setup: what was asked.
        figures: of the commit that was asked about.
        simulated: the commits that were simulated: this very one, or two smaller ones.
        free: of the same commit where nothing is refused for its rate; told on stores that take
            more by and by only.
    """

    setup: Setup
    figures: Figures
    simulated: tuple[Figures, ...]
    free: Figures | None = None

    @property
    def extrapolated(self) -> bool:
        """Whether the figures are told from smaller commits."""
        return len(self.simulated) > 1

    @property
    def rate(self) -> float:
        """Files a second, from beginning to end."""
        return self.figures.rate

    @property
    def real(self) -> float:
        """Seconds that all this took to simulate."""
        return self.figures.real + (self.free.real if self.free else 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        found = self.figures.to_json()
        del found["real"]
        return {
            **found,
            "files_per_second": self.rate,
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


def simulate(setup: Setup, on_progress: OnProgress | None = None) -> Forecast:
    """Return what the commit of a job would take.

    Exact up to ``setup.exact`` files: that commit is run. Beyond, two smaller ones of the same
    shape are run, and what the larger takes more for its files is what each further file takes.
    What a job has once, start-up and the partitions, is in both of them and counts once.

    Where the store takes more by and by, time does not grow in proportion to files. There the
    limit doubles in so much less time as a commit is smaller: then the time of each is in
    proportion to its files again, and to that of the larger one, however often its limit doubles.
    And the commit is told of a store without such a limit, for comparison.

    Args:
        setup: what to simulate.
        on_progress: told how far it is, in real seconds.

    Raises:
        OptionError: an option of the commit leads out of the simulation.
        CommitError: the commit failed, as it would in such weather.
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
    # The large one first: after another run the process has memory to spare, and grows less.
    second = run_commit(setup.of(large), on_progress)
    first = run_commit(setup.of(small), on_progress)
    return extrapolate(first, second, setup), (first, second)


def extrapolate(first: Figures, second: Figures, setup: Setup) -> Figures:
    """Return what ``setup`` takes if each file takes what those take that ``second`` has more.

    Memory stays the second's: the size of a process is too rough a measure to be drawn out.
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
    )


def _beyond(
    first: Mapping[str, float], second: Mapping[str, float], far: float
) -> dict[str, float]:
    return {key: _line(first.get(key, 0), value, far) for key, value in second.items()}


def _line(first: float, second: float, far: float) -> float:
    """Return where the line through two values is ``far`` times their distance behind the second.

    What takes less in the larger job is taken not to depend on the size.
    """
    return second + max(0.0, second - first) * far
