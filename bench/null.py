"""Servers with one answer to everything, in a process of their own: what is left is the client.

nginx where it is installed, else a small responder in Python; whoever prints a figure says which.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import trustme

from bench.child import Child

_START = 10.0
_TRIES = 5
_CONF = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
    default_type application/json;
    access_log off;
    server_tokens off;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{http};
        listen 127.0.0.1:{https} ssl;
        ssl_certificate {folder}/server.pem;
        ssl_certificate_key {folder}/server.pem;
{headers}
        location / {{ return {status}{body}; }}
    }}
}}
"""


class Says(NamedTuple):
    """The one answer.

    Attributes:
        status: and its words, as ``201 Created``.
        headers: as they stand on the wire, its type and length aside.
        body: without single quotes.
    """

    status: str
    headers: Mapping[str, str]
    body: str = ""


@dataclass(frozen=True, slots=True)
class Null:
    """A running null server.

    Attributes:
        name: what it is.
        pid: its process.
        http: host and port without TLS.
        https: host and port with TLS.
        ca_file: the certificate to trust.
    """

    name: str
    pid: int
    http: str
    https: str
    ca_file: str


def nginx() -> str | None:
    """Return the command, or ``None`` if there is none."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def null_server(folder: str, says: Says) -> Iterator[Null]:
    """Run a null server that says this, with its files in ``folder``; stop it at the end."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(f"{folder}/ca.pem")
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(f"{folder}/server.pem")
    command = nginx()
    with ExitStack() as running:
        if command is None:
            certificate = f"{folder}/server.pem"
            child = running.enter_context(Child("bench.responder", certificate, json.dumps(says)))
            http, https = child.answer()
            name, pid = "a responder in Python (there is no nginx)", child.pid
        else:
            process, http, https = _nginx(command, folder, says)
            running.callback(_stop, process)
            name, pid = "nginx", process.pid
        yield Null(name, pid, f"127.0.0.1:{http}", f"127.0.0.1:{https}", f"{folder}/ca.pem")


def _nginx(command: str, folder: str, says: Says) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start it; again if somebody else took one of its ports in between."""
    conf = Path(folder, "nginx.conf")
    for _ in range(_TRIES):
        http, https = _free_ports(2)
        conf.write_text(_conf(says, folder=folder, http=http, https=https))
        process = subprocess.Popen([command, "-p", folder, "-c", str(conf), "-e", "stderr"])
        if _listens(process, https):
            return process, http, https
        _stop(process)
    raise RuntimeError(f"{command} did not start; its error is above")


def _conf(says: Says, **places: object) -> str:
    headers = "\n".join(f"        add_header {key} {value};" for key, value in says.headers.items())
    body = f" '{says.body}'" if says.body else ""
    return _CONF.format(headers=headers, status=says.status[:3], body=body, **places)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() - begin < _START:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.05)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
