"""The wheel of a release has jars; any other has none."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from asynccommit.spark.jars import (
    BUNDLED,
    difference_on_disk,
    installed_spark,
    spark_jars,
)
from tests.field.environments import KEPT
from tests.support.snippets import ROOT

pytest.importorskip("hatchling", reason="hatchling is not installed")

FOLDER = f"asynccommit/spark/{BUNDLED}/"
PROGRAM = """
import sys
from pathlib import Path
from asynccommit.spark.jars import Spark, compiled_jar
print(compiled_jar(Spark(sys.argv[1], sys.argv[2], "", "/no/java")))
"""


def wheel(folder: Path, homes: list[Path]) -> Path:
    """Build the wheel, with jars of these Sparks."""
    environment = {**os.environ, "ASYNCCOMMIT_RELEASE_SPARKS": os.pathsep.join(map(str, homes))}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def jars_in(made: Path) -> list[zipfile.ZipInfo]:
    """Return the jars in a wheel."""
    with zipfile.ZipFile(made) as archive:
        return [info for info in archive.infolist() if info.filename.endswith(".jar")]


def homes() -> list[Path]:
    """Return this Spark, and those of the environments of ``make test-field`` that are made."""
    others = sorted(KEPT.glob("spark*/lib/python3*/site-packages/pyspark"))
    return [spark_jars().parent, *(home for home in others if home != spark_jars().parent)]


def test_wheel_has_no_jar_unless_it_is_asked_for(tmp_path: Path) -> None:
    """An install from a copy needs no Spark."""
    assert jars_in(wheel(tmp_path, [])) == []


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.slow
@pytest.mark.jvm
@pytest.mark.timeout(400)
def test_wheel_of_a_release_has_a_jar_of_each_spark(
    tmp_path: Path,
) -> None:
    """Two builds are the same bytes; each Spark has its jar there, and it needs no compiler."""
    first, second = (wheel(tmp_path / name, homes()) for name in ("first", "second"))

    assert first.read_bytes() == second.read_bytes()
    assert len(jars_in(first)) == len(homes())
    with zipfile.ZipFile(first) as archive:
        archive.extractall(tmp_path / "installed")
    for home in homes():
        spark = installed_spark(home)
        used = used_by(tmp_path / "installed", spark.version, spark.scala)
        assert used.parent == tmp_path / "installed" / FOLDER
        assert difference_on_disk(spark)(str(used)) == ""


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.jvm
def test_jar_of_a_wheel_in_a_zip_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java reads no jar in a zip, so with ``--py-files`` it is copied to the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    spark = installed_spark()
    made = wheel(tmp_path, [spark_jars().parent])

    used = used_by(made, spark.version, spark.scala)

    assert used.parent == tmp_path / "cache/asynccommit/spark"
    with zipfile.ZipFile(made) as archive:
        assert used.read_bytes() == archive.read(jars_in(made)[0])
    assert used_by(made, spark.version, spark.scala) == used


def used_by(package: Path, version: str, scala: str) -> Path:
    """Return the jar that a package uses for a Spark, where there is no Java."""
    path = os.pathsep.join([str(package), *sys.path])
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, version, scala],
        env={**os.environ, "PYTHONPATH": path},
        cwd=package.parent,
        check=True,
        capture_output=True,
        text=True,
    )
    return Path(done.stdout.strip())
