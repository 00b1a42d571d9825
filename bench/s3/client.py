"""``python -m bench.s3.client``: one client process, told what to do by ``bench.child.Child``."""

from __future__ import annotations

import gc
from typing import Any

from asynccommit.stores.parts import Part
from bench.child import serve
from bench.meter import Meter
from bench.s3 import account
from bench.s3.account import Pending
from bench.s3.completers import COMPLETERS, Completer


class Client:
    """What the process holds open between two commands."""

    def __init__(self) -> None:
        self._completer: Completer | None = None
        self._uploads: list[Pending] = []

    def open_completer(self, name: str, host: str, count: int) -> None:
        """Open one of ``COMPLETERS``, and have ``count`` uploads ready that nobody began."""
        self._completer = COMPLETERS[name](host)
        self._uploads = account.pending(count)

    def take(self, uploads: list[Any]) -> None:
        """Have these uploads ready: key, id, and etags of the parts."""
        self._uploads = [
            Pending(key, upload_id, tuple(Part(etag) for etag in etags))
            for key, upload_id, etags in uploads
        ]

    def complete(self) -> dict[str, Any]:
        """Complete what is ready; return what it took."""
        assert self._completer is not None
        gc.collect()
        meter = Meter()
        self._completer.complete(self._uploads)
        return meter.read(len(self._uploads))

    def close(self) -> None:
        """Close what is open."""
        if self._completer is not None:
            self._completer.close()
        self._completer = None


if __name__ == "__main__":
    client = Client()
    serve(
        {
            "open_completer": client.open_completer,
            "take": client.take,
            "complete": client.complete,
            "close": client.close,
        }
    )
