"""One JVM with Hadoop's classes for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hadoop import Hadoop, jars, java_command


@pytest.fixture(scope="session")
def hadoop() -> Iterator[Hadoop]:
    """Hadoop's own classes; skips the test where there is no Java or no pyspark."""
    if java_command() is None or jars() is None:
        pytest.skip("needs java and pyspark")
    with Hadoop.start("-Xmx512m") as started:
        yield started
