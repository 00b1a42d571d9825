"""Hadoop's client of S3, which PySpark does not bring, and what it wants to be told.

The client asks for all of Amazon's SDK in one jar of 686 MB. What it uses of that is S3 and what
S3 stands on, 17 MB in jars of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from asynccommit.demo.hadoop_jars import Dependency, cached_jar, cached_jars, hadoop_version
from asynccommit.errors import UnsupportedError

SDKS: Mapping[str, str] = {"3.5.0": "2.35.4"}
"""Version of Hadoop -> version of the SDK that its client was built with."""

# Maven's repository had none of Spark 4.2 and 4.3 when this was written; 4.3 takes this one.
_CLOUD = "4.1.1"
_CLOUD_SHA256 = "e5b41b43d481510afd0cdc372b593770ddee5a0a348d0744cef6c6cd77a27943"
_CLOUD_CLASSES = "org.apache.spark.internal.io.cloud"

_SDK = "software.amazon.awssdk"
_PARTS = ("s3", "s3-transfer-manager", "sts")
# What Spark has already, and must not have twice.
_SPARKS = ("org.slf4j", "io.netty", "commons-codec", "commons-logging", "org.apache.httpcomponents")


def client_jars() -> Sequence[Path]:
    """Return the jars of ``hadoop-aws`` and of the SDK, fetched if they are not in the cache.

    Raises ``UnsupportedError`` that says what is missing.
    """
    hadoop = hadoop_version()
    if hadoop not in SDKS:
        known = ", ".join(SDKS)
        raise UnsupportedError(f"which SDK Hadoop {hadoop} wants is not known, only of {known}")
    client = Dependency("org.apache.hadoop", "hadoop-aws", hadoop, without=((_SDK, "bundle"),))
    parts = [Dependency(_SDK, part, SDKS[hadoop]) for part in _PARTS]
    return cached_jars(f"hadoop-aws-{hadoop}", [client, *parts], without_groups=_SPARKS)


def client_conf(endpoint: str) -> Mapping[str, str]:
    """Return what Hadoop needs to reach a server of tests at ``http://HOST:PORT``."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
    }


def committers_jar() -> Path:
    """Return the jar by which Spark commits through S3A's committers, fetched if need be.

    Raises ``UnsupportedError`` that says what is missing.
    """
    name = "spark-hadoop-cloud_2.13"
    artifact = f"org.apache.spark:{name}:{_CLOUD}"
    return cached_jar(artifact, f"{name}-{_CLOUD}.jar", _CLOUD_SHA256)


def committers_conf() -> Mapping[str, str]:
    """Return what a session must be told to commit as that jar does."""
    return {
        "spark.sql.sources.commitProtocolClass": f"{_CLOUD_CLASSES}.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": (
            f"{_CLOUD_CLASSES}.BindingParquetOutputCommitter"
        ),
    }
