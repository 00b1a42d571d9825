"""A server of S3, a process that ends with the one that began it: ``python s3_process.py NAME``."""

from __future__ import annotations

import os
import runpy
import sys
from threading import Thread


def serve_moto(port: int) -> None:
    """Serve until the process is ended."""
    from werkzeug.serving import run_simple

    from asynccommit.demo.moto import application

    run_simple("127.0.0.1", port, application(), threaded=True)


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
