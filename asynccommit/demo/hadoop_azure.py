"""Fetch and configure Hadoop's ABFS client, which PySpark does not include: one jar.

All other dependencies of ``hadoop-azure`` are among PySpark's jars, or are needed only for https
with OpenSSL and for latency histograms, which are disabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from asynccommit.demo.hadoop_jars import cached_jar, hadoop_version


def client_jar() -> Path:
    """Return the ``hadoop-azure`` jar, fetched if it is not in the cache.

    Its version is that of PySpark's Hadoop. Raises ``UnsupportedError`` that says what is missing.
    """
    version = hadoop_version()
    return cached_jar(f"org.apache.hadoop:hadoop-azure:{version}", f"hadoop-azure-{version}.jar")


def client_conf(account: str, key: str, endpoint: str) -> Mapping[str, str]:
    """Return Hadoop's options for an account at ``HOST:PORT`` without TLS.

    The client authenticates with the account's key.
    """
    return {
        "fs.azure.abfs.endpoint": endpoint,
        "fs.azure.always.use.https": "false",
        "fs.azure.account.auth.type": "SharedKey",
        f"fs.azure.account.key.{account}.dfs.core.windows.net": key,
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        "fs.azure.createRemoteFileSystemDuringInitialization": "true",
        # With its defaults the client waits for seconds before it retries.
        "fs.azure.io.retry.backoff.interval": "50",
        "fs.azure.io.retry.min.backoff.interval": "20",
        "fs.azure.io.retry.max.backoff.interval": "1000",
    }
