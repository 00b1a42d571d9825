"""The emulators: their start, requests, memory, and the pytest plugin.

The server is the command itself in a process of its own. Its CPU time is told beside the time on
the wall: a client and whatever else runs on the machine take time too.
"""

from __future__ import annotations

import http.client
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from asynccommit.testing.emulators.adls.auth import (
    DEVELOPMENT_ACCOUNT,
    DEVELOPMENT_KEY,
    sign,
    string_to_sign,
)
from asynccommit.testing.emulators.adls.call import AdlsCall, read_target
from asynccommit.testing.emulators.server import ServerRequest
from bench.meter import cpu_of

TARGETS = {"start_seconds": 0.5, "per_cpu_second": 10_000.0, "plugin_ms": 20.0}
_CONNECTIONS, _AHEAD = 8, 25
_PATIENCE = 120.0
_ACCOUNT = f"/{DEVELOPMENT_ACCOUNT}/data"
_OBJECTS = "/storage/v1/b/data/o"
_BODY = b"AA,JFK\n"
_TOKEN = {"Authorization": "Bearer any", "x-ms-version": "2024-11-04"}
_EMULATORS = {"adls": ("-f", "data"), "gcs": ("--bucket", "data")}

Make = Callable[[int], bytes]


def run(*, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure both emulators and the plugin."""
    result: dict[str, Any] = {"targets": TARGETS}
    for kind in _EMULATORS:
        say(f"emulators: {kind}")
        result[kind] = {
            "start": _starts(kind, 3 if quick else 11),
            "requests": _requests(kind, 4_000 if quick else 40_000),
            "memory": _memory(kind, 20_000 if quick else 200_000),
        }
    say("emulators: the pytest plugin")
    result["plugin"] = _plugin(5 if quick else 11)
    return result


# --- start -------------------------------------------------------------------------------------


@contextmanager
def _serving(kind: str) -> Iterator[tuple[int, int]]:
    """Run the command; yield its port and its process id when it answers."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "asynccommit", "emulate", kind, "--quiet"]
    process = subprocess.Popen([*command, "--port", str(port), *_EMULATORS[kind]])
    try:
        _await_answer(port, process)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(_PATIENCE)


def _await_answer(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.perf_counter() + _PATIENCE
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
        try:
            connection.request("GET", "/_emulator/stats")
            assert connection.getresponse().status == 200
            return
        except ConnectionRefusedError:
            if process.poll() is not None or time.perf_counter() > end:
                raise
            time.sleep(0.002)
        finally:
            connection.close()


def _starts(kind: str, rounds: int) -> Mapping[str, float]:
    """Return the median time from the start to the first answer."""
    walls, cpus = [], []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        with _serving(kind) as (_, pid):
            walls.append(time.perf_counter() - begin)
            cpus.append(cpu_of(pid))
    # The first one fills the caches of the system.
    return {"seconds": median(walls[1:]), "best": min(walls[1:]), "cpu": median(cpus[1:])}


# --- requests ----------------------------------------------------------------------------------


class Operation(NamedTuple):
    """Requests of one kind.

    Attributes:
        make: makes the request with a number.
        status: expected of each answer.
        bodiless: whether answers have a length and no body.
    """

    make: Make
    status: bytes
    bodiless: bool = False


def _request(method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    shown = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    length = f"Content-Length: {len(body)}\r\n"
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{shown}{length}\r\n"
    return head.encode() + body


def _signed(method: str, target: str) -> bytes:
    """Return a request with the signature of the account's key."""
    headers = {"x-ms-version": "2024-11-04", "x-ms-date": formatdate(usegmt=True)}
    request = ServerRequest()
    request.method, request.target = method, target.encode()
    request.headers = {**headers, "content-length": "0"}
    call = AdlsCall(request, read_target(request, {DEVELOPMENT_ACCOUNT}))
    signature = sign(DEVELOPMENT_KEY, string_to_sign(call))
    given = {**headers, "Authorization": f"SharedKey {DEVELOPMENT_ACCOUNT}:{signature}"}
    return _request(method, target, given)


def _rename(number: int) -> bytes:
    source = {"x-ms-rename-source": f"/data/f{number:06}"}
    return _request("PUT", f"{_ACCOUNT}/g{number:06}", {**_TOKEN, **source})


def _upload(number: int) -> bytes:
    target = f"/upload{_OBJECTS}?uploadType=media&name=f{number:06}"
    return _request("POST", target, {"Content-Type": "text/csv"}, _BODY)


OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    "adls": {
        "create, with a token": Operation(
            lambda _: _request("PUT", f"{_ACCOUNT}/f{_:06}?resource=file", _TOKEN), b"201"
        ),
        "create, signed": Operation(
            lambda _: _signed("PUT", f"{_ACCOUNT}/s{_:06}?resource=file"), b"201"
        ),
        "head": Operation(
            lambda _: _request("HEAD", f"{_ACCOUNT}/f{_:06}?action=getStatus", _TOKEN), b"200", True
        ),
        "rename": Operation(_rename, b"201"),
    },
    "gcs": {
        "upload": Operation(_upload, b"200"),
        "download": Operation(
            lambda _: _request("GET", f"{_OBJECTS}/f{_:06}?alt=media", {}), b"200"
        ),
        "moveTo": Operation(
            lambda _: _request("POST", f"{_OBJECTS}/f{_:06}/moveTo/o/g{_:06}", {}), b"200"
        ),
    },
}


class _Client:
    """A connection that sends requests ahead of their answers."""

    def __init__(self, port: int, operation: Operation) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._file = self._socket.makefile("rb")
        self._operation = operation

    def send(self, data: bytes) -> None:
        """Send requests."""
        self._socket.sendall(data)

    def read(self, count: int) -> None:
        """Read the answers. Raises ``RuntimeError`` for another status."""
        for _ in range(count):
            line = self._file.readline()
            if line.split(b" ")[1] != self._operation.status:
                raise RuntimeError(f"expected {self._operation.status!r}, not {line!r}")
            length = 0
            while (header := self._file.readline()) not in (b"\r\n", b""):
                name, _, value = header.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if length and not self._operation.bodiless:
                self._file.read(length)

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()


def _send_all(port: int, operation: Operation, count: int) -> float:
    """Send ``count`` requests over some connections; return the seconds taken."""
    requests = [operation.make(number) for number in range(count)]
    clients = [_Client(port, operation) for _ in range(_CONNECTIONS)]
    begin = time.perf_counter()
    for first in range(0, count, _CONNECTIONS * _AHEAD):
        batches = [
            requests[first + number * _AHEAD : first + (number + 1) * _AHEAD]
            for number in range(_CONNECTIONS)
        ]
        for client, batch in zip(clients, batches, strict=True):
            client.send(b"".join(batch))
        for client, batch in zip(clients, batches, strict=True):
            client.read(len(batch))
    taken = time.perf_counter() - begin
    for client in clients:
        client.close()
    return taken


def _requests(kind: str, count: int) -> Mapping[str, Mapping[str, float]]:
    """Return the rates of each operation, by the wall and by CPU seconds."""
    found = {}
    with _serving(kind) as (port, pid):
        for name, operation in OPERATIONS[kind].items():
            before = cpu_of(pid)
            seconds = _send_all(port, operation, count)
            cpu = cpu_of(pid) - before
            found[name] = {
                "count": count,
                "per_second": count / seconds,
                "per_cpu_second": count / cpu,
                "cpu_us": cpu / count * 1e6,
            }
    return found


# --- memory and the plugin ---------------------------------------------------------------------


def _memory(kind: str, count: int) -> Mapping[str, float]:
    """Return the growth of the server's resident memory by each object."""
    operation = next(iter(OPERATIONS[kind].values()))
    with _serving(kind) as (port, pid):
        _send_all(port, operation, 2_000)  # what is made once
        before = _resident(pid)
        _send_all(port, operation._replace(make=lambda _: operation.make(_ + 2_000)), count)
        grown = _resident(pid) - before
    return {"objects": count, "bytes_each": grown / count}


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmRSS":
            return int(value.split()[0]) * 1024
    return 0


_LOAD = """
import time, pytest, pytest_asyncio
begin = time.process_time()
import asynccommit.testing.pytest_plugin
print((time.process_time() - begin) * 1000)
"""


def _plugin(rounds: int) -> Mapping[str, float]:
    """Return the CPU milliseconds that the plugin takes.

    A run varies by more than that, so what loading it takes is measured alone, too.
    """
    alone = [sys.executable, "-c", _LOAD]
    loads = [
        float(subprocess.run(alone, check=True, stdout=subprocess.PIPE).stdout)
        for _ in range(rounds)
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_one.py").write_text("def test_one():\n    pass\n")
        plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py"]
        commands = {"with": plain, "without": [*plain, "-p", "no:asynccommit"]}
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                taken[name].append(_cpu_ms(command, folder))
    found = {name: median(values) for name, values in taken.items()}
    return {**found, "load": median(loads), "load_best": min(loads)}


def _cpu_ms(command: Iterable[str], folder: str) -> float:
    before = _children_seconds()
    quiet = subprocess.DEVNULL
    subprocess.run([*command], cwd=folder, check=True, stdout=quiet, stderr=quiet)
    return (_children_seconds() - before) * 1000


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- the table ---------------------------------------------------------------------------------


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    targets = result["targets"]
    yield "The emulators, as commands in processes of their own"
    for kind in _EMULATORS:
        start, memory = result[kind]["start"], result[kind]["memory"]
        yield (
            f"  {kind:5} start to the first answer {start['seconds']:.2f} s (best "
            f"{start['best']:.2f} s), {start['cpu']:.2f} s of CPU; target < "
            f"{targets['start_seconds']} s"
        )
        yield f"  {'':5} {'':22} {'requests/s':>11} {'/CPU second':>12} {'CPU us':>7}"
        for name, row in result[kind]["requests"].items():
            yield (
                f"  {'':5} {name:22} {row['per_second']:11,.0f} {row['per_cpu_second']:12,.0f} "
                f"{row['cpu_us']:7.0f}  target >= {targets['per_cpu_second']:,.0f} a CPU second"
            )
        each = f"{memory['bytes_each']:.0f} bytes of memory an object"
        yield f"  {'':5} {each} ({memory['objects']:,})"
    plugin = result["plugin"]
    yield (
        f"  The pytest plugin is loaded in {plugin['load']:.1f} ms of CPU (best "
        f"{plugin['load_best']:.1f} ms); target < {targets['plugin_ms']:.0f} ms. A run of one test "
        f"takes {plugin['with']:.0f} ms with it, {plugin['without']:.0f} ms without"
    )
