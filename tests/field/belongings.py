"""The user's own parts of a job: a jar, a Maven package, a module and a packed environment."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from asynccommit.spark.jars import _compile, installed_spark
from tests.field.environments import KEPT
from tests.support.snippets import ROOT

LOADS = "org.field.Loads"
EXTRA = "org.field.extra.Extra"
PACKAGE = "org.field:extra:1.0"
PACKED = "packed by the user"

_SOURCES = {
    "Loads.java": """
package org.field;

/** Loads a class in a task; returns the name of its process. */
public class Loads implements org.apache.spark.sql.api.java.UDF1 {
  public Object call(Object name) throws Exception {
    Class.forName((String) name, false, Thread.currentThread().getContextClassLoader());
    return java.lang.management.ManagementFactory.getRuntimeMXBean().getName();
  }
}
""",
    "Extra.java": "package org.field.extra;\n\npublic class Extra {}\n",
}
_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</project>
"""
_IVY = """<ivysettings>
  <settings defaultResolver="local"/>
  <resolvers><ibiblio name="local" m2compatible="true" root="{root}"/></resolvers>
</ivysettings>
"""


@cache
def jars() -> tuple[Path, Path]:
    """Return the jars of the user's two classes; compile them once."""
    folder = KEPT / f"jars-{hashlib.sha256(repr(_SOURCES).encode()).hexdigest()[:8]}"
    made = folder / "loads.jar", folder / "extra.jar"
    if not made[-1].is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            _pack(_compiled(Path(scratch)), made)
    return made


def _compiled(scratch: Path) -> Path:
    build = (ROOT / "asynccommit/spark/jvm/Build.java").read_text("utf-8")
    return _compile(installed_spark(), {**_SOURCES, "Build.java": build}, scratch)


def _pack(classes: Path, jars: tuple[Path, Path]) -> None:
    for jar, name in zip(jars, (LOADS, EXTRA), strict=True):
        path = f"{name.replace('.', '/')}.class"
        with zipfile.ZipFile(jar, "w") as archive:
            archive.write(classes / path, path)


def make_repository(folder: Path, jars: dict[str, Path]) -> Path:
    """Make a Maven repository with ``jars`` by their coordinates; return settings of Ivy for it."""
    for coordinates, jar in jars.items():
        group, artifact, version = coordinates.split(":")
        place = folder / "m2" / group.replace(".", "/") / artifact / version
        place.mkdir(parents=True)
        shutil.copy(jar, place / f"{artifact}-{version}.jar")
        pom = _POM.format(group=group, artifact=artifact, version=version)
        (place / f"{artifact}-{version}.pom").write_text(pom, "utf-8")
    settings = folder / "ivysettings.xml"
    settings.write_text(_IVY.format(root=(folder / "m2").as_uri()), "utf-8")
    return settings


def make_module(folder: Path) -> Path:
    """Make a module that is on no path."""
    path = folder / "helper.py"
    path.write_text("def double(number):\n    return 2 * number\n", "utf-8")
    return path


def make_package(folder: Path) -> Path:
    """Make a zip of this package, as for ``--py-files``."""
    path = folder / "asynccommit.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((ROOT / "asynccommit").rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                archive.write(file, file.relative_to(ROOT))
    return path


def make_environment(folder: Path) -> Path:
    """Make a virtual environment and pack it with tar, as for ``--archives``."""
    made = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    (made / "packed.txt").write_text(PACKED, "utf-8")
    path = folder / "env.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(made, ".")
    return path
