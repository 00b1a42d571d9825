"""A NameNode and a DataNode of Hadoop's own, on ports of 127.0.0.1, with a client that renames."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asynccommit.demo.mini_hdfs import minicluster_jar
from asynccommit.errors import UnsupportedError
from asynccommit.spark.jars import compiled_jar, installed_spark
from tests.support.hadoop import Hadoop, jars, java_command

_HDFS = "org.apache.hadoop.hdfs"


@functools.cache
def why_not() -> str | None:
    """Return why no cluster can be started here, or ``None``."""
    if java_command() is None or jars() is None:
        return "needs java and pyspark"
    try:
        minicluster_jar()
    except UnsupportedError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class MiniHdfs:
    """A running cluster: its JVM, the cluster in it, and Hadoop's client of the NameNode."""

    hadoop: Hadoop
    cluster: Any

    @property
    def url(self) -> str:
        """The URL of the root directory, without a slash at its end."""
        return f"hdfs://127.0.0.1:{self.cluster.getNameNodePort()}"

    @property
    def filesystem(self) -> Any:
        """Hadoop's ``DistributedFileSystem``."""
        return self.cluster.getFileSystem()

    def path(self, text: str) -> Any:
        """Return Hadoop's ``Path`` of an absolute path."""
        return self.hadoop.new("org.apache.hadoop.fs.Path", text)

    def write(self, path: str, data: bytes) -> None:
        """Make a file that must not exist, with its parents."""
        with self.hadoop.errors():
            stream = self.filesystem.create(self.path(path), False)
            stream.write(data)
            stream.close()

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        with self.hadoop.errors():
            stream = self.filesystem.open(self.path(path))
            try:
                utils = self.hadoop.java("org.apache.hadoop.io.IOUtils")
                return bytes(utils.readFullyToByteArray(stream))
            finally:
                stream.close()

    def mkdirs(self, path: str) -> None:
        """Make a directory and its parents."""
        with self.hadoop.errors():
            self.filesystem.mkdirs(self.path(path))

    def exists(self, path: str) -> bool:
        """Return whether something is at ``path``."""
        with self.hadoop.errors():
            return bool(self.filesystem.exists(self.path(path)))

    def delete_tree(self, path: str) -> bool:
        """Delete all of ``path`` by one request; return whether there was anything."""
        with self.hadoop.errors():
            return bool(self.filesystem.delete(self.path(path), True))

    @contextmanager
    def blocks_unreported(self) -> Iterator[None]:
        """Keep the DataNode from telling the NameNode which blocks it has got."""
        utils = self.hadoop.java(f"{_HDFS}.server.datanode.DataNodeTestUtils")
        node = self.cluster.getDataNodes().get(0)
        utils.pauseIBR(node)
        try:
            yield
        finally:
            utils.resumeIBR(node)

    def file_id(self, path: str) -> int:
        """Return the number of the inode at ``path``."""
        with self.hadoop.errors():
            return int(self.filesystem.getClient().getFileInfo(path).getFileId())

    def rename(self, source: str, dest: str) -> None:
        """Rename by ``rename2`` without ``OVERWRITE``."""
        rename = self.hadoop.java("org.apache.hadoop.fs.Options").Rename
        with self.hadoop.errors():
            options = self.hadoop.array(rename, rename.NONE)
            self.filesystem.getClient().rename(source, dest, options)


@contextmanager
def start_mini_hdfs(
    folder: Path, *options: str, pair: bool = False, conf: Mapping[str, str] | None = None
) -> Iterator[MiniHdfs]:
    """Run a NameNode and a DataNode with their disks in ``folder``; stop both at the end.

    With ``pair`` there are two NameNodes, of which the first one is active.
    """
    with (
        Hadoop.start("-cp", class_path(), *options) as hadoop,
        running_cluster(hadoop, folder, pair=pair, conf=conf) as cluster,
    ):
        yield cluster


def class_path(*more: str) -> str:
    """Return the class path of the servers, of Hadoop's client, and of our classes."""
    ours = compiled_jar(installed_spark())
    return os.pathsep.join((str(minicluster_jar()), ours, *more, str(jars())))


@contextmanager
def running_cluster(
    hadoop: Hadoop, folder: Path, *, pair: bool = False, conf: Mapping[str, str] | None = None
) -> Iterator[MiniHdfs]:
    """Run a cluster in a JVM that runs already; see ``start_mini_hdfs``."""
    builder = hadoop.new(
        f"{_HDFS}.MiniDFSCluster.Builder",
        hadoop.configuration(conf),
        hadoop.new("java.io.File", str(folder)),
    )
    if pair:
        builder.nnTopology(hadoop.java(f"{_HDFS}.MiniDFSNNTopology").simpleHATopology())
    with hadoop.errors():
        cluster = builder.numDataNodes(1).build()
        try:
            cluster.waitActive()
            if pair:
                cluster.transitionToActive(0)
            yield MiniHdfs(hadoop, cluster)
        finally:
            cluster.shutdown(True)
