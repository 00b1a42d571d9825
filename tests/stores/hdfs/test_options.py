"""Options of a store on HDFS: accepted, refused, and what they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.stores.hdfs.options import HdfsSettings, read_settings
from asynccommit.stores.urls import parse_url

HA = {
    "dfs.ha.namenodes.ns": "a,b",
    "dfs.namenode.rpc-address.ns.a": "one:8020",
    "dfs.namenode.rpc-address.ns.b": "two:8020",
}
FAILOVERS = "dfs.client.failover.max.attempts"


def settings(
    url: str, options: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> HdfsSettings:
    """Return the settings of a store without an environment, unless one is given."""
    return read_settings(parse_url(url), options or {}, environ=environ or {})


def write_site(folder: Path, name: str, values: Mapping[str, str]) -> None:
    """Write a configuration file of Hadoop."""
    entries = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>"
        for key, value in values.items()
    )
    (folder / name).write_text(f"<?xml version='1.0'?><configuration>{entries}</configuration>")


@pytest.mark.parametrize(
    "url, expected",
    [
        ("hdfs://nn:9000/t", "hdfs://nn:9000"),
        ("hdfs://nn/t", "hdfs://nn:8020"),
        ("hdfs://ns/t", "hdfs://ns"),
        ("viewfs://cluster/t", "viewfs://cluster"),
    ],
)
def test_url_names_the_namenodes(url: str, expected: str) -> None:
    """A host has Hadoop's port by default, a name service and a view file system have none."""
    assert settings(url, HA).url == expected


@pytest.mark.parametrize(
    "environ, options, user",
    [
        ({"HADOOP_USER_NAME": "alice"}, {}, "alice"),
        ({"HADOOP_USER_NAME": "alice", "HADOOP_PROXY_USER": "bob"}, {}, "bob"),
        ({"HADOOP_USER_NAME": "alice"}, {"hadoop.security.authentication": "kerberos"}, ""),
    ],
)
def test_user_as_the_namenode_knows_it(
    environ: dict[str, str], options: dict[str, str], user: str
) -> None:
    """The environment names the user, but for Kerberos, whose names the NameNode makes."""
    assert settings("hdfs://nn/t", options, environ).user == user


def test_url_without_a_host_needs_the_default(tmp_path: Path) -> None:
    """``hdfs:///t`` means ``fs.defaultFS``, if that is of the same scheme."""
    write_site(tmp_path, "core-site.xml", {"fs.defaultFS": "hdfs://ns"})
    found = settings("hdfs:///t", environ={"HADOOP_CONF_DIR": str(tmp_path)})
    assert (found.url, found.name) == (None, "hdfs://ns")
    with pytest.raises(OptionError, match=r"fs\.defaultFS"):
        settings("hdfs:///t")


def test_failovers_end_after_one_round() -> None:
    """The library tries each NameNode once, whatever the configuration says."""
    assert settings("hdfs://nn:1/t").config[FAILOVERS] == "0"
    assert [settings(url, HA).group for url in ("hdfs://ns/t", "hdfs://nn:1/t")] == [True, False]
    assert settings("hdfs://ns/t", {**HA, FAILOVERS: "15"}).config[FAILOVERS] == "1"


def test_site_files_are_read_and_options_win(tmp_path: Path) -> None:
    """Keys come from both files of the directory, and an option replaces them."""
    write_site(tmp_path, "core-site.xml", {"fs.permissions.umask-mode": "077"})
    write_site(tmp_path, "hdfs-site.xml", HA)
    found = settings("hdfs://ns/t", {"config_dir": tmp_path})
    assert (found.umask, found.url, found.config_dir) == (0o077, "hdfs://ns", str(tmp_path))
    changed = {"config_dir": tmp_path, "spark.hadoop.fs.permissions.umask-mode": "002"}
    assert settings("hdfs://ns/t", changed).umask == 0o002


@pytest.mark.parametrize(
    "text, expected",
    [("", 0o022), ("0027", 0o027), ("u=rwx,g=rx,o=", 0o027), ("u=rw,g=,o=", 0o177)],
)
def test_umask_is_octal_or_symbolic(text: str, expected: int) -> None:
    """Both forms of Hadoop are read; the default is 022."""
    conf = {"fs.permissions.umask-mode": text} if text else {}
    assert settings("hdfs://nn:1/t", conf).umask == expected


@pytest.mark.parametrize(
    "options, text",
    [
        ({"fs.permissions.umask-mode": "many"}, "umask-mode is 'many'"),
        ({"kerberos_keytab": "/k"}, "needs kerberos_principal"),
        ({"kerberos_principle": "me"}, "did you mean kerberos_principal"),
        ({"user": "me"}, "HADOOP_USER_NAME"),
        ({"timeout": 0}, "timeout"),
        ({"max_concurrency": "x"}, "max_concurrency"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    """The error names the option and what is expected."""
    with pytest.raises(OptionError, match=text):
        settings("hdfs://nn:1/t", options)


def test_options_of_other_stores_are_passed_over() -> None:
    """A configuration may hold the keys of several stores."""
    conf = {"fs.s3a.secret.key": "x", "fs.azure.account.key": "y", "dfs.replication": "2"}
    assert set(settings("hdfs://nn:1/t", conf).config) == {"dfs.replication", FAILOVERS}


def test_kerberos_is_passed_on() -> None:
    """The three arguments of the library keep their names; fsspec's name of the cache works."""
    given = {"kerberos_principal": "me@R", "kerberos_keytab": "/k", "kerb_ticket": "/c"}
    assert settings("hdfs://nn:1/t", given).kerberos == {
        "kerberos_principal": "me@R",
        "kerberos_keytab": "/k",
        "kerberos_cache": "/c",
    }


def test_broken_site_file_is_named(tmp_path: Path) -> None:
    """A file that is no XML is refused under its name."""
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(OptionError, match=r"hdfs-site\.xml cannot be read"):
        settings("hdfs://nn:1/t", {"config_dir": tmp_path})
