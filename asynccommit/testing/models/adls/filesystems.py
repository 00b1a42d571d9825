"""Manage the filesystems (containers) of an account."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

from asynccommit.testing.models.adls.conditions import NO_CONDITIONS, Conditions, check_write
from asynccommit.testing.models.adls.listing import decode_token, encode_token
from asynccommit.testing.models.adls.nodes import Filesystem, Node, unlink
from asynccommit.testing.models.adls.refusals import refusal

MOST_ENTRIES = 5000  # maximum number of entries on a page, whatever the request asks for
_FIRST_ETAG = 0x8D0000000000000
_TICKS_BEFORE_EPOCH = 621_355_968_000_000_000  # from the year 1, in 100 ns, like etags
_STATE = ("_version", "_filesystems", "encrypted", "_due", "_deleted")
_NAME = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]|\$root|\$web").fullmatch


class AdlsLimits(NamedTuple):
    """The limits that split long operations.

    Attributes:
        page: maximum number of entries on one page of a listing.
        delete: maximum number of entries that one recursive delete removes; 0 for no limit.
        empty_pages: every listing begins with a page that has only a token.
        filesystem_delete: seconds during which the name of a deleted filesystem is unavailable.
    """

    page: int = MOST_ENTRIES
    delete: int = 0
    empty_pages: bool = False
    filesystem_delete: float = 0.0


_NO_LIMITS = AdlsLimits()


class Filesystems:
    """The filesystems of one account.

    Args: see ``Account``.
    """

    def __init__(
        self,
        name: str,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        hns: bool = True,
        limits: AdlsLimits = _NO_LIMITS,
    ) -> None:
        self.name = name
        self.hns = hns
        self.limits = limits
        self._now = now
        self.new_id = new_id
        self._version = _FIRST_ETAG
        self._filesystems: dict[str, Filesystem] = {}
        self.encrypted = False  # whether a key or a scope was ever used
        self._due = inf  # when the next file expires
        self._deleted: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"Account({self.name!r}, hns={self.hns})"

    def dump(self) -> dict[str, Any]:
        """Return what is stored, shared and not copied."""
        return {name: getattr(self, name) for name in _STATE}

    def load(self, state: Mapping[str, Any]) -> None:
        """Store what ``dump`` returned."""
        for name in _STATE:
            setattr(self, name, state[name])

    def now(self) -> float:
        """Return the server's time, seconds since the epoch."""
        return self._now()

    def create_filesystem(
        self,
        fs: str,
        properties: Mapping[str, str] | None = None,
        *,
        scope: str | None = None,
        scope_fixed: bool = False,
    ) -> Filesystem:
        """Create a filesystem, with a default encryption scope if given.

        Rejected if it exists, or was deleted a moment ago.
        """
        if not _NAME(fs):
            raise refusal("InvalidResourceName")
        if fs in self._filesystems:
            raise refusal("FilesystemAlreadyExists")
        now = self._now()
        if now < self._deleted.get(fs, now) + self.limits.filesystem_delete:
            raise refusal("FilesystemBeingDeleted")
        made = Filesystem(fs, Node({}, self._tick(now), now), properties or {})
        made.scope, made.scope_fixed = scope, scope_fixed
        self.encrypted = self.encrypted or scope is not None
        self._filesystems[fs] = made
        return made

    def head_filesystem(self, fs: str) -> Filesystem:
        """Return a filesystem."""
        found = self._filesystems.get(fs)
        if found is None:
            raise refusal("FilesystemNotFound" if _NAME(fs) else "InvalidResourceName")
        if self._due is not inf and self._now() >= self._due:
            self._expire()
        return found

    def set_filesystem_properties(
        self, fs: str, properties: Mapping[str, str], conditions: Conditions = NO_CONDITIONS
    ) -> Filesystem:
        """Replace the properties of a filesystem."""
        found = self.head_filesystem(fs)
        check_write(found, conditions)
        found.properties = dict(properties)
        found.modified = self._now()
        found.version = self._tick(found.modified)
        return found

    def delete_filesystem(self, fs: str, conditions: Conditions = NO_CONDITIONS) -> None:
        """Delete a filesystem with its content."""
        check_write(self.head_filesystem(fs), conditions)
        del self._filesystems[fs]
        self._deleted[fs] = self._now()

    def list_filesystems(
        self, prefix: str = "", limit: int | None = None, token: str | None = None
    ) -> tuple[list[Filesystem], str | None]:
        """Return one page of the filesystems by name, and the next token."""
        most = min(limit or MOST_ENTRIES, MOST_ENTRIES)
        after = decode_token("filesystems", token) if token else ""
        names = sorted(name for name in self._filesystems if name > after)
        found = [self._filesystems[name] for name in names if name.startswith(prefix)]
        more = encode_token("filesystems", found[most - 1].name) if found[most:] else None
        return found[:most], more

    def _expire(self) -> None:
        """Delete the files whose time has come, and find the next one."""
        now, self._due = self._now(), inf
        begun = [found.root for found in self._filesystems.values()]
        while begun:
            directory = begun.pop()
            for name, node in list((directory.children or {}).items()):
                expires = inf if node.extra is None else node.extra.expires or inf
                if node.is_dir:
                    begun.append(node)
                elif expires <= now:
                    unlink(directory, name)
                else:
                    self._due = min(self._due, expires)

    def new_node(self, *, directory: bool = False) -> Node:
        """Return a new empty file or directory, not yet linked into a tree."""
        now = self._now()
        return Node({} if directory else None, self._tick(now), now)

    def _tick(self, now: float) -> int:
        """Return a new version: above all earlier ones, and based on ``now``."""
        self._version = max(self._version + 1, int(now * 1e7) + _TICKS_BEFORE_EPOCH)
        return self._version
