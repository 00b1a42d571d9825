"""The committers for stores with multipart uploads.

Tasks upload; the job completes the uploads.

This is the job side, the same for all of them; ``magic.py`` and ``staging.py`` add the task side.
It is compatible on the store with Hadoop's S3A committers. Differences and their reasons are in
docs/protocol-spec.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.jobs import sought, store_of
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.publisher import UploadPublisher
from asynccommit.commit.by_upload.status import (
    UploadCommitState,
)
from asynccommit.commit.errors import commit_failures
from asynccommit.commit.job.committer import JobCommitter
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.commit.meter import OnProgress
from asynccommit.errors import UnsupportedError
from asynccommit.stores.base import Store
from asynccommit.stores.multipart import MultipartStore


class UploadCommitter(JobCommitter[UploadContext, UploadCommitState, UploadPlan]):
    """The job side of an upload committer, for one job attempt.

    Create it like ``JobCommitter``.

    The store must support uploads; ``pending`` is the store of the pending sets, if it is another.

    Raises ``UnsupportedError`` if a store lacks multipart uploads, or writes that never replace.
    """

    store: MultipartStore
    layout: UploadLayout
    publisher: ClassVar[UploadPublisher] = UploadPublisher()

    def _refuse_unfit(self) -> None:
        if self.store.traits.multipart is None:
            raise UnsupportedError(
                f"{self.store.traits.name} has no multipart uploads, which this committer "
                "completes: use the manifest committer"
            )
        for each in (self.pending, self.store):
            if each.traits.conditional_put:
                continue
            raise UnsupportedError(
                f"{each.traits.name} cannot create a file only if it does not exist, which the "
                "commit record and the completion of uploads need: two commits of one job could "
                "begin at once and replace files unseen"
            )

    async def see_setup(self) -> None:
        """Check another process's setup, and write the living file.

        Raises ``NotFoundError``.
        """
        await self.pending.head(self.layout.job_dir)
        await self.pending.put(self.layout.living, b"")

    async def seek(self) -> None:
        """Find this job's layout, whichever committer and user it belongs to.

        Raises ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            self.layout = await sought(run)
            self.pending = store_of(run, self.layout)

    def _of(
        self, run: UploadContext, layout: Layout
    ) -> JobCommitter[UploadContext, UploadCommitState, UploadPlan]:
        assert isinstance(layout, UploadLayout)
        return super()._of(run, replace(layout, commit=""))

    @property
    def _kind_of_others(self) -> type[UploadCommitter]:
        return UploadCommitter

    def _pending_of(self, run: UploadContext, layout: Layout) -> Store:
        assert isinstance(layout, UploadLayout)
        return store_of(run, layout)

    def _run(self, on_progress: OnProgress | None = None) -> UploadContext:
        return UploadContext.new(self._environment, self.layout, self.options, on_progress)
