"""Virtual environments with one Spark line each, made as a user would make them.

``ASYNCCOMMIT_FIELD`` names the directory that keeps them; the default is ``build/field``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.support.snippets import ROOT

KEPT = Path(os.environ.get("ASYNCCOMMIT_FIELD") or ROOT / "build/field")
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
_KERNEL = "ipykernel>=6.29"
_EXTRA = "adls"
_SOURCES = ("asynccommit", "hatch_build.py", "pyproject.toml", "README.md", "LICENSE")


def _lines() -> dict[str, str]:
    """Return the versions of PySpark that tox.ini names, by ``major.minor``."""
    text = (ROOT / "tox.ini").read_text("utf-8")
    return {
        line: release for release, line in re.findall(r"pyspark==((\d+\.\d+)\.\d+)$", text, re.M)
    }


LINES = _lines()
NEWEST = [*LINES][-1]


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter with PySpark that finds this package.

    Attributes:
        python: its executable.
        path: the value of ``PYTHONPATH`` with which it finds the package.
    """

    python: Path
    path: str = ""

    @property
    def programs(self) -> Path:
        """Return the directory of its executables."""
        return self.python.parent

    @property
    def spark(self) -> Path:
        """Return the directory of its PySpark. Raises ``FileNotFoundError`` without one."""
        pattern = "lib/python3*/site-packages/pyspark"
        for found in self.programs.parent.glob(pattern):
            return found
        raise FileNotFoundError(f"{self.programs.parent / pattern}")


def installed_line() -> str:
    """Return the Spark line beside this interpreter, or an empty text."""
    try:
        return ".".join(version("pyspark").split(".")[:2])
    except PackageNotFoundError:
        return ""


def environment(line: str) -> Environment:
    """Return the environment of a line; make it, or renew the package in it, if needed."""
    if line == installed_line():
        return Environment(Path(sys.executable), str(ROOT))
    folder = KEPT / f"spark{line.replace('.', '')}"
    python = folder / "bin/python"
    again = ("--force-reinstall", "--no-deps", str(ROOT))
    _keep(folder / ".spark", LINES[line], lambda: _make(folder, LINES[line]))
    _keep(folder / ".extra", _EXTRA, lambda: _install(python, f"{ROOT}[{_EXTRA}]"))
    _keep(folder / ".package", _digest(), lambda: _install(python, *again))
    return Environment(python)


def packed_environment() -> Path:
    """Return a virtual environment with this package, without Spark, packed for ``--archives``.

    The directory where it was made is gone, as on the machines of a cluster.
    """
    made = KEPT / "packed/env.tar.gz"
    _keep(KEPT / "packed/.package", _digest(), lambda: _pack(made))
    return made


def _pack(made: Path) -> None:
    shutil.rmtree(made.parent, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder, "bin/python")
        _install(python, "--require-hashes", "-r", str(ROOT / "requirements/build.txt"))
        _install(python, f"{ROOT}[hdfs]")
        made.parent.mkdir()
        with tarfile.open(made, "w:gz") as archive:
            archive.add(folder, ".")


def _keep(stamp: Path, wanted: str, make: Callable[[], None]) -> None:
    """Call ``make`` unless the stamp says that it was called for the same."""
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        make()
        stamp.write_text(wanted, "utf-8")


def _make(folder: Path, release: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin/python"
    _install(python, "--require-hashes", "-r", str(ROOT / "requirements/build.txt"))
    _install(python, f"pyspark=={release}", _KERNEL, str(ROOT))


def _install(python: Path, *what: str) -> None:
    build = () if "--require-hashes" in what else ("--no-build-isolation",)
    subprocess.run([str(python), *_PIP, *build, *what], check=True)


def _digest() -> str:
    """Return a digest that changes whenever the package does."""
    found = hashlib.sha256()
    for name in _SOURCES:
        for path in sorted([ROOT / name, *(ROOT / name).rglob("*")]):
            if path.is_file() and path.suffix != ".pyc":
                found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()
