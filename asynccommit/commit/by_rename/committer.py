"""The manifest committer: tasks list files, the job renames them.

Compatible on the store with Hadoop's committer of this name (3.4.1 and later; the manifests of
earlier ones load too). Differences and their reasons are in docs/protocol-spec.md.
"""

from __future__ import annotations

from typing import ClassVar

from asynccommit.commit.by_rename.publisher import RenamePublisher
from asynccommit.commit.by_rename.task_side import TaskSide
from asynccommit.commit.planning.load_manifests import load_manifests


class ManifestCommitter(TaskSide):
    """A committer of one job attempt under one destination.

    Create it like ``TaskSide``.
    """

    publisher: ClassVar[RenamePublisher] = RenamePublisher(load_manifests)

    @property
    def _kind_of_others(self) -> type[ManifestCommitter]:
        return ManifestCommitter
