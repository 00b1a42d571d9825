"""Settings that load the package: what they keep, and how they are written."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.spark import _SCHEMES, settings
from asynccommit.spark.jars import compiled_jar, installed_spark
from asynccommit.spark.loading import PROTOCOL, STREAM_GUARD, STREAM_PROTOCOL
from asynccommit.spark.sessions import CLASS_KEY, STREAM_KEY
from asynccommit.spark.settings import DRIVER, ENGINE, EXTENSIONS, JARS, SparkConf, settings_for
from tests.cli.support import Command
from tests.support.schemas import check

JVM = Path(settings.__file__).with_name("jvm")


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the spark-defaults.conf of an empty directory."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    return tmp_path / "spark-defaults.conf"


@pytest.mark.jvm
def test_jar_joins_those_of_the_user(conf: Path) -> None:
    """Jars and packages stay, and a jar of this package that an earlier call has named does not."""
    conf.write_text(
        f"{JARS} /opt/a.jar,/opt/asynccommit-4.0.0-0123.jar\nspark.jars.packages org:b:1\n"
    )
    jar = compiled_jar(installed_spark())

    found = settings_for(stores=["abfs"])

    assert found.jar == jar
    assert found.settings[JARS] == f"/opt/a.jar,{jar}"
    assert found.settings[CLASS_KEY] == PROTOCOL
    assert found.settings["spark.jars.packages"].startswith("org:b:1,org.apache.hadoop:")


@pytest.mark.jvm
def test_streams_join_the_extensions_of_the_user(conf: Path) -> None:
    """The sink's protocol is set, and what guards it goes to every session once, after others."""
    conf.write_text(f"{EXTENSIONS} com.example.Rules,{STREAM_GUARD}\n")

    found = settings_for(streams=True).settings

    assert found[STREAM_KEY] == STREAM_PROTOCOL
    assert found[EXTENSIONS] == f"com.example.Rules,{STREAM_GUARD}"
    assert {STREAM_KEY, EXTENSIONS}.isdisjoint(settings_for().settings)


@pytest.mark.jvm
def test_path_with_odd_characters_is_a_url(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comma ends an element of the list, and Spark reads a percent sign as an escape."""
    jar = Path(compiled_jar(installed_spark()))
    for name, part in {"a,b 100%": "/a%2Cb%20100%25/", "a\nb": "/a%0Ab/"}.items():
        cache = tmp_path / name / "asynccommit" / "spark"
        cache.mkdir(0o700, parents=True)
        shutil.copy(jar, cache)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

        found = settings_for()

        assert found.jar == str(cache / jar.name)
        assert part in found.settings[JARS]


@pytest.mark.jvm
def test_driver_is_set_where_the_launcher_is_installed(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher is the driver's Python if it is there; otherwise this Python is the engine's."""
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert settings_for().settings[ENGINE] == sys.executable
    assert DRIVER not in settings_for().settings
    (tmp_path / "asynccommit-python").touch()
    assert settings_for().settings[DRIVER] == str(tmp_path / "asynccommit-python")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: f"{tmp_path}/a\nb")
    (tmp_path / "a\nb").mkdir()
    (tmp_path / "a\nb/asynccommit-python").touch()
    with pytest.raises(OptionError, match="character that no setting can have"):
        settings_for()


def test_home_without_spark_is_named(tmp_path: Path) -> None:
    """The error says where Spark was looked for."""
    with pytest.raises(UnsupportedError, match=f"no Spark in {tmp_path}/jars"):
        settings_for(tmp_path)


def test_formats_can_be_pasted() -> None:
    """A file has Java's escapes, and a command line those of a shell."""
    made = SparkConf("4.3.0", "", {"spark.a": "C:\\x y", "spark.long": "it's"})

    assert made.defaults().splitlines() == ["spark.a    C:\\\\x y", "spark.long it's"]
    assert shlex.split(made.flags()) == ["--conf", "spark.a=C:\\x y", "--conf", "spark.long=it's"]


def test_java_commits_the_schemes_that_configure_would() -> None:
    """Settings name no schemes, so both sides have the same default."""
    assert f'"{",".join(_SCHEMES)}"' in (JVM / "Keys.java").read_text("utf-8")


@pytest.mark.jvm
def test_command_prints_three_formats(capsys: pytest.CaptureFixture[str], conf: Path) -> None:
    """Standard output has nothing else, so it can go to a file or to a command line."""
    command = Command(capsys)
    found = command.json("spark-conf")
    check("spark-conf", json.loads(command.out))
    jar, settings = found["jar"], found["settings"]

    assert Path(jar).is_file()
    assert settings["spark.jars"] == jar
    assert command("spark-conf") == 0
    assert dict(line.split() for line in command.out.splitlines()) == settings
    assert command("spark-conf", "--flags", "--quiet") == 0
    assert command.out.startswith(f"--conf spark.jars={jar} --conf ")


def test_command_names_what_is_missing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The exit code is that of other missing packages."""
    error = Command(capsys).json("spark-conf", "--spark-home", tmp_path)

    assert error["error"] == "usage"
    assert f"no Spark in {tmp_path}/jars" in error["message"]
