"""The image of the emulators, and the modules of testcontainers that start it.

The tests of containers need an engine, Docker or Podman, that has the image as
``localhost/asynccommit``; without one they skip.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from asynccommit import __version__
from tests.support.namespaces import in_namespace
from tests.support.snippets import ROOT, snippets
from tests.witness.container_file import built_and_served
from tests.witness.fetched import cached_folder, class_path, fetch

IMAGE = "localhost/asynccommit"
MODULE = ROOT / "asynccommit/testing/containers/java"
LIBRARIES = ("com.azure:azure-storage-file-datalake:12.28.1", "org.slf4j:slf4j-nop:1.7.36")
TESTCONTAINERS = "org.testcontainers:testcontainers"
PAGE = snippets(ROOT / "docs" / "testing.md")

pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.every(3), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Yield the environment of a client of an engine that has the image."""
    # No container of testcontainers' own, which removes what a killed test leaves: it is pulled.
    own = {**os.environ, "TESTCONTAINERS_RYUK_DISABLED": "true", "NO_PROXY": "*"}
    if _has_image("docker"):
        yield own
    elif _has_image("podman"):
        socket = tmp_path_factory.mktemp("podman") / "socket"
        address = f"unix://{socket}"
        with subprocess.Popen(["podman", "system", "service", "--time=0", address]) as service:
            while not socket.exists() and service.poll() is None:
                time.sleep(0.05)
            yield {
                **own,
                "DOCKER_HOST": address,
                # The libraries of Java and Python look for a gateway where they are in a container.
                "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
                "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
            }
            service.terminate()
    else:
        pytest.skip(f"no Docker and no Podman here has the image {IMAGE}")


def _has_image(command: str) -> bool:
    if shutil.which(command) is None:
        return False
    looked = [command, "image", "inspect", IMAGE]
    return subprocess.run(looked, capture_output=True).returncode == 0


def test_the_steps_of_the_image(tmp_path: Path) -> None:
    """They install the version of this tree, which serves a client as a user without rights."""
    done = in_namespace(
        built_and_served,
        str(ROOT / "Containerfile"),
        str(tmp_path / "layers"),
        seconds=500,
        superuser=True,
    )

    assert done == {
        "version": f"asynccommit {__version__}",
        "content": "AA,JFK\n",
        "uid": 1000,
    }


def test_python_module(engine: Mapping[str, str], tmp_path: Path) -> None:
    """The test that the page shows passes with a container, which is gone afterwards."""
    name = "test_container.py"
    (tmp_path / name).write_text(_block(name)[0], "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name],
        cwd=tmp_path,
        env={**engine, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_java_process(tmp_path: Path) -> None:
    """The program of the page runs the command that pip brought."""
    # The lowest version of the library that the page promises: its classes are not called.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    _run_java(tmp_path, "1.20.1", {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("version", ["1.20.1", "1.21.4", "2.0.5"])
def test_java_module(version: str, engine: Mapping[str, str], tmp_path: Path) -> None:
    """The program of the page does the same in a container, with each library of the page."""
    _run_java(tmp_path, version, engine, IMAGE)


def test_versions_are_one() -> None:
    """The Maven project has the version of the package."""
    found = re.search("<version>(.*)</version>", (MODULE / "pom.xml").read_text("utf-8"))

    assert found
    assert found[1] == __version__


def _block(name: str) -> tuple[str, str]:
    """Return a program of the page and what comes after it."""
    at = next(at for at, block in enumerate(PAGE) if block.file == name)
    return PAGE[at].text, PAGE[at + 1].text


def _run_java(folder: Path, version: str, environment: Mapping[str, str], *arguments: str) -> None:
    name = "Emulated.java"
    program, prints = _block(name)
    (folder / name).write_text(program, "utf-8")
    libraries = class_path(f"containers-{version}", f"{TESTCONTAINERS}:{version}", *LIBRARIES)
    done = subprocess.run(
        ["java", "-cp", f"{_module_jar()}:{libraries}", name, *arguments],
        cwd=folder,
        env={**environment, "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (done.stdout, done.returncode) == (prints, 0), done.stderr[-2000:]


def _module_jar() -> Path:
    """Return the jar that Maven makes of the module, made anew when a source has changed."""
    digest = sha256()
    for file in sorted(file for file in MODULE.rglob("*") if file.suffix in {".java", ".xml"}):
        digest.update(file.read_bytes())

    def fill(folder: Path) -> None:
        shutil.copytree(MODULE, folder / "module", ignore=shutil.ignore_patterns("target"))
        fetch(["mvn", "-q", "-B", "-f", "module", "package"], folder)

    folder = cached_folder(f"containers-{digest.hexdigest()[:16]}", fill)
    return next((folder / "module/target").glob("*.jar"))
