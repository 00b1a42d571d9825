"""Stores that have a machine of their own: the emulator of ADLS, HDFS's own servers, moto's S3.

The machine has the name ``store``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow.fs import AzureFileSystem, FileSystem, FSSpecHandler, PyFileSystem, S3FileSystem

from asynccommit.demo import s3
from asynccommit.demo.adls import client_conf
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_KEY
from tests.support.snippets import ROOT

ACCOUNT, PORT = "account", 10004
LIBRARY = "/opt/library"
_MOTO = """\
from asynccommit.demo.moto import application
from werkzeug.serving import make_server

make_server("0.0.0.0", {port}, application(), threaded=True).serve_forever()
"""
_SITE = {
    "dfs.namenode.name.dir": "/home/user/name",
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.datanode.data.dir": "/home/user/data",
    "dfs.datanode.address": "0.0.0.0:9866",
    "dfs.datanode.http.address": "127.0.0.1:0",
    "dfs.datanode.ipc.address": "0.0.0.0:9867",
    "dfs.replication": "1",
}
_START_HDFS = """\
run="java -Xmx256m -cp /home/user:/opt/servers/*:/opt/spark/jars/*"
$run {servers}.namenode.NameNode -format -nonInteractive || exit 1
$run {servers}.namenode.NameNode &
exec $run {servers}.datanode.DataNode
"""


@dataclass(frozen=True)
class MachineStore:
    """A store.

    Attributes:
        command: the program that serves.
        root: the URL of its root, without a slash at the end.
        base: where the root is for ``client``.
        client: returns a client that is no part of this package, for the address of the machine.
        conf: Hadoop's settings of a client.
        options: options with which the command opens it.
        settings: files with settings in the directory of the machine's user.
    """

    command: Sequence[str]
    root: str
    base: str
    client: Callable[[str], FileSystem]
    conf: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def write_settings(self, home: Path) -> None:
        """Write the settings in Hadoop's form."""
        for name, settings in self.settings.items():
            parts = (
                f"<property><name>{key}</name><value>{value}</value></property>"
                for key, value in settings.items()
            )
            text = f"<configuration>{''.join(parts)}</configuration>"
            (home / name).write_text(text, "utf-8")


def tree(served: Sequence[str]) -> dict[str, Path]:
    """Return what the machine sees: Python, this package, and what its servers need."""
    base, prefix = Path(sys.base_prefix), Path(sys.prefix)
    bare = {str(path): path for path in (base, prefix) if not path.is_relative_to("/usr")}
    jars = {f"/opt/servers/{Path(jar).name}": Path(jar) for jar in served}
    return {LIBRARY + "/asynccommit": ROOT / "asynccommit", **bare, **jars}


def is_ready(files: FileSystem, base: str) -> bool:
    """Return whether the store takes a file; make the bucket, or what it is called."""
    try:
        if base:
            files.create_dir(base)
        with files.open_output_stream(f"{base}/ready") as file:
            file.write(b"ready")
    except Exception:  # each client has errors of its own
        return False
    return True


def _azure(address: str) -> FileSystem:
    authority = f"{address}:{PORT}"
    return AzureFileSystem(
        account_name=ACCOUNT,
        account_key=DEVELOPMENT_KEY,
        blob_storage_authority=authority,
        dfs_storage_authority=authority,
        blob_storage_scheme="http",
        dfs_storage_scheme="http",
    )


def _hdfs(address: str) -> FileSystem:
    from hdfs_native.fsspec import HdfsFileSystem

    return PyFileSystem(FSSpecHandler(HdfsFileSystem(address, PORT)))


def _s3(address: str) -> FileSystem:
    return S3FileSystem(
        access_key="test",
        secret_key="test",
        region="us-east-1",
        scheme="http",
        endpoint_override=f"{address}:{PORT}",
        allow_bucket_creation=True,
    )


_EMULATE = [sys.executable, "-m", "asynccommit", "emulate", "adls", "--address", "0.0.0.0"]
_EMULATE += ["--port", str(PORT), "--account", ACCOUNT, "--key", DEVELOPMENT_KEY, "-f", "data"]
_MAGIC = {"fs.s3a.committer.name": "magic", "fs.s3a.buffer.dir": "/tmp/buffer"}
STORES: Mapping[str, MachineStore] = {
    "adls": MachineStore(
        _EMULATE,
        f"abfs://data@{ACCOUNT}.dfs.core.windows.net",
        "data",
        _azure,
        client_conf(ACCOUNT, DEVELOPMENT_KEY, f"store:{PORT}"),
        {
            "account_name": ACCOUNT,
            "account_key": DEVELOPMENT_KEY,
            "account_host": f"store:{PORT}",
            "use_ssl": "false",
        },
    ),
    "hdfs": MachineStore(
        ["sh", "-c", _START_HDFS.format(servers="org.apache.hadoop.hdfs.server")],
        f"hdfs://store:{PORT}",
        "",
        _hdfs,
        {"dfs.replication": "1"},
        settings={
            "core-site.xml": {"fs.defaultFS": f"hdfs://store:{PORT}"},
            "hdfs-site.xml": _SITE,
        },
    ),
    "s3": MachineStore(
        [sys.executable, "-c", _MOTO.format(port=PORT)],
        "s3a://data",
        "data",
        _s3,
        {**s3.client_conf(f"http://store:{PORT}"), **_MAGIC},
    ),
}
