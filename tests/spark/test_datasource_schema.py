"""Columns that the Data Source takes, and how it refuses the others."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from asynccommit.errors import AsyncCommitError, OptionError, UnsupportedError
from asynccommit.spark.datasource.schema import check_schema, partition_columns


def field(name: str, kind: Any) -> StructType:
    """Return a schema of one column."""
    made: StructType = StructType().add(name, kind)
    return made


def test_what_can_be_written() -> None:
    """Numbers, texts, moments, decimals, and all that is made of them."""
    from pyspark.sql import types as t

    inner = StructType().add("x", t.TimestampType()).add("y", t.DecimalType(38, 18))
    made = (
        StructType()
        .add("a", t.ArrayType(inner))
        .add("m", t.MapType(t.StringType(), t.ArrayType(t.BinaryType())))
        .add("n", t.TimestampNTZType())
        .add("d", t.DateType())
        .add("f", t.DoubleType())
    )

    check_schema(made, ["d"], "parquet")


@pytest.mark.parametrize(
    "kind, said",
    [
        ("DayTimeIntervalType", "interval day to second"),
        ("NullType", "void"),
        ("VariantType", "to_json"),
        ("CalendarIntervalType", "interval"),
        ("YearMonthIntervalType", "months"),
        ("TimeType", "cast it to string"),
    ],
)
def test_types_that_are_refused(kind: str, said: str) -> None:
    """A type that cannot be written is refused by its name and its column's, however deep."""
    from pyspark.sql import types as t

    if not hasattr(t, kind):
        pytest.skip(f"this PySpark has no {kind}")
    inner = t.ArrayType(field("leaf", getattr(t, kind)()))

    with pytest.raises(UnsupportedError) as refused:
        check_schema(field("id", t.LongType()).add("deep", inner), [], "parquet")

    assert "'deep.element.leaf'" in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize("kind", ["TimestampType", "TimestampNTZType"])
def test_moments_in_orc(kind: str) -> None:
    """Moments are refused for ORC: Spark would read others."""
    from pyspark.sql import types as t

    with pytest.raises(UnsupportedError, match="parquet"):
        check_schema(field("m", t.MapType(t.StringType(), getattr(t, kind)())), [], "orc")


@pytest.mark.parametrize(
    "names, error, said",
    [
        (["day"], OptionError, "partition_by names 'day'"),
        (["x"], OptionError, "cast it to string"),
        (["id", "ID"], OptionError, "twice"),
        (["id", "x", "s"], OptionError, "every column"),
    ],
)
def test_partition_columns_that_are_refused(
    names: list[str], error: type[AsyncCommitError], said: str
) -> None:
    """Partition columns must be there, have a certain text, and leave something for the files."""
    from pyspark.sql import types as t

    made = field("id", t.LongType()).add("x", t.DoubleType()).add("s", t.StringType())

    with pytest.raises(error, match=said):
        check_schema(made, names, "parquet")


def test_partition_columns_as_the_schema_spells_them() -> None:
    """Names of columns are compared as Spark does, without regard to case."""
    from pyspark.sql import types as t

    assert partition_columns(field("Day", t.DateType()), ["DAY"]) == ("Day",)


def test_columns_of_one_name() -> None:
    """Columns that differ in case only are refused."""
    from pyspark.sql import types as t

    with pytest.raises(OptionError, match="rename one"):
        check_schema(field("a", t.LongType()).add("A", t.LongType()), [], "parquet")


def test_columns_of_one_name_inside_of_others() -> None:
    """Inside of a column that is so too: Spark would not read the table back."""
    from pyspark.sql import types as t

    two = field("a", t.LongType()).add("A", t.LongType())
    for kind in (two, t.ArrayType(two), t.MapType(t.LongType(), two), t.MapType(two, two)):
        with pytest.raises(
            OptionError, match=r"'s[.a-z]*\.a' and 's[.a-z]*\.A' have the same name"
        ):
            check_schema(field("s", kind), [], "parquet")


def test_struct_without_fields() -> None:
    """A struct without fields is refused, as Spark does."""
    with pytest.raises(UnsupportedError, match="without fields"):
        check_schema(field("e", StructType()), [], "parquet")
