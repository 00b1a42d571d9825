"""YARN's own mini cluster, in the JVM of a NameNode: one ResourceManager and one NodeManager."""

from __future__ import annotations

import functools
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from asynccommit.demo.hadoop_jars import Dependency, cached_jars, hadoop_version
from asynccommit.errors import UnsupportedError
from tests.support import mini_hdfs
from tests.support.hadoop import Hadoop, java_command
from tests.support.mini_hdfs import MiniHdfs, class_path, running_cluster

_CLUSTER = "org.apache.hadoop.yarn.server.MiniYARNCluster"
_NEEDED = (  # the cluster's class extends and calls them, and its jar does not have them
    Dependency("org.junit.jupiter", "junit-jupiter-api", "5.13.4"),
    Dependency("org.bouncycastle", "bcpkix-jdk18on", "1.78.1"),
)
_SETTINGS = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
    "yarn.scheduler.minimum-allocation-mb": "64",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "6144",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.delete.debug-delay-sec": "0",
    "yarn.resourcemanager.hostname": "127.0.0.1",
}
_FOR_CLIENTS = r"^(yarn\.|fs\.defaultFS|mapreduce\.framework|hadoop\.|dfs\.)"


@functools.cache
def why_not() -> str | None:
    """Return why no cluster can be started here, or ``None``."""
    if why := mini_hdfs.why_not():
        return why
    try:
        yarn_jars()
    except UnsupportedError as error:
        return str(error)
    return None


def yarn_jars() -> Sequence[Path]:
    """Return the jars that the cluster needs besides its own. Raises ``UnsupportedError``."""
    return cached_jars(f"mini-yarn-{hadoop_version()}", _NEEDED)


@dataclass(frozen=True)
class MiniYarn:
    """A running cluster.

    Attributes:
        hdfs: its default filesystem.
        conf_dir: a directory for ``HADOOP_CONF_DIR``.
        folder: the files of the nodes, with the logs of containers.
    """

    hdfs: MiniHdfs
    conf_dir: Path
    folder: Path

    def written(self, name: str) -> str:
        """Return what all containers have written to their ``stdout`` or ``stderr``."""
        found = sorted(self.folder.rglob(f"container_*/{name}"))
        return "\n".join(path.read_text("utf-8", "replace") for path in found)


@contextmanager
def start_mini_yarn(folder: Path, *options: str) -> Iterator[MiniYarn]:
    """Run YARN on HDFS with their files in ``folder``; stop both, and containers, at the end."""
    more = [str(path) for path in (*yarn_jars(), conf_in(folder))]
    command = ("-cp", class_path(*more), *place_of(folder), *options)
    with (
        Hadoop.start(*command) as hadoop,
        running_cluster(hadoop, folder / "hdfs") as hdfs,
        running_yarn(hdfs, folder) as yarn,
    ):
        yield yarn


def conf_in(folder: Path) -> Path:
    """Make the directory of the configuration, for the class path: containers are set up by it."""
    made = folder / "conf"
    made.mkdir(parents=True)
    return made


def place_of(folder: Path) -> Sequence[str]:
    """Return the options of a JVM with which its YARN keeps its files in ``folder``."""
    return f"-Dtest.build.data={folder}", f"-Dtest.build.dir={folder}"


@contextmanager
def running_yarn(
    hdfs: MiniHdfs, folder: Path, conf: Mapping[str, str] | None = None
) -> Iterator[MiniYarn]:
    """Run YARN in the JVM of a NameNode; see ``start_mini_yarn``."""
    hadoop = hdfs.hadoop
    own = {
        "fs.defaultFS": hdfs.url,
        "yarn.nodemanager.admin-env": f"JAVA_HOME={_java_home()}",
        "yarn.nodemanager.user-home-dir": str(folder / "home"),
    }
    with hadoop.errors():
        cluster = hadoop.new(_CLUSTER, "yarn", 1, 1, 1)
        try:
            cluster.init(hadoop.configuration({**_SETTINGS, **own, **(conf or {})}))
            cluster.start()
            yield MiniYarn(hdfs, _conf_dir(cluster, folder / "conf"), folder)
        finally:
            cluster.stop()
            _end_all_in(folder)


def _java_home() -> Path:
    return Path(os.path.realpath(java_command() or "java")).parents[1]


def _conf_dir(cluster: Any, folder: Path) -> Path:
    """Write the configuration for clients, with the ports."""
    found = dict(cluster.getConfig().getValByRegex(_FOR_CLIENTS))
    entries = "".join(
        f"<property><name>{escape(str(key))}</name><value>{escape(str(value))}</value></property>"
        for key, value in found.items()
        if not re.search(r"keytab|\.xml$", str(key))
    )
    for name in ("core-site.xml", "hdfs-site.xml", "yarn-site.xml"):
        (folder / name).write_text(f"<configuration>{entries}</configuration>")
    return folder


def _end_all_in(folder: Path) -> None:
    """Kill the processes of containers, which are in sessions of their own."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if Path(os.readlink(process / "cwd")).is_relative_to(folder):
                os.kill(int(process.name), signal.SIGKILL)
