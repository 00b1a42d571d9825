"""``configure``: builders, running sessions, and what it refuses."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from asynccommit import OptionWarning, Progress
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.spark import bridge, configure, sessions
from tests.support.spark import leftovers, run_script, visible


class Builder:
    """As much of PySpark's builder as ``configure`` asks for."""

    def __init__(self, **options: str) -> None:
        self._options = dict(options)

    def config(self, key: str, value: str) -> Builder:
        """Set one key."""
        self._options[key] = value
        return self

    def getOrCreate(self) -> str:  # noqa: N802  PySpark's name
        """Return what stands for a session."""
        return "session"


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what sessions are attached, without attaching any."""
    seen: list[Any] = []
    monkeypatch.setattr(sessions, "attach", lambda session, conf: seen.append((session, conf)))
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE"):
        monkeypatch.delenv(name, raising=False)
    return seen


@pytest.mark.jvm
def test_builder_is_returned_and_prepared(attached: list[Any]) -> None:
    """The class and the jar are set, and the session is attached when it exists."""
    builder = Builder()
    assert configure(builder) is builder
    session = builder.getOrCreate()

    assert builder._options["spark.sql.sources.commitProtocolClass"] == sessions.PROTOCOL
    assert builder._options["spark.jars"].endswith(".jar")
    assert [found for found, _ in attached] == [session]


@pytest.mark.jvm
def test_builder_keeps_the_users_jars(attached: list[Any]) -> None:
    """Ours is added once, however often ``configure`` is called."""
    builder = Builder(**{"spark.jars": "a.jar,b.jar"})
    configure(configure(builder))
    builder.getOrCreate()

    jars = builder._options["spark.jars"].split(",")
    assert jars[:2] == ["a.jar", "b.jar"]
    assert len(jars) == 3
    assert len(attached) == 1


@pytest.mark.jvm
def test_builder_keeps_the_jars_of_the_defaults_file(
    attached: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A builder's ``spark.jars`` would hide the one of spark-defaults.conf."""
    (tmp_path / "spark-defaults.conf").write_text("# mine\nspark.jars   /x/mine.jar\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    builder = configure(Builder())
    builder.getOrCreate()

    assert builder._options["spark.jars"].startswith("/x/mine.jar,")


@pytest.mark.jvm
def test_options_get_sparks_prefix(attached: list[Any]) -> None:
    """Hadoop's keys go to a builder as ``spark.hadoop.*``, ours as they are."""
    key = "mapreduce.manifest.committer.validate.output"
    builder = configure(Builder(), unsupported_scheme="refuse", progress=True, conf={key: "true"})
    builder.getOrCreate()

    assert builder._options[f"spark.hadoop.{key}"] == "true"
    assert builder._options["spark.asynccommit.unsupportedScheme"] == "refuse"
    assert builder._options["spark.asynccommit.progress"] == "true"


@pytest.mark.parametrize(
    "options", [{"spark.remote": "sc://localhost"}, {"spark.api.mode": "connect"}]
)
def test_connect_builder_is_refused(options: dict[str, str]) -> None:
    """Spark Connect's client has no JVM, and the error says what to do instead."""
    with pytest.raises(UnsupportedError, match=r"Spark Connect.*register_data_source"):
        configure(Builder(**options))


def test_connect_session_is_refused() -> None:
    """A session that comes from pyspark.sql.connect is one of these too."""
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        configure(session)


@pytest.mark.parametrize("target", [None, "local[2]", object()])
def test_other_things_are_refused(target: object) -> None:
    """The error says what was expected."""
    with pytest.raises(OptionError, match="neither a SparkSession nor"):
        configure(target)


def test_wrong_options_are_refused() -> None:
    """Neither an unknown policy nor a key of Spark itself is taken."""
    with pytest.raises(OptionError, match="expected delegate or refuse"):
        configure(Builder(), unsupported_scheme="maybe")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"spark\.executor\.memory is not an option"):
        configure(Builder(), conf={"spark.executor.memory": "1g"})


@pytest.mark.parametrize(
    "key, near",
    [
        ("asynccommit.on.unfinishd", "asynccommit.on.unfinished"),
        ("mapreduce.manifest.committer.validate.outputs", "validate.output"),
    ],
)
def test_unknown_options_are_refused(key: str, near: str) -> None:
    """A key that is nearly one of ours or Hadoop's is an error that names the right one."""
    with pytest.raises(OptionError, match=rf"{key} is not an option.*did you mean \S*{near}\?"):
        configure(Builder(), conf={key: "true"})


@pytest.mark.jvm
def test_builder_that_is_discarded_is_noticed(attached: list[Any]) -> None:
    """A builder that goes away unused warns at once; one that was used does not."""
    with pytest.warns(OptionWarning, match=r"spark = configure\(SparkSession\.builder\)"):
        configure(Builder())
    configure(Builder()).getOrCreate()
    assert len(attached) == 1


@pytest.mark.jvm
def test_progress_goes_to_the_callback(
    attached: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``on_progress`` is what commits of this process call; a call without it changes nothing."""
    monkeypatch.setattr(bridge, "on_progress", None)
    told: list[Progress] = []
    configure(Builder(), on_progress=told.append).getOrCreate()
    configure(Builder()).getOrCreate()

    assert bridge.on_progress == told.append
    assert not bridge.is_shown({"spark.asynccommit.progress": "true"})


@pytest.mark.spark
def test_session_is_active_until_it_is_unconfigured(tmp_path: Path) -> None:
    """``unconfigure`` restores what ``configure`` changed.

    ``newSession`` without it warns, and so does another builder's session before it.
    """
    done = run_script(
        tmp_path,
        """
        import warnings
        from asynccommit.spark import is_active, unconfigure

        key = "mapreduce.manifest.committer.validate.output"
        kept = configure(builder(scratch))  # as a notebook keeps it
        with warnings.catch_warnings(record=True) as passed_by:
            warnings.simplefilter("always")
            spark = builder(scratch).getOrCreate()
        ours = [w for w in passed_by if w.category.__name__ == "OptionWarning"]
        print("passed by", [(w.category.__name__, w.filename) for w in ours])
        del kept
        spark.conf.set("spark.asynccommit.rate", "7")
        before = dict(spark.conf.getAll)
        print("before", is_active(spark))
        configure(spark, conf={key: "true", "asynccommit.rate": 9})
        print("configured", is_active(spark), spark.conf.get(key))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            other = spark.newSession()
        print("other", is_active(other), [w.category.__name__ for w in caught])
        spark.range(2).write.parquet(str(scratch / "one"))
        unconfigure(spark)
        print("after", is_active(spark), dict(spark.conf.getAll) == before)
        spark.range(2).write.parquet(str(scratch / "two"))
        print("reports", len(reports()))
        spark.stop()
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "passed by [('OptionWarning', '<string>')]",
        "before False",
        "configured True true",
        "other False ['OptionWarning']",
        "after False True",
        "reports 1",
    ]


@pytest.mark.spark
@pytest.mark.full
def test_running_session_without_a_client(tmp_path: Path) -> None:
    """The error names the packages, and the session stays as it was."""
    done = run_script(
        tmp_path,
        """
        from asynccommit.errors import UnsupportedError
        from asynccommit.spark import is_active

        spark = builder(scratch).getOrCreate()
        try:
            configure(spark, stores=["abfs"])
        except UnsupportedError as error:
            print(error)
        print(is_active(spark))
        spark.stop()
        """,
    )

    assert done.returncode == 0, done.stderr
    error, active = done.stdout.splitlines()
    assert "no client of Hadoop for abfs" in error
    assert re.search(
        r"spark\.jars\.packages org\.apache\.hadoop:hadoop-azure:\d+\.\d+\.\d+ ", error
    )
    assert "configure(SparkSession.builder, stores=['abfs'])" in error
    assert active == "False"


@pytest.mark.jvm
def test_builder_gets_the_clients_packages(attached: list[Any]) -> None:
    """``stores`` adds the packages in the version of Hadoop, and keeps the user's."""
    builder = Builder(**{"spark.jars.packages": "a:b:1"})
    configure(builder, stores=["abfs"]).getOrCreate()

    mine, ours = builder._options["spark.jars.packages"].split(",")
    assert mine == "a:b:1"
    assert re.fullmatch(r"org\.apache\.hadoop:hadoop-azure:\d+\.\d+\.\d+", ours)


def test_missing_pyspark_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is an installation command."""
    monkeypatch.setattr("asynccommit.spark.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"pip install 'asynccommit\[spark\]'"):
        configure(Builder())
    assert importlib.util.find_spec("pyspark") is not None


@pytest.mark.full
@pytest.mark.spark
def test_running_session_with_a_jar_of_its_own(tmp_path: Path) -> None:
    """A session that runs gets it at once, keeps it after more jars, and others are left alone."""
    done = run_script(
        tmp_path,
        """
        spark = builder(scratch).getOrCreate()
        frame = spark.range(20).repartition(2)
        frame.write.parquet(str(scratch / "before"))
        assert last_report() is None
        assert configure(spark) is spark
        frame.write.parquet(str(scratch / "t"))
        import zipfile
        with zipfile.ZipFile(scratch / "other.jar", "w") as jar:
            jar.writestr("x.txt", "x")
        spark.sql(f"ADD JAR '{scratch / 'other.jar'}'")
        frame.write.mode("append").parquet(str(scratch / "t"))
        assert len(reports()) == 2, reports()
        other = spark.newSession()
        other.range(5).write.parquet(str(scratch / "other"))
        assert len(reports()) == 2, reports()
        configure(other)
        other.range(5).write.mode("append").parquet(str(scratch / "other"))
        assert len(reports()) == 3, reports()
        print(spark.read.parquet(str(scratch / "t")).count())
        spark.stop()
        again = configure(builder(scratch)).getOrCreate()
        again.range(5).write.parquet(str(scratch / "again"))
        assert len(reports()) == 4, reports()
        """,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["40"]
    assert len(visible(tmp_path / "t")) == 4
    assert leftovers(tmp_path / "t") == []
