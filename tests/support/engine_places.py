"""Destinations of engines on stores without local files, and the tables that are there then."""

from __future__ import annotations

import asyncio
import io
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as parquet
import pytest

from asynccommit import open_store, sync
from asynccommit.engine import list_tree
from tests.support.s3_servers import new_bucket, options

Place = tuple[str, dict[str, Any]]


@pytest.fixture(params=["adls", "gcs", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    """Return the URL of a destination on a store without local files, and its options.

    A module that imports it imports ``adls_emulator_thread``, ``gcs_emulator_thread`` and
    ``moto_url`` as well.
    """
    if request.param == "s3":
        server = request.getfixturevalue("moto_url")
        return f"s3://{new_bucket(server)}/out", options(server)
    emulator = request.getfixturevalue(f"{request.param}_emulator_thread")
    if request.param == "gcs":
        emulator.do(lambda running: running.service.create_bucket("data"))
        return "gs://data/out", {"endpoint_url": emulator.endpoint, "token": "anon"}
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"
    return url, {"connection_string": emulator.connection_string}


def tables_at(url: str, storage: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the tables below a destination of any store, by their relative names."""
    sync.wait_for_cleanup(30)
    root = unquote(urlsplit(url).path)

    async def read() -> dict[str, Any]:
        async with open_store(url, storage_options=storage) as store:
            found = [each async for each in list_tree(store, root) if not each.is_dir]
            names = [each.path for each in found if each.path.endswith(".parquet")]
            return {
                name.removeprefix(f"{root}/"): parquet.read_table(
                    io.BytesIO(await store.get(name, 1 << 20))
                )
                for name in names
            }

    return asyncio.run(read())


def values_at(url: str, storage: dict[str, Any] | None = None, column: str = "v") -> list[Any]:
    """Return a column of all visible rows of any store, sorted."""
    found = tables_at(url, storage).values()
    return sorted(value for table in found for value in table[column].to_pylist())
