"""The manifest committer: tasks list files, the job renames them.

Compatible on the store with Hadoop's committer of this name (3.4.1 and later; the manifests of
earlier ones load too). Differences and their reasons are in docs/protocol.md.
"""

from __future__ import annotations

from typing import ClassVar

from asynccommit.commit.by_rename.load_manifests import load_manifests
from asynccommit.commit.by_rename.publisher import RenamePublisher
from asynccommit.commit.by_rename.task_side import TaskSide
from asynccommit.commit.context import CommitContext
from asynccommit.commit.layout import Layout


class ManifestCommitter(TaskSide):
    """A committer of one job attempt under one destination.

    Create it like ``TaskSide``.
    """

    publisher: ClassVar[RenamePublisher] = RenamePublisher(load_manifests)

    def _of(self, run: CommitContext, layout: Layout) -> ManifestCommitter:
        return ManifestCommitter(
            self.store,
            layout,
            self.options,
            self.host,
            self._counted,
            self._traffic,
            self._open_store,
        )
