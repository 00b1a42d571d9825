"""The layout of a job with multipart uploads.

A task uploads its files to their final places without completing them; its pending set has
everything needed to complete them. There are two layouts, both Hadoop's (S3A, 3.4 and later).
Magic: all is below the destination::

    <dest>/__magic_job-<uuid>/job-<uuid>/NN/<task id>.pendingset
    <dest>/__magic_job-<uuid>/job-<uuid>/NN/tasks/<task attempt id>/__base/...     markers, .pending
    <dest>/__magic_job-<uuid>/job-<uuid>/NN/tasks/<task attempt id>/intents/N.json    ours
    <dest>/__magic_job-<uuid>/job-<uuid>/NN/alive                                     ours
    <dest>/__magic_job-<uuid>/job-<uuid>/NN/aside-<commit>/...                        ours
    <dest>/__magic_job-<uuid>/job-<uuid>/NN/tasks/<task attempt id>/claim             ours
    <dest>/__magic_job-<uuid>/job-<uuid>/NN/job-owner.json                            ours
    <dest>/__magic_job-<uuid>/job-<uuid>/NN/commit-{record,plan-...,start-...,outcome-...}.json

Staging: all is in a directory of any store, except files that are moved aside::

    <tmp>/<user>/<uuid>/staging-uploads/_temporary/<n>/<task id>
    <tmp>/<user>/<uuid>/staging-uploads/_temporary/<n>/_temporary/<task attempt id>   not committed
    <tmp>/<user>/<uuid>/staging-uploads/_temporary/<n>/_intents/<task attempt id>-N.json
    <tmp>/<user>/<uuid>/staging-uploads/_temporary/<n>/_alive
    <tmp>/<user>/<uuid>/staging-uploads/_temporary/<n>/_job-owner.json
    <tmp>/<user>/<uuid>/staging-uploads/_temporary/<n>/_commit-{record,plan-...,...}.json
    <dest>/_temporary/job-<uuid>/aside-<commit>/...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self

from asynccommit.commit.layouts.layout import (
    JOB_ENDED,
    JOB_OWNER,
    OUTCOME,
    PLAN,
    RECORD,
    TEMPORARY,
    Layout,
    check_name,
)
from asynccommit.formats import pending, pending_set
from asynccommit.formats.magic_paths import ANY_MAGIC, BASE, MAGIC
from asynccommit.stores.urls import Address

INTENTS = "intents"
START, DONE = "commit-start", "commit-done"
LIVING = "alive"


class Left(Enum):
    """A file of a job that names uploads."""

    SET = "a pending set"
    PENDING = "one pending upload"
    INTENT = "an intent"


@dataclass(frozen=True, slots=True)
class UploadLayout(Layout, ABC):
    """The decoded paths of a job attempt.

    Use ``MagicLayout`` or ``StagingLayout``.

    ``job_id`` is the job's UUID, which Hadoop reads from ``fs.s3a.committer.uuid`` or
    ``spark.sql.sources.writeJobUUID``. ``committer`` is the name in ``_SUCCESS``: ``magic``,
    ``directory`` or ``partitioned``. ``commit`` is the plan's id, once a commit has begun.

    Paths of the job's own files (``job_dir`` and all below) are on the store of ``pending``; those
    of ``aside``, ``scratch`` and ``success`` on the destination's.
    """

    committer: str = "magic"

    @property
    def uuid(self) -> str:
        """Return the job's UUID."""
        return self.job_id

    @property
    def pending(self) -> Address:
        """Return a place on the store of the pending sets."""
        return self.dest

    @property
    def attempts_dir(self) -> str:
        """Return the parent of the directories of the job's attempts."""
        return self.attempt_dir.rpartition("/")[0]

    @property
    def sets_dir(self) -> str:
        """Return the directory where committed tasks leave their pending sets."""
        return self.attempt_dir

    @property
    def setup_dirs(self) -> tuple[str, ...]:
        """See ``Layout.setup_dirs``."""
        return (self.sets_dir,)

    @property
    def start(self) -> str:
        """Return the path of the decision to continue a commit or undo its record.

        It exists once the commit has been checked.
        """
        return self._of_commit(START)

    @property
    def done(self) -> str:
        """Return the path of the marker of a finished commit.

        It exists if all of a commit is done and its files are kept.
        """
        return self._of_commit(DONE)

    @property
    def living(self) -> str:
        """Return the path of the living file, from the job's setup to its end.

        Only a setup creates it.
        """
        return f"{self.attempt_dir}/{LIVING}"

    def _of_commit(self, name: str) -> str:
        name = f"{name}-{self.tag}".removesuffix("-")
        return f"{self.attempt_dir}/{name}.json"

    @property
    def aside_dir(self) -> str:
        """Return the directory where a commit keeps overwritten files.

        It is on the destination's store.
        """
        return f"{self.scratch}/{self._aside_name}"

    @property
    def kept(self) -> str:
        """Return the path of the marker that copies are kept.

        It exists if a rollback could not put back all copies: then no process deletes them.
        """
        return f"{self.aside_dir}/{ANY_MAGIC}-kept"

    @property
    def _aside_name(self) -> str:
        return f"aside-{self.tag}".removesuffix("-")

    @property
    def scratch(self) -> str:
        """Return this job's directory in ``_temporary``.

        Hadoop's executors, and the staging layout, use it.
        """
        return f"{self.temporary}/job-{self.job_id}"

    def aside(self, path: str) -> str:
        """Return the path of the copy of ``path``, below the destination."""
        return f"{self.aside_dir}/{path[len(self.root) + 1 :]}"

    def of_attempt(self, attempt: int) -> Self:
        """Return the layout of another attempt of the job, without a commit."""
        return replace(self, attempt=attempt, commit="")

    def pending_url(self, path: str) -> str:
        """Return a path on the store of the pending sets as a URL."""
        return self.pending.at(path).encode()

    @abstractmethod
    def is_set(self, name: str) -> bool:
        """Return whether a file name in ``sets_dir`` is that of a pending set."""

    @abstractmethod
    def pending_set(self, task_id: str) -> str:
        """Return the path of a committed task's pending set.

        There is one per task, whichever attempt wrote it.
        """

    @abstractmethod
    def task_of(self, name: str) -> str:
        """Return the task whose pending set has this name."""

    @abstractmethod
    def intent(self, attempt_id: str, number: int) -> str:
        """Return the path of a file that lists uploads begun by a task attempt."""

    @abstractmethod
    def left_at(self, path: str) -> Left | None:
        """Return the kind of a file below ``job_dir`` that names uploads.

        Return ``None`` for any other file.
        """

    def reserves(self, path: str) -> bool:
        """Return whether no task may write to ``path``.

        It is the marker's, in ``_temporary`` or magic.
        """
        if Layout.reserves(self, path):
            return True
        return any(name.startswith(ANY_MAGIC) for name in path[len(self.root) :].split("/"))


@dataclass(frozen=True, slots=True)
class MagicLayout(UploadLayout):
    """The layout of the magic committer."""

    @property
    def job_dir(self) -> str:
        """Return the directory of this job, with all its attempts."""
        return f"{self.root}/{MAGIC}{self.job_id}"

    @property
    def attempt_dir(self) -> str:
        """Return the directory of this job attempt."""
        return f"{self.job_dir}/job-{self.job_id}/{self.attempt:02d}"

    @property
    def aside_dir(self) -> str:
        """Return the directory where a commit keeps overwritten files."""
        return f"{self.attempt_dir}/{self._aside_name}"

    def claim(self, attempt_id: str) -> str:
        """See ``Layout.claim``: it is deleted with the attempt's directory."""
        return f"{self.task_attempt_dir(attempt_id)}/claim"

    def task_base(self, attempt_id: str) -> str:
        """Return the directory that a task attempt writes to.

        The tree below it mirrors the destination.
        """
        return f"{self.task_attempt_dir(attempt_id)}/{BASE}"

    def is_set(self, name: str) -> bool:
        """Return whether a file name in ``sets_dir`` is that of a pending set."""
        return name.endswith(pending_set.SUFFIX) and name != pending_set.SUFFIX

    def pending_set(self, task_id: str) -> str:
        """Return the path of a committed task's pending set.

        There is one per task, whichever attempt wrote it.
        """
        return f"{self.sets_dir}/{check_name('the task id', task_id)}{pending_set.SUFFIX}"

    def task_of(self, name: str) -> str:
        """Return the task whose pending set has this name."""
        return name.removesuffix(pending_set.SUFFIX)

    def intent(self, attempt_id: str, number: int) -> str:
        """Return the path of a file that lists uploads begun by a task attempt."""
        return f"{self.task_attempt_dir(attempt_id)}/{INTENTS}/{number}.json"

    def left_at(self, path: str) -> Left | None:
        """Return the kind of a file below ``job_dir`` that names uploads.

        Return ``None`` for any other file.
        """
        names = path[len(self.attempts_dir) + 1 :].split("/")
        if len(names) == 2 and self.is_set(names[1]):
            return Left.SET
        if len(names) > 4 and names[1] == "tasks":
            if names[3] == BASE and path.endswith(pending.SUFFIX):
                return Left.PENDING
            if names[3] == INTENTS and path.endswith(".json"):
                return Left.INTENT
        return None


@dataclass(frozen=True, slots=True)
class StagingLayout(UploadLayout):
    """The layout of the staging committers.

    Args:
        tmp: ``<tmp>/<user>``, on any store: Hadoop's ``fs.s3a.committer.staging.tmp.path`` with the
            user's name.
    """

    committer: str = "directory"
    tmp: Address = field(kw_only=True)

    @property
    def pending(self) -> Address:
        """Return a place on the store of the pending sets."""
        return self.tmp

    @property
    def job_dir(self) -> str:
        """Return the directory of this job, with all except files moved aside."""
        return self.tmp.child(self.job_id).path

    @property
    def attempt_dir(self) -> str:
        """Return the directory of this job attempt, except files moved aside."""
        return f"{self.job_dir}/staging-uploads/{TEMPORARY}/{self.attempt}"

    @property
    def job_owner(self) -> str:
        """See ``Layout.job_owner``."""
        return f"{self.attempt_dir}/_{JOB_OWNER}"

    @property
    def job_ended(self) -> str:
        """See ``Layout.job_ended``."""
        return f"{self.attempt_dir}/_{JOB_ENDED}"

    @property
    def record(self) -> str:
        """Return the path of the commit record.

        It exists from before the first upload is completed.
        """
        return f"{self.attempt_dir}/_{RECORD}"

    @property
    def living(self) -> str:
        """Return the path of the living file, from the job's setup to its end.

        Only a setup creates it.
        """
        return f"{self.attempt_dir}/_{LIVING}"

    @property
    def outcome(self) -> str:
        """Return the path of the outcome.

        It exists as soon as the end of the commit is decided.
        """
        return self._of_commit(OUTCOME)

    def _of_commit(self, name: str) -> str:
        name = f"_{name}-{self.tag}".removesuffix("-")
        return f"{self.attempt_dir}/{name}.json"

    def plan(self, plan_id: str, index: int) -> str:
        """Return the path of one chunk of the accepted plan."""
        return f"{self.attempt_dir}/_{PLAN}{check_name('the plan id', plan_id)}-{index:05d}.json"

    def uncommitted_set(self, attempt_id: str) -> str:
        """Return the path of a pending set that is renamed when its task commits."""
        return f"{self.attempt_dir}/{TEMPORARY}/{check_name('the task attempt id', attempt_id)}"

    def is_set(self, name: str) -> bool:
        """Return whether a file name in ``sets_dir`` is that of a pending set.

        Hadoop treats every file there as one.
        """
        return not name.startswith(("_", "."))

    def pending_set(self, task_id: str) -> str:
        """Return the path of a committed task's pending set.

        There is one per task, whichever attempt wrote it.
        """
        return f"{self.sets_dir}/{check_name('the task id', task_id)}"

    def task_of(self, name: str) -> str:
        """Return the task whose pending set has this name."""
        return name

    def intent(self, attempt_id: str, number: int) -> str:
        """Return the path of a file that lists uploads begun by a task attempt."""
        name = check_name("the task attempt id", attempt_id)
        return f"{self.attempt_dir}/_{INTENTS}/{name}-{number}.json"

    def left_at(self, path: str) -> Left | None:
        """Return the kind of a file below ``job_dir`` that names uploads.

        Return ``None`` for any other file.
        """
        names = path[len(self.attempts_dir) + 1 :].split("/")
        if len(names) == 2 and self.is_set(names[1]):
            return Left.SET
        if len(names) == 3 and names[1] == TEMPORARY:
            return Left.SET
        if len(names) == 3 and names[1] == f"_{INTENTS}" and path.endswith(".json"):
            return Left.INTENT
        return None
