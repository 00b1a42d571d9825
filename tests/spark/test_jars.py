"""The jar of the JVM side: compiled by Spark's own compiler, cached, private."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.errors import UnsupportedError
from asynccommit.spark import jars
from asynccommit.spark.jars import (
    Spark,
    compiled_jar,
    difference_on_disk,
    fitting_jar,
    installed_spark,
)
from tests.support.other_sparks import COMPILES, REFUSED, jar_of_changes

pytestmark = pytest.mark.jvm


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "asynccommit" / "spark"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache that holds the jar of the installed Spark."""
    place = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place))
        return Path(compiled_jar(installed_spark())).parent


@pytest.fixture
def kept(cache: Path, filled: Path) -> Path:
    """Use a cache that holds the jar: to compile one takes seconds."""
    shutil.copytree(filled, cache)
    return cache


def test_sources_are_for_a_class_path_with_a_directory_of_settings() -> None:
    """As under spark-submit, which has it before the jars, with a slash at its end."""
    spark = installed_spark()
    path = os.pathsep.join([f"{tempfile.gettempdir()}/conf/", "", spark.class_path])

    assert jars._sources(replace(spark, class_path=path)) == jars._sources(spark)


def test_jar_holds_the_protocol(kept: Path) -> None:
    """The classes are there, and the directory is nobody else's to write to."""
    jar = Path(compiled_jar(installed_spark()))

    assert jar.parent == kept
    assert kept.stat().st_mode & 0o777 == 0o700
    assert "org/asynccommit/spark/AsyncCommitProtocol.class" in zipfile.ZipFile(jar).namelist()
    assert [path.name for path in kept.iterdir()] == [jar.name]


@pytest.mark.usefixtures("kept")
def test_jar_is_compiled_once() -> None:
    """A second call finds it, and needs no Java."""
    spark = installed_spark()
    jar = compiled_jar(spark)
    made = os.stat(jar).st_mtime_ns
    no_java = Spark(spark.version, spark.scala, spark.class_path, "/does/not/exist")

    assert compiled_jar(no_java) == jar
    assert os.stat(jar).st_mtime_ns == made


@pytest.mark.usefixtures("kept")
def test_jar_is_compiled_for_each_spark() -> None:
    """Another version of Spark gets a jar of its own."""
    spark = installed_spark()
    other = Spark("9.9.9", spark.scala, spark.class_path, spark.java)

    assert compiled_jar(other) != compiled_jar(spark)


def test_cache_that_others_can_write_to_is_not_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in it would be run, so another directory is taken."""
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    found = jars._cache()
    assert found != cache
    assert found.stat().st_mode & 0o077 == 0


def test_missing_java_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says what is needed and where it was looked for."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"Java 17 or newer, and JAVA_HOME=.* no bin/java"):
        installed_spark()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="no java on the PATH"):
        installed_spark()


def test_unknown_scala_is_said() -> None:
    """A Spark for another Scala is refused by name."""
    with pytest.raises(
        UnsupportedError, match=r"Scala 3\.3 is not supported: expected one of 2\.12, 2\.13"
    ):
        compiled_jar(Spark("5.0.0", "3.3", "x", "java"))


def test_spark_that_does_not_fit_is_said() -> None:
    """A compile error names the version and the cause, and leaves no jar."""
    spark = installed_spark()
    core = Path(spark.class_path).parent
    janino = os.pathsep.join(
        str(path) for path in core.glob("*.jar") if "janino" in path.name or "compiler" in path.name
    )
    with pytest.raises(UnsupportedError, match=r"does not compile for Spark 9\.9\.9: .*Exception"):
        compiled_jar(Spark("9.9.9", spark.scala, janino, spark.java))

    assert not list(jars._cache().iterdir())


@pytest.mark.usefixtures("kept")
def test_jar_that_fits_is_taken_as_it_is() -> None:
    """The list of the jar is that of the Spark it was compiled for."""
    spark = installed_spark()

    assert fitting_jar(spark, difference_on_disk(spark)) == compiled_jar(spark)


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.usefixtures("kept")
def test_other_spark_of_the_same_version_gets_its_own_jar(tmp_path: Path) -> None:
    """A constructor that takes another type needs no other source, but another class file."""
    stock = installed_spark()
    jar = compiled_jar(stock)
    changed = jar_of_changes(tmp_path, COMPILES)
    vendor = replace(stock, class_path=f"{changed}{os.pathsep}{stock.class_path}")
    difference = difference_on_disk(vendor)

    own = fitting_jar(vendor, difference)

    assert re.match(r"there is no org\.apache.*\.QueryExecutionException\.<init>", difference(jar))
    assert own != jar
    assert difference(own) == ""
    assert fitting_jar(vendor, difference) == own
    assert fitting_jar(stock, difference_on_disk(stock)) == jar
    assert "QueryExecutionException.<init>" in difference_on_disk(stock)(own)


@pytest.mark.full
@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("change", REFUSED)
def test_spark_that_no_jar_fits_is_refused_by_name(change: str, tmp_path: Path) -> None:
    """Spark would call what is not here, or not call what is."""
    stock = installed_spark()
    compiled_jar(stock)
    changed = jar_of_changes(tmp_path, REFUSED[change])
    vendor = replace(stock, class_path=f"{changed}{os.pathsep}{stock.class_path}")

    with pytest.raises(UnsupportedError, match=r"SQLHadoopMapReduceCommitProtocol|is not known to"):
        fitting_jar(vendor, difference_on_disk(vendor))
