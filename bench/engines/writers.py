"""The writers that are compared: an engine's own, and ours through the same engine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import FSSpecHandler, PyFileSystem

from asynccommit import arrow, daft, dask, duckdb, polars, sync
from asynccommit.demo.emulated import serving

BY = "day"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two writers of a table of Arrow to a destination."""

    own: Callable[[Any, str], object]
    ours: Callable[[Any, str], object]


def rows_of(count: int, partitions: int) -> Any:
    """Return a table: numbers, values, and the column of partitions."""
    number = pa.array(range(count), pa.int64())
    day = pa.array([value % partitions for value in range(partitions)] * (count // partitions))
    return pa.table({"v": number, "value": pc.divide(pc.cast(number, pa.float64()), 7.0), BY: day})


def _own_arrow(rows: Any, dest: str, filesystem: Any = None) -> None:
    ds.write_dataset(
        rows,
        dest,
        format="parquet",
        partitioning=[BY],
        partitioning_flavor="hive",
        existing_data_behavior="overwrite_or_ignore",
        filesystem=filesystem,
    )


def _frame_of_dask(rows: Any) -> Any:
    import dask.dataframe as dd

    made: Any = dd.from_pandas
    return made(rows.to_pandas(), npartitions=4)


def _own_dask(rows: Any, dest: str) -> None:
    _frame_of_dask(rows).to_parquet(dest, partition_on=[BY], write_index=False)


def _ours_dask(rows: Any, dest: str) -> None:
    dask.to_parquet(_frame_of_dask(rows), dest, partition_on=[BY], write_index=False)


def _lazy(rows: Any) -> Any:
    import polars as engine

    frame: Any = engine.from_arrow(rows)
    return frame.lazy()


def _own_polars(rows: Any, dest: str) -> None:
    import polars as engine

    _lazy(rows).sink_parquet(engine.PartitionBy(dest, key=BY, include_key=False), mkdir=True)


def _own_duckdb(rows: Any, dest: str) -> None:
    import duckdb as engine

    with engine.connect() as connection:
        connection.register("rows", rows)
        connection.execute(f"COPY rows TO '{dest}' (FORMAT parquet, PARTITION_BY ({BY}))")


def _ours_duckdb(rows: Any, dest: str) -> None:
    import duckdb as engine

    with engine.connect() as connection:
        connection.register("rows", rows)
        duckdb.copy(connection, "FROM rows", dest, partition_by=BY)


def _own_daft(rows: Any, dest: str) -> None:
    import daft as engine

    engine.from_arrow(rows).write_parquet(dest, partition_cols=[BY])


def _ours_daft(rows: Any, dest: str) -> None:
    import daft as engine

    daft.write_parquet(engine.from_arrow(rows), dest, partition_cols=BY)


LOCAL: Mapping[str, Pair] = {
    "arrow": Pair(
        _own_arrow, lambda rows, dest: arrow.write_dataset(rows, dest, partitioning=[BY])
    ),
    "polars": Pair(
        _own_polars, lambda rows, dest: polars.sink_parquet(_lazy(rows), dest, partition_by=BY)
    ),
    "duckdb": Pair(_own_duckdb, _ours_duckdb),
    "dask": Pair(_own_dask, _ours_dask),
    "daft": Pair(_own_daft, _ours_daft),
}


@contextmanager
def on_adls(latency: float) -> Iterator[Pair]:
    """Yield pyarrow with adlfs, and ours, on an emulated account in another process.

    Args:
        latency: seconds that each response takes.
    """
    from adlfs import AzureBlobFileSystem

    shape = ["--filesystem", "data", "--latency", f"{latency * 1000:g}ms"]
    with (
        tempfile.TemporaryDirectory(prefix="asynccommit-bench-") as folder,
        serving("adls", shape, Path(folder, "emulator.log")) as emulator,
    ):
        storage = {"connection_string": emulator.facts["connection_string"]}
        base = f"abfs://data@{emulator.facts['account']}.dfs.core.windows.net"

        def own(rows: Any, dest: str) -> None:
            files = AzureBlobFileSystem(**storage, skip_instance_cache=True)
            _own_arrow(rows, f"data/{dest}", PyFileSystem(FSSpecHandler(files)))

        def ours(rows: Any, dest: str) -> None:
            arrow.write_dataset(rows, f"{base}/{dest}", partitioning=[BY], storage_options=storage)

        yield Pair(own, ours)
        sync.wait_for_cleanup(30)
