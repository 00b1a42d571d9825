"""What a simulated commit needs of a store that is a model: one module has each kind of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address
from asynccommit.testing.models.fault_rules import Climate, Dialect, FaultInjector
from asynccommit.testing.models.seeds import Seeds

PATIENCE = 120.0
"""Seconds that a client of the real stores waits for an answer."""


@dataclass(frozen=True, slots=True)
class Site:
    """What a model is made with.

    Attributes:
        climate: latency, limit and faults.
        in_flight: requests on the wire at one time at most.
        doubling: seconds in which the limit doubles at most, where it grows at all.
        whole: is for a whole job, not for one that stands for a larger.
        seeds: of everything random.
        host: its clocks and ids.
    """

    climate: Climate
    in_flight: int
    doubling: float
    whole: bool
    seeds: Seeds
    host: Host


class Model(Protocol):
    """A store that is a model, and what can be done to it without a request. Paths are absolute."""

    @property
    def dest(self) -> Address:
        """Where the job is committed to."""
        ...

    @property
    def store(self) -> Store:
        """What requests are sent by."""
        ...

    @property
    def weather(self) -> FaultInjector:
        """What becomes of requests."""
        ...

    @property
    def refused(self) -> int:
        """Requests that were refused for their rate, beside those that the weather refused."""
        ...

    def put_file(self, path: str, size: int) -> str:
        """Put a file there that is said to have so many bytes; returns its etag."""
        ...

    def put_data(self, path: str, data: bytes) -> None:
        """Put a file there that can be read."""
        ...

    def put_directory(self, path: str) -> None:
        """Put a directory there, as ``Store.mkdir`` would."""
        ...

    def files_in(self, path: str) -> int:
        """Return how many files are in a directory."""
        ...

    def size(self) -> int:
        """Return about how many bytes the model keeps of what a commit changes."""
        ...


@dataclass(frozen=True, slots=True)
class StoreKind:
    """One kind of stores that there is a model of.

    Attributes:
        name: as users say it.
        make: makes one.
        dialect: of its weather.
        limit: what it takes each second, where nobody says otherwise.
        counted: what the limit is a number of.
        in_flight: requests on the wire at one time, where nobody says otherwise.
        doubling: seconds in which the limit doubles at most while it is made use of; 0 if it stays.
    """

    name: str
    make: Callable[[Site], Model]
    dialect: Dialect
    limit: float
    counted: str
    in_flight: int
    doubling: float = 0.0
