"""``doctor`` of a session: the committer in force for each scheme, and missing clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.inspect.doctor import Check
from asynccommit.spark import configure, doctor, unconfigure
from asynccommit.spark.diagnosis import check_jars, check_session
from asynccommit.spark.jars import spark_jars
from asynccommit.stores.urls import parse_url
from tests.support.spark import run_python


def _by_name(checks: Any) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_configured_session(spark: Any, tmp_path: Path) -> None:
    """Each scheme has its committer with the reason, and the destination is tried."""
    found = doctor(spark, str(tmp_path), write=True)
    checks = _by_name(found.checks)

    assert found.ok
    assert checks["session"].ok is True
    assert spark.version in checks["Spark"].found
    assert checks["file:"].found.startswith("manifest: the store renames files atomically")
    assert checks["no overwrite"].ok is True
    assert list(tmp_path.iterdir()) == []


def test_missing_client_has_lines_to_paste(spark: Any) -> None:
    """The package has the version of Hadoop; it is a problem for a destination of that scheme."""
    shown = repr(doctor(spark))
    url = parse_url("abfs://c@a.dfs.core.windows.net/t")
    found = _by_name(check_session(spark, url))["abfs:"]

    version = spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    line = f"    spark.jars.packages org.apache.hadoop:hadoop-azure:{version}"
    assert line in shown.splitlines()
    assert found.ok is False
    assert "configure(builder, hadoop_clients=['abfs'])" in found.remedy


def test_session_of_spark_alone(spark: Any) -> None:
    """A session that is not configured is a problem with the call that ends it."""
    other = configure(spark.newSession(), schemes=["file"])
    only_files = _by_name(doctor(other).checks)
    unconfigure(other)
    other.conf.set(
        "spark.sql.sources.commitProtocolClass",
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
    )
    found = doctor(other)
    checks = _by_name(found.checks)

    assert "schemes is file" in only_files["hdfs:"].found
    assert not found.ok
    assert "configure(spark)" in checks["session"].remedy
    assert "not configured" in checks["file:"].found


def test_scheme_that_only_the_jvm_can_tell(spark: Any) -> None:
    """The filesystem of the destination is opened, and the reason of a refusal is shown."""
    found = _by_name(check_session(spark, parse_url("ftp://localhost/t")))["ftp:"]

    assert found.found.startswith("Spark's own committer: ftp://localhost")


@pytest.mark.jvm
def test_jars_of_the_installed_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a session Spark's jars tell; spark-defaults.conf may load a client, too."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    missing = _by_name(check_jars())["client of s3a"]
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.jars.packages org.apache.hadoop:hadoop-aws:3.4.1\n"
    )
    loaded = _by_name(check_jars())["client of s3a"]

    assert str(spark_jars()) in _by_name(check_jars())["Hadoop of Spark"].found
    assert missing.lines[0].startswith("spark.jars.packages org.apache.hadoop:hadoop-aws:")
    assert loaded.ok is True
    assert "spark-defaults.conf" in loaded.found


@pytest.mark.jvm
def test_google_has_two_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's connector counts, and where Hadoop has no client it is the remedy."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for version, part in (("3.5.0", "configure(builder"), ("3.4.1", "gcs-connector, whose name")):
        (tmp_path / f"hadoop-client-api-{version}.jar").touch()
        monkeypatch.setattr("asynccommit.spark.diagnosis.spark_jars", lambda: tmp_path)
        assert part in _by_name(check_jars("gs"))["client of gs"].remedy
        (tmp_path / f"hadoop-client-api-{version}.jar").unlink()

    for jar in ("hadoop-client-api-3.4.1.jar", "gcs-connector-hadoop3-2.2.14-shaded.jar"):
        (tmp_path / jar).touch()
    assert _by_name(check_jars("gs"))["client of gs"].ok is True


def test_what_is_no_session() -> None:
    """Spark Connect and other objects are refused by name."""
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        doctor(connect)
    with pytest.raises(OptionError, match="neither a SparkSession"):
        doctor(object())


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
def test_session_of_this_machine(tmp_path: Path) -> None:
    """With ``--spark`` a session with the machine's settings is started, and checked as well."""
    (tmp_path / "spark-defaults.conf").write_text("spark.hadoop.fs.permissions.umask-mode 027\n")
    arguments = ("-m", "asynccommit", "doctor", str(tmp_path), "--write", "--spark", "--json")
    done = run_python("-W", "ignore", *arguments, SPARK_CONF_DIR=str(tmp_path))
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}

    assert done.returncode == 0, done.stdout
    assert checks["umask of Hadoop"]["found"].startswith("027")
    assert checks["class on executors"]["found"].startswith("loadable on driver on ")
    assert checks["identity of the JVM"]["found"].endswith("lists and writes")
    assert [path.name for path in tmp_path.iterdir()] == ["spark-defaults.conf"]
