"""Parse and validate the options of a simulation."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from asynccommit.errors import OptionError
from asynccommit.options.checked import Within, check_fields
from asynccommit.options.job import Options
from asynccommit.simulate.adls import ADLS
from asynccommit.simulate.gcs import GCS, GCS_HNS
from asynccommit.simulate.hdfs import HDFS
from asynccommit.simulate.model import StoreKind
from asynccommit.stores.prices import LIST_PRICES, Prices, read_prices
from asynccommit.testing.models.fault_profiles import CLIMATES
from asynccommit.testing.models.fault_rules import Climate, Dialect
from asynccommit.testing.models.latency import Latency, RequestLimit, read_latency

KINDS: Mapping[str, StoreKind] = MappingProxyType(
    {kind.name: kind for kind in (ADLS, GCS, GCS_HNS, HDFS)}
)
"""The stores that have a model."""

EXACT = 1_000_000
"""Default maximum size of a job that is simulated in full."""

MOST_IN_FLIGHT = 4096
"""Maximum number of requests in flight."""

_MOST = 10**12
_MANY = Within(1, _MOST)
_FILES_OF_A_TASK = 200
_PARTITIONS = 100


_SCALED = re.compile(r"(\d+(?:\.\d+)?)([kM])").fullmatch
_UNITS = {"k": 1_000, "M": 1_000_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)").fullmatch
_IN_A_SECOND = {"us": 1e6, "ms": 1e3, "s": 1.0}
_USUAL = Climate()


@dataclass(frozen=True, slots=True)
class Setup:
    """A job with committed tasks, and the store for its commit.

    Attributes:
        files: total number of files.
        tasks: number of tasks that wrote them, each about the same number.
        partitions: number of directories that they go to, each about the same number.
        climate: latency, limit and faults of the store; the usual ones by default.
        faults: name of the faults.
        in_flight: maximum number of requests in flight; 0 for the usual number.
        seed: random seed.
        store: name of the model.
        exact: maximum number of files of a job that is simulated in full.
        options: options of the commit.
        cpu: processor time of one request in seconds; 0 leaves the processor out.
        workers: processes that send the requests, each with ``in_flight`` of them.
        prices: what requests cost; the list prices of the store if there are any.
        share: size of this job relative to the one it represents; see ``of``.
    """

    files: Annotated[int, _MANY] = 100_000
    tasks: Annotated[int, _MANY] = 500
    partitions: Annotated[int, _MANY] = _PARTITIONS
    climate: Climate = _USUAL
    faults: str = "none"
    in_flight: Annotated[int, Within(0, MOST_IN_FLIGHT)] = 0
    seed: Annotated[int, Within(-(1 << 63), (1 << 63) - 1)] = 0
    store: str = ADLS.name
    exact: Annotated[int, _MANY] = EXACT
    options: Options = field(default_factory=Options)
    cpu: Annotated[float, Within(0, 1, "seconds")] = 0.0
    workers: Annotated[int, Within(1, 1024)] = 1
    prices: Prices | None = None
    share: Annotated[float, Within(0, _MOST)] = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        kind = kind_of_setup(self)
        if self.climate is _USUAL:
            object.__setattr__(self, "climate", usual_climate(kind))
        if not self.in_flight:
            object.__setattr__(self, "in_flight", kind.in_flight)
        if self.prices is None:
            object.__setattr__(self, "prices", LIST_PRICES.get(self.store))

    @property
    def doubling(self) -> float:
        """Minimum time in seconds in which the limit doubles under load; 0 if it is constant."""
        return 0.0 if self.climate.limit is None else kind_of_setup(self).doubling * self.share

    def of(self, files: int) -> Setup:
        """Return a job of another size and the same shape to represent this one.

        Tasks have the same size, and the number of partitions is the same if possible. A growing
        limit grows proportionally faster, so that it reaches the same level during the job. The
        limit on changes of one name is off: whether a request waits a second for it is chance, and
        would count as often as the smaller job fits into the larger.
        """
        share = files / self.files
        few = self.partitions <= min(files, self.files)
        return replace(
            self,
            files=files,
            tasks=max(1, round(self.tasks * share)),
            partitions=self.partitions if few else max(1, round(self.partitions * share)),
            share=self.share * share,
        )

    def unlimited(self) -> Setup:
        """Return the same job on a store without a rate limit."""
        return replace(self, climate=replace(self.climate, limit=None))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; only those options that are not the default."""
        defaults, chosen = asdict(Options()), asdict(self.options)
        climate = self.climate.to_json()
        return {
            "store": self.store,
            "latency": climate["latency"],
            "limit": climate["limit"],
            "doubling": self.doubling or None,
            "in_flight": self.in_flight,
            "cpu": self.cpu or None,
            "workers": self.workers,
            "prices": None if self.prices is None else self.prices.to_json(),
            "faults": self.faults,
            "seed": self.seed,
            "options": {key: value for key, value in chosen.items() if value != defaults[key]},
        }


def kind_of(scheme: str, *, folders: bool) -> StoreKind | None:
    """Return the kind whose model forecasts the commits of an account, if there is one.

    Args:
        scheme: of its URLs.
        folders: whether the account renames a directory in one request.
    """
    kinds = [kind for kind in KINDS.values() if scheme in kind.schemes]
    return next((kind for kind in kinds if kind.folders == folders), kinds[0] if kinds else None)


def usual_climate(kind: StoreKind) -> Climate:
    """Return the default climate of a store."""
    return Climate((), Latency(first=kind.latency / 1000), limit_of(kind.limit))


def limit_of(rate: float) -> RequestLimit:
    """Return a limit with a burst of a tenth of a second's requests."""
    return RequestLimit(rate, max(1.0, rate / 10))


def kind_of_setup(setup: Setup) -> StoreKind:
    """Return the kind of store.

    Raises ``OptionError`` if there is no model of it.
    """
    if setup.store not in KINDS:
        raise OptionError(f"--store is {setup.store!r}: expected {', '.join(KINDS)}")
    return KINDS[setup.store]


def read_setup(values: Mapping[str, str], options: Options | None = None) -> Setup:
    """Read the values of command line options, by name without dashes.

    Raises ``OptionError`` that names the option and the expected value.
    """
    kind = kind_of_setup(Setup(store=values.get("store", ADLS.name)))
    files = _count(values, "files", 100_000)
    tasks = _count(values, "tasks", max(1, files // _FILES_OF_A_TASK), files)
    partitions = _count(values, "partitions", min(files, _PARTITIONS), files)
    return Setup(
        files=files,
        tasks=tasks,
        partitions=partitions,
        climate=_climate(values, kind),
        faults=values.get("faults", "none"),
        in_flight=_count(values, "in-flight", kind.in_flight, 1_000_000),
        seed=_whole(values, "seed", 0, "a whole number"),
        store=kind.name,
        exact=_count(values, "exact", EXACT),
        options=options or Options(),
        cpu=_cpu(values.get("cpu")),
        workers=_count(values, "workers", 1, 1024),
        prices=_prices(values.get("prices")),
    )


def _cpu(text: str | None) -> float:
    if text is None:
        return 0.0
    found = _TIME(text.strip())
    seconds = float(found[1]) / _IN_A_SECOND[found[2]] if found else -1.0
    if not 0 < seconds <= 1:
        raise OptionError(f"--cpu is {text!r}: expected the time of a request, such as 95us")
    return seconds


def _prices(name: str | None) -> Prices | None:
    if name is None:
        return None
    try:
        text = Path(name).read_text("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise OptionError(f"--prices is {name!r}: expected a readable JSON file ({why})") from error
    try:
        return read_prices(text)
    except OptionError as error:
        raise OptionError(f"--prices {name}: {error}") from None


def _climate(values: Mapping[str, str], kind: StoreKind) -> Climate:
    """Return the climate of a name or a file, overridden by the other options."""
    climate, is_whole = _faults(values.get("faults", "none"), kind.dialect)
    if "latency" in values or "latency" not in is_whole:
        text = values.get("latency", f"{kind.latency}ms")
        climate = replace(climate, latency=read_latency(text, "--latency"))
    if "limit" in values or "limit" not in is_whole:
        climate = replace(climate, limit=_limit(values.get("limit", str(kind.limit)), kind))
    return climate


def _faults(name: str, dialect: Dialect) -> tuple[Climate, frozenset[str]]:
    """Return the climate of a name or a file, and the fields of the file."""
    if name in CLIMATES:
        return CLIMATES[name], frozenset()
    try:
        text = Path(name).read_text("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        names = ", ".join(CLIMATES)
        raise OptionError(
            f"--faults is {name!r}: expected one of {names}, or a readable JSON file ({why})"
        ) from error
    try:
        climate = Climate.from_json(text, dialect)
    except OptionError as error:
        raise OptionError(f"--faults {name}: {error}") from None
    settings = (("latency", not climate.latency.is_none), ("limit", climate.limit is not None))
    return climate, frozenset(key for key, is_there in settings if is_there)


def _limit(text: str, kind: StoreKind) -> RequestLimit | None:
    expected = f"{kind.counted} per second, such as {kind.limit:_.0f}, or none"
    if text == "none":
        return None
    rate = _number("limit", text, expected)
    if rate < 1:
        raise OptionError(f"--limit is {text!r}: expected {expected}")
    return limit_of(rate)


def _number(name: str, text: str, expected: str) -> float:
    try:
        number = float(_scaled(text))
    except ValueError:
        number = math.nan
    if not 0 <= number < 1e9:
        raise OptionError(f"--{name} is {text!r}: expected {expected}")
    return number


def _scaled(text: str) -> str:
    """Return ``20k`` or ``1.5M`` in digits, and other text unchanged."""
    found = _SCALED(text.strip())
    return text if found is None else f"{float(found[1]) * _UNITS[found[2]]:.0f}"


def _count(values: Mapping[str, str], name: str, default: int, most: int = _MOST) -> int:
    expected = f"a whole number from 1 to {most:_}"
    number = _whole(values, name, default, expected)
    if not 1 <= number <= most:
        raise OptionError(f"--{name} is {values[name]!r}: expected {expected}")
    return number


def _whole(values: Mapping[str, str], name: str, default: int, expected: str) -> int:
    if name not in values:
        return default
    try:
        return int(_scaled(values[name]))
    except ValueError:
        raise OptionError(f"--{name} is {values[name]!r}: expected {expected}") from None
