"""Committers that write no new data here, by the names that users give them."""

from __future__ import annotations

import pytest

from asynccommit.commit.unsupported_committers import REFUSED, refuse, why_refused
from asynccommit.errors import UnsupportedError


@pytest.mark.parametrize(
    "name,kind",
    [
        *((name, name) for name in REFUSED),
        ("FILE", "file"),
        (" direct ", "direct"),
        ("DirectOutputCommitter", "direct"),
        ("com.example.DirectOutputCommitter", "direct"),
        ("org.apache.spark.sql.parquet.DirectParquetOutputCommitter", "direct"),
        (
            "org.apache.spark.sql.execution.datasources.parquet.DirectParquetOutputCommitter",
            "direct",
        ),
        ("org.apache.hadoop.mapred.DirectFileOutputCommitter", "direct"),
        ("com.example.Outer$DirectOutputCommitter", "direct"),
        ("com.ibm.stocator.fs.ObjectStoreFileSystem", "stocator"),
        ("com.ibm.stocator.fs.cos.COSAPIClient", "stocator"),
        ("com.amazon.emr.committer.EmrOptimizedSparkSqlParquetOutputCommitter", "emrfs"),
        ("org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter", "file"),
        ("org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory", "file"),
        ("org.apache.parquet.hadoop.ParquetOutputCommitter", "file"),
    ],
)
def test_refused(name: str, kind: str) -> None:
    """A name or class is refused with the reason of its kind, and told what there is instead."""
    with pytest.raises(UnsupportedError) as caught:
        refuse(name)

    assert str(caught.value) == f"the committer {name.strip()!r} is refused: {REFUSED[kind]}"
    assert "Use 'magic' or 'staging'" in REFUSED[kind]


@pytest.mark.parametrize(
    "name",
    [
        "magic",
        "directory",
        "partitioned",
        "staging",
        "manifest",
        "",
        "unknown",
        "org.apache.hadoop.fs.s3a.commit.staging.DirectoryStagingCommitter",
        "org.apache.hadoop.fs.s3a.commit.staging.DirectoryStagingCommitterFactory",
        "com.netflix.bdp.s3.S3DirectoryOutputCommitter",
        "org.apache.hadoop.fs.s3a.commit.magic.MagicS3GuardCommitter",
        "com.example.RedirectingOutputCommitter",
    ],
)
def test_not_refused(name: str) -> None:
    """Nothing is said against the committers that there are, nor against unknown ones."""
    refuse(name)

    assert why_refused(name) is None
