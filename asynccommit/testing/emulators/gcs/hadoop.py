"""The options that point Google's Hadoop connector at an emulator."""

from __future__ import annotations

from collections.abc import Mapping


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
