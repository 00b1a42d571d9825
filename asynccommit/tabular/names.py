"""Names of the data files and partition directories of a job."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.errors import OptionError
from asynccommit.formats.partition_names import NULL, escape, partition_value

_ENDINGS = {"parquet": "parquet", "csv": "csv", "ipc": "arrow", "arrow": "arrow", "json": "json"}
_UNCOMPRESSED = ("", "none", "uncompressed")


def stem(number: int, job_id: str) -> str:
    """Return the beginning of the names of all files of a task.

    The id of the job is in it, so the files of two jobs never have the same name.
    """
    return f"part-{number:05d}-{job_id}-c"


def ending(form: str, compression: object = None) -> str:
    """Return the suffix of a file: ``.snappy.parquet``.

    Args:
        form: ``parquet``, ``csv``, ``ipc`` (also ``arrow``) or ``json``.
        compression: the codec, if it has one name.
    """
    codec = compression.lower() if isinstance(compression, str) else ""
    return f"{'' if codec in _UNCOMPRESSED else f'.{codec}'}.{_ENDINGS.get(form, form)}"


def escaped(value: object) -> str:
    """Return a value as part of a directory's name: ``a%2Fb``.

    A null and an empty text are ``__HIVE_DEFAULT_PARTITION__``.

    Raises what ``partition_value`` does.
    """
    return escape(partition_value(value))


def columns_of(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of partition columns; ``None`` for none.

    Raises ``OptionError`` for a column that is named twice.
    """
    named = (given,) if isinstance(given, str) else tuple(given or ())
    if len({*named}) < len(named):
        raise OptionError(f"partition columns {list(named)}: expected each column once")
    return named


def check_columns(partitions: Sequence[str], columns: Sequence[str]) -> None:
    """Check that these are columns, and not all of them.

    Raises ``OptionError``.
    """
    missing = [name for name in partitions if name not in columns]
    if missing:
        raise OptionError(
            f"there is no column {missing[0]!r} to partition by: expected some of {list(columns)}"
        )
    if partitions and len(partitions) == len(columns):
        raise OptionError(
            f"all columns are partition columns ({', '.join(partitions)}): expected at least one "
            "other, as files have the other columns only"
        )


__all__ = ["NULL", "check_columns", "columns_of", "ending", "escaped", "stem"]
