"""Hadoop's ABFS client, which PySpark does not bring: one jar, and what it wants to be told.

All else that ``hadoop-azure`` names is among PySpark's jars, or is for https with OpenSSL and for
latency histograms, which are off.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from asynccommit.demo.hadoop_jars import cached_jar, hadoop_version


def client_jar() -> Path:
    """Return the jar ``hadoop-azure`` of PySpark's Hadoop, fetched if it is not in the cache.

    Raises ``UnsupportedError`` that says what is missing.
    """
    version = hadoop_version()
    return cached_jar(f"org.apache.hadoop:hadoop-azure:{version}", f"hadoop-azure-{version}.jar")


def client_conf(account: str, key: str, endpoint: str) -> Mapping[str, str]:
    """Return what Hadoop needs to reach an account at ``HOST:PORT`` by its key, without TLS."""
    return {
        "fs.azure.abfs.endpoint": endpoint,
        "fs.azure.always.use.https": "false",
        "fs.azure.account.auth.type": "SharedKey",
        f"fs.azure.account.key.{account}.dfs.core.windows.net": key,
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        "fs.azure.createRemoteFileSystemDuringInitialization": "true",
        # Its defaults wait for seconds before they ask again.
        "fs.azure.io.retry.backoff.interval": "50",
        "fs.azure.io.retry.min.backoff.interval": "20",
        "fs.azure.io.retry.max.backoff.interval": "1000",
    }
