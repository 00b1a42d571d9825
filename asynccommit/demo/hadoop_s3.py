"""Hadoop's client of S3, which PySpark does not bring, and what it wants to be told.

The client asks for all of Amazon's SDK in one jar of 686 MB. What it uses of that is S3 and what
S3 stands on, 17 MB in jars of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from asynccommit.demo.hadoop_jars import Dependency, cached_jars, hadoop_version
from asynccommit.errors import UnsupportedError

SDKS: Mapping[str, str] = {"3.5.0": "2.35.4"}
"""Version of Hadoop -> version of the SDK that its client was built with."""

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
