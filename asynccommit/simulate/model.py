"""The interface of a model store for simulated commits."""

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
"""Timeout of the real stores' clients in seconds."""

LATENCY = 30.0
"""Default latency of a service of a cloud, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Site:
    """The environment of a model.

    Attributes:
        climate: latency, limit and faults.
        in_flight: maximum number of requests in flight.
        doubling: minimum time in seconds in which the limit doubles, if it grows.
        whole: for a whole job, not for one that represents a larger one.
        seeds: source of randomness.
        host: clocks and ids.
    """

    climate: Climate
    in_flight: int
    doubling: float
    whole: bool
    seeds: Seeds
    host: Host


class Model(Protocol):
    """A model store with operations that need no request. Paths are absolute."""

    @property
    def dest(self) -> Address:
        """The destination of the job."""
        ...

    @property
    def store(self) -> Store:
        """The store that sends the requests."""
        ...

    @property
    def weather(self) -> FaultInjector:
        """The fault injector for the requests."""
        ...

    @property
    def refused(self) -> int:
        """Number of requests rejected for their rate, besides the weather's."""
        ...

    @property
    def renamed_directories(self) -> int:
        """Number of requests that renamed a directory."""
        ...

    def put_file(self, path: str, size: int) -> str:
        """Create a file with this declared size; return its etag."""
        ...

    def put_data(self, path: str, data: bytes) -> None:
        """Create a readable file."""
        ...

    def put_directory(self, path: str) -> None:
        """Create a directory, as ``Store.mkdir`` would."""
        ...

    def files_in(self, path: str) -> int:
        """Return the number of files in a directory."""
        ...

    def size(self) -> int:
        """Return the approximate bytes that the model keeps of a commit's changes."""
        ...


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A kind of store that has a model.

    Attributes:
        name: name for users.
        make: creates a model.
        dialect: fault dialect.
        limit: default limit per second.
        counted: unit of the limit.
        in_flight: default number of requests in flight.
        doubling: minimum time in seconds in which the limit doubles under load; 0 if it is
            constant.
        latency: default latency in milliseconds.
        schemes: the schemes of its URLs, if load tests forecast by this model.
        folders: whether it renames a directory in one request.
    """

    name: str
    make: Callable[[Site], Model]
    dialect: Dialect
    limit: float
    counted: str
    in_flight: int
    doubling: float = 0.0
    latency: float = LATENCY
    schemes: tuple[str, ...] = ()
    folders: bool = True
