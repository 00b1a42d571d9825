"""Files of Parquet that Daft itself writes into a task on this machine."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from asynccommit.parallel import TaskPlace, partition_directory
from asynccommit.stores.urls import parse_url
from asynccommit.sync import BlockingTask
from asynccommit.tabular.arguments import local_directory
from asynccommit.tabular.names import ending, stem

if TYPE_CHECKING:
    from daft import DataFrame

_CODECS = ("brotli", "gzip", "none", "snappy", "uncompressed", "zstd")
_WHOLE = re.compile(r"String|U?Int\d+|Bool(ean)?|Date|Decimal.*")
_PATH = "path"
"""The column of the files that a write of Daft returns, beside the partition columns."""


def writes_itself(
    place: TaskPlace,
    frame: DataFrame,
    columns: Sequence[str],
    form: str,
    compression: Any,
    file_options: Mapping[str, Any],
) -> bool:
    """Return whether Daft's own writer can write the files of a job.

    It needs a local destination, the native runner, as workers of Ray may run on other machines,
    no options of pyarrow, and partition columns whose values it returns without loss.
    """
    from daft import runners

    known = isinstance(compression, str) and compression.lower() in _CODECS
    if form != "parquet" or not known or file_options or _PATH in columns:
        return False
    kinds = {str(field.dtype) for field in frame.schema() if field.name in columns}
    if not all(_WHOLE.fullmatch(kind) for kind in kinds):
        return False
    runner = getattr(runners, "get_or_infer_runner_type", lambda: "")()
    return bool(runner == "native" and parse_url(place.url).scheme == "file")


def write_files(
    task: BlockingTask,
    place: TaskPlace,
    frame: DataFrame,
    columns: Sequence[str],
    compression: str,
) -> None:
    """Run a DataFrame's plan, and write the rows into a task.

    Raises the errors of Daft, and ``OSError``.
    """
    root = local_directory(task)
    assert root is not None
    by: Any = list(columns) or None
    written = frame.write_parquet(root, compression=compression, partition_cols=by).to_pydict()
    begin = stem(0, place.job_id)
    end = f"{ending('parquet', compression)}{task.staging_suffix}"
    numbers: defaultdict[str, Iterator[int]] = defaultdict(count)
    for row, path in enumerate(written[_PATH]):
        values = {name: written[name][row] for name in columns}
        folder = f"{partition_directory(values)}/" if values else ""
        name = f"{folder}{begin}{next(numbers[folder])}{end}"
        _move(path.removeprefix("file://"), task.path(name))


def _move(source: str, target: str) -> None:
    """Give a file of Daft our name; its directories go with the last file."""
    os.rename(source, target)
    left = os.path.dirname(source)
    if left != os.path.dirname(target):
        with suppress(OSError):
            os.removedirs(left)
