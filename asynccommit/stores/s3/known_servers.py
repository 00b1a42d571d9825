"""Keep for a day the abilities of servers of S3, by endpoint and bucket."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from asynccommit.runtime.private_cache import cache_directory, read_private, write_private
from asynccommit.stores.http.base import is_loopback
from asynccommit.stores.s3.abilities import Abilities, RenameAbilities

DAY = 86_400.0
"""Seconds after which a server is asked again."""
_LIMIT = 4096  # bytes of a file, of which one takes 500
A = TypeVar("A", Abilities, RenameAbilities)


class KnownServers(Generic[A]):
    """Keeps answers in this process, and in files of the user's cache.

    A port of this machine may be another server's tomorrow: of these there are no files.

    Args:
        kind: of the answers.
        start: of the names of the files.
    """

    def __init__(self, kind: type[A], start: str = "") -> None:
        self._start = start
        self._kind: type[A] = kind
        self._known: dict[str, tuple[float, A]] = {}

    async def recall(self, server: str, now: float) -> A | None:
        """Return what ``server`` was seen to do within the last day."""
        at, found = self._known.get(server, (0.0, None))
        if found is not None and _is_young(at, now):
            return found
        if _is_here(server):
            return None
        data = await asyncio.to_thread(read_private, self._path(server), _LIMIT)
        read = None if data is None else self._decode(data, server, now)
        if read is None:
            return None
        self._known[server] = read
        return read[1]

    async def keep(self, server: str, now: float, found: A) -> None:
        """Remember what a server was seen to do."""
        self._known[server] = now, found
        if _is_here(server):
            return
        data = json.dumps({"server": server, "at": now, **found._asdict()}).encode()
        await asyncio.to_thread(write_private, self._path(server), data, lasts=DAY)

    def _path(self, server: str) -> Path:
        name = hashlib.sha256(server.encode()).hexdigest()[:32]
        return cache_directory("s3") / f"{self._start}{name}.json"

    def _decode(self, data: bytes, server: str, now: float) -> tuple[float, A] | None:
        """Return the time and content of a file; ``None`` if not as written."""
        names: tuple[str, ...] = self._kind._fields
        try:
            told = json.loads(data)
        except (ValueError, RecursionError):
            return None
        if not isinstance(told, dict) or told.keys() != {*names, "server", "at"}:
            return None
        at, answers = told["at"], [told[name] for name in names]
        if told["server"] != server or type(at) not in (int, float) or not _is_young(at, now):
            return None
        if any(type(answer) is not bool for answer in answers):
            return None
        return float(at), self._kind(*answers)


def _is_here(server: str) -> bool:
    return is_loopback(urlsplit(server).netloc)


def _is_young(at: float, now: float) -> bool:
    return now - DAY < at <= now


KNOWN = KnownServers(Abilities)
"""The answers that all stores of this process share."""
KNOWN_RENAMES = KnownServers(RenameAbilities, "renames-")
"""The same of servers that rename."""
