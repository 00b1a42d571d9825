"""Job commit on the emulator: ours on each kind of bucket, against what others' clients can do.

Every contender has a process of its own. Its first commit is told apart: ours finds out by it how
much the bucket takes, others open their connections. The others' commits are by hand: load the
manifests, move the files, write ``_SUCCESS``, delete ``_temporary``, with none of the records that
let a commit be resumed; so the moving is told apart too, which is the same work for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Self

from bench import trees
from bench.child import Child
from bench.gcs.movers import OURS
from bench.gcs.peers import PEERS

FULL = trees.Shape(tasks=100, files=100, partitions=10)
QUICK = trees.Shape(tasks=20, files=100, partitions=10)
LATENCY = 0.020
WRITES = 2_000.0
REQUESTS_TARGET = 0.5

_ALLOWED = {"writes": WRITES, "name_interval": 1.0}
_FLAT = {"writes": 1_000.0, "reads": 5_000.0, "doubling": 1200.0, "name_interval": 1.0}
_HNS = {**_FLAT, "writes": 8_000.0, "reads": 40_000.0}
_CLIENT = "bench.gcs.client"
_Row = dict[str, float]


@dataclass(frozen=True, slots=True)
class Contender:
    """Who commits, and on which bucket.

    Attributes:
        name: of the row.
        client: ``OURS`` or one of ``PEERS``.
        bucket: how it is made.
        options: of our store.
    """

    name: str
    client: str = OURS
    bucket: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def quotas(self) -> Mapping[str, float]:
        """What the bucket takes."""
        found: Mapping[str, float] = self.bucket.get("quotas", _ALLOWED)
        return found

    @property
    def latency(self) -> float:
        """Of each answer, in seconds."""
        return float(self.bucket.get("latency", LATENCY))

    @property
    def ramp(self) -> str:
        """The rules in force about growing rates: the client's, and the bucket's."""
        client = "on" if self.options.get("ramp") else "off" if self.client == OURS else "none"
        quotas = self.quotas
        if not quotas:
            return f"{client}, no limit"
        grows = " x2/20 min" if quotas.get("doubling") else ""
        return f"{client}, {quotas['writes']:,.0f}/s{grows}"

    def make(self) -> dict[str, Any]:
        """Return what the service is told."""
        return {"quotas": dict(self.quotas), "latency": LATENCY, **self.bucket}


LIMITED = (
    Contender("ours, flat"),
    Contender("ours, hns", bucket={"hns": True}),
    Contender("ours, copy + delete", bucket={"moves": False}, options={"move": False}),
    *(Contender(name, name) for name in PEERS),
)
RAMPED = (
    Contender("ours, flat", bucket={"quotas": _FLAT}, options={"ramp": True}),
    Contender("ours, hns", bucket={"quotas": _HNS, "hns": True}, options={"ramp": True}),
)
UNLIMITED = (
    Contender("ours, flat, 20 ms", bucket={"quotas": {}}),
    Contender("ours, flat, 0 ms", bucket={"quotas": {}, "latency": 0.0}),
    Contender("ours, hns, 0 ms", bucket={"quotas": {}, "latency": 0.0, "hns": True}),
)


def run(
    service: Child, contenders: Sequence[Contender], *, quick: bool, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure turn by turn; returns the first commit of each, medians of the later, and ratios.

    Ratios are those of the first contender to each.
    """
    shape, rounds = (QUICK, 2) if quick else (FULL, 3)
    rows: dict[str, list[_Row]] = {one.name: [] for one in contenders}
    with _Clients(service, contenders, shape) as bench:
        for number in range(rounds + 1):
            for one in _turned(contenders, number):
                rows[one.name].append(bench.once(one))
            say(f"commit {number} of {rounds}")
    first = {name: taken[0] for name, taken in rows.items()}
    later = {name: _medians(taken[1:]) for name, taken in rows.items()}
    return {
        **asdict(shape),
        "rounds": rows,
        "ramp": {one.name: one.ramp for one in contenders},
        "first": first,
        "later": later,
        "ratios": {"first": _ratios(first), "later": _ratios(later)},
        "requests_target": REQUESTS_TARGET,
    }


class _Clients(ExitStack):
    """A process for each contender; commits the same job again and again."""

    def __init__(self, service: Child, contenders: Sequence[Contender], shape: trees.Shape) -> None:
        super().__init__()
        self._service = service
        self._host: str = service.ask("host")
        self._shape = shape
        self._clients = {one.name: self.enter_context(_client()) for one in contenders}

    def __enter__(self) -> Self:
        return self

    def once(self, contender: Contender) -> _Row:
        """Put the job in, time its commit, check what is there."""
        service, shape = self._service, asdict(self._shape)
        service.ask("make", **contender.make())
        service.ask("arrange", **shape)
        before = service.ask("stats")
        client = self._clients[contender.name]
        row: _Row = client.ask(
            "commit", name=contender.client, host=self._host, options=dict(contender.options)
        )
        after = service.ask("stats")
        service.ask("check", **shape)
        counted = {name: after[name] for name in ("requests", "operations", "moving", "refused")}
        files = self._shape.total
        return {
            **row,
            **counted,
            "server_cpu": after["cpu"] - before["cpu"],
            "files_per_second": files / row["seconds"],
            "moved_per_second": files / row["moving_seconds"],
        }


@contextmanager
def _client() -> Iterator[Child]:
    with Child(_CLIENT) as client:
        yield client
        client.ask("close")


def _turned(contenders: Sequence[Contender], number: int) -> Sequence[Contender]:
    turn = number % len(contenders)
    return [*contenders[turn:], *contenders[:turn]]


def _medians(rows: Sequence[_Row]) -> _Row:
    return {key: median(row[key] for row in rows) for key in rows[0]}


def _ratios(rows: Mapping[str, _Row]) -> dict[str, _Row]:
    ours = next(iter(rows.values()))
    return {
        name: {
            "speed": one["seconds"] / ours["seconds"],
            "moving_speed": one["moving_seconds"] / ours["moving_seconds"],
            "moving_requests": ours["moving"] / one["moving"],
            "requests": ours["requests"] / one["requests"],
            "cpu": one["cpu"] / ours["cpu"],
        }
        for name, one in rows.items()
    }
