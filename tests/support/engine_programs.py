"""A program that writes a table by an engine, and may die in the middle of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from tests.support.engine_writers import WRITERS
from tests.support.engines import ROOT, dies_while_writing

PROGRAM_ROWS = 400_000
_GROUPS = 400


def _own_arrow(table: Any, dest: str) -> None:
    ds.write_dataset(
        table, dest, format="parquet", partitioning=["day"], partitioning_flavor="hive"
    )


def _own_daft(table: Any, dest: str) -> None:
    import daft

    daft.from_arrow(table).write_parquet(dest, partition_cols=["day"])


def _own_duckdb(table: Any, dest: str) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute(f"COPY rows TO '{dest}' (FORMAT parquet, PARTITION_BY (day))")


def _own_pandas(table: Any, dest: str) -> None:
    table.to_pandas().to_parquet(dest, partition_cols=["day"], index=False)


def _own_polars(table: Any, dest: str) -> None:
    import polars

    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    frame.lazy().sink_parquet(polars.PartitionBy(dest, key="day"), mkdir=True)


_OWN = {
    "arrow": _own_arrow,
    "daft": _own_daft,
    "duckdb": _own_duckdb,
    "pandas": _own_pandas,
    "polars": _own_polars,
}


def write_in_a_program(engine: str, writer: str, dest: Path, flag: Path) -> str:
    """Write in a new process that dies while it writes, unless ``flag`` exists.

    Args:
        engine: its name.
        writer: ``own`` or ``ours``.
        dest: the table.
        flag: made by the process as it dies.

    Returns ``killed`` or ``done``.
    """
    command = [sys.executable, "-m", __name__, engine, writer, str(dest), str(flag)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode == -signal.SIGKILL:
        return "killed"
    assert done.returncode == 0, done.stderr
    return "done"


def _main(engine: str, writer: str, dest: str, flag: str) -> None:
    table = pa.table({"v": range(PROGRAM_ROWS), "day": [n % _GROUPS for n in range(PROGRAM_ROWS)]})
    dies_while_writing(Path(dest), Path(flag))
    if writer == "own":
        _OWN[engine](table, dest)
    else:
        WRITERS[engine](table, dest, by=["day"])


if __name__ == "__main__":
    _main(*sys.argv[1:])
