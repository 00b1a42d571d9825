"""The account that is measured, and a store on it as every user gets it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from bench import trees

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
FILESYSTEM = "bench"
HOST = f"{ACCOUNT}.dfs.core.windows.net"
URL = f"abfs://{FILESYSTEM}@{HOST}"
DEST = "/warehouse/flights"
ETAG = "0x8DC3D2A4C0D1E2F"


class Pair(NamedTuple):
    """A rename as a job commit asks for it."""

    source: str
    dest: str
    etag: str
    token: str


def storage_options(host: str, library: str | None = None, ca_file: str | None = None) -> Any:
    """Return the options that lead to ``host`` (``127.0.0.1:PORT``) with the account's key."""
    return {
        "account_name": ACCOUNT,
        "account_key": KEY,
        "account_host": host,
        "use_ssl": ca_file is not None,
        "proxy": "",
        # A null server could not answer what else is asked first.
        "fs.azure.account.hns.enabled": "true",
        **({"ca_file": ca_file} if ca_file else {}),
        **({"http_library": library} if library else {}),
    }


def open_account(
    host: str, library: str | None = None, ca_file: str | None = None, in_flight: int | None = None
) -> Wrapped:
    """Open a store by the door that the engine uses, with every wrapper and default."""
    options = storage_options(host, library, ca_file)
    if in_flight is not None:
        options["max_concurrency"] = in_flight
    settings = StoreSettings(rng=random.Random(1), options=options)
    return open_store(parse_url(f"{URL}{DEST}"), settings)


def bare_store(host: str, library: str) -> AdlsStore:
    """Open the store alone."""
    return AdlsStore(parse_url(f"{URL}{DEST}"), storage_options(host, library))


def pairs(count: int) -> list[Pair]:
    """Return ``count`` renames with paths and tokens such as a job has."""
    shape = trees.Shape(tasks=-(-count // 100), files=100, partitions=10)
    return [pair for _, pair in zip(range(count), _pairs(shape), strict=False)]


def _pairs(shape: trees.Shape) -> Iterator[Pair]:
    rng = random.Random(2)
    for task in range(shape.tasks):
        work = trees.work_dir(DEST, task)
        for name in shape.names(task):
            hexa = f"{rng.getrandbits(128):032x}"
            token = f"{hexa[:8]}-{hexa[8:12]}-{hexa[12:16]}-{hexa[16:20]}-{hexa[20:]}"
            yield Pair(f"{work}/{name}", f"{DEST}/{name}", ETAG, token)
