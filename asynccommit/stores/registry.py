"""Open a store by its address: one table of stores, one policy order.

Adding a store is a folder and one line in ``STORES``: see "How to add a store" in docs/stores.md. A
store is created from an address and options, ``Class(address, options)``, and implements ``Store``;
its class does not matter afterwards.
"""

from __future__ import annotations

import logging
import math
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any

from asynccommit.errors import UnsupportedError
from asynccommit.options.checked import check_fields
from asynccommit.options.job import ATTEMPTS, RATE, RETRY, WORKERS
from asynccommit.redact import redact
from asynccommit.stores.base import Store, Traits
from asynccommit.stores.clients import with_client
from asynccommit.stores.databricks import refuse_mapped
from asynccommit.stores.elsewhere import STORE_OPTION, opener_for
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.dry_run import Record
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.in_flight import InFlightLimit, open_files_allow
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.policies.merged import merged
from asynccommit.stores.policies.per_object_rate import PerObjectRate
from asynccommit.stores.policies.rate import Throttle
from asynccommit.stores.policies.rate_queue import Ceilings
from asynccommit.stores.policies.request_series import RequestSeries
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.urls import Address

log = logging.getLogger(__name__)

_NEAR, _FAR = 5, 12  # attempts
_ADLS = "asynccommit.stores.adls.opening.open_account"
_GCS = "asynccommit.stores.gcs.store.GcsStore"
_HDFS = "asynccommit.stores.hdfs.store.HdfsStore"
_S3 = "asynccommit.stores.s3.renaming_store.open_s3"

_GONE = {"s3n": "Hadoop has removed this connector; use s3a://BUCKET/PATH for the same objects"}

STORES: Mapping[str, str] = MappingProxyType(
    {
        "file": "asynccommit.stores.local.store.LocalStore",
        "abfs": _ADLS,
        "abfss": _ADLS,
        "az": _ADLS,
        "gs": _GCS,
        "gcs": _GCS,
        "hdfs": _HDFS,
        "s3": _S3,
        "s3a": _S3,
        "viewfs": _HDFS,
    }
)
"""Scheme -> dotted name of a class, or a function, imported when a store of it is opened."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The settings under which a store is opened.

    Attributes:
        rng: source of randomness for waits between attempts.
        rate: maximum number of requests a second, every attempt counted; ``None`` for no limit but
            the measured one of an account.
        ceilings: limits of an account for its reads, writes and deletes; in addition to ``rate``.
        in_flight: maximum number of requests in flight; ``None`` for the account's recommended
            limit, which is unlimited for local stores.
        attempts: maximum number of attempts of a request, not counting responses that ask to slow
            down; ``None`` for 5, or 12 over a network.
        retry_seconds: seconds after which a failing request is not sent again.
        parts: number of processes of one job that share the rate of an account.
        dry_run: record writes instead of executing them.
        clock: measures the durations of requests, for statistics.
        options: options of the store itself; credentials may be among them.
        connected: each request takes a connection, an open file of this process; a model has none.
        log_fields: the ``extra`` of log records about requests.
    """

    rng: random.Random = field(repr=False)
    rate: Annotated[float | None, RATE] = None
    ceilings: Ceilings = field(default_factory=Ceilings)
    in_flight: Annotated[int | None, WORKERS] = None
    attempts: Annotated[int | None, ATTEMPTS] = None
    retry_seconds: Annotated[float, RETRY] = 600.0
    parts: Annotated[int, WORKERS] = 1
    dry_run: bool = False
    clock: Callable[[], float] = time.monotonic
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    connected: bool = True
    log_fields: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)


def open_store(address: Address, settings: StoreSettings) -> Wrapped:
    """Open the store that holds ``address``, with its policies.

    ``Wrapped.policies`` has the policies: ``Stats`` with requested and sent calls, ``Record`` with
    the writes of a dry run. Close the store with ``aclose``.

    Raises:
        OptionError: an option is invalid.
        UnsupportedError: there is no store for the scheme.
    """
    refuse_mapped(address, os.environ)
    options = with_client(settings.options)
    made = opener_for(address, options, address.scheme in STORES) or _store_class(address.scheme)
    own = {name: value for name, value in options.items() if name != STORE_OPTION}
    store = wrap(made(address, own), settings)
    store.address = address
    return store


async def close_store(store: Store) -> None:
    """Close a store; only log an error.

    An error on closing does not affect past requests.
    """
    try:
        await store.aclose()
    except Exception as error:
        log.warning("a store could not be closed: %s: %s", type(error).__name__, redact(str(error)))


def wrap(store: Store, settings: StoreSettings) -> Wrapped:
    """Return ``store`` with its policies; see ``open_store``."""
    traits = store.traits
    pace = _pace(store, settings)
    series = RequestSeries(settings.clock, lambda: pace.rate)
    attempts = settings.attempts
    if attempts is None:
        attempts = _FAR if traits.account else _NEAR
    names = (PerObjectRate(traits.name_interval, traits.account),) if traits.name_interval else ()
    dry = (Record(),) if settings.dry_run else ()
    # The order is behaviour: a request that waits to be sent again must hold no slot, every
    # attempt must keep its distance and pay, and only what is sent costs money.
    return Wrapped(
        store,
        Stats("asked", clock=settings.clock),
        *dry,
        Recover(
            traits,
            settings.rng,
            attempts=attempts,
            deadline=settings.retry_seconds,
            log_fields=settings.log_fields,
        ),
        Retry(
            settings.rng,
            attempts=attempts,
            account=traits.account,
            deadline=settings.retry_seconds,
            log_fields=settings.log_fields,
        ),
        *names,
        pace,
        # What waits for a connection of the store's own pool counts as not connected in the end.
        InFlightLimit(_slots(traits, settings)),
        Stats("sent", clock=settings.clock, series=series),
        compose=merged,
    )


def _slots(traits: Traits, settings: StoreSettings) -> int | None:
    """Return how many requests may be in flight; ``None`` for any number."""
    wanted = settings.in_flight
    if not traits.account:
        return wanted
    most = wanted or traits.workers
    return min(most, open_files_allow()) if settings.connected else most


def _pace(store: Store, settings: StoreSettings) -> Adaptive | Throttle:
    traits = store.traits
    if not traits.account:
        return Throttle(settings.rate)
    total = Ceilings(math.inf if settings.rate is None else settings.rate / settings.parts)
    # A store may learn by its first requests what its bucket takes, and what a rename costs.
    return Adaptive(
        traits,
        settings.ceilings.lower(total),
        lambda: store.traits.ramp,
        lambda: store.traits.costs,
        parts=settings.parts,
        log_fields=settings.log_fields,
    )


def _store_class(scheme: str) -> Callable[[Address, Mapping[str, Any]], Store]:
    try:
        module, _, name = STORES[scheme].rpartition(".")
    except KeyError:
        if scheme in _GONE:
            raise UnsupportedError(f"{scheme}: {_GONE[scheme]}") from None
        raise UnsupportedError(
            f"no store for {scheme}: URLs; supported schemes: {', '.join(sorted(STORES))}. "
            f"If Hadoop has a class for {scheme}:, give the command -s {STORE_OPTION}=jvm, which "
            "starts a JVM with PySpark, or call asynccommit.spark.status, resume or rollback in a "
            f"Spark session. Otherwise mount {scheme}: as a directory and use its path, or use the "
            f"committer of the {scheme}: connector."
        ) from None
    found: Callable[[Address, Mapping[str, Any]], Store] = getattr(import_module(module), name)
    return found
