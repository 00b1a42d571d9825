"""What was measured of the data source, as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the comparison with Spark's own writer."""
    yield f"Python Data Source and Spark's own writer, commit included, {result['rounds']} rounds"
    for name, one in result["kinds"].items():
        medians = one["median_seconds"]
        yield (
            f"  {name:28} stock {medians['stock']:6.2f} s  ours {medians['ours']:6.2f} s: "
            f"{one['times']:.2f} times ({one['times_by_best']:.2f} by best; "
            f"target <= {result['target']}); rows to Python alone {medians['floor']:6.2f} s"
        )
