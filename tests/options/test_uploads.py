"""Options of the committers for uploads: the names of Hadoop and Netflix have their effect."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.options.job import Options, OptionWarning
from asynccommit.options.uploads import (
    FACTORY,
    NETFLIX,
    OBSOLETE_UPLOAD_KEYS,
    S3A,
    UPLOAD_KEYS,
    Conflict,
    EtagForm,
    UploadOptions,
)

_HADOOP = "org.apache.hadoop.fs.s3a.commit"


@pytest.mark.parametrize(
    "key, value, field, expected",
    [
        (S3A + "name", "magic", "committer", "magic"),
        (S3A + "uuid", "1234", "job_id", "1234"),
        ("spark.sql.sources.writeJobUUID", "1234", "job_id", "1234"),
        (S3A + "require.uuid", "true", "require_id", True),
        (S3A + "magic.enabled", "false", "magic", False),
        (S3A + "magic.track.commits.in.memory.enabled", "true", "in_memory", True),
        (S3A + "magic.cleanup.enabled", "false", "keep_magic", True),
        (S3A + "abort.pending.uploads", "false", "abort_pending", False),
        (S3A + "staging.abort.pending.uploads", "false", "abort_pending", False),
        (S3A + "staging.tmp.path", "hdfs://nn/tmp", "staging_path", "hdfs://nn/tmp"),
        (S3A + "staging.conflict-mode", "REPLACE", "conflict", Conflict.REPLACE),
        (S3A + "staging.unique-filenames", "false", "unique_names", False),
        ("fs.s3a.multipart.size", "128M", "part_size", 128 << 20),
        ("fs.s3a.multipart.size", "33554432", "part_size", 32 << 20),
        ("fs.s3a.fast.upload.active.blocks", "2", "in_flight", 2),
        ("fs.s3a.buffer.dir", "/mnt/a, /mnt/b", "buffer_directory", "/mnt/a"),
        ("asynccommit.uploads.etags", "strings", "etags", EtagForm.STRINGS),
        ("asynccommit.uploads.skip.empty", "true", "skip_empty", True),
    ],
)
def test_keys_of_hadoop(key: str, value: str, field: str, expected: Any) -> None:
    """Each key sets its field, with Spark's prefix too, and no other."""
    for name in (key, f"spark.hadoop.{key}"):
        read = Options.from_conf({name: value}).uploads

        changed = {
            each for each in UploadOptions.__slots__ if getattr(read, each) != _DEFAULT[each]
        }
        assert getattr(read, field) == expected
        assert changed - {"job_id_source"} == {field}


_DEFAULT = {name: getattr(UploadOptions(), name) for name in UploadOptions.__slots__}


@pytest.mark.parametrize(
    "key, value, field, expected",
    [
        (S3A + "threads", "7", "workers", 7),
        (S3A + "threads", "0", "workers", 1),
        (NETFLIX + "num-threads", "7", "workers", 7),
        (S3A + "summary.report.directory", "s3://b/reports", "report_directory", "s3://b/reports"),
        (S3A + "uuid.source", "somebody", "job_id_source", "somebody"),
    ],
)
def test_keys_of_hadoop_for_all_committers(key: str, value: str, field: str, expected: Any) -> None:
    """What every committer has is set by the names of this family as well."""
    assert getattr(Options.from_conf({key: value}), field) == expected


def test_threads_below_zero_are_for_each_core() -> None:
    """A negative number of threads is a multiple of the cores, as with Hadoop."""
    one = Options.from_conf({S3A + "threads": "-1"}).workers
    three = Options.from_conf({S3A + "threads": "-3"}).workers

    assert one is not None
    assert three == 3 * one


def test_netflix_semantics() -> None:
    """One of Netflix' keys brings its rules: a conflict fails, and empty files are left out."""
    read = UploadOptions.of({NETFLIX + "upload.size": "10485760"})

    assert (read.part_size, read.conflict, read.skip_empty) == (10485760, Conflict.FAIL, True)
    assert read.unique_names


def test_netflix_keys() -> None:
    """Netflix' own conflict mode and id count, and Hadoop's where both are given."""
    conf = {NETFLIX + "conflict-mode": "append", NETFLIX + "uuid": "theirs"}
    both = {S3A + "uuid": "ours", S3A + "staging.conflict-mode": "replace", **conf}

    read, mixed = UploadOptions.of(conf), UploadOptions.of(both)

    assert (read.conflict, read.job_id) == (Conflict.APPEND, "theirs")
    assert (mixed.conflict, mixed.job_id) == (Conflict.REPLACE, "ours")


def test_order_of_ids() -> None:
    """Scenario 19: the committer's id beats Spark's, and ``_SUCCESS`` says which it was."""
    spark = {"spark.sql.sources.writeJobUUID": "spark"}
    both = {S3A + "uuid": "mine", **spark}

    assert UploadOptions.of(both).job_id == "mine"
    assert UploadOptions.of(both).job_id_source == "fs.s3a.committer.uuid"
    assert UploadOptions.of(spark).job_id_source == "spark.sql.sources.writeJobUUID"


@pytest.mark.parametrize(
    "factory, name",
    [
        (f"{_HADOOP}.magic.MagicS3GuardCommitterFactory", "magic"),
        (f"{_HADOOP}.staging.DirectoryStagingCommitterFactory", "directory"),
        (f"{_HADOOP}.staging.PartitionedStagingCommitterFactory", "partitioned"),
        (f"{_HADOOP}.S3ACommitterFactory", "directory"),
        ("org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory", "file"),
    ],
)
def test_factory_of_the_scheme(factory: str, name: str) -> None:
    """A factory that makes one committer beats the name; the common one looks at the name."""
    conf = {FACTORY: factory, S3A + "name": "directory"}

    assert UploadOptions.of(conf).committer == name


@pytest.mark.parametrize(
    "key, value",
    [
        (FACTORY, "com.example.Factory"),
        (S3A + "staging.conflict-mode", "merge"),
        (S3A + "magic.enabled", "yes"),
        ("fs.s3a.multipart.size", "64 bananas"),
        ("fs.s3a.multipart.size", "0"),
        ("fs.s3a.fast.upload.active.blocks", "0"),
        ("fs.s3a.buffer.dir", "${hadoop.tmp.dir}/s3a"),
        (S3A + "threads", "many"),
        (S3A + "staging.tmp.path", "a/relative/path"),
        ("asynccommit.uploads.etags", "none"),
    ],
)
def test_bad_values_name_the_key(key: str, value: str) -> None:
    """Scenario 31: a value that cannot be read is an error with the key and the value in it."""
    with pytest.raises(OptionError) as caught:
        Options.from_conf({key: value})

    assert key in str(caught.value)
    assert value in str(caught.value)


def test_dead_keys_warn() -> None:
    """A key of these families that does nothing is named in a warning."""
    with pytest.warns(OptionWarning, match=r"fs\.s3a\.multipart\.purge"):
        Options.from_conf({"fs.s3a.multipart.purge": "true"})


@pytest.mark.parametrize("key", [S3A + "typo", NETFLIX + "typo", "asynccommit.uploads.typo"])
def test_unknown_keys_are_refused(key: str) -> None:
    """An unknown key of these families is an error."""
    with pytest.raises(OptionError, match=key):
        Options.from_conf({key: "true"})


def test_defaults_of_hadoop_do_not_warn() -> None:
    """What Hadoop's own defaults say is no news."""
    conf = {key: values[0] for key, (_, values) in OBSOLETE_UPLOAD_KEYS.items()}
    conf |= {"fs.s3a.multipart.threshold": "128M", "fs.s3a.multipart.purge.age": "24h"}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Options.from_conf(conf) == Options()


@pytest.mark.parametrize(
    "path, default, expected",
    [
        ("/tmp/staging", "hdfs://nn:8020/", "hdfs://nn:8020/tmp/staging"),
        ("/tmp/staging", None, "/tmp/staging"),
        ("s3a://b/tmp", "hdfs://nn:8020/", "s3a://b/tmp"),
        ("tmp/staging", "hdfs://nn:8020/", None),
    ],
)
def test_path_of_pending_sets(path: str, default: str | None, expected: str | None) -> None:
    """A path without a scheme is on Hadoop's default filesystem, where there is one."""
    conf = {S3A + "staging.tmp.path": path} | ({"fs.defaultFS": default} if default else {})

    assert UploadOptions.of(conf).staging_path == expected


def test_every_key_sets_a_field_that_is_there() -> None:
    """The table of keys names fields of the options, and nothing else."""
    assert {field for field, _ in UPLOAD_KEYS.values()} <= {*UploadOptions.__slots__}
