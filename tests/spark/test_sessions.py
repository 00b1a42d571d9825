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

    def attach(session: Any, conf: Any, stores: Any, *, inherited: bool) -> None:
        seen.append((session, conf))

    monkeypatch.setattr(sessions, "attach", attach)
    if importlib.util.find_spec("pyspark") is not None:  # as in a program that starts Spark itself
        monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE"):
        monkeypatch.delenv(name, raising=False)
    return seen


@pytest.mark.jvm
def test_builder_is_returned_and_prepared(attached: list[Any]) -> None:
    """The session is attached when it exists, once, however often ``configure`` is called."""
    builder = Builder(**{"spark.jars": "a.jar,b.jar"})
    assert configure(configure(builder)) is builder
    session = builder.getOrCreate()

    assert [found for found, _ in attached] == [session]
    assert builder._options["spark.jars"] == "a.jar,b.jar"
    assert "spark.sql.sources.commitProtocolClass" not in builder._options


@pytest.mark.jvm
@pytest.mark.parametrize("line", ["{} {}", "{}={}", "{} : {}", "  {}\t{}"])
@pytest.mark.parametrize("place", ["folder", "arguments"])
def test_builder_keeps_the_packages_of_the_defaults_file(
    attached: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, place: str
) -> None:
    """A builder's ``spark.jars.packages`` would hide the one of the file that Spark reads."""
    file = tmp_path / "spark-defaults.conf"
    file.write_text(f"# mine\n{line.format('spark.jars.packages', 'a:b:1')}\nspark.x y\n")
    if place == "folder":
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    else:
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {file} pyspark-shell")
    builder = configure(Builder(), hadoop_clients=["abfs"])
    builder.getOrCreate()

    assert builder._options["spark.jars.packages"].startswith("a:b:1,org.apache.hadoop:")


@pytest.mark.jvm
def test_spark_without_hadoop_among_its_jars(
    attached: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a build of Spark is configured; only ``stores`` needs the version of Hadoop."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    configure(Builder()).getOrCreate()

    assert len(attached) == 1
    with pytest.raises(UnsupportedError, match=f"there is no Hadoop in {tmp_path}"):
        configure(Builder(), hadoop_clients=["abfs"])


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


@pytest.mark.jvm
def test_launchers_of_spark_tell_the_mode(
    attached: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``pyspark`` of Spark 4 sets a variable for classic sessions too, to zero."""
    monkeypatch.setenv("SPARK_CONNECT_MODE", "0")
    configure(Builder()).getOrCreate()
    assert len(attached) == 1
    monkeypatch.setenv("SPARK_CONNECT_MODE", "1")
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        configure(Builder())


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
    """A running session commits in each thread until ``unconfigure`` restores what it had.

    ``newSession`` without it warns, and so does another builder's session before it.
    """
    done = run_script(
        tmp_path,
        """
        import warnings
        from concurrent.futures import ThreadPoolExecutor
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
        with ThreadPoolExecutor(10) as pool:
            frame = spark.range(4).repartition(2)
            tables = [str(scratch / f"pool-{n}") for n in range(10)]
            print("pool", len(list(pool.map(frame.write.parquet, tables))), len(reports()))
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
        "pool 10 10",
        "other False ['OptionWarning']",
        "after False True",
        "reports 11",
    ]


@pytest.mark.spark
@pytest.mark.full
def test_running_session_without_a_client(tmp_path: Path) -> None:
    """The error has the flags and settings that load one, and the session stays as it was.

    So it is for a builder where Spark runs already.
    """
    done = run_script(
        tmp_path,
        """
        from asynccommit.errors import UnsupportedError
        from asynccommit.spark import is_active

        spark = builder(scratch).getOrCreate()
        for call in (
            lambda: configure(spark, hadoop_clients=["abfs"]),
            lambda: configure(builder(scratch), hadoop_clients=["abfs"]).getOrCreate(),
        ):
            try:
                call()
            except UnsupportedError as error:
                print(error)
        print(is_active(spark))
        spark.stop()
        """,
    )

    assert done.returncode == 0, done.stderr
    error, same, active = done.stdout.splitlines()
    assert "no client of Hadoop for abfs" in error
    azure = r"org\.apache\.hadoop:hadoop-azure:\d+\.\d+\.\d+ "
    assert re.search(rf"start Spark with --packages {azure}", error)
    assert re.search(rf"spark\.jars\.packages {azure}", error)
    assert "configure(SparkSession.builder, hadoop_clients=['abfs'])" in error
    assert same == error
    assert active == "False"


@pytest.mark.jvm
def test_builder_gets_the_clients_packages(attached: list[Any]) -> None:
    """``stores`` adds the packages in the version of Hadoop, and keeps the user's."""
    builder = Builder(**{"spark.jars.packages": "a:b:1"})
    configure(builder, hadoop_clients=["abfs"]).getOrCreate()

    mine, ours = builder._options["spark.jars.packages"].split(",")
    assert mine == "a:b:1"
    assert re.fullmatch(r"org\.apache\.hadoop:hadoop-azure:\d+\.\d+\.\d+", ours)


def test_missing_pyspark_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is an installation command."""
    monkeypatch.setattr("asynccommit.spark.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"pip install 'asynccommit\[spark\]'"):
        configure(Builder())
    assert importlib.util.find_spec("pyspark") is not None


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
def test_builder_of_a_program_with_several_contexts(tmp_path: Path) -> None:
    """A context that was there first is taken; a builder is used again after it has stopped.

    Sessions that ``newSession`` makes inherit only if the builder has made the context.
    """
    done = run_script(
        tmp_path,
        """
        import warnings
        from pyspark import SparkConf, SparkContext
        from asynccommit.spark import is_active

        warnings.simplefilter("ignore")
        kept = configure(builder(scratch))
        SparkContext(conf=SparkConf().setAll([*kept._options.items()]))
        for turn in range(3):
            spark = kept.getOrCreate()
            assert kept.getOrCreate() is spark
            spark.range(4).write.mode("append").parquet(str(scratch / "t"))
            new = spark.newSession()
            print(is_active(spark), is_active(new), len(reports()))
            print(spark._jsc.sc().listJars().size())
            spark.stop()
        """,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True False 1", "1", "True True 2", "1", "True True 3", "1",
    ]  # fmt: skip


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
def test_running_session_with_a_jar_of_its_own(tmp_path: Path) -> None:
    """A session that runs gets it at once, keeps it after more jars, and others are left alone.

    Batches of a query that another thread has started are committed as well.
    """
    done = run_script(
        tmp_path,
        """
        from pyspark import InheritableThread

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

        def stream():
            rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
            write = rows.writeStream.trigger(once=True).foreachBatch(batch)
            write.option("checkpointLocation", str(scratch / "checkpoint")).start()
            spark.streams.active[0].awaitTermination()

        def batch(frame, number):
            frame.write.parquet(str(scratch / "batches"))

        thread = InheritableThread(target=stream)
        thread.start()
        thread.join()
        assert spark.read.parquet(str(scratch / "batches")).count() == 5
        assert len(reports()) == 4, reports()
        print(spark.read.parquet(str(scratch / "t")).count())
        spark.stop()
        again = configure(builder(scratch)).getOrCreate()
        again.range(5).write.parquet(str(scratch / "again"))
        assert len(reports()) == 5, reports()
        """,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["40"]
    assert len(visible(tmp_path / "t")) == 4
    assert leftovers(tmp_path / "t") == []
