"""Fetch and configure Hadoop's S3 client, which PySpark does not include.

The client depends on all of Amazon's SDK in one jar of 686 MB. It uses only the S3 module and its
dependencies: 17 MB in separate jars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from asynccommit.demo.hadoop_jars import Dependency, cached_jar, cached_jars, hadoop_version
from asynccommit.errors import UnsupportedError

SDKS: Mapping[str, str] = {"3.5.0": "2.35.4"}
"""Version of Hadoop -> version of the SDK that its client was built with."""

# Maven's repository had no version for Spark 4.2 or 4.3 when this was written; 4.3 accepts this
# one.
_CLOUD = "4.1.1"
_CLOUD_SHA256 = "e5b41b43d481510afd0cdc372b593770ddee5a0a348d0744cef6c6cd77a27943"
_CLOUD_CLASSES = "org.apache.spark.internal.io.cloud"

_SDK = "software.amazon.awssdk"
_PARTS = ("s3", "s3-transfer-manager", "sts")
# Spark already has these; a second version would conflict.
_SPARKS = ("org.slf4j", "io.netty", "commons-codec", "commons-logging", "org.apache.httpcomponents")


def client_jars() -> Sequence[Path]:
    """Return the ``hadoop-aws`` and SDK jars, fetched if not in the cache.

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
    """Return Hadoop's options for a test server at ``http://HOST:PORT``."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
    }


def committers_jar() -> Path:
    """Return the jar that connects Spark to S3A's committers.

    Raises ``UnsupportedError`` that says what is missing.
    """
    name = "spark-hadoop-cloud_2.13"
    artifact = f"org.apache.spark:{name}:{_CLOUD}"
    return cached_jar(artifact, f"{name}-{_CLOUD}.jar", _CLOUD_SHA256)


def committers_conf() -> Mapping[str, str]:
    """Return the Spark options that enable S3A's committers."""
    return {
        "spark.sql.sources.commitProtocolClass": f"{_CLOUD_CLASSES}.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": (
            f"{_CLOUD_CLASSES}.BindingParquetOutputCommitter"
        ),
    }
