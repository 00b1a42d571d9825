"""Servers of other hands that speak S3, for as long as a test session: moto first, then ministack.

Both run in processes of their own, on loopback, keep all in memory, and are ended with the session.
Put the fixtures into a test module by importing them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.urls import parse_url

KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI+K7MDENG", "us-east-1"
SMALLEST = 256
"""Bytes of the smallest part that the moto of these tests takes; S3's are 5 MiB."""

_PROCESS = Path(__file__).with_name("s3_process.py")
_numbers = itertools.count()
_START = 60.0  # seconds; on a busy machine moto takes ten


@contextlib.contextmanager
def running_moto() -> Iterator[str]:
    """Run moto's server and yield its URL. Raises ``ImportError`` where there is none."""
    _need("moto.server", "flask")
    port = free_port()
    with _running(["moto", str(port)], port, {"S3_UPLOAD_PART_MIN_SIZE": str(SMALLEST)}) as url:
        yield url


@contextlib.contextmanager
def running_ministack() -> Iterator[str]:
    """Run ministack and yield its URL. Raises ``ImportError`` where there is none."""
    _need("ministack")
    port = free_port()
    # It would listen on every interface, and keep a log in the directory for temporary files.
    environ = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "s3"}
    with _running(["ministack"], port, {**environ, "LOG_LEVEL": "ERROR"}) as url:
        yield url


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """Yield the URL of a moto that all tests share; each makes buckets of its own."""
    yield from _shared(running_moto)


@pytest.fixture(scope="session")
def ministack_url() -> Iterator[str]:
    """Yield the URL of a ministack that all tests share; each makes buckets of its own."""
    yield from _shared(running_ministack)


def new_bucket(url: str) -> str:
    """Make a bucket on a server and return its name."""
    name = f"bucket-{next(_numbers)}-{os.getpid()}"
    ask(url, "PUT", f"/{name}")
    return name


def options(url: str, **more: Any) -> dict[str, Any]:
    """Return the options of a store on a server."""
    return {"endpoint_url": url, "key": KEY, "secret": SECRET, "region": REGION, **more}


def open_s3(url: str, bucket: str, **more: Any) -> S3Store:
    """Open a store on a bucket of a server."""
    return S3Store(parse_url(f"s3://{bucket}/"), options(url, **more), environ={})


def ask(url: str, method: str, path: str, body: bytes = b"") -> bytes:
    """Send a request without a signature, which these servers do not look at."""
    asked = urllib.request.Request(f"{url}{path}", body or None, method=method)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        found: bytes = answer.read()
    return found


def _need(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            raise ImportError(f"no module {module}")


def _shared(running: Any) -> Iterator[str]:
    try:
        with running() as url:
            yield url
    except ImportError as error:
        pytest.skip(f"needs a server of S3: {error}")


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def _running(what: Sequence[str], port: int, environ: dict[str, str]) -> Iterator[str]:
    # No credentials of this machine, and no warnings made into errors.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    kept.pop("PYTHONWARNINGS", None)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("wb") as output:
            running = subprocess.Popen(
                [sys.executable, str(_PROCESS), *what],
                stdin=subprocess.PIPE,  # whose end ends it, however this process ends
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**kept, "TMPDIR": folder, **environ},
                cwd=folder,
            )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(running, url, log)
            yield url
        finally:
            _end(running)


def _wait(running: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _START
    while running.poll() is None and time.monotonic() < end:
        try:
            ask(url, "GET", "/")
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    said = log.read_text("utf-8", "replace")[-2000:]
    raise RuntimeError(f"the server does not answer; it ended with {running.poll()}: {said}")


def _end(running: subprocess.Popen[bytes]) -> None:
    running.terminate()
    try:
        running.wait(10)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait(10)
    assert running.stdin is not None
    running.stdin.close()
