"""Options of a store on HDFS, and the NameNodes that a URL names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.runtime.host import own_name
from asynccommit.stores.hdfs.hadoop import (
    PORT,
    PREFIXES,
    config_directory,
    fewest_namenodes,
    is_name_service,
    read_site_files,
)
from asynccommit.stores.http.options import OptionNames, count, number
from asynccommit.stores.modes import umask_of
from asynccommit.stores.urls import Address

KNOWN = frozenset(
    {
        "config_dir",
        "kerberos_cache",
        "kerberos_keytab",
        "kerberos_principal",
        "max_concurrency",
        "timeout",
    }
)
"""Options that have an effect here, Hadoop's apart."""

NAMES = OptionNames(
    store="HDFS",
    known=KNOWN,
    hadoop=PREFIXES,
    foreign=("fs.azure.", "fs.gs.", "fs.s3a.", "google.cloud."),
    passed_over=frozenset(
        {
            "asynchronous",
            "block_size",
            "buffer_size",
            "default_block_size",
            "listings_expiry_time",
            "loop",
            "skip_instance_cache",
            "use_listings_cache",
        }
    ),
    same={"kerb_ticket": "kerberos_cache"},
    elsewhere={
        "user": "set HADOOP_USER_NAME, or HADOOP_PROXY_USER to act for another user",
        "host": "name the NameNode in the URL, hdfs://HOST:PORT/PATH",
        "port": "name the NameNode in the URL, hdfs://HOST:PORT/PATH",
        "extra_conf": "give its entries as options of their own",
    },
)

# The library reads these itself; a store with other values has clients of its own.
_IDENTITY = (
    "HADOOP_USER_NAME",
    "HADOOP_PROXY_USER",
    "HADOOP_TOKEN_FILE_LOCATION",
    "KRB5CCNAME",
    "KRB5_CONFIG",
)
_TIMEOUT = 120.0
_WORKERS = 64
_MOST = 4096
_FAILOVERS = "dfs.client.failover.max.attempts"


@dataclass(frozen=True, slots=True)
class HdfsSettings:
    """The settings of a store on HDFS.

    Attributes:
        url: scheme and NameNodes, as hdfs-native takes them; ``None`` for ``fs.defaultFS``.
        name: the same for messages.
        config: Hadoop's keys besides those of the configuration's files.
        config_dir: directory of the configuration; ``None`` if there is none.
        kerberos: arguments of hdfs-native about Kerberos.
        identity: values of the environment that tell who asks.
        group: whether the URL names several NameNodes.
        user: the user as whom the NameNode sees this process, or ``""`` if only the NameNode knows.
        umask: the permissions that new files and directories lack.
        timeout: seconds in which the NameNode must answer.
        workers: requests in flight.
    """

    url: str | None
    name: str
    config: Mapping[str, str] = field(repr=False)
    config_dir: str | None
    kerberos: Mapping[str, str] = field(repr=False)
    identity: tuple[str, ...] = field(repr=False)
    group: bool
    user: str
    umask: int
    timeout: float
    workers: int


def read_settings(
    address: Address, options: Mapping[str, Any], *, environ: Mapping[str, str]
) -> HdfsSettings:
    """Return the settings of the store that holds ``address``.

    Args:
        address: its scheme and authority count.
        options: under the names of this store, or Hadoop's keys.
        environ: the environment.

    Raises:
        OptionError: an option is unknown or cannot be read, or the URL names no NameNode.
    """
    named, hadoop = NAMES.sort(options)
    directory = named.get("config_dir") or config_directory(environ)
    conf = {**(read_site_files(str(directory)) if directory else {}), **hadoop}
    url = _url(address, conf)
    # With this number the library ends after the first round over the NameNodes; the requests are
    # repeated here.
    fewest = fewest_namenodes(conf)
    hadoop[_FAILOVERS] = str(fewest - 1)
    return HdfsSettings(
        url=url,
        name=url or conf["fs.defaultFS"],
        config=hadoop,
        config_dir=None if directory is None else str(directory),
        kerberos=_kerberos(named),
        identity=tuple(environ.get(name, "") for name in _IDENTITY),
        group=fewest > 1 and ":" not in address.authority,
        user=_user(conf, environ),
        umask=umask_of(conf),
        timeout=number(named, "timeout", "a number of seconds") or _TIMEOUT,
        workers=count(named, "max_concurrency", _MOST) or _WORKERS,
    )


def _url(address: Address, conf: Mapping[str, str]) -> str | None:
    host = address.authority
    if not host:
        default = conf.get("fs.defaultFS", "")
        if not default.startswith(f"{address.scheme}://"):
            raise OptionError(
                f"{address.scheme}:///PATH needs fs.defaultFS: set HADOOP_CONF_DIR, or name the "
                f"NameNode, {address.scheme}://HOST:PORT/PATH"
            )
        return None
    if address.scheme == "hdfs" and ":" not in host and not is_name_service(conf, host):
        host = f"{host}:{PORT}"
    return f"{address.scheme}://{host}"


def _user(conf: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the name that this process gives itself.

    Kerberos has rules on the NameNode that make a name of a principal.
    """
    secured = conf.get("hadoop.security.authentication", "simple").strip().lower() != "simple"
    return environ.get("HADOOP_PROXY_USER", "") if secured else hadoop_user(environ)


def hadoop_user(environ: Mapping[str, str]) -> str:
    """Return the user that this process is on a cluster without Kerberos."""
    named = environ.get("HADOOP_PROXY_USER") or environ.get("HADOOP_USER_NAME")
    return named or own_name()


def _kerberos(named: Mapping[str, Any]) -> dict[str, str]:
    names = ("kerberos_principal", "kerberos_keytab", "kerberos_cache")
    found = {name: str(named[name]) for name in names if name in named}
    if found and "kerberos_principal" not in found:
        raise OptionError(f"{next(iter(found))} needs kerberos_principal: NAME@REALM")
    return found
