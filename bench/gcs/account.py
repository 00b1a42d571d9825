"""The bucket that is measured, and a store on it as every user gets it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from bench import trees

BUCKET = "bench"
URL = f"gs://{BUCKET}"
DEST = "/warehouse/flights"
WORKERS = 64
"""Requests in flight, of those who are told how many."""


class Pair(NamedTuple):
    """A rename as a job commit asks for it."""

    source: str
    dest: str
    etag: str


def storage_options(host: str, **more: Any) -> dict[str, Any]:
    """Return the options that lead to ``host`` (``127.0.0.1:PORT``), without a credential."""
    return {"endpoint_url": f"http://{host}", "token": "anon", "proxy": "", **more}


def open_bucket(host: str, **more: Any) -> Wrapped:
    """Open a store by the door that the engine uses, with every wrapper and default."""
    settings = StoreSettings(rng=random.Random(1), options=storage_options(host, **more))
    return open_store(parse_url(f"{URL}{DEST}"), settings)


def bare_store(host: str, **more: Any) -> GcsStore:
    """Open the store alone."""
    return GcsStore(parse_url(f"{URL}{DEST}"), storage_options(host, **more))


def pairs(count: int) -> list[Pair]:
    """Return ``count`` renames with paths and etags such as a job has."""
    shape = trees.Shape(tasks=-(-count // 100), files=100, partitions=10)
    return [pair for _, pair in zip(range(count), _pairs(shape), strict=False)]


def _pairs(shape: trees.Shape) -> Iterator[Pair]:
    generation = 1_732_190_400_000_000
    for task in range(shape.tasks):
        work = trees.work_dir(DEST, task)
        for name in shape.names(task):
            generation += 1
            yield Pair(f"{work}/{name}", f"{DEST}/{name}", f"{generation}-{generation % 997:08x}")
