"""The committers: one file a protocol, and one table of their names.

Adding a committer is one file and one line in ``COMMITTERS``. A committer is created from a
``JobContext`` by ``Class.opened(opening)`` and is a ``Committer``; no code checks its class
afterwards.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import MappingProxyType
from typing import Protocol

from asynccommit.commit.context import OnVisible
from asynccommit.commit.driver.heartbeat import Heartbeats
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.tasks.output import Work
from asynccommit.commit.unsupported_committers import is_classic, refuse
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.options.job import CLASSIC, Mode, Options, OptionWarning
from asynccommit.options.uploads import Conflict, EtagForm, UploadOptions
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store, Traits

COMMITTERS: Mapping[str, str] = MappingProxyType(
    {
        "manifest": "asynccommit.commit.by_rename.committer.ManifestCommitter",
        "magic": "asynccommit.commit.by_upload.magic.MagicCommitter",
        "directory": "asynccommit.commit.by_upload.staging.DirectoryCommitter",
        "partitioned": "asynccommit.commit.by_upload.staging.PartitionedCommitter",
        "staging": "asynccommit.commit.by_upload.staging.DirectoryCommitter",
        "file": "asynccommit.commit.by_rename.file_output_v1.FileV1Committer",
        "file_v1": "asynccommit.commit.by_rename.file_output_v1.FileV1Committer",
        "file_v2": "asynccommit.commit.by_rename.file_output_v2.FileV2Committer",
    }
)
"""Name -> dotted name of the class, which is imported when a committer of it is opened."""


_RENAMING = ("manifest", "file")
_DEFAULTS = Options()
_CLASSIC_ONLY = {
    "algorithm": CLASSIC + "algorithm.version",
    "commit_attempts": CLASSIC + "failures.attempts",
    "task_cleanup": CLASSIC + "task.cleanup.enabled",
}


class Committer(Protocol):
    """A committer of one job attempt under one destination, and of its tasks.

    See ``ManifestCommitter``.
    """

    driver_lives: Callable[[], bool] | None
    on_settling: OnProgress | None
    asked: bool
    set_up: bool
    sends_heartbeats: bool
    host: Host
    heartbeats: Heartbeats | None

    @property
    def store(self) -> Store:
        """Return the store of the destination."""
        ...

    @property
    def pending(self) -> Store:
        """Return the store of the job's own directories, which may be another."""
        ...

    @property
    def layout(self) -> Layout:
        """Return the layout: destination and job."""
        ...

    @property
    def options(self) -> Options:
        """Return the options of the commit."""
        ...

    async def see_setup(self) -> None:
        """Check that another process has set up the job. Raises ``NotFoundError``."""
        ...

    async def check_job(
        self, *, mode: Mode = ..., overwrite: Sequence[str] = ..., looking: bool = ...
    ) -> None:
        """Refuse now a job that could not be committed later."""
        ...

    async def setup_job(self, *, mode: Mode = ...) -> None:
        """Create the directories that the job's tasks need."""
        ...

    async def commit_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = ...,
        overwrite: Sequence[str] = ...,
        strict: bool = ...,
        made_destination: bool | None = ...,
        on_progress: OnProgress | None = ...,
        on_visible: OnVisible | None = ...,
    ) -> JobReport:
        """Make the files of the committed tasks visible, and no others."""
        ...

    async def resume_job(
        self, *, force: bool = ..., adopt: bool = ..., on_progress: OnProgress | None = ...
    ) -> JobReport:
        """Finish an interrupted commit."""
        ...

    async def rollback_job(
        self, *, force: bool = ..., on_progress: OnProgress | None = ...
    ) -> AbortReport:
        """Undo a commit that has begun."""
        ...

    async def plan_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = ...,
        overwrite: Sequence[str] = ...,
    ) -> JobReport:
        """Return the result that ``commit_job`` would have."""
        ...

    async def rejoin_job(self, *, mode: Mode = ...) -> bool:
        """Take over a job whose driver died; return whether there was one."""
        ...

    async def take_job(self) -> None:
        """Write the owner file of a job that this driver set up elsewhere."""
        ...

    def living(self) -> AbstractAsyncContextManager[None]:
        """Send heartbeats during the block, for a job that was set up here."""
        ...

    async def abort_job(self, reason: str = "", *, careful: bool = ...) -> AbortReport:
        """Delete the job's files, unless a commit has begun."""
        ...

    async def cleanup(self) -> str:
        """Delete the job's files, whatever its state."""
        ...

    async def job_status(self) -> JobStatus | None:
        """Return the status of this job attempt."""
        ...

    async def job_statuses(self) -> list[JobStatus]:
        """Return the status of every job under the destination."""
        ...

    async def setup_task(self, attempt_id: str) -> str:
        """Make the directory of a task attempt and return its path."""
        ...

    def work(self, attempt_id: str) -> Work:
        """Return the output of a task attempt."""
        ...

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Make the output of a task attempt part of the job."""
        ...

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Delete the output of a task attempt."""
        ...


def open_named(name: str | None, opening: JobContext) -> Committer:
    """Open a committer.

    Args:
        name: one of ``COMMITTERS``; ``None`` for the one named by the options, or else the one that
            suits the store.
        opening: the job attempt, and the objects to work with.

    Raises:
        OptionError: the name is unknown, or an option does not suit the store.
        UnsupportedError: the committer does not write new data here, or the store lacks a feature
            that it needs.
    """
    traits = opening.store.traits
    chosen = (name or _chosen(opening)).strip().lower()
    if is_classic(chosen):
        chosen = _classic(chosen, opening)
    else:
        _warn_of_classic(opening.options)
    if chosen not in COMMITTERS:
        refuse(chosen)
        known = ", ".join(COMMITTERS)
        raise OptionError(f"there is no committer {chosen[:200]!r}: expected one of {known}")
    if not chosen.startswith(_RENAMING) and traits.multipart is None:
        raise UnsupportedError(
            f"{traits.name} has no multipart uploads, which the committer {chosen!r} needs: "
            "use 'manifest'"
        )
    _refuse_lost_checksums(traits, opening.options.uploads)
    module, _, kind = COMMITTERS[chosen].rpartition(".")
    made: Committer = getattr(import_module(module), kind).opened(opening)
    return made


def _classic(name: str, opening: JobContext) -> str:
    """Return the name of the FileOutputCommitter version to use.

    The options decide if the name does not. The default is version 1, as in Spark; Hadoop's own
    default is 2. Raises ``UnsupportedError`` for a store where files are uploaded.
    """
    if opening.store.traits.multipart is not None:
        refuse(name)
    return name if name in ("file_v1", "file_v2") else f"file_v{opening.options.algorithm}"


def _warn_of_classic(options: Options) -> None:
    """Warn of options that only a FileOutputCommitter chosen by name has."""
    for field, key in _CLASSIC_ONLY.items():
        if getattr(options, field) != getattr(_DEFAULTS, field):
            text = f"{key} has no effect: it belongs to FileOutputCommitter, the committer 'file'"
            warnings.warn(text, OptionWarning, stacklevel=3)


def _refuse_lost_checksums(traits: Traits, uploads: UploadOptions) -> None:
    """Raise ``OptionError`` if completions need checksums that are not saved."""
    checked = traits.multipart is not None and traits.multipart.checked
    if checked and uploads.etags is EtagForm.STRINGS:
        raise OptionError(
            f"{traits.name} needs the checksum of each part to complete an upload, but pending "
            "files with string etags have no checksums: set checksum=none in the storage "
            "options, or leave out asynccommit.uploads.etags=strings"
        )


def _chosen(opening: JobContext) -> str:
    """Return the committer of a job for which none is named.

    S3A's options count only for stores with uploads.
    """
    traits: Traits = opening.store.traits
    if traits.atomic_rename or traits.multipart is None:
        return "manifest"
    return opening.options.uploads.committer or "magic"


def mode_of(options: Options, name: str | None) -> Mode:
    """Return the mode of a job without a given mode.

    It is the one in the staging options, or append.

    Args:
        options: options of the job.
        name: name of the committer, as it was given.
    """
    name = (name or options.uploads.committer or "").strip().lower()
    if name not in ("directory", "partitioned", "staging"):
        return Mode.APPEND
    conflict = options.uploads.conflict
    if conflict is Conflict.REPLACE:
        return Mode.REPLACE_PARTITIONS if name == "partitioned" else Mode.REPLACE_TABLE
    return Mode.FAIL if conflict is Conflict.FAIL else Mode.APPEND
