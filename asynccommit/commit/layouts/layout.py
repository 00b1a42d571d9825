"""The layout of a job on the store, and a task's report.

Layout (Hadoop 3.4.1 and later)::

    <dest>/_temporary/<job id>/<NN>/tasks/<task attempt id>/     what a task attempt writes
    <dest>/_temporary/<job id>/<NN>/manifests/<task id>-manifest.json
    <dest>/_temporary/<job id>/<NN>/absolute/<task attempt id>/  ours: files for elsewhere
    <dest>/_temporary/<job id>/<NN>/job-owner.json               ours: whose job it is, and alive
    <dest>/_temporary/<job id>/<NN>/commit-plan-<id>-00000.json  ours: what the commit will do
    <dest>/_temporary/<job id>/<NN>/commit-record.json           ours: the commit has begun
    <dest>/_temporary/<job id>/<NN>/commit-epoch-<NNNNNN>/       ours: where its owner works
    <dest>/_temporary/<job id>/<NN>/commit-outcome.json          ours: what was decided
    <dest>/_SUCCESS
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from asynccommit.commit.log_fields import log_fields
from asynccommit.errors import OptionError
from asynccommit.stores.urls import Address

TEMPORARY = "_temporary"
OLDER = "manifest_"
"""The prefix of job ids in Hadoop before 3.4.1."""
SUCCESS = "_SUCCESS"
RECORD = "commit-record.json"
OUTCOME = "commit-outcome"
EPOCH = "commit-epoch-"
OWNER = "commit-owner-"
STOPPED = "commit-stopped-"
ALIVE = "commit-alive-"
PLAN = "commit-plan-"
GRANTS = "commit-grants-"
JOB_OWNER = "job-owner.json"
JOB_ENDED = "job-ended.json"
RECORDED = "layout"
"""Option of a commit record that says in which layout the job's files are."""
ENDED = ("committed", "aborted", "rolledback")
MANIFEST_SUFFIX = "-manifest.json"
STAGED = ".asynccommit-staged"
"""The suffix of staged files, which keeps patterns such as ``*.parquet`` from matching them."""

_NAME = re.compile(r"[^/\x00-\x1f\x7f]{1,200}")


def check_name(what: str, name: str) -> str:
    """Return ``name`` if it can be a file name.

    Raises ``OptionError`` that names ``what``.
    """
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise OptionError(
            f"{what} {name!r} cannot be a file name: expected 1 to 200 characters without '/'"
        )
    return name


@dataclass(frozen=True, slots=True)
class Layout:
    """Every path that one attempt of a job has under its destination, decoded.

    Args:
        dest: the destination of the job.
        job_id: unique among all jobs with this destination.
        attempt: the job attempt number, from 0.
        prefix: text before the job id in the directory's name; Hadoop before 3.4.1 used
            ``manifest_``, which is read and never written.
        commit: the id of the commit that state files must name; empty for none.

    ``kind`` names the layout in a commit record. In a ``shared`` layout, other jobs' tasks are next
    to this job's. With ``outside``, the files to move are outside of the job's directory, and a
    rollback brings them back to where they were. What a file of a task may have at the end of its
    name, and loses by the commit, is ``staged``: empty where the name is kept.
    """

    kind: ClassVar[str] = "manifest"
    shared: ClassVar[bool] = False
    outside: ClassVar[bool] = False
    staged: ClassVar[str] = STAGED

    dest: Address
    job_id: str
    attempt: int = 0
    prefix: str = ""
    commit: str = ""

    def __post_init__(self) -> None:
        check_name("the job id", self.job_id)
        if not 0 <= self.attempt < 10_000:
            raise OptionError(f"the job attempt number is {self.attempt}: expected 0 to 9999")

    @property
    def log_fields(self) -> dict[str, str]:
        """Return the ``extra`` of a log record about this job."""
        return log_fields(self.job_id, self.dest)

    def older(self) -> Self:
        """Return the layout that Hadoop before 3.4.1 uses for this job."""
        return replace(self, prefix=OLDER)

    @property
    def tag(self) -> str:
        """Return the text that names the commit in names of its state files."""
        return f"{self.commit[:12]}-" if self.commit else ""

    def reserves(self, path: str) -> bool:
        """Return whether no task may write to ``path``.

        It is the path of the marker, or in ``_temporary``.
        """
        return any(
            path == own or path.startswith(f"{own}/") for own in (self.temporary, self.success)
        )

    @property
    def root(self) -> str:
        """Return the destination; ``""`` for the root, so names can be appended."""
        return "" if self.dest.path == "/" else self.dest.path

    @property
    def roots(self) -> tuple[str, ...]:
        """Return the directories that may be links; nothing below them may."""
        return (self.dest.path, self.temporary)

    @property
    def temporary(self) -> str:
        """Return the directory shared by all jobs with this destination."""
        return f"{self.root}/{TEMPORARY}"

    @property
    def job_dir(self) -> str:
        """Return the directory of this job, with all its attempts."""
        return f"{self.temporary}/{self.prefix}{self.job_id}"

    @property
    def attempt_dir(self) -> str:
        """Return the directory of this job attempt."""
        return f"{self.job_dir}/{self.attempt:02d}"

    @property
    def tasks_dir(self) -> str:
        """Return the parent of the task attempts' directories."""
        return f"{self.attempt_dir}/tasks"

    @property
    def sources_dir(self) -> str:
        """Return the directory that contains the sources of a plan."""
        return self.attempt_dir

    @property
    def committed_dir(self) -> str:
        """Return the directory where tasks leave the proof of their commit.

        It exists from the job's setup on.
        """
        return self.manifests_dir

    @property
    def setup_dirs(self) -> tuple[str, ...]:
        """Return the directories that the job's setup creates."""
        return (self.committed_dir,)

    def has_committed(self, name: str) -> bool:
        """Return whether ``name`` in ``committed_dir`` is our committed task."""
        return name.endswith(MANIFEST_SUFFIX)

    @property
    def facts(self) -> dict[str, str]:
        """Return the options of a commit record that describe this layout."""
        return {}

    def has_source(self, name: str, *, below: bool) -> bool:
        """Return whether a file of this job may be at ``name`` in ``sources_dir``.

        Args:
            name: the first name of its path.
            below: whether the path has more names.
        """
        return below and name in ("tasks", "absolute")

    def committed(self, task_id: str) -> str:
        """Return the path where a task leaves the proof of its commit."""
        return self.manifest(task_id)

    def fenced(self, tasks: Iterable[str]) -> tuple[str, ...]:
        """Return the directories that a rollback moves away.

        After that, no file of ``tasks`` can be moved.
        """
        return (self.tasks_dir, self.absolute_dir)

    @property
    def manifests_dir(self) -> str:
        """Return the directory where committed tasks leave their manifests."""
        return f"{self.attempt_dir}/manifests"

    @property
    def made_destination(self) -> str:
        """Return the path of the marker for a destination made by Spark's setup.

        If it exists, the job made the destination, and an abort removes it.
        """
        return f"{self.attempt_dir}/alive/made-destination"

    @property
    def job_owner(self) -> str:
        """Return the path of the job's owner file.

        Its setup writes the file, and its driver renews it while the driver is alive.
        """
        return f"{self.attempt_dir}/{JOB_OWNER}"

    @property
    def job_ended(self) -> str:
        """Return the path of the owner file after its driver has given the job up."""
        return f"{self.attempt_dir}/{JOB_ENDED}"

    def claim(self, attempt_id: str) -> str:
        """Return the path that claims a task attempt.

        It is used on a store in which a directory cannot be a claim.
        """
        return f"{self.attempt_dir}/claims/{check_name('the task attempt id', attempt_id)}"

    @property
    def record(self) -> str:
        """Return the path of the commit record.

        It exists from before the first change under the destination.
        """
        return f"{self.attempt_dir}/{RECORD}"

    @property
    def outcome(self) -> str:
        """Return the path of the outcome.

        It exists as soon as the end of the commit is decided.
        """
        name = f"{OUTCOME}-{self.tag}".removesuffix("-")
        return f"{self.attempt_dir}/{name}.json"

    def plan(self, plan_id: str, index: int) -> str:
        """Return the path of one chunk of the accepted plan."""
        return f"{self.attempt_dir}/{PLAN}{check_name('the plan id', plan_id)}-{index:05d}.json"

    def plan_index(self, plan_id: str) -> str:
        """Return the path of the index of a plan whose files workers move."""
        return f"{self.attempt_dir}/{PLAN}{check_name('the plan id', plan_id)}-index.json"

    def owner(self, epoch: int) -> str:
        """Return the path of the claim of the owner of ``epoch``.

        The first owner's claim is the commit record.
        """
        claim = f"{self.attempt_dir}/{OWNER}{self.tag}{epoch:06d}.json"
        return self.record if epoch == 1 else claim

    def alive(self, epoch: int, number: int) -> str:
        """Return the path of one of the owner's heartbeats."""
        return f"{self.attempt_dir}/{ALIVE}{self.tag}{epoch:06d}-{number:06d}.json"

    def stopped(self, epoch: int) -> str:
        """Return the path of the owner's statement that it has stopped."""
        return f"{self.attempt_dir}/{STOPPED}{self.tag}{epoch:06d}.json"

    def epoch_dir(self, epoch: int) -> str:
        """Return the directory in which the owner of ``epoch`` works.

        A new owner renames it to its own number.
        """
        return f"{self.attempt_dir}/{EPOCH}{epoch:06d}"

    def grants(self, epoch: int, *, fenced: bool) -> str:
        """Return the file by which the owner of ``epoch`` lets its workers go on.

        A takeover renames it with the owner's directory; where directories are not fenced, its name
        has the commit's id.
        """
        if fenced:
            return f"{self.epoch_dir(epoch)}/grants.json"
        return f"{self.attempt_dir}/{GRANTS}{self.tag}{epoch:06d}.json"

    def closed(self, epoch: int) -> str:
        """Return the owner's directory once only the cleanup is left to do."""
        return f"{self.attempt_dir}/{EPOCH}{self.tag}{epoch:06d}.done"

    def ended(self, how: str) -> str:
        """Return the path of the job attempt's directory while it is deleted."""
        return f"{self.attempt_dir}.{how}"

    def beside(self, base: str, path: str) -> str:
        """Return the place of ``path`` below ``base``.

        Paths outside of the destination have a part of their own.
        """
        if path in (self.dest.path, self.root):
            return f"{base}/in"
        if path.startswith(self.root + "/"):
            return f"{base}/in{path[len(self.root) :]}"
        return f"{base}/out{path}"

    def relative(self, path: str) -> str:
        """Return ``path`` as plans write it.

        It is relative to the destination if it is below that.
        """
        inside = self.root + "/"
        if path == self.dest.path:
            return "."
        return path[len(inside) :] if path.startswith(inside) else path

    def resolve(self, name: str) -> str:
        """Return the path that ``relative`` has converted."""
        if name == ".":
            return self.dest.path
        return name if name.startswith("/") else f"{self.root}/{name}"

    @property
    def absolute_dir(self) -> str:
        """Return the directory where tasks stage files for other destinations."""
        return f"{self.attempt_dir}/absolute"

    @property
    def success(self) -> str:
        """Return the path of the marker that readers wait for."""
        return f"{self.root}/{SUCCESS}"

    def success_temp(self, epoch: int) -> str:
        """Return the temporary path of the marker.

        The owner of ``epoch`` writes the marker there before it is renamed.
        """
        name = f"{SUCCESS}-{self.tag}".removesuffix("-")
        return f"{self.epoch_dir(epoch)}/{name}.tmp"

    def task_attempt_dir(self, attempt_id: str) -> str:
        """Return the directory that one task attempt writes to."""
        return f"{self.tasks_dir}/{check_name('the task attempt id', attempt_id)}"

    def manifest(self, task_id: str) -> str:
        """Return the path of a committed task's manifest.

        There is one per task, whichever attempt wrote it.
        """
        return f"{self.manifests_dir}/{check_name('the task id', task_id)}{MANIFEST_SUFFIX}"

    def manifest_temp(self, attempt_id: str) -> str:
        """Return the path of an attempt's manifest before it is renamed."""
        name = check_name("the task attempt id", attempt_id)
        return f"{self.manifests_dir}/{name}{MANIFEST_SUFFIX}.tmp"

    def url(self, path: str) -> str:
        """Return ``path`` as the text written to manifests and markers."""
        return self.dest.at(path).encode()

    def ids(self, task: int, task_attempt: int = 0) -> tuple[str, str]:
        """Return task id and task attempt id for a task that has only a number."""
        run = f"{self.plain_id}_{self.attempt:04d}"
        return f"task_{run}_m_{task:06d}", f"attempt_{run}_m_{task:06d}_{task_attempt}"

    @property
    def plain_id(self) -> str:
        """Return the letters and digits of the job id."""
        return re.sub(r"[^A-Za-z0-9]", "", self.job_id) or "job"


@dataclass(frozen=True, slots=True)
class TaskCommit:
    """The commit message of a task, sufficient to verify its manifest.

    Attributes:
        task_id: id of the task.
        attempt_id: id of the committed attempt.
        manifest: the manifest's URI as text.
        digest: ``sha256:`` and the hexadecimal digest of the manifest's bytes.
        files: number of files in the manifest.
        bytes: total size of the files.
        absolute: staged URI -> final URI, for files outside of the job's destination.
        partitions: partition directories written to, relative to the destination.
    """

    task_id: str
    attempt_id: str
    manifest: str
    digest: str
    files: int
    bytes: int
    absolute: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, with the names that the JVM side uses."""
        return {
            "taskId": self.task_id,
            "attemptId": self.attempt_id,
            "manifest": self.manifest,
            "digest": self.digest,
            "files": self.files,
            "bytes": self.bytes,
            "absolute": dict(self.absolute),
            "partitions": list(self.partitions),
        }

    @classmethod
    def from_json(cls, value: Any) -> TaskCommit:
        """Read the output of ``to_json``. Raises ``OptionError`` for a bad field."""
        if not isinstance(value, dict):
            raise OptionError("a task commit message is not a JSON object")
        text = {name: _typed(value, name, str) for name in ("taskId", "attemptId", "digest")}
        return cls(
            task_id=check_name("the task id", text["taskId"]),
            attempt_id=check_name("the task attempt id", text["attemptId"]),
            manifest=_typed(value, "manifest", str),
            digest=text["digest"],
            files=_typed(value, "files", int),
            bytes=_typed(value, "bytes", int),
            absolute=_typed(value, "absolute", dict) if "absolute" in value else {},
            partitions=tuple(_typed(value, "partitions", list) if "partitions" in value else ()),
        )


def _typed(value: dict[str, Any], name: str, kind: type) -> Any:
    found = value.get(name)
    if not isinstance(found, kind) or isinstance(found, bool):
        raise OptionError(f"a task commit message has no {name} of type {kind.__name__}")
    return found
