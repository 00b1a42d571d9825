"""``python -m bench.s3.server``: moto, on a free port of this machine, until told to end."""

from __future__ import annotations

import json
import logging
import sys

from moto.server import ThreadedMotoServer


def main() -> None:
    """Say where it listens, and serve until standard input ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(json.dumps(f"{host}:{port}"), flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
