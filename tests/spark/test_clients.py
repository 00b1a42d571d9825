"""Hadoop's store clients: the packages that have them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.spark.clients import (
    CLIENTS,
    EXCLUDES,
    PACKAGES,
    client_settings,
    hadoop_beside,
    require_clients,
)
from asynccommit.spark.jars import Spark


def test_client_of_azure() -> None:
    """Its version is Hadoop's, and both schemes need it once."""
    assert client_settings(["abfs", "abfss"], "3.4.1", {}) == {
        PACKAGES: "org.apache.hadoop:hadoop-azure:3.4.1"
    }


def test_client_of_amazon_comes_without_the_whole_sdk() -> None:
    """Where the version of the SDK is known, its bundle is left out; packages so far stay."""
    found = client_settings(["s3a"], "3.5.0", {PACKAGES: "a:b:1", EXCLUDES: "c:d"})

    assert found[PACKAGES].split(",") == [
        "a:b:1",
        "org.apache.hadoop:hadoop-aws:3.5.0",
        "software.amazon.awssdk:s3:2.35.4",
        "software.amazon.awssdk:s3-transfer-manager:2.35.4",
        "software.amazon.awssdk:sts:2.35.4",
    ]
    assert found[EXCLUDES] == "c:d,software.amazon.awssdk:bundle"
    assert client_settings(["s3a"], "3.3.4", {}) == {PACKAGES: "org.apache.hadoop:hadoop-aws:3.3.4"}


def test_client_of_google_is_hadoops_own_where_it_has_one() -> None:
    """Before Hadoop 3.5 the error says which jar to set instead."""
    assert client_settings(["gs"], "3.5.0", {}) == {PACKAGES: "org.apache.hadoop:hadoop-gcp:3.5.0"}
    assert client_settings(["gs"], "4.0.0-beta1", {})
    with pytest.raises(UnsupportedError, match=r"Hadoop 3\.4\.2 has no client for gs: set spark"):
        client_settings(["gs"], "3.4.2", {})


def test_scheme_without_a_known_client() -> None:
    """The error names the schemes that have one."""
    with pytest.raises(OptionError, match=r"stores has 'oss': expected .* abfss, gs, s3a"):
        client_settings(["oss"], "3.5.0", {})


class _Loads:
    """A configuration of Hadoop that can load some classes."""

    def __init__(self, *classes: str, **values: str) -> None:
        self._classes, self._values = classes, values

    def get(self, key: str) -> str | None:
        return self._values.get(key.replace(".", "_"))

    def getClassByNameOrNull(self, name: str) -> str | None:  # noqa: N802  Hadoop's name
        return name if name in self._classes else None


def _session(conf: _Loads) -> Any:
    """Return what is asked of a session of Spark whose Hadoop is 3.5.0."""
    state = SimpleNamespace(newHadoopConf=lambda: conf)
    util = SimpleNamespace(VersionInfo=SimpleNamespace(getVersion=lambda: "3.5.0"))
    hadoop = SimpleNamespace(hadoop=SimpleNamespace(util=util))
    return SimpleNamespace(
        _jsparkSession=SimpleNamespace(sessionState=lambda: state),
        _jvm=SimpleNamespace(org=SimpleNamespace(apache=hadoop)),
        sparkContext=SimpleNamespace(getConf=dict),
    )


def test_connector_of_google_is_a_client_once_it_is_set() -> None:
    """Since Hadoop 3.5 it is not loaded by itself; the error has the setting."""
    ours, google = CLIENTS["gs"].kind, CLIENTS["gs"].other_kind
    for has, named in ((google, google), (google, ""), (ours, ours), (ours, "")):
        require_clients(_session(_Loads(has, fs_gs_impl=named)), ["gs"])
    with pytest.raises(UnsupportedError, match=rf"set spark\.hadoop\.fs\.gs\.impl to {google}"):
        require_clients(_session(_Loads(google, fs_gs_impl=ours)), ["gs"])
    with pytest.raises(
        UnsupportedError, match=r"--packages org\.apache\.hadoop:hadoop-gcp:3\.5\.0"
    ):
        require_clients(_session(_Loads()), ["gs"])


def test_version_of_hadoop(tmp_path: Path) -> None:
    """It is that of the jar beside Spark's; without one the error names the directory."""
    spark = Spark("4.3.0", "2.13", str(tmp_path / "*"), "java")
    with pytest.raises(UnsupportedError, match=str(tmp_path)):
        hadoop_beside(spark)

    (tmp_path / "hadoop-client-api-3.5.0.jar").touch()
    assert hadoop_beside(spark) == "3.5.0"
