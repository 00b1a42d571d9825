"""Other projects' servers of S3: how each is had from a registry, and how it is started."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from asynccommit.errors import UnsupportedError
from tests.support.s3_servers import (
    KEY,
    REGION,
    SECRET,
    free_port,
    running_ministack,
    running_moto,
)
from tests.witness.pypi_suites import cache

BUILD = float(os.environ.get("WITNESS_BUILD_SECONDS", "3600"))
"""Seconds that the building of one server may take."""
_START = 120.0
_VERSITY, _WEED, _GARAGE = "v1.8.0", "v0.0.0-20261109003541-7506e5f91cd6", "2.5.0"
_WEED_MODULE = "github.com/seaweedfs/seaweedfs"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>witness</groupId><artifactId>server</artifactId><version>1</version>
<dependencyManagement><dependencies><dependency><groupId>{group}</groupId>
<artifactId>{managed}</artifactId><version>{version}</version><type>pom</type>
<scope>import</scope></dependency></dependencies></dependencyManagement>
<dependencies><dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version></dependency></dependencies></project>"""


class Running(NamedTuple):
    """A server that runs: its URL, and the key that it takes."""

    url: str
    key: str = KEY
    secret: str = SECRET
    region: str = REGION

    @property
    def options(self) -> dict[str, str]:
        """The options of a store on it."""
        return {
            "endpoint_url": self.url,
            "key": self.key,
            "secret": self.secret,
            "region": self.region,
        }


class Server(NamedTuple):
    """A server.

    Attributes:
        name: as its makers write it.
        version: of what is run.
        source: where it is had.
        running: starts it; raises ``UnsupportedError`` with the reason where it cannot be had.
        smallest: bytes of a part that is not the last; 0 for those of AWS.
    """

    name: str
    version: str
    source: str
    running: Callable[[], contextlib.AbstractContextManager[Running]]
    smallest: int = 0


# --- had from registries -----------------------------------------------------------------------


def _had(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` fills, once; a folder that is half made is not kept."""
    folder = cache() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        made = Path(draft, "made")
        made.mkdir()
        make(made)
        made.rename(folder)
    return folder


def _build(command: Sequence[str], folder: Path, **environ: str) -> None:
    """Run one step of a build with low priority."""
    if shutil.which(command[0]) is None:
        raise UnsupportedError(f"there is no {command[0]} on this machine")
    low = ["nice", "-n", "15", *command]
    try:
        done = subprocess.run(
            low,
            cwd=folder,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            timeout=BUILD,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnsupportedError(f"{command[0]} took more than {BUILD:.0f} s") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-300:]
        raise UnsupportedError(f"{' '.join(command[:3])} failed: {said}")


def _go(folder: Path, command: str, wanted: str) -> None:
    _build(["go", "install", f"{command}@{wanted}"], folder, GOBIN=str(folder), GOMAXPROCS="1")


def _weed(folder: Path) -> None:
    """Build SeaweedFS, whose module replaces another: that only counts in a module of ours."""
    got = ["go", "mod", "download", "-json", f"{_WEED_MODULE}@{_WEED}"]
    with tempfile.TemporaryDirectory() as place:
        source = Path(place)
        _build(["go", "mod", "init", "witness"], source)
        _build(got, source)
        told = subprocess.check_output(got, cwd=source, text=True)
        theirs = Path(json.loads(told)["GoMod"]).read_text("utf-8").splitlines()
        kept = [line for line in theirs if line.startswith(("go ", "replace "))]
        text = ["module witness", *kept, f"require {_WEED_MODULE} {_WEED}"]
        Path(source, "go.mod").write_text("\n".join(text), "utf-8")
        target = f"{_WEED_MODULE}/weed"
        made = str(folder / "weed")
        _build(["go", "build", "-p", "1", "-mod=mod", "-o", made, target], source, GOMAXPROCS="1")


def _maven(folder: Path, group: str, artifact: str, managed: str, wanted: str) -> None:
    """Resolve what a server needs, in the versions that ``managed`` says fit together."""
    pom = _POM.format(group=group, artifact=artifact, managed=managed, version=wanted)
    Path(folder, "pom.xml").write_text(pom, "utf-8")
    goal = ["dependency:build-classpath", "-DincludeScope=runtime", "-Dmdep.outputFile=classpath"]
    _build(["mvn", "-q", "-B", *goal], folder)


def _cargo(folder: Path, crate: str, wanted: str) -> None:
    root = ["--root", str(folder), "--target-dir", str(folder / "target")]
    _build(
        ["cargo", "install", "--locked", *root, f"{crate}@{wanted}"], folder, CARGO_BUILD_JOBS="1"
    )
    shutil.rmtree(folder / "target")


# --- started -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _process(
    command: Sequence[str], folder: Path, port: int, environ: Mapping[str, str] = {}
) -> Iterator[str]:
    """Run a server until the block ends; yield its URL once it answers."""
    log = folder / "log"
    kept = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    with log.open("wb") as output:
        running = subprocess.Popen(
            command,
            cwd=folder,
            env={**kept, **environ},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, running, log)
        yield url
    finally:
        running.terminate()
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(20)


def _wait(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START
    while running.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)
    said = " ".join(log.read_text("utf-8", "replace")[-600:].split())
    raise UnsupportedError(f"it does not answer: {said}")


@contextlib.contextmanager
def _place() -> Iterator[tuple[Path, int]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder), free_port()


@contextlib.contextmanager
def _moto() -> Iterator[Running]:
    with running_moto() as url:
        yield Running(url)


@contextlib.contextmanager
def _ministack() -> Iterator[Running]:
    with running_ministack() as url:
        yield Running(url)


@contextlib.contextmanager
def _versitygw() -> Iterator[Running]:
    had = _had(
        f"versitygw-{_VERSITY}",
        lambda folder: _go(folder, "github.com/versity/versitygw/cmd/versitygw", _VERSITY),
    )
    with _place() as (folder, port):
        (folder / "data").mkdir()
        command = [str(had / "versitygw"), "--access", KEY, "--secret", SECRET]
        command += ["--region", REGION, "--port", f"127.0.0.1:{port}", "posix", "data"]
        with _process(command, folder, port) as url:
            yield Running(url)


@contextlib.contextmanager
def _seaweedfs() -> Iterator[Running]:
    had = _had(f"seaweedfs-{_WEED}", _weed)
    with _place() as (folder, port):
        (folder / "data").mkdir()
        keys = [{"accessKey": KEY, "secretKey": SECRET}]
        rights = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "witness", "credentials": keys, "actions": rights}
        Path(folder, "s3.json").write_text(json.dumps({"identities": [identity]}), "utf-8")
        command = [str(had / "weed"), "server", "-dir=data", "-ip=127.0.0.1", "-s3"]
        command += [f"-s3.port={port}", "-s3.config=s3.json", "-volume.max=50"]
        command += ["-master.volumeSizeLimitMB=64", "-volume.index=memory"]
        for part in ("master", "volume", "filer"):
            command += [f"-{part}.port={free_port()}", f"-{part}.port.grpc={free_port()}"]
        command += [f"-s3.port.grpc={free_port()}"]
        with _process(command, folder, port) as url:
            yield Running(url)


def _java(had: Path, main: str, *arguments: str) -> list[str]:
    classpath = (had / "classpath").read_text("utf-8").strip()
    return ["java", "-Xmx1g", "-cp", classpath, main, *arguments]


@contextlib.contextmanager
def _s3proxy() -> Iterator[Running]:
    made = ("org.gaul", "s3proxy", "s3proxy", "4.1.0")
    had = _had("s3proxy-4.1.0", lambda folder: _maven(folder, *made))
    with _place() as (folder, port):
        (folder / "data").mkdir()
        settings = {
            "s3proxy.endpoint": f"http://127.0.0.1:{port}",
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": KEY,
            "s3proxy.credential": SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.identity": "a",
            "jclouds.credential": "b",
            "jclouds.filesystem.basedir": str(folder / "data"),
        }
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        Path(folder, "s3proxy.conf").write_text("".join(lines), "utf-8")
        command = _java(had, "org.gaul.s3proxy.Main", "--properties", "s3proxy.conf")
        with _process(command, folder, port) as url:
            yield Running(url)


@contextlib.contextmanager
def _s3mock() -> Iterator[Running]:
    made = ("com.adobe.testing", "s3mock", "s3mock-parent", "5.2.0")
    had = _had("s3mock-5.2.0", lambda folder: _maven(folder, *made))
    with _place() as (folder, port):
        arguments = [f"--http.port={port}", f"--server.port={free_port()}"]
        arguments += [f"--com.adobe.testing.s3mock.store.root={folder / 'data'}"]
        (folder / "data").mkdir()
        command = _java(had, "com.adobe.testing.s3mock.S3MockApplication", *arguments)
        with _process(command, folder, port) as url:
            yield Running(url)


@contextlib.contextmanager
def _garage() -> Iterator[Running]:
    had = _had(f"garage-{_GARAGE}", lambda folder: _cargo(folder, "garage", _GARAGE))
    with _place() as (folder, port):
        rpc, admin = free_port(), free_port()
        text = f"""metadata_dir = "{folder}/meta"
data_dir = "{folder}/data"
db_engine = "sqlite"
replication_factor = 1
rpc_bind_addr = "127.0.0.1:{rpc}"
rpc_secret = "{"1f" * 32}"
[s3_api]
s3_region = "{REGION}"
api_bind_addr = "127.0.0.1:{port}"
[admin]
api_bind_addr = "127.0.0.1:{admin}"
"""
        Path(folder, "garage.toml").write_text(text, "utf-8")
        program = [str(had / "bin" / "garage"), "-c", str(folder / "garage.toml")]
        with _process([*program, "server"], folder, port) as url:
            yield Running(url, *_garage_key(program))


def _garage_key(program: Sequence[str]) -> tuple[str, str]:
    """Give the only node of Garage its place, and make a key that may make buckets."""

    def run(*command: str) -> str:
        return subprocess.check_output([*program, *command], text=True)

    node = run("node", "id", "-q").partition("@")[0]
    run("layout", "assign", "-z", "here", "-c", "1G", node)
    run("layout", "apply", "--version", "1")
    key, secret = f"GK{'ab' * 12}", "cd" * 32
    run("key", "import", "--yes", "-n", "witness", key, secret)
    run("key", "allow", "--create-bucket", key)
    return key, secret


SERVERS = (
    Server("moto", version("moto"), "PyPI", _moto, smallest=256),
    Server("ministack", version("ministack"), "PyPI", _ministack),
    Server("versitygw", _VERSITY[1:], "Go modules", _versitygw),
    Server("SeaweedFS", _WEED.split("-")[1][:8], "Go modules", _seaweedfs),
    Server("s3proxy", "4.1.0", "Maven", _s3proxy),
    Server("S3Mock", "5.2.0", "Maven", _s3mock),
    Server("Garage", _GARAGE, "crates", _garage),
)
NOT_HAD = {"RustFS 1.0.1": "it needs Rust 1.98, and the machine of the tests has 1.95"}
"""Server -> why it could not be had where the table was made."""
NOT_RUN = {
    "Cloudflare R2, Backblaze B2, Huawei OBS, Alibaba OSS": "never run: a service needs an account",
    "Ceph, MinIO": "never run",
}
"""Servers -> why they were never run."""
