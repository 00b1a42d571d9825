"""The command with a pause: ``python driver.py FOLDER NUMBER [--nobody] [--stay] VERB ...``.

Before the rename of that number which readers can see it writes ``FOLDER/paused`` and waits for
``FOLDER/go``; with 0 before the commit record. With ``--nobody`` it gives up its rights first,
once all is imported. With ``--stay`` the process lives on after the command, until it is given a
line.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from asynccommit.cli import main
from asynccommit.commit.layouts.layout import RECORD
from asynccommit.stores.base import Info, Move, Renamed
from asynccommit.stores.local.store import LocalStore

NOBODY = 65534


def pause_at(folder: Path, number: int) -> None:
    """Let the local store stop before a rename to or from where readers look."""
    rename, put, count = LocalStore.rename, LocalStore.put, 0

    async def pause() -> None:
        (folder / "paused").touch()
        while not (folder / "go").exists():  # noqa: ASYNC110  in another process
            await asyncio.sleep(0.01)

    async def paused_rename(self: LocalStore, source: str, dest: str, **options: Any) -> None:
        nonlocal count
        seen = "/_temporary/" not in source or "/_temporary/" not in dest
        count += seen
        if seen and count == number:
            await pause()
        await rename(self, source, dest, **options)

    async def paused_put(self: LocalStore, path: str, data: bytes, **options: Any) -> Info:
        if number == 0 and path.endswith(RECORD):
            await pause()
        return await put(self, path, data, **options)

    async def one_by_one(self: LocalStore, pairs: Sequence[Move]) -> Renamed:
        for source, dest, etag in pairs:
            await self.rename(source, dest, etag=etag)
        return len(pairs), None

    LocalStore.rename = paused_rename  # type: ignore[method-assign]
    LocalStore.rename_many = one_by_one  # type: ignore[method-assign]
    LocalStore.put = paused_put  # type: ignore[method-assign]


def become_nobody() -> None:
    """Give up all rights; what is imported late is imported now, from a home that is closed."""
    main(["status", "/", "--json"])
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.environ["USER"] = "nobody"


if __name__ == "__main__":
    place, at, *rest = sys.argv[1:]
    if rest[0] == "--nobody":
        rest = rest[1:]
        with redirect_stdout(io.StringIO()):
            become_nobody()
    stays = "--stay" in rest
    pause_at(Path(place), int(at))
    code = main([word for word in rest if word != "--stay"])
    if stays:
        sys.stderr.write("the command has ended\n")
        sys.stderr.flush()
        sys.stdin.readline()
    sys.exit(code)
