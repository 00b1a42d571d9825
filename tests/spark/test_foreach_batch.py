"""Batches of ``foreachBatch`` that are run again after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.spark import write_batch


@pytest.mark.full
@pytest.mark.parametrize("spark", ["local"], indirect=True)
@pytest.mark.parametrize(
    "mode,rows", [("append", [0, 1, 2, 100, 101, 102]), ("overwrite", [2, 102])]
)
def test_batch_that_runs_again(spark: Any, tmp_path: Path, mode: str, rows: list[int]) -> None:
    """A batch whose checkpoint was not written is not written twice, nor is one of two writes."""
    (tmp_path / "source").mkdir()
    wrote: list[tuple[bool, bool]] = []

    def save(batch: Any, batch_id: int) -> None:
        first = batch.write.mode(mode).format("orc")
        second = batch.selectExpr("id + 100 as id").write.mode("append").format("orc")
        table = str(tmp_path / "table")
        wrote.append(
            (
                write_batch(first, table, batch_id, name="first"),
                write_batch(second, table, batch_id, name="second"),
            )
        )

    def run() -> None:
        source = spark.readStream.schema("id long").json(str(tmp_path / "source"))
        writer = source.writeStream.foreachBatch(save).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert query.awaitTermination(160)

    for number in range(3):
        (tmp_path / "source" / f"{number}.json").write_text(f'{{"id": {number}}}')
        run()
    (tmp_path / "checkpoint" / "commits" / "2").unlink()
    (tmp_path / "checkpoint" / "commits" / ".2.crc").unlink()
    run()

    assert wrote == [(True, True)] * 3 + [(False, False)]
    table = spark.read.orc(str(tmp_path / "table"))
    assert sorted(row.id for row in table.collect()) == rows


@pytest.mark.full
@pytest.mark.parametrize("spark", ["local"], indirect=True)
def test_write_outside_of_a_query(spark: Any, tmp_path: Path) -> None:
    """There is no query whose batch it could be."""
    with pytest.raises(OptionError, match="foreachBatch gets"):
        write_batch(spark.range(1).write, str(tmp_path / "t"), 0)
