"""Stores that Spark's streaming file sink writes to by Hadoop's own clients, on emulators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from asynccommit.demo import adls, gcs, s3
from asynccommit.demo.hadoop_jars import hadoop_version
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from tests.support import abfs, gcs_hadoop, mini_hdfs
from tests.support.hadoop import jars, java_command
from tests.support.mini_hdfs import start_mini_hdfs
from tests.support.s3_servers import new_bucket, running_moto


@dataclass(frozen=True)
class StreamPlace:
    """A directory on a store, and what a session needs to write there.

    Attributes:
        root: its URL.
        jars: the client of the store.
        conf: its settings, under Hadoop's names.
    """

    root: str
    jars: Sequence[str] = ()
    conf: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def _disk(scratch: Path) -> Iterator[StreamPlace]:
    yield StreamPlace(f"file:{scratch}/tables")


@contextmanager
def _adls(scratch: Path) -> Iterator[StreamPlace]:
    if reason := abfs.why_not():
        pytest.skip(reason)
    with running_emulator() as emulator:
        root = f"abfs://tables@{emulator.account}.dfs.core.windows.net/streams"
        yield StreamPlace(root, [str(adls.client_jar())], abfs.conf_of(emulator))


@contextmanager
def _gcs(scratch: Path) -> Iterator[StreamPlace]:
    if reason := gcs_hadoop.why_not():
        pytest.skip(reason)
    if hadoop_version().startswith("3.3."):
        pytest.skip("Google's connector of this version needs Hadoop 3.4")
    with running_gcs_emulator() as emulator:
        bucket = gcs_hadoop.Bucket(emulator, "tables").make()
        jar = str(gcs.client_jar())
        yield StreamPlace(f"gs://{bucket.name}/streams", [jar], gcs_hadoop.conf_of(emulator))


@contextmanager
def _s3(scratch: Path) -> Iterator[StreamPlace]:
    if java_command() is None or jars() is None:
        pytest.skip("needs java and pyspark")
    try:
        found = [str(jar) for jar in s3.client_jars()]
    except UnsupportedError as error:
        pytest.skip(str(error))
    with running_moto() as url:
        conf = {**s3.client_conf(url), "fs.s3a.buffer.dir": f"{scratch}/buffer"}
        yield StreamPlace(f"s3a://{new_bucket(url)}/streams", found, conf)


@contextmanager
def _hdfs(scratch: Path) -> Iterator[StreamPlace]:
    if reason := mini_hdfs.why_not():
        pytest.skip(reason)
    (scratch / "hdfs").mkdir()
    with start_mini_hdfs(scratch / "hdfs", "-Xmx512m") as hdfs:
        yield StreamPlace(f"{hdfs.url}/streams")


PLACES: Mapping[str, Callable[[Path], AbstractContextManager[StreamPlace]]] = {
    "disk": _disk,
    "adls": _adls,
    "gcs": _gcs,
    "s3": _s3,
    "hdfs": _hdfs,
}
"""Name of a store -> what runs it, with a directory for its files. Skips where it cannot run."""
