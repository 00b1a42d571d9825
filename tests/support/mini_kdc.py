"""The Kerberos KDC of Hadoop's own tests, and a cluster that accepts its tickets only."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from asynccommit.demo.hadoop_jars import Dependency, cached_jars, hadoop_version
from asynccommit.errors import UnsupportedError
from tests.support import mini_hdfs
from tests.support.hadoop import Hadoop
from tests.support.mini_hdfs import MiniHdfs, class_path, running_cluster
from tests.support.mini_yarn import MiniYarn, conf_in, place_of, running_yarn, yarn_jars

USER, OTHER = "alice", "bob"
"""Who has keys, and for whom that user may act."""

_SERVICE, _WEB = "hdfs/localhost", "HTTP/localhost"
_CLIENT = "org.apache.kerby.kerberos.kerb.client.KrbClient"
_OPEN = (  # the KDC has the JVM read its configuration again
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
)


@functools.cache
def why_not() -> str | None:
    """Return why no cluster with Kerberos can be started here, or ``None``."""
    if why := mini_hdfs.why_not():
        return why
    if find_library("gssapi_krb5") is None:
        return "needs libgssapi_krb5"
    try:
        kdc_jars()
    except UnsupportedError as error:
        return str(error)
    return None


def kdc_jars() -> Sequence[Path]:
    """Return the jars of Hadoop's MiniKdc. Raises ``UnsupportedError``."""
    version = hadoop_version()
    wanted = Dependency("org.apache.hadoop", "hadoop-minikdc", version)
    return cached_jars(
        f"hadoop-minikdc-{version}", [wanted], without_groups=("org.slf4j", "ch.qos.reload4j")
    )


@dataclass(frozen=True)
class SecuredHdfs:
    """A cluster with Kerberos, and what a client of it needs.

    Attributes:
        hdfs: the cluster; its JVM is logged in as the service.
        conf_dir: a directory for ``HADOOP_CONF_DIR``.
        krb5_conf: the configuration of Kerberos.
        cache: a file with a ticket of ``alice``.
        keytab: the keys of ``alice``.
        principal: the name of ``alice``, with the realm.
        settings: the configuration of the servers.
    """

    hdfs: MiniHdfs
    conf_dir: Path
    krb5_conf: Path
    cache: Path
    keytab: Path
    principal: str
    settings: Mapping[str, str]

    def environment(self, *, ticket: bool = True) -> dict[str, str]:
        """Return the variables of a client, with or without a ticket."""
        cache = self.cache if ticket else self.cache.with_name("no-ticket")
        return {
            "HADOOP_CONF_DIR": str(self.conf_dir),
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5CCNAME": str(cache),
            "JDK_JAVA_OPTIONS": f"-Djava.security.krb5.conf={self.krb5_conf}",
        }


@contextmanager
def start_secured_hdfs(
    folder: Path,
    *options: str,
    jars: Sequence[Path] = (),
    settings: Mapping[str, str] | None = None,
) -> Iterator[SecuredHdfs]:
    """Run a KDC, a NameNode and a DataNode with their files in ``folder``."""
    more = [str(jar) for jar in (*kdc_jars(), *jars)]
    with Hadoop.start("-cp", class_path(*more), *_OPEN, *options) as hadoop:
        kdc = _started_kdc(hadoop, folder / "kdc")
        try:
            realm, krb5 = str(kdc.getRealm()), _krb5_conf(kdc, folder)
            keytabs = [_keytab(hadoop, kdc, folder, name) for name in ("service", USER)]
            conf = {**_secured(keytabs[0], realm), **(settings or {})}
            _log_in(hadoop, conf, keytabs[0], realm)
            with running_cluster(hadoop, folder / "hdfs", conf=conf) as hdfs:
                cache = _ticket(hadoop, krb5, keytabs[1], folder / "ticket", f"{USER}@{realm}")
                conf_dir = _conf_dir(folder / "conf", conf)
                _open_root(hdfs)
                principal = f"{USER}@{realm}"
                yield SecuredHdfs(hdfs, conf_dir, krb5, cache, keytabs[1], principal, conf)
        finally:
            kdc.stop()


@contextmanager
def start_secured_yarn(
    folder: Path, *options: str, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[SecuredHdfs, MiniYarn]]:
    """Run YARN beside all that ``start_secured_hdfs`` runs."""
    jars = (*yarn_jars(), conf_in(folder / "yarn"))
    more = (*place_of(folder), *options)
    with start_secured_hdfs(folder, *more, jars=jars, settings=settings) as secured:
        conf = dict(secured.settings)
        for node in ("resourcemanager", "nodemanager"):
            conf[f"yarn.{node}.principal"] = conf["dfs.namenode.kerberos.principal"]
            conf[f"yarn.{node}.keytab"] = conf["dfs.namenode.keytab.file"]
        with running_yarn(secured.hdfs, folder / "yarn", conf) as yarn:
            yield secured, yarn


def _started_kdc(hadoop: Hadoop, folder: Path) -> Any:
    folder.mkdir()
    kind = "org.apache.hadoop.minikdc.MiniKdc"
    settings = hadoop.java(kind).createConf()
    kdc = hadoop.new(kind, settings, hadoop.new("java.io.File", str(folder)))
    with hadoop.errors():
        kdc.start()
    return kdc


def _krb5_conf(kdc: Any, folder: Path) -> Path:
    """Return a copy of the KDC's configuration that asks no name server."""
    text = Path(str(kdc.getKrb5conf().getPath())).read_text()
    more = "[libdefaults]\n    dns_canonicalize_hostname = false\n    rdns = false\n"
    found = folder / "krb5.conf"
    found.write_text(text.replace("[libdefaults]\n", more, 1))
    return found


def _keytab(hadoop: Hadoop, kdc: Any, folder: Path, name: str) -> Path:
    keytab = folder / f"{name}.keytab"
    names = [USER] if name == USER else [_SERVICE, _WEB]
    principals = hadoop.array(hadoop.jvm.java.lang.String, *names)
    with hadoop.errors():
        kdc.createPrincipal(hadoop.new("java.io.File", str(keytab)), principals)
    return keytab


def _secured(keytab: Path, realm: str) -> dict[str, str]:
    service, web = f"{_SERVICE}@{realm}", f"{_WEB}@{realm}"
    return {
        "hadoop.security.authentication": "kerberos",
        "dfs.namenode.kerberos.principal": service,
        "dfs.namenode.keytab.file": str(keytab),
        "dfs.datanode.kerberos.principal": service,
        "dfs.datanode.keytab.file": str(keytab),
        "dfs.web.authentication.kerberos.principal": web,
        "dfs.web.authentication.kerberos.keytab": str(keytab),
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": "authentication",
        "ignore.secure.ports.for.testing": "true",
        f"hadoop.proxyuser.{USER}.hosts": "*",
        f"hadoop.proxyuser.{USER}.users": OTHER,
    }


def _log_in(hadoop: Hadoop, conf: Mapping[str, str], keytab: Path, realm: str) -> None:
    users = hadoop.java("org.apache.hadoop.security.UserGroupInformation")
    with hadoop.errors():
        users.setConfiguration(hadoop.configuration(conf))
        users.loginUserFromKeytab(f"{_SERVICE}@{realm}", str(keytab))


def _ticket(hadoop: Hadoop, krb5: Path, keytab: Path, cache: Path, principal: str) -> Path:
    """Do what ``kinit`` does."""
    file = functools.partial(hadoop.new, "java.io.File")
    with hadoop.errors():
        client = hadoop.new(
            "org.apache.kerby.kerberos.kerb.client.KrbClient", file(str(krb5.parent))
        )
        client.init()
        client.storeTicket(client.requestTgt(principal, file(str(keytab))), file(str(cache)))
    os.chmod(cache, 0o600)
    return cache


def _conf_dir(folder: Path, conf: Mapping[str, str]) -> Path:
    """Write Hadoop's configuration for clients."""
    folder.mkdir()
    entries = "".join(
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
        for key, value in conf.items()
        if "keytab" not in key
    )
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(f"<configuration>{entries}</configuration>")
    return folder


def _open_root(hdfs: MiniHdfs) -> None:
    everybody = hdfs.hadoop.new("org.apache.hadoop.fs.permission.FsPermission", "777")
    with hdfs.hadoop.errors():
        hdfs.filesystem.setPermission(hdfs.path("/"), everybody)
