"""One table of Arrow, written and read by each engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from asynccommit import arrow, daft, dask, duckdb, parallel, polars
from asynccommit.formats.partition_names import NULL
from asynccommit.results import JobReport

Writer = Callable[..., JobReport]


def by_arrow(table: Any, url: Any, **given: Any) -> JobReport:
    """Write by pyarrow."""
    given.setdefault("mode", "append")
    return arrow.write_dataset(table, url, partitioning=given.pop("by", None), **given)


def by_polars(table: Any, url: Any, **given: Any) -> JobReport:
    """Write by polars."""
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return polars.sink_parquet(frame.lazy(), url, partition_by=given.pop("by", None), **given)


def by_duckdb(table: Any, url: Any, **given: Any) -> JobReport:
    """Write by DuckDB."""
    import duckdb as engine

    with engine.connect() as connection:
        connection.register("rows", table)
        return duckdb.copy(
            connection, "FROM rows", url, partition_by=given.pop("by", None), **given
        )


def by_daft(table: Any, url: Any, **given: Any) -> JobReport:
    """Write by Daft."""
    import daft as engine

    frame = engine.from_arrow(table)
    return daft.write_parquet(frame, url, partition_cols=given.pop("by", None), **given)


def by_dask(table: Any, url: Any, **given: Any) -> JobReport:
    """Write by Dask, in two partitions."""
    import dask.dataframe as dd

    from_pandas: Any = dd.from_pandas
    parts = from_pandas(table.to_pandas(), npartitions=2)
    given = {"partition_on": given.pop("by", None), "write_index": False, **given}
    report: JobReport = dask.to_parquet(parts, url, **given)
    return report


def by_pandas(table: Any, url: Any, **given: Any) -> JobReport:
    """Write by pandas, a partition a task."""
    by = given.pop("by", None)
    frame = table.to_pandas()
    # iter(): pandas 2 cannot count groups of which one is null.
    groups: Any = iter(frame.groupby(by, dropna=False)) if by else [((), frame)]

    def write(task: Any, group: Any) -> None:
        values, rows = group
        folder = "."
        if by:
            folder = parallel.partition_directory(dict(zip(by, values, strict=True)))
        name = f"{folder}/part-{task.attempt_id}.parquet"
        rows = rows.drop(columns=by or [])
        rows.to_parquet(name, index=False, filesystem=task.filesystem)

    with ThreadPoolExecutor(2) as executor:
        return parallel.commit_parallel(url, write, list(groups), executor, **given)


def by_ray(table: Any, url: Any, **given: Any) -> JobReport:
    """Write by the Ray that runs."""
    import ray

    from asynccommit.ray import Sink

    sink = Sink(url, partition_cols=given.pop("by", None), **given)
    ray.data.from_arrow([table.slice(0, 7), table.slice(7)]).write_datasink(sink)
    return sink.report


WRITERS: Mapping[str, Writer] = {
    "arrow": by_arrow,
    "daft": by_daft,
    "dask": by_dask,
    "duckdb": by_duckdb,
    "pandas": by_pandas,
    "polars": by_polars,
}


def read_by_arrow(dest: Path, kind: Any) -> Any:
    """Read by pyarrow."""
    schema = pa.schema([("k", kind)])
    return ds.dataset(dest, partitioning=ds.partitioning(schema, flavor="hive")).to_table()


def read_by_daft(dest: Path, kind: Any) -> Any:
    """Read by Daft."""
    import daft as engine

    return engine.read_parquet(f"{dest}/*=*/**/*.parquet", hive_partitioning=True).to_arrow()


def read_by_dask(dest: Path, kind: Any) -> Any:
    """Read by Dask; the type of a null's directory has to be said."""
    import dask.dataframe as dd

    partitioning = {"flavor": "hive", "schema": pa.schema([("k", kind)])}
    frame = dd.read_parquet(dest, dataset={"partitioning": partitioning}).compute()
    return pa.Table.from_pandas(frame, preserve_index=False)


def read_by_duckdb(dest: Path, kind: Any) -> Any:
    """Read by DuckDB."""
    import duckdb as engine

    with engine.connect() as connection:
        text = f"FROM read_parquet('{dest}/*=*/**/*.parquet', hive_partitioning = true)"
        return connection.sql(text).to_arrow_table()


def read_by_pandas(dest: Path, kind: Any) -> Any:
    """Read by pandas; the type of a null's directory has to be said."""
    import pandas as pd

    partitioning = ds.partitioning(pa.schema([("k", kind)]), flavor="hive")
    frame = pd.read_parquet(dest, partitioning=partitioning)
    return pa.Table.from_pandas(frame, preserve_index=False)


def read_by_polars(dest: Path, kind: Any) -> Any:
    """Read by polars."""
    import polars as pl

    return pl.read_parquet(f"{dest}/*=*/**/*.parquet", hive_partitioning=True).to_arrow()


def read_by_ray(dest: Path, kind: Any) -> Any:
    """Read by the Ray that runs, which takes the directory of a null for a text."""
    import ray

    rows = ray.data.read_parquet(str(dest)).take_all()
    keys = [None if row["k"] == NULL else row["k"] for row in rows]
    return pa.table({"k": pa.array(keys, kind), "v": [row["v"] for row in rows]})


READERS: Mapping[str, Callable[[Path, Any], Any]] = {
    "arrow": read_by_arrow,
    "daft": read_by_daft,
    "dask": read_by_dask,
    "duckdb": read_by_duckdb,
    "pandas": read_by_pandas,
    "polars": read_by_polars,
}


def _count_by_daft(dest: Path) -> int:
    import daft as engine

    return engine.read_parquet(f"{dest}/**/*.parquet").count_rows()


def _count_by_dask(dest: Path) -> int:
    import dask.dataframe as dd

    partitioning = {"flavor": "hive", "schema": pa.schema([("k", pa.string())])}
    return len(dd.read_parquet(dest, dataset={"partitioning": partitioning}))


def _count_by_duckdb(dest: Path) -> int:
    import duckdb as engine

    with engine.connect() as connection:
        return len(connection.sql(f"FROM read_parquet('{dest}')").fetchall())


def _count_by_polars(dest: Path) -> int:
    import polars as pl

    return pl.read_parquet(f"{dest}/**/*.parquet").height


RECURSIVE: Mapping[str, Callable[[Path], int]] = {
    "daft": _count_by_daft,
    "dask": _count_by_dask,
    "duckdb": _count_by_duckdb,
    "polars": _count_by_polars,
}
"""How many rows a reader finds that looks into every directory, also into ``_temporary``."""
