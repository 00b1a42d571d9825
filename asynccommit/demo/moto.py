"""Run moto's S3 server: ``python -m asynccommit.demo.moto``.

The server handles one request at a time. Moto's own program uses a thread per connection and no
lock around shared state, so two simultaneous conditional writes may both succeed.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from asynccommit.demo.emulated import running
from asynccommit.errors import UnsupportedError

App = Callable[..., Iterable[bytes]]

_REGION = "us-east-1"
_QUEUE = 1024
_NEEDS = {
    "'asynccommit[emulate,s3]'": ("aiohttp", "botocore", "google_crc32c", "httptools"),
    "'moto[server]>=5.1'": ("flask", "flask_cors", "moto"),
}


class Moto:
    """A running server, accessed directly and not through the proxy.

    Attributes:
        url: URL of the server.
    """

    def __init__(self, url: str) -> None:
        import botocore.session

        self.url = url
        self._client: Any = botocore.session.get_session().create_client(
            "s3",
            endpoint_url=url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name=_REGION,
        )

    def make_bucket(self, name: str) -> None:
        """Create an empty bucket."""
        self._client.create_bucket(Bucket=name)

    def objects(self, bucket: str, prefix: str) -> Mapping[str, str]:
        """Return for each key a value that changes when the object is rewritten."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        found = (item for page in pages for item in page.get("Contents", ()))
        return {item["Key"]: f"{item['ETag']} {item['LastModified']}" for item in found}

    def uploads(self, bucket: str, prefix: str) -> list[str]:
        """Return the keys of all open uploads."""
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket)
        found = [item["Key"] for page in pages for item in page.get("Uploads", ())]
        return [key for key in found if key.startswith(prefix)]


def need_moto() -> None:
    """Raise ``UnsupportedError`` if moto is not installed."""
    missing = [what for what, names in _NEEDS.items() if not all(map(find_spec, names))]
    if missing:
        raise UnsupportedError(
            f"the demo needs packages that are not installed: pip install {' '.join(missing)}"
        )


@contextmanager
def serving_moto(log: Path) -> Iterator[Moto]:
    """Run an empty server. Raises ``AsyncCommitError`` if it does not start."""
    # AWS settings of the environment are meant for Amazon's S3, not for this server.
    with running("moto", [__spec__.name], log, without=("AWS_",)) as facts:
        yield Moto(facts["endpoint"])


def application() -> App:
    """Return moto as an application that handles one request at a time."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    WSGIRequestHandler.protocol_version = "HTTP/1.1"  # Connections stay open, as S3's do.
    app, lock = DomainDispatcherApplication(create_backend_app), Lock()
    # It lists 175 folders at each request to find the service that a host name is of.
    app.get_backend_for_host = lru_cache(app.get_backend_for_host)  # type: ignore[method-assign]

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with lock:
            return list(app(environ, start))

    return answer


def main() -> None:
    """Serve until the process is ended; the first output is the URL, as JSON."""
    from werkzeug.serving import BaseWSGIServer, make_server

    # Of 200 connections at once some would not fit into werkzeug's queue of 128, and the system
    # tries to connect those again after a second.
    BaseWSGIServer.request_queue_size = _QUEUE
    server = make_server("127.0.0.1", 0, application(), threaded=True)
    where = {"endpoint": f"http://127.0.0.1:{server.server_port}"}
    sys.stdout.write(f"{json.dumps(where, indent=1)}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
