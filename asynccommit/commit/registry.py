"""The committers: one file a protocol, and one table of their names.

Adding a committer is one file and one line in ``COMMITTERS``. A committer is made of an
``JobContext``, ``Class.opened(opening)``, and is a ``Committer``; nobody asks for its class
afterwards.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import MappingProxyType
from typing import Protocol

from asynccommit.commit.by_rename.heartbeat import SignsOfLife
from asynccommit.commit.context import OnProgress
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layout import Layout, TaskCommit
from asynccommit.commit.task_output import Work
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
    """Commits one job attempt under one destination, and its tasks. See ``ManifestCommitter``."""

    driver_lives: Callable[[], bool] | None
    set_up: bool
    gives_signs: bool
    host: Host
    signs: SignsOfLife | None

    @property
    def store(self) -> Store:
        """Where the destination is."""
        ...

    @property
    def pending(self) -> Store:
        """Where the job's own directories are, which may be another store."""
        ...

    @property
    def layout(self) -> Layout:
        """Destination and job."""
        ...

    @property
    def options(self) -> Options:
        """How it commits."""
        ...

    async def see_setup(self) -> None:
        """Look for what another's setup of the job has made. Raises ``NotFoundError``."""
        ...

    async def check_job(self, *, mode: Mode = ..., overwrite: Sequence[str] = ...) -> None:
        """Refuse now what could not be committed later."""
        ...

    async def setup_job(self, *, mode: Mode = ...) -> None:
        """Make what the job's tasks need."""
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
    ) -> JobReport:
        """Make the files of the committed tasks visible, and nothing else."""
        ...

    async def resume_job(
        self, *, force: bool = ..., adopt: bool = ..., on_progress: OnProgress | None = ...
    ) -> JobReport:
        """Finish a commit that was cut short."""
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
        """Return what ``commit_job`` would do."""
        ...

    async def take_job(self) -> None:
        """Write whose a job is whose directories another part of this driver has made."""
        ...

    def living(self) -> AbstractAsyncContextManager[None]:
        """Give signs of life while the block runs, for a job that was set up here."""
        ...

    async def abort_job(self, reason: str = "", *, careful: bool = ...) -> AbortReport:
        """Delete what the job left, unless a commit has begun."""
        ...

    async def cleanup(self) -> str:
        """Delete what the job left whatever its state."""
        ...

    async def job_status(self) -> JobStatus | None:
        """Return what is known of this job attempt."""
        ...

    async def job_statuses(self) -> list[JobStatus]:
        """Return what is known of every job under the destination."""
        ...

    async def setup_task(self, attempt_id: str) -> str:
        """Make the directory of a task attempt and return its path."""
        ...

    def work(self, attempt_id: str) -> Work:
        """Return where a task attempt writes."""
        ...

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Let what a task attempt has written be the job's to commit."""
        ...

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Delete what a task attempt has written."""
        ...


def open_named(name: str | None, opening: JobContext) -> Committer:
    """Open a committer.

    Args:
        name: one of ``COMMITTERS``; ``None`` for the one that the options name, or else the one
            that suits the store.
        opening: the job attempt, and what to work with.

    Raises:
        OptionError: there is none of this name, or an option does not suit the store.
        UnsupportedError: it writes no new data here, or the store lacks what it needs.
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
        raise OptionError(f"there is no committer {chosen[:200]!r}: say one of {known}")
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
    """Return which FileOutputCommitter is meant: the options tell where the name does not.

    Version 1 unless they say 2, as with Spark; Hadoop's own default is 2. Raises
    ``UnsupportedError`` where files are uploaded.
    """
    if opening.store.traits.multipart is not None:
        refuse(name)
    return name if name in ("file_v1", "file_v2") else f"file_v{opening.options.algorithm}"


def _warn_of_classic(options: Options) -> None:
    """Warn of options that only FileOutputCommitter has, which has to be asked for by name."""
    for field, key in _CLASSIC_ONLY.items():
        if getattr(options, field) != getattr(_DEFAULTS, field):
            text = f"{key} has no effect: it belongs to FileOutputCommitter, the committer 'file'"
            warnings.warn(text, OptionWarning, stacklevel=3)


def _refuse_lost_checksums(traits: Traits, uploads: UploadOptions) -> None:
    """Raise ``OptionError`` where a completion has to name what pending files do not hold."""
    checked = traits.multipart is not None and traits.multipart.checked
    if checked and uploads.etags is EtagForm.STRINGS:
        raise OptionError(
            f"{traits.name} wants the checksum of each part when an upload is completed, and "
            "pending files whose etags are strings hold none: say checksum=none among the storage "
            "options, or leave asynccommit.uploads.etags=strings out"
        )


def _chosen(opening: JobContext) -> str:
    """Return the committer of a job for which none is named: S3A's options are for uploads."""
    traits: Traits = opening.store.traits
    if traits.atomic_rename or traits.multipart is None:
        return "manifest"
    return opening.options.uploads.committer or "magic"


def mode_of(options: Options, name: str | None) -> Mode:
    """Return the mode of a job for which none is given: what the staging options say, or append.

    Args:
        options: of the job.
        name: of the committer, as it was given.
    """
    name = (name or options.uploads.committer or "").strip().lower()
    if name not in ("directory", "partitioned", "staging"):
        return Mode.APPEND
    conflict = options.uploads.conflict
    if conflict is Conflict.REPLACE:
        return Mode.REPLACE_PARTITIONS if name == "partitioned" else Mode.REPLACE_TABLE
    return Mode.FAIL if conflict is Conflict.FAIL else Mode.APPEND
