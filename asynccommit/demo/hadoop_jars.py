"""Hadoop's clients of stores, which PySpark does not bring: jars fetched by Maven into a cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path

from asynccommit.errors import UnsupportedError

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_TIMEOUT = 180.0


def cached_jar(artifact: str, name: str, digest: str | None = None) -> Path:
    """Return a jar from the cache, fetched if it is not there.

    Args:
        artifact: ``group:artifact:version``, or with ``:jar:classifier`` behind.
        name: of the file that Maven makes of it.
        digest: its SHA-256, where that is known; Maven compares what the repository says of it.

    Raises:
        UnsupportedError: it cannot be had; says what is missing.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    jar = Path(base, "asynccommit", "jars", name)
    if not jar.is_file():
        _fetch(artifact, jar, digest)
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


def _fetch(artifact: str, jar: Path, digest: str | None) -> None:
    """Have Maven copy ``artifact`` to ``jar``. Raises ``UnsupportedError``."""
    if shutil.which("mvn") is None:
        raise UnsupportedError(f"{artifact} is fetched by Maven, and there is no mvn: install it")
    jar.parent.mkdir(parents=True, exist_ok=True)
    # Copied beside its name and then renamed: others may look for it now.
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        said = _run_maven(artifact, scratch)
        fetched = Path(scratch, jar.name)
        if not fetched.is_file():
            raise UnsupportedError(f"mvn did not fetch {artifact}: {said}")
        if digest not in (None, found := _digest(fetched)):
            raise UnsupportedError(f"mvn fetched another {artifact} than is known, sha256 {found}")
        os.replace(fetched, jar)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


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
