"""Options of the Data Source: what users may say, and what they are told when they may not."""

from __future__ import annotations

import os
import pickle

import pytest

from asynccommit.errors import OptionError
from asynccommit.spark.datasource.options import SourceOptions


def test_defaults() -> None:
    """A path is all that has to be said."""
    options = SourceOptions.of({"path": "gs://bucket/t"})

    assert options == SourceOptions("gs://bucket/t")
    assert options.ending == ".snappy.parquet"


def test_names_without_regard_to_case_and_underscores() -> None:
    """Spark gives names in lower case, and users write them in two ways."""
    camel = {"path": "/t", "partitionby": "day, hour", "rowgroupbytes": "8m", "filebytes": "1g"}
    snake = {"path": "/t", "partition_by": "day,hour", "row_group_bytes": "8M", "file_bytes": "1G"}

    assert SourceOptions.of(camel) == SourceOptions.of(snake)
    assert SourceOptions.of(camel).partition_by == ("day", "hour")
    assert SourceOptions.of(camel).row_group_bytes == 8 << 20


def test_columns_with_commas() -> None:
    """Columns whose names hold commas are given as JSON."""
    assert SourceOptions.of({"path": "/t", "partition_by": '["a,b", "c"]'}).partition_by == (
        "a,b",
        "c",
    )


def test_who_gets_an_option() -> None:
    """Options of stores, commits and sink logs go where they belong, under their own names."""
    options = SourceOptions.of(
        {
            "path": "/t",
            "storage.account_key": "k",
            "fs.s3a.access.key": "a",
            "asynccommit.lease": "90",
            "mapreduce.manifest.committer.io.threads": "3",
            "retention": "7d",
            "spark.sql.streaming.filesink.log.compactinterval": "5",
            "checkpointlocation": "/c",
            "queryname": "q",
        }
    )

    assert options.storage == {"account_key": "k", "fs.s3a.access.key": "a"}
    assert options.conf == {
        "asynccommit.lease": "90",
        "mapreduce.manifest.committer.io.threads": "3",
    }
    assert options.sink == {
        "retention": "7d",
        "spark.sql.streaming.fileSink.log.compactInterval": "5",
    }
    assert options.checkpoint == "/c"


@pytest.mark.parametrize(
    "given, said",
    [
        ({"partitonby": "day"}, "did you mean 'partition_by'"),
        ({"account_key": "secret!"}, "'storage.'"),
        ({"file_format": "csv"}, "parquet, orc"),
        ({"compression": "lzo"}, "snappy"),
        ({"row_group_rows": "0"}, "row_group_rows"),
        ({"partition_by": "[1]"}, "JSON"),
        ({"partitionoverwritemode": "both"}, "static or dynamic"),
        ({"if_exists": "ignore"}, "append or fail"),
        ({"fs.s3a.committer.name": "directory"}, "leave the option out"),
        ({"asynccommit.lease": "no"}, "asynccommit.lease"),
        ({"retention": "soon"}, "retention"),
        ({"path": " "}, "no path is given"),
    ],
)
def test_what_is_refused(given: dict[str, str], said: str) -> None:
    """What is unknown or cannot be read is refused, with what to say instead."""
    with pytest.raises(OptionError) as refused:
        SourceOptions.of({"path": "/t", **given})

    assert said in str(refused.value)
    assert "secret!" not in str(refused.value)


def test_no_options_at_all() -> None:
    """Where Spark hands over none, as for INSERT INTO, the message says what to do instead."""
    with pytest.raises(OptionError, match="INSERT INTO"):
        SourceOptions.of({})


def test_relative_path() -> None:
    """A relative path is made absolute at once: tasks have other working directories."""
    assert SourceOptions.of({"path": "t"}).path == os.path.abspath("t")


def test_secrets_are_not_shown() -> None:
    """Options of stores are in no text of the options, and reach the tasks."""
    options = SourceOptions.of(
        {"path": "/t", "storage.secret": "s3cr3t", "fs.s3a.secret.key": "x9"}
    )

    assert "s3cr3t" not in repr(options)
    assert "x9" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options
