"""DuckDB: the result of a query written as one job.

    report = copy(connection, "FROM flights", "abfss://data@lake/flights", partition_by="day")

A query runs in one process, so it is one task.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from asynccommit.api import OptionsLike, StorageOptions
from asynccommit.errors import OptionError
from asynccommit.formats.partition_names import Single, moment_of, partition_value
from asynccommit.options.checked import Url
from asynccommit.options.job import Mode
from asynccommit.parallel import EngineMode, JobArguments
from asynccommit.results import JobReport
from asynccommit.sync import BlockingTask
from asynccommit.tabular.arguments import local_directory, refuse
from asynccommit.tabular.names import NULL, check_columns, columns_of, ending, escaped, stem

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["copy"]

_FORMATS = ("parquet", "csv", "json")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ROOT = "job"  # DuckDB joins no names to a URL that has only a protocol
_EMPTY = f"CASE WHEN {{0}}::VARCHAR NOT IN ('', '{NULL}') THEN {{0}} END"
"""A value, or null where its directory is that of a null."""
_KEPT = re.compile(
    "U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|BIGNUM|VARINT|DECIMAL.*|BOOLEAN|UUID|DATE|TIME"
    "|TIMESTAMP(_S|_MS)?|.*NULL.*"
)
"""Types whose text is that of Spark."""
_NAMED: Mapping[str, tuple[str, Any, Callable[[Any, str], object]]] = {
    "BLOB": ("{}", "BLOB", lambda value, _: value),
    "DOUBLE": ("{}", "DOUBLE", lambda value, _: value),
    "FLOAT": ("{}", "FLOAT", lambda value, _: Single(value)),
    "TIMESTAMP_NS": ("epoch_ns({})", "BIGINT", lambda value, _: moment_of(value)),
    "TIMESTAMP WITH TIME ZONE": (
        "epoch_us({})",
        "BIGINT",
        lambda value, zone: moment_of(value * 1000, zone),
    ),
}
"""Type -> what is given to Python, its type, and the value of Python that it stands for."""
_NOT_OURS = {
    "append": "use mode='append'",
    "file_extension": "leave it out, as names of files have the job's id",
    "filename_pattern": "leave it out, as names of files have the job's id",
    "overwrite": "use mode='overwrite'",
    "overwrite_or_ignore": "use mode='replace_partitions', or mode='append'",
    "partition_by": "use partition_by of copy",
    "per_thread_output": "leave it out, as the number of files is not chosen here",
    "return_files": "leave it out, as a report is returned",
    "use_tmp_file": "leave it out, as files are invisible until the job commits",
    "write_partition_columns": "leave it out, as directories have these columns",
}


def copy(
    connection: DuckDBPyConnection,
    query: str,
    url: Url,
    *,
    partition_by: str | Sequence[str] | None = None,
    format: str = "parquet",
    mode: EngineMode = Mode.APPEND,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    **copy_options: Any,
) -> JobReport:
    """Run a query and write the rows as ``COPY ... TO`` does; commit once.

    The query may read the destination: its files stay until the job commits.

    Args:
        connection: runs the query; used by nobody else meanwhile.
        query: a ``SELECT`` or ``FROM``.
        url: the destination, a directory.
        partition_by: the columns that are directories, named as Spark names them.
        format: ``parquet``, ``csv`` or ``json``.
        mode: ``append``, ``error``, ``ignore``, ``overwrite`` or ``replace_partitions``, see
            ``Mode``.
        job_id: unique under the destination; a fresh one by default.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``open_job``.
        copy_options: further options of ``COPY``: ``compression="zstd"``.

    Raises ``CommitError``, ``OptionError`` and errors of DuckDB.
    """
    columns = columns_of(partition_by)
    given = _options(format, copy_options)
    job = JobArguments(mode, job_id, options, storage_options, committer)

    def write(task: BlockingTask, name: str) -> None:
        start, end = stem(0, name), f"{ending(format)}{task.staging_suffix}"
        if columns:
            named = {"filename_pattern": f"{start}{{i}}", "file_extension": end.removeprefix(".")}
            _copy_parts(connection, selected, task, columns, {**given, **named})
        else:
            _copy_whole(connection, selected, task, f"{start}0{end}", given)

    with _selected(connection, query.strip().rstrip(";"), columns) as selected:
        return job.commit_one(url, write)


def _options(format: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of COPY. Raises ``OptionError``."""
    if format not in _FORMATS:
        raise OptionError(f"format is {format!r}: expected one of {', '.join(_FORMATS)}")
    for name in more:
        if not _NAME.fullmatch(name):
            raise OptionError(f"copy option {name!r}: expected the name of an option of COPY")
        refuse([name.lower()], _NOT_OURS)
    return {"format": format, **more}


@contextmanager
def _selected(connection: DuckDBPyConnection, query: str, columns: Sequence[str]) -> Iterator[str]:
    """Yield the query with partition columns as directories are named.

    Raises ``OptionError`` for a value that cannot name one.
    """
    if not columns:
        yield query
        return
    kinds = {row[0]: row[1] for row in connection.execute(f"DESCRIBE {query}").fetchall()}
    check_columns(columns, list(kinds))
    names = _Namers(connection)
    replaced = {column: names.expression(column, kinds[column]) for column in columns}
    texts = [f"{text} AS {_quoted(column)}" for column, text in replaced.items() if text]
    try:
        yield f"SELECT * REPLACE ({', '.join(texts)}) FROM ({query})" if texts else query
    except Exception as error:
        if names.failed:  # DuckDB has only its text
            raise names.failed[0] from error
        raise
    finally:
        names.remove()


class _Namers:
    """The functions of a connection that name values as Spark does."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self.failed: list[OptionError] = []
        self._connection = connection
        self._made: dict[str, str] = {}

    def expression(self, column: str, kind: str) -> str:
        """Return what replaces a column; empty if nothing.

        Raises ``OptionError`` for a type that cannot name a directory.
        """
        name = _quoted(column)
        if kind in _NAMED:
            text = f"{self._function(kind)}({_NAMED[kind][0].format(name)})"
            return f"NULLIF({text}, '{NULL}')"
        if kind.startswith(("VARCHAR", "ENUM", "JSON")):
            return _EMPTY.format(name)
        if not _KEPT.fullmatch(kind):
            raise OptionError(
                f"partition column {column!r} of type {kind} cannot name directories: cast it to "
                "VARCHAR"
            )
        return ""

    def remove(self) -> None:
        """Remove the functions."""
        for name in self._made.values():
            self._connection.remove_function(name)

    def _function(self, kind: str) -> str:
        if kind not in self._made:
            _, given, made = _NAMED[kind]
            rows = self._connection.execute("SELECT current_setting('TimeZone')").fetchall()
            zone = str(rows[0][0])
            name = f"asynccommit_name_{kind.lower().replace(' ', '_')}"

            def text_of(value: Any) -> str:
                try:
                    return partition_value(made(value, zone))
                except OptionError as error:
                    self.failed.append(error)
                    raise

            self._connection.create_function(name, text_of, [given], "VARCHAR")
            self._made[kind] = name
        return self._made[kind]


def _copy_whole(
    connection: DuckDBPyConnection,
    query: str,
    task: BlockingTask,
    name: str,
    given: Mapping[str, Any],
) -> None:
    """Write one file."""
    with _place(connection, task) as root:
        where = task.path(name) if root == local_directory(task) else f"{root}/{name}"
        _copy(connection, query, where, given)


def _copy_parts(
    connection: DuckDBPyConnection,
    query: str,
    task: BlockingTask,
    columns: Sequence[str],
    given: Mapping[str, Any],
) -> None:
    """Write files in directories of partitions, named as Spark names them."""
    names = ", ".join(map(_quoted, columns))
    with _place(connection, task) as root:
        _copy(connection, query, root, given, names)
    if root == local_directory(task) and os.path.isdir(root):
        _rename(root, len(columns))


def _copy(
    connection: DuckDBPyConnection,
    query: str,
    where: str,
    given: Mapping[str, Any],
    partition_by: str = "",
) -> None:
    words = [f"{name} {_literal(value)}" for name, value in given.items()]
    words += [f"PARTITION_BY ({partition_by})"] if partition_by else []
    # A result that is not fetched would be in the way of other calls.
    connection.execute(f"COPY ({query}) TO {_literal(where)} ({', '.join(words)})").fetchall()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise OptionError(f"copy option {value!r}: expected a text, a number, true or false")


@contextmanager
def _place(connection: DuckDBPyConnection, task: BlockingTask) -> Iterator[str]:
    """Yield a local directory, or a URL of the task's filesystem."""
    local = local_directory(task)
    if local is not None:
        yield local
        return
    files = _renaming(task.filesystem)
    connection.register_filesystem(files)
    try:
        yield f"{files.protocol}://{_ROOT}"
    finally:
        connection.unregister_filesystem(files.protocol)


def _renaming(files: Any) -> Any:
    """Return a task's filesystem that names directories as Spark does."""
    kind = type(files)

    def strip(path: str) -> str:
        folder, _, name = kind._strip_protocol(path).removeprefix(_ROOT).strip("/").rpartition("/")
        parts = [_as_spark(part) for part in folder.split("/")] if folder else []
        return "/".join([*parts, name])

    files._strip_protocol = strip
    return files


def _rename(folder: str, depth: int) -> None:
    """Give the directories of partitions Spark's names."""
    with os.scandir(folder) as found:
        directories = [entry.name for entry in found if entry.is_dir()]
    for name in directories:
        wanted = _as_spark(name)
        if depth > 1:
            _rename(os.path.join(folder, name), depth - 1)
        if wanted != name:
            os.rename(os.path.join(folder, name), os.path.join(folder, wanted))


def _as_spark(name: str) -> str:
    """Return ``column=value`` as Spark escapes it.

    DuckDB escapes it as a part of a URL.
    """
    column, mark, value = name.partition("=")
    if not mark:
        return name
    return f"{escaped(unquote(column))}={escaped(unquote(value))}"
