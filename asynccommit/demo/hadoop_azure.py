"""Hadoop's ABFS client, which PySpark does not bring: one jar, fetched by Maven into a cache.

All else that ``hadoop-azure`` names is among PySpark's jars, or is for https with OpenSSL and for
latency histograms, which are off.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from asynccommit.errors import UnsupportedError

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_TIMEOUT = 180.0


def client_jar() -> Path:
    """Return the jar ``hadoop-azure`` of PySpark's Hadoop, fetched if it is not in the cache.

    Raises ``UnsupportedError`` that says what is missing.
    """
    version = hadoop_version()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    jar = Path(base, "asynccommit", "jars", f"hadoop-azure-{version}.jar")
    if not jar.is_file():
        _fetch(f"org.apache.hadoop:hadoop-azure:{version}", jar)
    return jar


def hadoop_version() -> str:
    """Return the version of Hadoop among PySpark's jars. Raises ``UnsupportedError``."""
    # Found, not imported: that takes a second.
    spec = find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or (os.path.dirname(spec.origin or "") if spec else "")
    if not home:
        raise UnsupportedError("PySpark is not installed: pip install 'asynccommit[spark]'")
    jars = Path(home, "jars")
    for jar in jars.glob("hadoop-client-api-*.jar"):
        if found := re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name):
            return found[1]
    raise UnsupportedError(f"there is no Hadoop in {jars}: install pyspark, or set SPARK_HOME")


def client_conf(account: str, key: str, endpoint: str) -> Mapping[str, str]:
    """Return what Hadoop needs to reach an account at ``HOST:PORT`` by its key, without TLS."""
    return {
        "fs.azure.abfs.endpoint": endpoint,
        "fs.azure.always.use.https": "false",
        "fs.azure.account.auth.type": "SharedKey",
        f"fs.azure.account.key.{account}.dfs.core.windows.net": key,
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        "fs.azure.createRemoteFileSystemDuringInitialization": "true",
        # Its defaults wait for seconds before they ask again.
        "fs.azure.io.retry.backoff.interval": "50",
        "fs.azure.io.retry.min.backoff.interval": "20",
        "fs.azure.io.retry.max.backoff.interval": "1000",
    }


def _fetch(artifact: str, jar: Path) -> None:
    """Have Maven copy ``artifact`` to ``jar``. Raises ``UnsupportedError``."""
    if shutil.which("mvn") is None:
        raise UnsupportedError(f"{artifact} is fetched by Maven, and there is no mvn: install it")
    jar.parent.mkdir(parents=True, exist_ok=True)
    # Copied beside its name and then renamed: others may look for it now.
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        said = _run_maven(artifact, scratch)
        try:
            os.replace(Path(scratch, jar.name), jar)
        except FileNotFoundError:
            raise UnsupportedError(f"mvn did not fetch {artifact}: {said}") from None


def _run_maven(artifact: str, folder: str) -> str:
    """Have Maven copy ``artifact`` into ``folder``; return the error that it names, if any."""
    arguments = [f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(
            ["mvn", "-B", "-q", "-C", _COPY, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT:.0f} s"
    errors = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
    return " ".join(errors[:1])[:300] or f"exit code {done.returncode}"
