"""moto's server of S3, one request at a time: ``python moto_server.py PORT``.

Its own has a thread for each connection and no lock around what they change, so that of two
conditional writes at one moment both may succeed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any


def one_by_one(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return ``app`` so that it answers one request after the other."""
    lock = Lock()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with lock:
            return list(app(environ, start))

    return answer


def main(port: int) -> None:
    """Serve until the process is ended."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, run_simple

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    WSGIRequestHandler.protocol_version = "HTTP/1.1"  # connections stay open, as S3's do
    app = one_by_one(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", port, app, threaded=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
