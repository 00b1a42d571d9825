"""The layout of a FileOutputCommitter job: shared directories.

Layout (all Hadoop that there is; ``n`` is the number of the application attempt)::

    <dest>/_temporary/<n>/_temporary/<task attempt id>/   what a task attempt writes
    <dest>/_temporary/<n>/<task id>/                      a committed task (version 1)
    <dest>/_temporary/<job id>/<NN>/commit-...            ours: record, plan, owners
    <dest>/_SUCCESS

Nothing in ``_temporary/<n>`` names the job but the ids of its tasks: a task of the job
``job_<tracker>_<number>`` is ``task_<tracker>_<number>_m_<task>``. Hadoop's job commit treats
everything there as its own; here the ids decide. Our own files are at paths that Hadoop's classes
do not read, so that they can still commit the remains of a commit of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, Self

from asynccommit.commit.layouts.layout import RECORDED, TEMPORARY, Layout, check_name
from asynccommit.commit.layouts.move import MoveLayout
from asynccommit.errors import OptionError

_JOB = re.compile(r"job_(.+_[0-9]+)", re.DOTALL)
_TASK = re.compile(r"task_(.+_[0-9]+)_[a-z]_[0-9]+", re.ASCII)
_ATTEMPT = re.compile(r"attempt_(.+_[0-9]+)_[a-z]_[0-9]+_[0-9]+(?:\.replaced)?", re.ASCII)
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

CLASS = "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter"


@dataclass(frozen=True, slots=True)
class FileLayout(Layout):
    """Decoded paths of an application attempt of FileOutputCommitter."""

    kind: ClassVar[str] = "file"
    shared: ClassVar[bool] = True
    staged: ClassVar[str] = ""  # Hadoop's class moves directories

    @property
    def run_id(self) -> str:
        """Return the start of the job's task ids after ``task_`` or ``attempt_``."""
        known = _JOB.fullmatch(self.job_id)
        return known[1] if known else f"{self._unique_id}_0000"

    @property
    def _unique_id(self) -> str:
        """Return the letters and digits of the job id, unique to this id.

        Tasks are assigned to jobs by it. Without a further part, ``load-2026-1-11`` and
        ``load-2026-11-1`` would be the same.
        """
        if self.plain_id == self.job_id or _UUID.fullmatch(self.job_id):
            return self.plain_id
        whole = self.job_id.encode("utf-8", "surrogatepass")
        return f"{self.plain_id}x{blake2b(whole, digest_size=8).hexdigest()}"

    @property
    def sources_dir(self) -> str:
        """Return Hadoop's job attempt directory, shared by jobs of a destination."""
        return f"{self.temporary}/{self.attempt}"

    @property
    def committed_dir(self) -> str:
        """See ``Layout.committed_dir``."""
        return self.sources_dir

    @property
    def tasks_dir(self) -> str:
        """Return the parent of the task attempts' directories, of all jobs."""
        return f"{self.sources_dir}/{TEMPORARY}"

    @property
    def setup_dirs(self) -> tuple[str, ...]:
        """See ``Layout.setup_dirs``."""
        return (self.attempt_dir, self.sources_dir)

    def committed(self, task_id: str) -> str:
        """Return the directory with the files of a committed task of version 1.

        Raises ``OptionError`` for an id that is not a task of this job, because it could collide
        with other jobs' tasks.
        """
        if not self.has_committed(task_id):
            raise OptionError(_not_own("task", task_id, self.ids(0)[0]))
        return f"{self.sources_dir}/{check_name('the task id', task_id)}"

    def task_attempt_dir(self, attempt_id: str) -> str:
        """See ``Layout.task_attempt_dir``.

        Raises ``OptionError`` as ``committed`` does.
        """
        if not self.has_attempt(attempt_id):
            raise OptionError(_not_own("task attempt", attempt_id, self.ids(0)[1]))
        return Layout.task_attempt_dir(self, attempt_id)

    def fenced(self, tasks: Iterable[str]) -> tuple[str, ...]:
        """See ``Layout.fenced``."""
        return tuple(self.committed(task_id) for task_id in sorted(tasks))

    def has_committed(self, name: str) -> bool:
        """See ``Layout.has_committed``."""
        return _run_id(_TASK, name) == self.run_id

    @property
    def facts(self) -> dict[str, str]:
        """See ``Layout.facts``."""
        return {RECORDED: self.kind}

    def has_source(self, name: str, *, below: bool) -> bool:
        """See ``Layout.has_source``."""
        return below and self.has_committed(name)

    def has_attempt(self, name: str) -> bool:
        """Return whether a directory name is that of a task attempt of this job."""
        return _run_id(_ATTEMPT, name) == self.run_id

    def ids(self, task: int, task_attempt: int = 0) -> tuple[str, str]:
        """Return ids in Hadoop's form: equal in every application attempt."""
        return (
            f"task_{self.run_id}_m_{task:06d}",
            f"attempt_{self.run_id}_m_{task:06d}_{task_attempt}",
        )

    def older(self) -> Self:
        """Return this layout: this committer has only one."""
        return self


def refuse_number(job_id: str) -> None:
    """Refuse a job id that is the number of an application attempt.

    Jobs share that directory: files of a FileOutputCommitter job in it would be published, or
    deleted, with this one.

    Raises:
        OptionError: the id is such a number.
    """
    if is_number(job_id):
        raise OptionError(
            f"the job id {job_id!r} is the name of a directory that jobs of FileOutputCommitter "
            f"share: choose another, such as 'job-{job_id}'"
        )


def is_number(name: str) -> bool:
    """Return whether a name in ``_temporary`` is an application attempt's."""
    return name.isascii() and name.isdigit() and len(name) <= 4 and str(int(name)) == name


def job_of_task(name: str) -> str | None:
    """Return the job id in a task or attempt id; ``None`` if it is neither."""
    found = _run_id(_TASK, name) or _run_id(_ATTEMPT, name)
    return f"job_{found}" if found else None


def recorded(layout: Layout, options: Mapping[str, object]) -> Layout:
    """Return ``layout`` in the form that a commit record's options describe.

    Raises ``ManifestError`` for a move without a source.
    """
    if options.get(RECORDED) == MoveLayout.kind:
        return MoveLayout.of(layout, options)
    kind = FileLayout if options.get(RECORDED) == FileLayout.kind else Layout
    if type(layout) is kind:
        return layout
    prefix = "" if kind is FileLayout else layout.prefix
    return kind(layout.dest, layout.job_id, layout.attempt, prefix, layout.commit)


def _run_id(pattern: re.Pattern[str], name: str) -> str | None:
    found = pattern.fullmatch(name)
    return found[1] if found else None


def _not_own(what: str, name: str, like: str) -> str:
    return f"the {what} id {name!r} does not belong to this job: expected one such as {like}"
