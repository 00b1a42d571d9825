"""Fetch the clients that these tests run, once, into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest


def cached_folder(name: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, which ``fill`` fills once."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base, "asynccommit", "witness", name)
    if not folder.is_dir():
        new = folder.with_name(f"{name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        fill(new)
        new.rename(folder)
    return folder


def fetch(command: Sequence[str], folder: Path) -> None:
    """Run a package manager; skip the test if it has nothing."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400)
    if done.returncode:
        pytest.skip(f"{command[0]} fetched nothing: {(done.stdout + done.stderr).strip()[-200:]}")


def class_path(name: str, *artifacts: str) -> str:
    """Return the class path of Java libraries, each ``group:artifact:version``."""
    wanted = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "</dependency>".format(*each.split(":"))
        for each in artifacts
    )
    text = (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>clients</groupId><artifactId>clients</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )

    def fill(folder: Path) -> None:
        (folder / "pom.xml").write_text(text, "utf-8")
        goal = ["dependency:build-classpath", "-Dmdep.outputFile=classes.txt"]
        fetch(["mvn", "-q", "-B", *goal], folder)

    return (cached_folder(name, fill) / "classes.txt").read_text("utf-8").strip()
