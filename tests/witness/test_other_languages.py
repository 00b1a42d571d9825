"""The programs in other languages that docs/testing.md shows, each with its real client.

The clients are fetched once, with npm, Maven, Go or pip; without these a test skips and says so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from tests.support.snippets import ROOT, snippets
from tests.witness.fetched import cached_folder, class_path, fetch

PAGE = snippets(ROOT / "docs" / "testing.md")
NPM = ("@azure/storage-file-datalake@12.29.0", "@google-cloud/storage@7.22.0")
MAVEN = (
    "com.azure:azure-storage-file-datalake:12.28.1",
    "com.google.cloud:google-cloud-storage:2.63.0",
)
GO = (
    "cloud.google.com/go/storage@v1.70.0",
    "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob@v1.8.3",
)
DELTA = "deltalake==1.6.6"
GSUTIL = "gsutil==5.38"

pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.every(2), pytest.mark.timeout(600)]


@pytest.fixture
def ports() -> Iterator[Mapping[str, str]]:
    """Yield the ports of the page, and those of an account and of buckets here."""
    with running_emulator(filesystems=["data"]) as azure, running_gcs_emulator() as google:
        google.do(lambda it: it.service.create_bucket("data"))
        yield {"10004": str(azure.port), "4443": str(google.port)}


def _runs(
    name: str, command: Sequence[str], folder: Path, ports: Mapping[str, str], **more: str
) -> None:
    """Run a program of the page, and compare what it prints with the block after it."""
    at = next(at for at, block in enumerate(PAGE) if block.file == name)
    text = re.sub(r"\b(10004|4443)\b", lambda found: ports[found[0]], PAGE[at].text)
    (folder / name).write_text(text, "utf-8")
    own = {"NO_PROXY": "*", "no_proxy": "*", "STORAGE_EMULATOR_HOST": f"127.0.0.1:{ports['4443']}"}
    done = subprocess.run(
        [*command, name],
        cwd=folder,
        env={**os.environ, **own, **more},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stdout, done.returncode) == (PAGE[at + 1].text, 0), done.stderr[-2000:]


@pytest.mark.parametrize("name", ["azure.mjs", "google.mjs"])
def test_node(name: str, ports: Mapping[str, str], tmp_path: Path) -> None:
    """Files, a rename, a listing and the deletion of a tree; objects, and labels of a bucket."""
    found = cached_folder("node", lambda new: fetch(["npm", "install", "--no-audit", *NPM], new))
    (tmp_path / "node_modules").symlink_to(found / "node_modules")
    environment = {"STORAGE_EMULATOR_HOST": ""}  # the page has the URL in the program
    _runs(name, ["node"], tmp_path, ports, **environment)


@pytest.mark.parametrize("name", ["Azure.java", "Google.java"])
def test_java(name: str, ports: Mapping[str, str], tmp_path: Path) -> None:
    """The same files and objects, by the libraries that Maven has."""
    classes = class_path("java-sdks", *MAVEN)
    _runs(name, ["java", "-cp", classes], tmp_path, ports)


def test_go(ports: Mapping[str, str], tmp_path: Path) -> None:
    """Blobs and objects, by the modules of both services."""
    found = cached_folder("go", _fetch_go)
    for name in ("go.mod", "go.sum"):
        shutil.copy(found / name, tmp_path / name)
    _runs("main.go", ["go", "run", "-mod=mod"], tmp_path, ports)


def _fetch_go(folder: Path) -> None:
    fetch(["go", "mod", "init", "clients"], folder)
    fetch(["go", "get", *GO], folder)


def test_delta_rs(ports: Mapping[str, str], tmp_path: Path) -> None:
    """A table of Delta Lake is written, appended to, and read."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    found = cached_folder("delta-rs", lambda new: fetch([*pip, "--target=.", DELTA], new))
    _runs("delta.py", [sys.executable], tmp_path, ports, PYTHONPATH=str(found))


def test_gsutil(tmp_path: Path) -> None:
    """An object is stored, moved, listed, read and deleted, over https."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    found = cached_folder("gsutil", lambda new: fetch([*pip, "--target=.", GSUTIL], new))
    with running_gcs_emulator(tls=True) as google:
        google.do(lambda it: it.service.create_bucket("data"))
        (tmp_path / "ca.pem").write_bytes(google.ca_pem or b"")
        path = f"{found / 'bin'}:{os.environ['PATH']}"
        own = {"PATH": path, "PYTHONPATH": str(found)}
        _runs("gsutil.sh", ["sh", "-e"], tmp_path, {"4443": str(google.port)}, **own)
