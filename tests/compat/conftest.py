"""JVMs for the whole run: Hadoop's classes, its ABFS client, Google's connector, and HDFS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from tests.support import gcs_hadoop, mini_hdfs
from tests.support.abfs import Abfs, start_abfs, why_not
from tests.support.gcs_hadoop import Gcs, start_gcs
from tests.support.hadoop import Hadoop, jars, java_command
from tests.support.mini_hdfs import MiniHdfs, start_mini_hdfs


@pytest.fixture(scope="session")
def hadoop() -> Iterator[Hadoop]:
    """Hadoop's own classes; skips the test where there is no Java or no pyspark."""
    if java_command() is None or jars() is None:
        pytest.skip("needs java and pyspark")
    # Hive looks into classes of Java itself as soon as it is loaded.
    with Hadoop.start("-Xmx512m", "--add-opens=java.base/java.net=ALL-UNNAMED") as started:
        yield started


@pytest.fixture(scope="session")
def emulator() -> Iterator[EmulatorThread]:
    """Run one emulator for the whole run; each test has a filesystem of its own on it."""
    with running_emulator() as running:
        yield running


@pytest.fixture(scope="session")
def jvm(emulator: EmulatorThread) -> Iterator[Abfs]:
    """Run one JVM with Hadoop's ABFS client; skips where there is no such client."""
    if reason := why_not():
        pytest.skip(reason)
    with start_abfs(emulator, "-Xmx512m") as started:
        yield started


@pytest.fixture(scope="session")
def google() -> Iterator[Gcs]:
    """Run one JVM with Google's connector and one emulator; skips where there is no connector."""
    if reason := gcs_hadoop.why_not():
        pytest.skip(reason)
    with running_gcs_emulator() as emulator, start_gcs(emulator, "-Xmx512m") as started:
        yield started


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniHdfs]:
    """Run a NameNode and a DataNode; skips where there is no Java or no jar of theirs."""
    if reason := mini_hdfs.why_not():
        pytest.skip(reason)
    with start_mini_hdfs(tmp_path_factory.mktemp("hdfs"), "-Xmx512m") as started:
        yield started
