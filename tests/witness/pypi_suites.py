"""Suites of clients whose tests are in their sdists on PyPI, for ``make witness``.

pip fetches each sdist once into the user's cache. Its modules run one by one with pytest, in a
process of their own, against an emulator of their own. The expectations are those of one version,
which must be the version that is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from tests.witness.expectations import FAILED, FOLDER, Opened, Outcome, read_report

_STAND_INS = FOLDER / "stand_ins"
_TIMEOUT = 1800.0  # of a module, in seconds; Google's takes ten minutes on a busy machine
_PER_TEST = "120"

Serve = Callable[[Path], AbstractContextManager[Mapping[str, str]]]
"""Serves an emulator; takes a folder for files; yields the environment of the tests."""


@dataclass(frozen=True)
class Suite:
    """A suite of tests in an sdist.

    Args:
        name: of the suite and of its file of expectations.
        package: on PyPI.
        version: of the package.
        digest: SHA-256 of the sdist.
        tests: folder of the tests in the sdist; its parent is imported from unless ``alone``.
        serve: serves the emulator.
        plugin: pytest plugin in ``stand_ins``.
        extras: requirements of the tests that are not installed.
        without: tests that are not run, as the file of expectations says.
    """

    name: str
    package: str
    version: str
    digest: str
    tests: str
    serve: Serve
    plugin: str = ""
    extras: Sequence[str] = ()
    without: Sequence[str] = ()


@contextmanager
def _serve_adlfs(folder: Path, *, hns: bool) -> Iterator[Mapping[str, str]]:
    with running_emulator(hns=hns) as emulator:
        yield {"WITNESS_ENDPOINT": emulator.endpoint}


@contextmanager
def _serve_azure(folder: Path) -> Iterator[Mapping[str, str]]:
    names = (DEVELOPMENT_ACCOUNT, "storagename", "storagesoftdelname")
    accounts = dict.fromkeys(names, DEVELOPMENT_KEY)
    with running_emulator(accounts=accounts, tls=True) as emulator:
        trusted = folder / "ca.pem"
        trusted.write_bytes(emulator.ca_pem or b"")
        yield {
            "WITNESS_PORT": str(emulator.port),
            "WITNESS_KEY": DEVELOPMENT_KEY,
            "REQUESTS_CA_BUNDLE": str(trusted),
            "SSL_CERT_FILE": str(trusted),
        }


@contextmanager
def _serve_google(folder: Path) -> Iterator[Mapping[str, str]]:
    docker = folder / "docker"  # which the tests call to start Google's server
    docker.write_text("#!/bin/sh\n")
    docker.chmod(0o755)
    with running_gcs_emulator() as emulator:
        yield {
            "STORAGE_EMULATOR_HOST": emulator.endpoint,
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        }


_ADLFS = partial(
    Suite,
    package="adlfs",
    version="2026.8.0",
    digest="b78a01bd892c2a99f461b2b2ef4592c2eb45934e728f318472291ccaa6378e06",
    tests="adlfs/tests",
    plugin="witness_docker",
    extras=("pytest-mock==3.15.1",),
    without=("test_spec.py::test_large_upload_overflow",),
)

SUITES = (
    _ADLFS("adlfs", serve=partial(_serve_adlfs, hns=False)),
    _ADLFS("adlfs-hns", serve=partial(_serve_adlfs, hns=True)),
    Suite(
        "azure-sdk",
        package="azure-storage-file-datalake",
        version="12.26.1",
        digest="81b9ad84ed8845219c3f642117b8508e95485ec3d8be8d3713f03785e4bdde75",
        tests="tests",
        serve=_serve_azure,
        plugin="witness_azure",
    ),
    Suite(
        "google-sdk",
        package="google-cloud-storage",
        version="3.17.1",
        digest="b24df37900f5e0a93518bd7d3a2a7b7b48d8a1e72add8eb57d53a38b8b2b0640",
        tests="tests/conformance",
        serve=_serve_google,
    ),
)


@contextmanager
def opened(suite: Suite) -> Iterator[Opened]:
    """Fetch the suite; yield its modules and a function that runs one.

    Raises ``UnsupportedError`` if it cannot be fetched, or is of another version.
    """
    _check_version(suite)
    sdist, extras = _fetch_sdist(suite), fetch_extras(suite)
    with tempfile.TemporaryDirectory(prefix="witness-suite-") as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        [root] = Path(folder).iterdir()
        modules = sorted(path.stem for path in (root / suite.tests).glob("test_*.py"))
        yield modules, partial(run_module, suite=suite, root=root, extras=extras)


def _check_version(suite: Suite) -> None:
    try:
        installed = version(suite.package)
    except PackageNotFoundError:
        installed = "no version"
    if installed != suite.version:
        raise UnsupportedError(
            f"{suite.name}.txt is about {suite.package} {suite.version}, and {installed} is "
            "installed: install that version, or renew the file with --lines"
        )


def run_module(name: str, suite: Suite, root: Path, extras: Path | None) -> Outcome:
    """Run the tests of a module in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="witness-") as scratch:
        folder = Path(scratch)
        report, config = folder / "TEST-pytest.xml", folder / "pytest.ini"
        config.write_text("[pytest]\nasyncio_mode = auto\nmarkers = live_test_only\n")
        command = [sys.executable, "-m", "pytest", "-q", "-c", str(config), f"--rootdir={root}"]
        command += ["-p", "no:cacheprovider", "-p", "no:asynccommit", f"--timeout={_PER_TEST}"]
        command += ["-p", suite.plugin] if suite.plugin else []
        command += [f"--deselect={suite.tests}/{test}" for test in suite.without]
        command += [f"--junit-xml={report}", str(root / suite.tests / f"{name}.py")]
        package = [root] if (root / suite.package).is_dir() else []
        paths = [*package, _STAND_INS, *([extras] if extras else [])]
        with suite.serve(folder) as environment:
            path = {"PYTHONPATH": os.pathsep.join(map(str, paths))}
            said = _run(command, folder, {**path, **environment})
        outcome = read_report(folder)
    if not outcome.tests and said:
        return Outcome({"(module)": FAILED}, {"(module)": said})
    return outcome


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Run pytest; return the end of its output unless it has run tests."""
    work = folder / "work"
    work.mkdir()
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {_TIMEOUT} s"
    if os.environ.get("WITNESS_OUTPUT"):
        Path(os.environ["WITNESS_OUTPUT"]).write_text(done.stdout + done.stderr)
    return (
        "" if done.returncode in (0, 1, 5) else " ".join((done.stdout + done.stderr)[-500:].split())
    )


# --- what is fetched ---------------------------------------------------------------------------


def cache() -> Path:
    """Return where what was fetched or built is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "asynccommit", "witness")


def _fetch_sdist(suite: Suite) -> Path:
    folder = cache()
    names = [f"{suite.package.replace('-', '_')}-{suite.version}.tar.gz"]
    names.append(f"{suite.package}-{suite.version}.tar.gz")
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        wanted = f"{suite.package}=={suite.version}"
        _pip("download", "--no-deps", "--no-binary=:all:", f"--dest={folder}", wanted)
        found = [folder / name for name in names if (folder / name).is_file()]
    with found[0].open("rb") as file:
        if file_digest(file, "sha256").hexdigest() != suite.digest:
            raise UnsupportedError(f"{found[0]} has another checksum than expected: delete it")
    return found[0]


def fetch_extras(suite: Suite) -> Path | None:
    """Return a folder with the requirements of a suite, which pip fetches once."""
    if not suite.extras:
        return None
    folder = cache() / "-".join(suite.extras)
    if not folder.is_dir():
        _pip("install", "--no-deps", f"--target={folder}", *suite.extras)
    return folder


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnsupportedError(f"pip {arguments[0]} failed: {done.stderr.strip()[-300:]}")
