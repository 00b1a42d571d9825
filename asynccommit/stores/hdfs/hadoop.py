"""Hadoop's configuration of HDFS: its files, and some of its keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from asynccommit.errors import OptionError

PREFIXES = ("dfs.", "fs.", "hadoop.", "ipc.", "io.", "net.")
"""Prefixes of the keys that a client of HDFS may read."""
FILES = ("core-site.xml", "hdfs-site.xml")
"""The files that a client reads, in this order."""
PORT = 8020
"""The port of a NameNode whose URL has none."""

_NAMENODES = "dfs.ha.namenodes."


def config_directory(environ: Mapping[str, str]) -> str | None:
    """Return the directory of Hadoop's configuration, or ``None``."""
    if given := environ.get("HADOOP_CONF_DIR", ""):
        return given
    home = environ.get("HADOOP_HOME", "")
    return f"{home}/etc/hadoop" if home else None


def read_site_files(directory: str) -> dict[str, str]:
    """Return the values of the configuration files in a directory.

    A missing file is empty. Raises ``OptionError`` for a file that cannot be read.
    """
    found: dict[str, str] = {}
    for name in FILES:
        path = Path(directory, name)
        try:
            root = ElementTree.fromstring(path.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ElementTree.ParseError) as error:
            raise OptionError(f"{path} cannot be read: {error}") from None
        for entry in root.iter("property"):
            key, value = (entry.findtext("name") or "").strip(), entry.findtext("value")
            if key and value is not None:
                found[key] = value.strip()
    return found


def is_name_service(conf: Mapping[str, str], host: str) -> bool:
    """Return whether ``host`` is the name of a group of NameNodes."""
    return bool(conf.get(_NAMENODES + host))


def fewest_namenodes(conf: Mapping[str, str]) -> int:
    """Return the number of NameNodes of the smallest name service, 1 without any."""
    counts = [
        len([name for name in value.split(",") if name.strip()])
        for key, value in conf.items()
        if key.startswith(_NAMENODES)
    ]
    return max(1, min(counts, default=1))
