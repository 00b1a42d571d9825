"""A server of S3 as a process that ends with the one that began it: ``python s3_process.py NAME``.

moto answers one request at a time here: its own server has a thread for each connection and no lock
around what they change, so that of two conditional writes at one moment both may succeed.
"""

from __future__ import annotations

import logging
import os
import runpy
import sys
from collections.abc import Callable, Iterable
from threading import Lock, Thread
from typing import Any

App = Callable[..., Iterable[bytes]]


def one_by_one(app: App) -> App:
    """Return ``app`` so that it answers one request after the other."""
    lock = Lock()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with lock:
            return list(app(environ, start))

    return answer


def serve_moto(port: int) -> None:
    """Serve until the process is ended."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, run_simple

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    WSGIRequestHandler.protocol_version = "HTTP/1.1"  # connections stay open, as S3's do
    app = one_by_one(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", port, app, threaded=True)


def end_with_parent() -> None:
    """End this process as soon as nobody holds the other end of its input any more."""
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    Thread(target=end_with_parent, daemon=True).start()
    sys.path.pop(0)  # this folder, whose modules are no libraries
    name, *rest = sys.argv[1:]
    if name == "moto":
        serve_moto(int(rest[0]))
    else:
        sys.argv[1:] = rest
        runpy.run_module(name, run_name="__main__", alter_sys=True)
