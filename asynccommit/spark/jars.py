"""The jar with the JVM side, compiled once for each Spark.

The compiler is the one that Spark ships.

Spark needs Janino for its own generated code, so no JDK is needed. The wheel of a release contains
the jars of the Spark lines that it supports (hatch_build.py), a package from a copy none.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from asynccommit.errors import UnsupportedError
from asynccommit.runtime.private_cache import cache_directory, make_private
from asynccommit.version import __version__

_TIMEOUT = 120.0
_BUILD = "Build.java"
BUNDLED = "compiled"
"""The folder of the jars in the wheel of a release."""

_SEQ = {"2.12": "scala.collection.Seq", "2.13": "scala.collection.immutable.Seq"}


@dataclass(frozen=True, slots=True)
class Spark:
    """A Spark installation to compile for.

    Attributes:
        version: the version of Spark, for the name of the jar.
        scala: its Scala binary version, which decides how ``Seq`` is spelled.
        class_path: where its classes are.
        java: the command that runs Java.
    """

    version: str
    scala: str
    class_path: str
    java: str


def spark_jars() -> Path:
    """Return the directory with the jars of the Spark that PySpark will start.

    Raises ``UnsupportedError`` without PySpark.
    """
    if find_spec("pyspark") is None:
        raise UnsupportedError("PySpark is not installed: pip install 'asynccommit[spark]'")
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home()) / "jars"


def installed_spark(home: Path | None = None) -> Spark:
    """Return the Spark of a home, by default the one that PySpark will start.

    Raises ``UnsupportedError`` if there is none, or no Java for it.
    """
    jars = spark_jars() if home is None else home / "jars"
    for jar in jars.glob("spark-core_*.jar"):
        if found := re.fullmatch(r"spark-core_(\d+\.\d+)-(.+)\.jar", jar.name):
            return Spark(found[2], found[1], str(jars / "*"), _find_java())
    raise UnsupportedError(f"there is no Spark in {jars}: install pyspark, or set SPARK_HOME")


def running_spark(session: Any) -> Spark:
    """Return the Spark that a classic session runs on."""
    jvm, system = session._jvm, session._jvm.java.lang.System
    scala = ".".join(jvm.scala.util.Properties.versionNumberString().split(".")[:2])
    java = os.path.join(system.getProperty("java.home"), "bin", "java")
    return Spark(session.version, scala, system.getProperty("java.class.path"), java)


def fitting_jar(spark: Spark, difference: Callable[[str], str]) -> str:
    """Return the path of a jar whose signatures are those of ``spark``.

    A vendor's Spark may have the version of another. The jar of that version is then compiled
    again, for the classes that are there.

    Args:
        spark: the Spark to compile for.
        difference: says how a jar's signatures differ from those of the Spark that will run it;
            empty if they do not.

    Raises ``UnsupportedError`` if that does not compile, or does not fit.
    """
    jar = compiled_jar(spark)
    if not (found := difference(jar)):
        return jar
    own = compiled_jar(spark, found)
    if found := difference(own):
        raise UnsupportedError(
            f"this Spark calls itself {spark.version}, but asynccommit does not fit it: {found}"
        )
    return own


def difference_on_disk(spark: Spark) -> Callable[[str], str]:
    """Return a comparison of jars with an installed Spark."""

    def difference(jar: str) -> str:
        path = os.pathsep.join([jar, spark.class_path])
        return _run([spark.java, "-cp", path, "org.asynccommit.spark.Signatures"], "load", spark)

    return difference


def compiled_jar(spark: Spark, unlike: str = "") -> str:
    """Return the path of the jar for ``spark``; compile it if needed.

    ``unlike`` tells Sparks of one version apart. Raises ``UnsupportedError`` if it does not
    compile.
    """
    if not unlike and (bundled := _bundled(spark)):
        return bundled
    sources = _sources(spark)
    texts = "\0".join(f"{name}\0{text}" for name, text in sorted(sources.items()))
    digest = hashlib.sha256(f"{spark.version}\0{unlike}\0{texts}".encode()).hexdigest()
    jar = _cache() / f"asynccommit-{spark.version}-{digest[:16]}.jar"
    if not jar.is_file():
        with tempfile.TemporaryDirectory(prefix="asynccommit-") as scratch:
            classes = _compile(spark, sources, Path(scratch))
            _pack(classes, jar)
    return str(jar)


def bundle(spark: Spark, folder: Path) -> Path:
    """Compile the jar for the line of ``spark``, to be put into a wheel.

    The same sources make the same bytes. Raises ``UnsupportedError`` if it does not compile.
    """
    jar = folder / _bundle_name(spark)
    with tempfile.TemporaryDirectory(prefix="asynccommit-") as scratch:
        _pack(_compile(spark, _sources(spark), Path(scratch)), jar)
    return jar


def _bundle_name(spark: Spark) -> str:
    line = ".".join(spark.version.split(".")[:2])
    digest = hashlib.sha256(build_id().encode()).hexdigest()
    return f"asynccommit-{line}_{spark.scala}-{digest[:16]}.jar"


def _bundled(spark: Spark) -> str | None:
    """Return the path of the jar that this package contains, if it does."""
    found = resources.files("asynccommit") / "spark" / BUNDLED / _bundle_name(spark)
    if isinstance(found, Path) or not found.is_file():
        return str(found) if found.is_file() else None
    jar = _cache() / found.name  # the package is in a zip, and Java reads files only
    if not jar.is_file():
        _write(jar, lambda file: file.write(found.read_bytes()))
    return str(jar)


def other_build(build: str | None) -> str:
    """Return the refusal of a jar of another version."""
    theirs = f"asynccommit {build}" if build else "an older asynccommit"
    return (
        f"the jar of this session is of {theirs}, and its Python has {build_id()}: start Spark "
        "with the jar that asynccommit spark-conf writes, of the same environment, and without "
        "the other (spark.jars, --jars, spark.driver.extraClassPath)"
    )


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise UnsupportedError(
            f"Spark needs Java 17 or newer, and {where}: install it, or set JAVA_HOME"
        )
    return java


def _sources(spark: Spark) -> dict[str, str]:
    if spark.scala not in _SEQ:
        known = ", ".join(_SEQ)
        raise UnsupportedError(
            f"Spark with Scala {spark.scala} is not supported: expected one of {known}"
        )
    digest = build_id().rpartition(" ")[2]
    said = {
        "@SEQ@": _SEQ[spark.scala],
        "@SINK@": _sink_package(spark),
        "@BUILD@": build_id(),
        "@SERIAL@": f"0x{digest}L",
    }
    return {name: _with(said, text) for name, text in _texts().items()}


def _sink_package(spark: Spark) -> str:
    """Return the package of Spark's file sink, which Spark 4.1 has moved."""
    package = "org.apache.spark.sql.execution.streaming"
    moved = f"{package}.sinks"
    for entry in spark.class_path.split(os.pathsep):
        folder, jar = os.path.split(entry)
        if not jar:  # a directory, such as spark-submit's of settings
            continue
        for path in Path(folder).glob("spark-sql_*.jar" if jar == "*" else glob.escape(jar)):
            if path.name.startswith("spark-sql_"):
                name = f"{moved}.SinkFileStatus".replace(".", "/")
                return moved if _has_class(str(path), name) else package
    return package if spark.version.startswith(("3.", "4.0.")) else moved


@cache
def _has_class(jar: str, name: str) -> bool:
    with zipfile.ZipFile(jar) as archive:
        return f"{name}.class" in archive.NameToInfo


def _with(said: Mapping[str, str], text: str) -> str:
    for name, value in said.items():
        text = text.replace(name, value)
    return text


@cache
def _texts() -> Mapping[str, str]:
    folder = resources.files("asynccommit") / "spark" / "jvm"
    found = [file for file in folder.iterdir() if file.name.endswith(".java")]
    return {file.name: file.read_text("utf-8") for file in sorted(found, key=lambda it: it.name)}


def build_id() -> str:
    """Return the version of this package, and a digest of its Java sources.

    Jar and Python exchange it: what they send one another is of one version only.
    """
    return f"{__version__} {hashlib.sha256(repr([*_texts().items()]).encode()).hexdigest()[:16]}"


def _cache() -> Path:
    """Return a directory for jars that only this user can write to."""
    fallback = Path(tempfile.gettempdir(), f"asynccommit-{os.getuid()}")
    for path in (cache_directory("spark"), fallback):
        if make_private(path):
            return path
    return Path(tempfile.mkdtemp(prefix="asynccommit-"))


def _compile(spark: Spark, sources: Mapping[str, str], scratch: Path) -> Path:
    for name, text in sources.items():
        (scratch / name).write_text(text, "utf-8")
    classes = scratch / "classes"
    classes.mkdir()
    files = [str(scratch / name) for name in sorted(sources) if name != _BUILD]
    main = ["org.codehaus.janino.SimpleCompiler", str(scratch / _BUILD)]
    command = [spark.java, "-Dfile.encoding=UTF-8", "-cp", spark.class_path, *main]
    command += ["org.asynccommit.spark.Build", str(classes), *files]
    _run(command, "compile", spark)
    return classes


def _run(command: Sequence[str], does: str, spark: Spark) -> str:
    """Run Java and return its output. Raises ``UnsupportedError``."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"{spark.java} does not run: {error}") from error
    if done.returncode != 0:
        raise UnsupportedError(
            f"the commit protocol does not {does} for Spark {spark.version}: {_why(done.stderr)}"
        )
    return done.stdout


def _why(stderr: str) -> str:
    lines = stderr.strip().splitlines() or ["no reason was given"]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (causes or lines)[-1].removeprefix("Caused by: ")


def _pack(classes: Path, jar: Path) -> None:
    """Write a jar whose order, times and modes are always the same."""

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(path for path in classes.rglob("*") if path.is_file()):
                entry = zipfile.ZipInfo(path.relative_to(classes).as_posix())  # of 1980
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)

    _write(jar, write)


def _write(jar: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write the jar under its name atomically, as others may read it."""
    handle, temporary = tempfile.mkstemp(dir=jar.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(temporary, 0o644)  # executors of other users may read it
        os.replace(temporary, jar)
    except BaseException:
        os.unlink(temporary)
        raise
