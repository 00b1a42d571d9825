"""Open a store by its URL, with the retries and limits of a commit."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from asynccommit.options.checked import HIDDEN, Url, checked, storage_of
from asynccommit.options.job import ATTEMPTS, RATE, RETRY, WORKERS, rate_among
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, close_store
from asynccommit.stores.registry import open_store as open_registered
from asynccommit.stores.urls import Address, parse_url


@checked
@asynccontextmanager
async def open_store(
    url: Url,
    *,
    storage_options: Annotated[Mapping[str, Any] | None, HIDDEN] = None,
    rate: Annotated[float | None, RATE] = None,
    attempts: Annotated[int | None, ATTEMPTS] = None,
    max_concurrency: Annotated[int | None, WORKERS] = None,
    retry_seconds: Annotated[float, RETRY] = 600.0,
) -> AsyncIterator[Store]:
    """Open the store of a URL; close it on leaving.

    The paths that its methods take are absolute and decoded, without scheme and bucket. Requests
    that the store refuses for now are sent again, as in a commit.

    Args:
        url: a path or URL in the store.
        storage_options: credentials and the like for the store, under fsspec's names.
        rate: maximum number of requests per second; by default that of the storage options, or no
            limit.
        attempts: how often a request is sent at most; 5 by default, over a network 12.
        retry_seconds: seconds after which a failing request is not sent again.
        max_concurrency: maximum number of requests in flight; by default what suits the store.

    Raises:
        OptionError: an argument or a storage option is wrong.
        UnsupportedError: there is no store for the scheme.
        UrlError: ``url`` cannot be read.
    """
    async with open_place(
        parse_url(os.fspath(url)),
        storage_options=storage_of(url, storage_options),
        rate=rate,
        attempts=attempts,
        max_concurrency=max_concurrency,
        retry_seconds=retry_seconds,
    ) as store:
        yield store


@checked
@asynccontextmanager
async def open_place(
    place: Address,
    *,
    storage_options: Annotated[Mapping[str, Any] | None, HIDDEN] = None,
    rate: Annotated[float | None, RATE] = None,
    attempts: Annotated[int | None, ATTEMPTS] = None,
    max_concurrency: Annotated[int | None, WORKERS] = None,
    retry_seconds: Annotated[float, RETRY] = 600.0,
) -> AsyncIterator[Wrapped]:
    """Open the store of an address; see ``open_store``."""
    given = storage_options or {}
    store = open_registered(
        place,
        StoreSettings(
            rng=this_host().rng,
            rate=rate_among(given) if rate is None else rate,
            attempts=attempts,
            in_flight=max_concurrency,
            retry_seconds=retry_seconds,
            options=given,
        ),
    )
    try:
        yield store
    finally:
        await close_store(store)
