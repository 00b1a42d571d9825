"""Names of the Data Source: those that Spark gives."""

from __future__ import annotations

import datetime as dt
import math
import os
import struct
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from asynccommit import OptionError
from asynccommit.formats.partition_names import (
    Single,
    directory,
    escape,
    file_name,
    moment_of,
    partition_value,
)
from tests.support.spark import ENVIRONMENT

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "__HIVE_DEFAULT_PARTITION__"),
        ("", "__HIVE_DEFAULT_PARTITION__"),
        (" ", " "),
        (True, "true"),
        (-7, "-7"),
        (dt.date(987, 6, 5), "0987-06-05"),
        (dt.datetime(2026, 7, 31, 1, 2, 3), "2026-07-31 01:02:03"),
        (dt.datetime(2026, 7, 31, 1, 2, 3, 450_000), "2026-07-31 01:02:03.45"),
        (Decimal("1E+2"), "100"),
        (Decimal("0.000000001"), "0.000000001"),
        (1e20, "1.0E20"),
        (1e-7, "1.0E-7"),
        (9999999.0, "9999999.0"),
        (-0.00125, "-0.00125"),
        (5e-324, "4.9E-324"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (Single(0.10000000149011612), "0.1"),
        (Single(3.4028234663852886e38), "3.4028235E38"),
        ("é".encode(), "é"),
        (b"", "__HIVE_DEFAULT_PARTITION__"),
        (dt.time(1, 2, 3, 500_000), "01:02:03.5"),
        (dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN), "2026-10-25 02:30:00"),
        (moment_of(-1000, "+01:00"), "1970-01-01 00:59:59.999999"),
    ],
)
def test_value_of_a_partition(value: object, text: str) -> None:
    """A value has the text that Spark's cast to string gives it."""
    assert partition_value(value) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (b"\xff", "not UTF-8"),
        (dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN), "comes twice"),
        ([1], "type list"),
        (dt.timedelta(1), "type timedelta"),
    ],
)
def test_value_without_a_name(value: object, text: str) -> None:
    """A value that its text would not lead back to is refused."""
    with pytest.raises(OptionError, match=text):
        partition_value(value)


def test_time_with_parts_of_a_microsecond() -> None:
    """Nanoseconds are not cut off, as another value would have the same name."""
    with pytest.raises(OptionError, match="round it to microseconds"):
        moment_of(1)


ROWS: tuple[tuple[object, ...], ...] = (
    (1e20, 0.1, b"abc", dt.datetime(2026, 10, 25, 0, 30, tzinfo=dt.UTC), True, "a b/c"),
    (1e-7, 16777216.0, b"a=b", dt.datetime(1, 2, 3, tzinfo=BERLIN), False, ""),
    (math.nan, math.inf, "é/%".encode(), dt.datetime.fromtimestamp(0.5, dt.UTC), None, "NULL"),
    (-0.0, math.nan, b"", dt.datetime.fromtimestamp(0, dt.UTC), True, "{x}"),
    (9999999.0, -1.5e-5, None, None, True, "."),
    (123456.789, None, b"x y", None, True, None),
)
SPARK = """
import datetime, json, os, sys
from math import inf, nan
from zoneinfo import ZoneInfo
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(
    "spark.sql.session.timeZone", "Europe/Berlin"
).getOrCreate()
rows = [(number, *row) for number, row in enumerate(eval(sys.argv[2]))]
columns = "double double, float float, bytes binary, moment timestamp, flag boolean, text string"
frame = spark.createDataFrame(rows, f"v int, {columns}").coalesce(1)
names = [column.split()[0] for column in columns.split(", ")]
frame.write.partitionBy(*names).parquet(sys.argv[1])
spark.stop()
"""


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_names_are_those_of_spark(tmp_path: Path) -> None:
    """Spark itself names a directory of each type, in one job."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    rows = repr(ROWS).replace("zoneinfo.ZoneInfo(key=", "ZoneInfo(")
    done = subprocess.run(
        [sys.executable, "-c", SPARK, str(tmp_path / "spark"), rows],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr

    found = {
        str(path.parent.relative_to(tmp_path / "spark"))
        for path in (tmp_path / "spark").rglob("*.parquet")
    }
    names = ("double", "float", "bytes", "moment", "flag", "text")
    assert found == {directory(names, map(_as_spark, names, row)) for row in ROWS}


def _as_spark(name: str, value: object) -> object:
    if isinstance(value, dt.datetime):
        return value.astimezone(BERLIN)
    return Single(_single(value)) if name == "float" and isinstance(value, float) else value


def _single(value: float) -> float:
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


def test_what_is_escaped() -> None:
    """What Spark escapes is escaped, and nothing else."""
    plain = "abcXYZ019 -_.,;!@$&()+<>|~`}é中"

    assert escape(plain) == plain
    assert escape("a/b=c%d:e\x01\x7f") == "a%2Fb%3Dc%25d%3Ae%01%7F"
    assert escape("\"#'*?\\{[]^") == "%22%23%27%2A%3F%5C%7B%5B%5D%5E"


def test_directory_of_two_columns() -> None:
    """Names of columns are escaped as values are."""
    assert directory(("a b", "c/d"), (1, "x=y")) == "a b=1/c%2Fd=x%3Dy"


@pytest.mark.parametrize("value", [".", "..", "../x", "/etc"])
def test_value_leads_nowhere(value: str) -> None:
    """A value is never a directory of its own, whatever it says."""
    assert directory(("p",), (value,)).count("/") == 0
    assert directory(("p",), (value,)).startswith("p=")


def test_name_of_a_file() -> None:
    """A file has Spark's name, with a dot before its number in a partition."""
    given = (3, "tag", 12, ".snappy.parquet")

    assert file_name(*given, partitioned=False) == "part-00003-tag-c012.snappy.parquet"
    assert file_name(*given, partitioned=True) == "part-00003-tag.c012.snappy.parquet"
