"""Packages of Hadoop's store clients, through which Spark's tasks write.

PySpark includes none of them. Without its client a write fails in Spark, before this package is
asked, with a ``ClassNotFoundException`` that names no package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.spark.jars import Spark

PACKAGES = "spark.jars.packages"
EXCLUDES = "spark.jars.excludes"
CLIENT_KEYS: Mapping[str, str] = {PACKAGES: "--packages", EXCLUDES: "--exclude-packages"}
"""Setting -> the flag of spark-submit for it."""
S3A_SDKS: Mapping[str, str] = {"3.5.0": "2.35.4"}
"""Version of Hadoop -> version of Amazon's SDK that its client was built with."""
SDK = "software.amazon.awssdk"
SDK_PARTS = ("s3", "s3-transfer-manager", "sts")
"""The parts of the SDK that the client uses: 18 MB of a bundle of 686 MB."""


@dataclass(frozen=True, slots=True)
class Client:
    """The client of one store.

    Attributes:
        kind: the class that Hadoop loads for the scheme.
        artifact: Maven's group and artifact; its version is that of Hadoop.
        since: the first version of Hadoop that has it.
        other: the artifact of another client of the store.
        other_kind: its class, which Hadoop loads only if it is set.
        instead: what to do where Hadoop has none.
    """

    kind: str
    artifact: str
    since: tuple[int, ...] = ()
    other: str = ""
    other_kind: str = ""
    instead: str = ""

    @property
    def jars(self) -> Mapping[str, str]:
        """Return patterns of the jars with a client of the store, by artifact."""
        ours = self.artifact.rpartition(":")[2]
        others = {self.other: f"{self.other}-*.jar"} if self.other else {}
        return {ours: f"{ours}-[0-9]*.jar", **others}


_GOOGLE = (
    "set spark.jars to the jar of Google's connector, com.google.cloud.bigdataoss:gcs-connector, "
    "whose name ends in shaded, and leave gs out of stores"
)
_AZURE = "org.apache.hadoop:hadoop-azure"
CLIENTS: Mapping[str, Client] = {
    "abfs": Client("org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem", _AZURE),
    "abfss": Client("org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem", _AZURE),
    "gs": Client(
        "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",
        "org.apache.hadoop:hadoop-gcp",
        since=(3, 5),
        other="gcs-connector",
        other_kind="com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        instead=_GOOGLE,
    ),
    "s3a": Client("org.apache.hadoop.fs.s3a.S3AFileSystem", "org.apache.hadoop:hadoop-aws"),
}


def client_settings(
    stores: Sequence[str], hadoop: str, before: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the Spark settings that load the clients of some schemes.

    Args:
        stores: schemes, as ``abfs`` or ``s3a``.
        hadoop: version of Hadoop among Spark's jars.
        before: settings so far; packages that they name are kept.

    Raises ``OptionError`` for a scheme without a known client, and ``UnsupportedError`` if this
    Hadoop has none for it.
    """
    wanted, excluded = _packages(stores, hadoop)
    added = {PACKAGES: wanted, EXCLUDES: excluded}
    return {
        key: ",".join(dict.fromkeys([*filter(None, before.get(key, "").split(",")), *values]))
        for key, values in added.items()
        if values
    }


def check_schemes(stores: Sequence[str]) -> None:
    """Refuse schemes without a known client.

    Raises ``OptionError``.
    """
    for scheme in stores:
        if scheme not in CLIENTS:
            known = ", ".join(CLIENTS)
            raise OptionError(f"stores has {scheme!r}: expected some of {known}")


def hadoop_beside(spark: Spark) -> str:
    """Return the version of Hadoop among Spark's jars.

    Raises ``UnsupportedError``.
    """
    return hadoop_in(Path(spark.class_path).parent)


def hadoop_in(jars: Path) -> str:
    """Return the version of Hadoop in a directory of jars.

    Raises ``UnsupportedError``.
    """
    for jar in jars.glob("hadoop-client-api-*.jar"):
        if found := re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name):
            return found[1]
    raise UnsupportedError(f"there is no Hadoop in {jars}: install pyspark, or set SPARK_HOME")


def require_clients(session: Any, stores: Sequence[str]) -> None:
    """Check that a running session can load the clients of some schemes.

    Raises ``UnsupportedError`` with the lines that load them, and ``OptionError`` for a scheme
    without a known client.
    """
    conf = session._jsparkSession.sessionState().newHadoopConf()
    version = str(session._jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    context = session.sparkContext.getConf()
    before = {key: context.get(key, "") for key in CLIENT_KEYS}
    check_schemes(stores)
    missing = [each for each in stores if not _has_client(conf, each)]
    if missing:
        for scheme in missing:
            _refuse_unset(conf, scheme)
        settings = client_settings(missing, version, before)
        flags = " ".join(f"{CLIENT_KEYS[key]} {value}" for key, value in settings.items())
        lines = "; ".join(f"{key} {value}" for key, value in settings.items())
        raise UnsupportedError(
            f"this session has no client of Hadoop for {', '.join(missing)}, and a JVM that runs "
            f"cannot load one: start Spark with {flags} (spark-submit, pyspark or "
            f"PYSPARK_SUBMIT_ARGS), with {lines} in spark-defaults.conf, or, in a program that "
            f"starts its own, by configure(SparkSession.builder, hadoop_clients={list(stores)})"
        )


def _has_client(conf: Any, scheme: str) -> bool:
    """Return whether what Hadoop loads for a scheme is there.

    That is the class in its settings, or else one that a jar offers.
    """
    client, named = CLIENTS[scheme], conf.get(f"fs.{scheme}.impl")
    kinds = [named] if named else [client.kind, client.other_kind]
    return any(kind and conf.getClassByNameOrNull(kind) is not None for kind in kinds)


def _refuse_unset(conf: Any, scheme: str) -> None:
    """Refuse a session that has another client, but does not load it."""
    client = CLIENTS[scheme]
    if client.other_kind and conf.getClassByNameOrNull(client.other_kind) is not None:
        key, kind = f"fs.{scheme}.impl", client.other_kind
        raise UnsupportedError(
            f"this session has {client.other}, but {key} is {conf.get(key)}: set "
            f"spark.hadoop.{key} to {kind} before the session starts, or "
            f'spark.conf.set("{key}", "{kind}")'
        )


def _packages(stores: Sequence[str], hadoop: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the coordinates of packages to load, and of those to leave out."""
    wanted: list[str] = []
    excluded: list[str] = []
    check_schemes(stores)
    for scheme in stores:
        client = CLIENTS[scheme]
        if tuple(map(int, re.findall(r"\d+", hadoop)[:3])) < client.since:
            raise UnsupportedError(f"Hadoop {hadoop} has no client for {scheme}: {client.instead}")
        wanted.append(f"{client.artifact}:{hadoop}")
        if scheme == "s3a" and hadoop in S3A_SDKS:
            wanted += [f"{SDK}:{part}:{S3A_SDKS[hadoop]}" for part in SDK_PARTS]
            excluded.append(f"{SDK}:bundle")
    return wanted, excluded
