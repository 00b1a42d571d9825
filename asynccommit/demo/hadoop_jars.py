"""Fetch Hadoop's store clients with Maven into a cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path

from asynccommit.errors import UnsupportedError

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_TIMEOUT = 180.0


@dataclass(frozen=True, slots=True)
class Dependency:
    """A Maven artifact with its dependencies, except ``without``.

    Artifacts in ``without`` are named by group and artifact.
    """

    group: str
    artifact: str
    version: str
    without: Sequence[tuple[str, str]] = ()

    def to_xml(self) -> str:
        """Return the dependency as an XML element of a pom."""
        names = f"<groupId>{self.group}</groupId><artifactId>{self.artifact}</artifactId>"
        leave = "".join(
            f"<exclusion><groupId>{group}</groupId><artifactId>{artifact}</artifactId></exclusion>"
            for group, artifact in self.without
        )
        return (
            f"<dependency>{names}<version>{self.version}</version>"
            f"<exclusions>{leave}</exclusions></dependency>"
        )


def cached_jar(artifact: str, name: str, digest: str | None = None) -> Path:
    """Return a jar from the cache, fetched if it is not there.

    Args:
        artifact: ``group:artifact:version``, optionally followed by ``:jar:classifier``.
        name: file name that Maven gives the jar.
        digest: SHA-256 of the jar if known; Maven itself checks the repository's checksum.

    Raises:
        UnsupportedError: the jar is not available; the message says what is missing.
    """
    jar = _cache() / name
    if not jar.is_file():
        _fetch(artifact, jar, digest)
    return jar


def cached_jars(
    name: str, wanted: Sequence[Dependency], *, without_groups: Sequence[str] = ()
) -> Sequence[Path]:
    """Return jars and their dependencies, fetched if not in the cache.

    Args:
        name: name of the directory in the cache.
        wanted: artifacts to fetch.
        without_groups: Maven groups to exclude.

    Raises:
        UnsupportedError: the jars are not available; the message says what is missing.
    """
    folder = _cache() / name
    if not folder.is_dir():
        _fetch_all(folder, wanted, without_groups)
    return sorted(folder.glob("*.jar"))


def spark_conf(jars: Sequence[Path], hadoop: Mapping[str, str]) -> dict[str, str]:
    """Return the Spark options that load jars and set Hadoop's options."""
    options = {f"spark.hadoop.{key}": value for key, value in hadoop.items()}
    return {"spark.jars": ",".join(map(str, jars)), **options}


def hadoop_version() -> str:
    """Return the version of PySpark's Hadoop jars.

    Raises ``UnsupportedError``.
    """
    # Located without import: importing it takes a second.
    spec = find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or (os.path.dirname(spec.origin or "") if spec else "")
    if not home:
        raise UnsupportedError("PySpark is not installed: pip install 'asynccommit[spark]'")
    jars = Path(home, "jars")
    for jar in jars.glob("hadoop-client-api-*.jar"):
        if found := re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name):
            return found[1]
    raise UnsupportedError(f"there is no Hadoop in {jars}: install pyspark, or set SPARK_HOME")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "asynccommit", "jars")


def _fetch_all(folder: Path, wanted: Sequence[Dependency], without_groups: Sequence[str]) -> None:
    """Copy artifacts to ``folder`` by Maven. Raises ``UnsupportedError``."""
    _need_maven(folder.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        Path(scratch, "pom.xml").write_text(_pom(wanted), "utf-8")
        jars = Path(scratch, "jars")
        groups = ",".join(without_groups)
        goal = f"{_PLUGIN}:copy-dependencies"
        said = _run_maven(goal, scratch, f"-DoutputDirectory={jars}", f"-DexcludeGroupIds={groups}")
        if not jars.is_dir():
            raise UnsupportedError(f"mvn did not fetch {folder.name}: {said}")
        with suppress(OSError):  # another process was faster
            os.rename(jars, folder)
    if not folder.is_dir():
        raise UnsupportedError(f"{folder} cannot be written")


def _pom(wanted: Sequence[Dependency]) -> str:
    needs = "".join(dependency.to_xml() for dependency in wanted)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>asynccommit</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{needs}</dependencies></project>"
    )


def _need_maven(artifact: str) -> None:
    if shutil.which("mvn") is None:
        raise UnsupportedError(f"{artifact} is fetched by Maven, but mvn was not found: install it")


def _fetch(artifact: str, jar: Path, digest: str | None) -> None:
    """Copy ``artifact`` to ``jar`` by Maven. Raises ``UnsupportedError``."""
    _need_maven(artifact)
    jar.parent.mkdir(parents=True, exist_ok=True)
    # Copied to a temporary directory and then renamed: another process may look for the jar.
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        goal, what = f"{_PLUGIN}:copy", f"-Dartifact={artifact}"
        said = _run_maven(goal, scratch, what, f"-DoutputDirectory={scratch}")
        fetched = Path(scratch, jar.name)
        if not fetched.is_file():
            raise UnsupportedError(f"mvn did not fetch {artifact}: {said}")
        if digest not in (None, found := _digest(fetched)):
            raise UnsupportedError(f"mvn fetched an unexpected {artifact}, sha256 {found}")
        os.replace(fetched, jar)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Keep other processes out of Maven's repository.

    It is not made for several processes at once.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with (_cache().parent / "maven.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run_maven(goal: str, folder: str, *arguments: str) -> str:
    """Run a Maven goal in ``folder``; return Maven's error message, if any."""
    try:
        with _one_at_a_time():
            done = subprocess.run(
                ["mvn", "-B", "-q", "-C", goal, *arguments],
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
