"""Rows, parted by the values of partition columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def part_rows(
    table: pa.Table, columns: Sequence[str]
) -> Iterator[tuple[tuple[object, ...], pa.Table]]:
    """Yield each combination of values and its rows, in their order, without those columns.

    The rows are copies, so that what is kept of one part does not keep all of ``table``.

    Args:
        table: at least one row.
        columns: names of columns in it.
    """
    keys = [table.column(name).combine_chunks() for name in columns]
    rest = table.drop_columns(list(columns))
    codes = _codes(keys)
    order = pc.sort_indices(codes)
    ends = pc.run_end_encode(codes.take(order)).run_ends.to_pylist()
    start = 0
    for end in ends:
        rows = order.slice(start, end - start)
        first = rows[0].as_py()
        values = tuple(key[first].as_py() for key in keys)
        yield values, (rest if len(ends) == 1 else rest.take(rows))
        start = end


def _codes(keys: Sequence[Any]) -> Any:
    """Return for each row a number that stands for its values."""
    codes: Any = None
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        indices = pc.cast(encoded.indices, pa.int64())
        if codes is not None:
            # Numbered anew each time, so that many columns overflow nothing.
            indices = pc.add(pc.multiply(codes, len(encoded.dictionary)), indices)
            indices = pc.cast(indices.dictionary_encode().indices, pa.int64())
        codes = indices
    return codes
