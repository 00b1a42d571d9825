"""The layout of a move of existing files, committed as a job.

Its own files are those of a job below the destination. The files to move are not: they are where
their owner has left them, and a rollback brings them back there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from asynccommit.commit.layout import RECORDED, Layout
from asynccommit.errors import ManifestError
from asynccommit.formats.fields import are_paths

_SOURCE = "source"
_JOURNAL = "journal"


PREFIX = "move-"
"""The beginning of the job ids of moves."""


@dataclass(frozen=True, slots=True)
class MoveLayout(Layout):
    """Decoded paths of a move with a journal.

    Args:
        source: the directory that all files to move are below.
        journal: URL of the journal, for messages.
    """

    kind: ClassVar[str] = "move"
    outside: ClassVar[bool] = True

    source: str = "/"
    journal: str = ""

    @classmethod
    def of(cls, layout: Layout, options: Mapping[str, object]) -> Self:
        """Return the layout that the options of a commit record describe.

        Raises ``ManifestError`` for a source that cannot be a directory.
        """
        source, journal = options.get(_SOURCE), options.get(_JOURNAL)
        if not isinstance(source, str) or not (source == "/" or _is_absolute(source)):
            raise ManifestError(layout.url(layout.record), "has no valid source directory")
        text = journal if isinstance(journal, str) else ""
        place = (layout.dest, layout.job_id, layout.attempt, "", layout.commit)
        return cls(*place, source=source, journal=text)

    @property
    def facts(self) -> dict[str, str]:
        """See ``Layout.facts``."""
        return {RECORDED: self.kind, _SOURCE: self.source, _JOURNAL: self.journal}

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
