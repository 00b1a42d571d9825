"""The bucket that is measured, and a store on it as every user gets it."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from asynccommit.stores.parts import Part
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.urls import parse_url

BUCKET = "bench"
URL = f"s3://{BUCKET}"
DEST = "/warehouse/flights"
WORKERS = 64
"""Requests in flight, of everybody."""

KEY, SECRET, REGION = "AKIDEXAMPLE", "not-a-secret", "us-east-1"
ETAG = '"3858f62230ac3c915f300c664312c11f"'


class Pending(NamedTuple):
    """An upload as a job commit completes it."""

    key: str
    upload_id: str
    parts: tuple[Part, ...]


def storage_options(host: str, **more: Any) -> dict[str, Any]:
    """Return the options that lead to ``host`` (``127.0.0.1:PORT``), signed as for the service."""
    region = {"client_kwargs": {"region_name": REGION}}
    return {"endpoint_url": f"http://{host}", "key": KEY, "secret": SECRET, **region, **more}


def open_bucket(host: str, **more: Any) -> Wrapped:
    """Open a store by the door that the engine uses, with every wrapper and default."""
    settings = StoreSettings(rng=random.Random(1), options=storage_options(host, **more))
    return open_store(parse_url(f"{URL}{DEST}"), settings)


def bare_store(host: str, **more: Any) -> S3Store:
    """Open the store alone."""
    return S3Store(parse_url(f"{URL}{DEST}"), storage_options(host, **more))


def pending(count: int) -> list[Pending]:
    """Return ``count`` uploads of one part, with names such as a job has."""
    return [
        Pending(
            f"{DEST[1:]}/day={number % 30}/part-{number:05d}-c000.snappy.parquet",
            f"{number:032x}{'ab' * 32}",
            (Part(ETAG),),
        )
        for number in range(count)
    ]
