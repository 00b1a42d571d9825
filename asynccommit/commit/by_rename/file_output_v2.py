"""FileOutputCommitter 2: each task publishes its files on commit.

Here because jobs ask for it by name. The job commit has nothing to move and is quick; what that
costs is in ``UNSAFE``, and in docs/file-committers.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Self

from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.by_rename.publisher import RenamePublisher
from asynccommit.commit.by_rename.record import refuse_other_attempts
from asynccommit.commit.context import CommitContext, OnVisible
from asynccommit.commit.errors import CommitterWarning, commit_failures
from asynccommit.commit.job.messages import tell_of_no_file
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.load_tasks import load_tasks
from asynccommit.commit.steps.cleanup import begun_attempts
from asynccommit.commit.steps.rename_files import publish
from asynccommit.commit.tasks.scan_task import TaskFiles
from asynccommit.errors import (
    CommitError,
    CommittedError,
    LeaseLostError,
    NotFoundError,
    OwnedError,
    UnsupportedError,
)
from asynccommit.options.job import Mode
from asynccommit.results import AbortReport, JobReport
from asynccommit.stores.tree import remove_tree

UNSAFE = (
    "FileOutputCommitter 2 publishes a task's files when the task commits: readers see them "
    "before the job is committed, a job that fails leaves them there, and a task that dies "
    "while it commits leaves part of its output, which a second attempt replaces only if its "
    "files have the same names. Use  'manifest' or 'file_v1'"
)
_FINAL = (CommittedError, LeaseLostError, OwnedError)


async def _load(
    run: CommitContext,
    loaded: LoadedManifests,
    tasks: Sequence[TaskCommit] | None,
    *,
    strict: bool = False,
) -> None:
    """Load the output of version 1 tasks; version 2 tasks published theirs."""
    run.warn(UNSAFE)
    await load_tasks(run, loaded, None, expected=False)
    for task in tasks or ():
        loaded.tasks[task.task_id] = task.attempt_id
        loaded.digests[task.task_id] = task.digest
    if tasks is not None:
        tell_of_no_file(run, len(tasks), loaded.files + sum(task.files for task in tasks))


class FileV2Committer(FileV1Committer):
    """Publishes what its tasks commit; made as ``FileV1Committer`` is.

    What tasks of version 1 have committed is published by the job commit, where Hadoop deletes it.
    Modes that replace something are refused with ``UnsupportedError``: there is no moment at which
    old and new could be exchanged.
    """

    publisher: RenamePublisher = RenamePublisher(_load, overwrites=True)

    @classmethod
    def opened(cls, opening: JobContext) -> Self:
        """Return the committer of a job attempt, and warn of it."""
        warnings.warn(UNSAFE, CommitterWarning, stacklevel=2)
        return super().opened(opening)

    async def _check_destination(
        self, run: CommitContext, mode: Mode, overwrite: Sequence[str], *, looking: bool = False
    ) -> CommitContext:
        _refuse_replacing(mode, overwrite)
        return await super()._check_destination(run, mode, overwrite, looking=looking)

    async def commit_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
        strict: bool = False,
        made_destination: bool | None = None,
        on_progress: OnProgress | None = None,
        on_visible: OnVisible | None = None,
    ) -> JobReport:
        """Record that the job is committed, and clean up.

        Tried as often as ``mapreduce.fileoutputcommitter.failures.attempts`` says. See
        ``ManifestCommitter.commit_job``; with ``tasks`` the report counts what they have published.
        """
        _refuse_replacing(mode, overwrite)

        def counted(report: JobReport) -> None:
            if on_visible is not None:
                on_visible(_counted(report, tasks or ()))

        for left in range(self.options.commit_attempts - 1, -1, -1):
            try:
                report = await super().commit_job(
                    tasks,
                    strict=strict,
                    made_destination=made_destination,
                    on_progress=on_progress,
                    on_visible=counted,
                )
                break
            except CommitError as error:
                if not left or isinstance(error, _FINAL):
                    raise
        return _counted(report, tasks or ())

    async def plan_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
    ) -> JobReport:
        """See ``ManifestCommitter.plan_job``."""
        _refuse_replacing(mode, overwrite)
        return _counted(await super().plan_job(tasks), tasks or ())

    async def _abort(self, run: CommitContext, reason: str, *, careful: bool) -> AbortReport:
        """Delete uncommitted output; committed tasks' files remain."""
        report = await super()._abort(run, reason, careful=careful)
        text = "files of committed tasks are published already and remain"
        return replace(report, warnings=(*report.warnings, text))

    async def recover_task(self, task_id: str) -> TaskCommit | None:
        """Publish the output of a task that version 1 has committed.

        The task committed in this application attempt or an earlier one.

        Returns its commit message; ``None`` without such: version 2 has published it already.
        Raises ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            with run.meter.timed("task_stage_recover"):
                refuse_other_attempts(run, await begun_attempts(run))
                try:
                    place = await self._earlier(run, task_id)
                except NotFoundError:
                    return None
                found = await self._scan(run, place)
                await publish(run, found)
                await remove_tree(run.store, place)
        return self._message(task_id, task_id, found, place)

    async def _publish(
        self, run: CommitContext, task_id: str, attempt_id: str, found: TaskFiles
    ) -> None:
        del task_id
        await self._refuse_late(run)
        await publish(run, found)
        if self.options.task_cleanup:
            with suppress(NotFoundError):
                await remove_tree(run.store, self.layout.task_attempt_dir(attempt_id))


def _counted(report: JobReport, tasks: Sequence[TaskCommit]) -> JobReport:
    """Return a report that counts what the tasks have published."""
    if report.already_committed:
        return report
    return replace(
        report,
        files=report.files + sum(task.files for task in tasks),
        bytes=report.bytes + sum(task.bytes for task in tasks),
        tasks={**report.tasks, **{task.task_id: task.attempt_id for task in tasks}},
    )


def _refuse_replacing(mode: Mode, overwrite: Sequence[str]) -> None:
    if mode in (Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS) or overwrite:
        raise UnsupportedError(
            "FileOutputCommitter 2 publishes files task by task and cannot replace existing "
            f"files: use 'file_v1' or 'manifest' for the mode {mode}"
        )
