"""The layout of a move of existing files, committed as a job.

Its own files are those of a job below the destination. The files to move are not: they are where
their owner has left them, and a rollback brings them back there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from asynccommit.commit.layouts.layout import RECORDED, Layout
from asynccommit.errors import ManifestError
from asynccommit.formats.fields import are_paths

_SOURCE = "source"
_JOURNAL = "journal"
_LINKS = "links"


PREFIX = "move-"
"""The beginning of the job ids of moves."""


@dataclass(frozen=True, slots=True)
class MoveLayout(Layout):
    """Decoded paths of a move with a journal.

    Args:
        source: the directory that all files to move are below.
        journal: URL of the journal, for messages.
        links: which of ``source`` and ``dest`` were links as the move began; ``None`` if unknown.
    """

    kind: ClassVar[str] = "move"
    outside: ClassVar[bool] = True

    source: str = "/"
    journal: str = ""
    links: str | None = None

    @classmethod
    def of(cls, layout: Layout, options: Mapping[str, object]) -> Self:
        """Return the layout that the options of a commit record describe.

        Raises ``ManifestError`` for a source that cannot be a directory.
        """
        source, journal = options.get(_SOURCE), options.get(_JOURNAL)
        if not isinstance(source, str) or not (source == "/" or _is_absolute(source)):
            raise ManifestError(layout.url(layout.record), "has no valid source directory")
        text = journal if isinstance(journal, str) else ""
        links = options.get(_LINKS)
        place = (layout.dest, layout.job_id, layout.attempt, "", layout.commit)
        known = links if isinstance(links, str) else None
        return cls(*place, source=source, journal=text, links=known)

    @property
    def facts(self) -> dict[str, str]:
        """See ``Layout.facts``."""
        found = {RECORDED: self.kind, _SOURCE: self.source, _JOURNAL: self.journal}
        return found if self.links is None else {**found, _LINKS: self.links}

    @property
    def roots(self) -> tuple[str, ...]:
        """See ``Layout.roots``.

        A directory that was no link as the move began is none of them.
        """
        named = {"source": self.source, "dest": self.dest.path}
        may = named if self.links is None else self.links.split()
        above = (path if name in may else posixpath.dirname(path) for name, path in named.items())
        return (*above, self.temporary)

    @property
    def sources_dir(self) -> str:
        """Return the directory that all files to move are below."""
        return self.source

    def has_source(self, name: str, *, below: bool) -> bool:
        """See ``Layout.has_source``: any name below the source."""
        return True

    def fenced(self, tasks: Iterable[str]) -> tuple[str, ...]:
        """See ``Layout.fenced``: the directories of others stay where they are."""
        return ()

    def reserves(self, path: str) -> bool:
        """Return whether ``path`` is for the move's own files."""
        return path == self.job_dir or path.startswith(f"{self.job_dir}/")

    @property
    def success(self) -> str:
        """Return a path at which no marker is ever written.

        A move writes none, and may itself move a ``_SUCCESS``.
        """
        return f"{self.attempt_dir}/no-marker"


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and are_paths([path], absolute=True)
