"""Fetch and configure Google's Hadoop connector, which PySpark does not include: one jar.

The jar is the variant that contains all its dependencies, relocated. Since 3.5 Hadoop has its own
client, ``hadoop-gcp``, which supports Google's endpoint only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from asynccommit.demo.hadoop_jars import cached_jar

VERSION = "4.0.4"
_ARTIFACT = f"com.google.cloud.bigdataoss:gcs-connector:{VERSION}:jar:shaded"
_NAME = f"gcs-connector-{VERSION}-shaded.jar"
_SHA256 = "dfb5832738686436e597026a8e4bab01aa22e75ebfb15d37d096981f6599d73c"


def client_jar() -> Path:
    """Return the ``gcs-connector`` jar, fetched if it is not in the cache.

    Raises ``UnsupportedError`` that says what is missing.
    """
    return cached_jar(_ARTIFACT, _NAME, _SHA256)


def client_conf(endpoint: str, project: str = "emulated") -> Mapping[str, str]:
    """Return Hadoop's options for an emulator at ``http://HOST:PORT``.

    No key is needed. Folders of hierarchical buckets are not used: the connector manages them by
    gRPC only, which no emulator supports.
    """
    return {
        "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
        "fs.gs.storage.root.url": endpoint,
        "fs.gs.auth.type": "UNAUTHENTICATED",
        "fs.gs.project.id": project,
        "fs.gs.block.size": "67108864",  # Hadoop's default is 64m, which the connector rejects.
        "fs.gs.hierarchical.namespace.folders.enable": "false",
    }
