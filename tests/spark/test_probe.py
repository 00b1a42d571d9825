"""``doctor`` loads the protocol in threads and on executors, and names where that fails."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asynccommit.inspect.doctor import Check
from asynccommit.spark import probe
from asynccommit.spark.jars import compiled_jar, running_spark
from asynccommit.spark.loading import PROTOCOL
from asynccommit.spark.probe import ProbedExecutor, check_classes, check_jar, judge
from tests.support.spark import wait_until

HERE, NEW, EXECUTORS = "class in this thread", "class in a new thread", "class on executors"


def _checks(spark: Any, kind: str = PROTOCOL) -> dict[str, Check]:
    return {check.name: check for check in check_classes(spark, kind)}


def test_configured_session(spark: Any) -> None:
    """Threads and every executor load the class, from the jar of this package."""
    checks = _checks(spark)
    jar = Path(compiled_jar(running_spark(spark)))

    assert [checks[name].ok for name in (HERE, NEW, EXECUTORS, "jar")] == [True] * 4
    cluster = not spark.sparkContext._jsc.isLocal()
    wanted = "loadable on 2 of 2: 0 on " if cluster else "loadable on driver on "
    assert checks[EXECUTORS].found.startswith(wanted)
    assert jar.name in checks["jars for executors"].found
    assert checks["jar"].found.startswith(jar.name)


def test_class_that_is_nowhere(spark: Any) -> None:
    """Each place that cannot load it is a problem; an executor is named, and so is the jar."""
    checks = _checks(spark, "no.such.Protocol")

    assert [checks[name].ok for name in (HERE, NEW, EXECUTORS)] == [False] * 3
    assert "not loadable on process " in checks[EXECUTORS].found
    assert checks[HERE].lines == [f"spark.jars {compiled_jar(running_spark(spark))}"]
    assert "configure(spark)" in checks[NEW].remedy


def test_thread_with_a_class_loader_of_its_own(spark: Any) -> None:
    """Only the thread that cannot load the class is a problem."""
    found: dict[str, Check] = {}

    def ask() -> None:
        lang = spark._jvm.java.lang
        lang.Thread.currentThread().setContextClassLoader(lang.ClassLoader.getSystemClassLoader())
        found.update(_checks(spark))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()

    assert [found[name].ok for name in (HERE, NEW)] == [False, True]


def test_jar_of_another_version(tmp_path: Path) -> None:
    """The content counts, not the name; what cannot be read is another version, too."""
    ours, same, other = (tmp_path / name for name in ("ours.jar", "same.jar", "other.jar"))
    for path, content in ((ours, b"one"), (same, b"one"), (other, b"two")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("A.class", content)

    assert check_jar(str(same), str(ours)).ok is True
    for path in (other, tmp_path / "none.jar"):
        found = check_jar(str(path), str(ours))
        assert found.ok is False
        assert found.lines == [f"spark.jars {ours}"]


def test_executors_that_differ() -> None:
    """One without the class is named, and one with another jar than the driver."""
    well = [ProbedExecutor(f"{number} on host", loadable=True, jar="a.jar") for number in range(9)]
    without = ProbedExecutor("process 7 on bad", loadable=False)
    older = ProbedExecutor("8 on old", loadable=True, jar="b.jar")

    assert judge(well, "a.jar", "/a.jar", known=9).found.endswith("4 on host and 4 more")
    assert judge([*well, without], "a.jar", "/a.jar", known=10).found.endswith(
        "not loadable on process 7 on bad"
    )
    assert "8 on old (b.jar)" in judge([*well, older], "a.jar", "/a.jar", known=10).found
    assert "no free core" in judge(well, "a.jar", "/a.jar", known=10).found


@pytest.mark.full
def test_cluster_without_free_cores(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe gives up after a while, and the jobs of others go on."""
    monkeypatch.setattr(probe, "_PATIENCE", 1.0)
    with _busy(spark):
        found = _checks(spark)[EXECUTORS]

    assert found.ok is False
    assert "the probe job failed" in found.found


@contextmanager
def _busy(spark: Any) -> Iterator[None]:
    """Have every core run a task that lasts."""
    context = spark.sparkContext
    sleep = "reflect('java.lang.Thread', 'sleep', 60000L) as pause"

    def occupy() -> None:
        context.setJobGroup("busy", "busy", interruptOnCancel=True)
        with pytest.raises(Exception, match="cancelled"):
            spark.range(0, 2, 1, 2).selectExpr(sleep).collect()

    thread = threading.Thread(target=occupy)
    thread.start()
    try:
        active = context.statusTracker().getActiveJobsIds
        assert wait_until(lambda: len(active()) == 1, 30)
        yield
        assert len(active()) == 1
    finally:
        context.cancelJobGroup("busy")
        thread.join()
