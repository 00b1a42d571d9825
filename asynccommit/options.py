"""Options of a commit, under the names that Hadoop gave them.

Sources: the constants of Hadoop 3.5.0's manifest committer and FileOutputCommitter; those of the
S3A committers are in ``upload_options``. Keys are accepted bare, with ``spark.hadoop.`` in front,
and ours also as ``spark.asynccommit.*``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from asynccommit import option_values as values
from asynccommit.errors import OptionError
from asynccommit.formats.manifest import MAX_MANIFEST_BYTES
from asynccommit.upload_options import (
    DEAD_UPLOAD_KEYS,
    NETFLIX,
    S3A,
    SHARED_KEYS,
    UPLOAD_KEYS,
    UploadOptions,
)

MANIFEST = "mapreduce.manifest.committer."
CLASSIC = "mapreduce.fileoutputcommitter."
OURS = "asynccommit."
AZURE_RATE = "fs.azure.io.rate.limit"
FAMILIES = (MANIFEST, CLASSIC, OURS, S3A, NETFLIX)
"""How keys begin that are this package's to know."""


class OptionWarning(UserWarning):
    """An option of a family that belongs to this package is unknown, or has no effect here."""


class Mode(StrEnum):
    """What a job does with what its destination holds.

    ``APPEND`` adds to it, ``FAIL`` wants none of it, ``REPLACE_TABLE`` replaces all of it,
    ``REPLACE_PARTITIONS`` replaces each directory that files of the job go to.
    """

    APPEND = "append"
    FAIL = "fail"
    REPLACE_TABLE = "replace_table"
    REPLACE_PARTITIONS = "replace_partitions"

    @classmethod
    def of(cls, mode: Mode | str) -> Mode:
        """Return the mode of this name. Raises ``OptionError``."""
        try:
            return cls(mode)
        except ValueError:
            known = ", ".join(cls)
            raise OptionError(f"the mode is {mode!r}: say one of {known}") from None


class OnUnfinished(StrEnum):
    """What the setup of a job does about commits of other jobs that were cut short."""

    REFUSE = "refuse"
    RESUME = "resume"
    ROLLBACK = "rollback"


class OnFailure(StrEnum):
    """What becomes of a job commit that failed half-way."""

    KEEP = "keep"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Options:
    """How a job is committed. Every default is the one to take if in doubt.

    Attributes:
        workers: requests in flight for one job; ``None`` for what suits the store.
        window: manifests held in memory while they are loaded.
        delete_target_files: an existing file at a destination is moved aside, not an error.
        validate: compare the destination with the manifests before ``_SUCCESS``; ``None`` where
            the store makes it cheap.
        validate_sample: compare only so many files, chosen at random and asked for by name.
        check_sources: see before the first rename that every file is there with its size, for
            one listing of each directory that tasks wrote to.
        report_directory: URL of a directory for a summary of every job, failed ones too.
        diagnostics_directory: URL, on the destination's store, that keeps the manifests.
        parallel_delete: clean up the task attempt directories in parallel.
        delete_base_first: try one delete of the whole job directory before.
        mark_success: write ``_SUCCESS``.
        cleanup_skipped: leave the job directory where it is, also on abort.
        cleanup_failures_ignored: ``None`` makes a failed cleanup a warning in the report; true
            the same without a warning; false an error after ``_SUCCESS``, as Hadoop has it.
        rate: requests a second that the job may send, ``None`` for no limit.
        attempts: how often a request that the store refused is sent; ``None`` for what suits it.
        max_manifest_bytes: a larger task manifest is refused.
        spill_directory: local directory for what does not fit in memory; ``None`` for the
            system's.
        job_id_source: what gave the job its id, as ``_SUCCESS`` says it.
        on_unfinished: what setup does about commits of other jobs that were cut short.
        on_failure: whether a commit that fails half-way is kept, to be resumed, or rolled back.
        lease: seconds without a sign of life after which another may continue a commit; ``None``
            for 60, and 300 on stores over a network.
        job_key: the user's own name for what the job does; a rerun of it is recognised as done.
        algorithm: which FileOutputCommitter the name ``file`` is: 1 or 2.
        commit_attempts: how often version 2 of it tries a job commit; version 1 tries once.
        task_cleanup: version 2 of it deletes the directory of a task attempt when that commits.
        outside: a commit that is resumed without the tasks' messages may move files outside of the
            destination, as its plan says.
        logged: files are added though readers see only what a streaming sink log lists, because
            who commits them also lists them there.
        uploads: what the committers that complete uploads have besides.
    """

    workers: int | None = None
    window: int = 32
    delete_target_files: bool = False
    validate: bool | None = None
    validate_sample: int | None = None
    check_sources: bool = False
    report_directory: str | None = None
    diagnostics_directory: str | None = None
    parallel_delete: bool = True
    delete_base_first: bool = False
    mark_success: bool = True
    cleanup_skipped: bool = False
    cleanup_failures_ignored: bool | None = None
    rate: float | None = None
    attempts: int | None = None
    max_manifest_bytes: int = MAX_MANIFEST_BYTES
    spill_directory: str | None = None
    job_id_source: str = "JobID"
    on_unfinished: OnUnfinished = OnUnfinished.REFUSE
    on_failure: OnFailure = OnFailure.KEEP
    lease: float | None = None
    job_key: str | None = None
    algorithm: int = 1
    commit_attempts: int = 1
    task_cleanup: bool = False
    outside: bool = False
    logged: bool = False
    uploads: UploadOptions = field(default_factory=UploadOptions)

    @classmethod
    def from_conf(cls, conf: Mapping[str, str]) -> Options:
        """Read options from configuration keys; keys of other families are passed over.

        Warns with ``OptionWarning`` for a key of these families that is unknown or dead.
        Raises ``OptionError`` for a value that cannot be read, naming key and value.
        """
        found: dict[str, Any] = {}
        for key, value in conf.items():
            name = bare(key)
            if name in KEYS:
                name_of, read = KEYS[name]
                found[name_of] = read(name, value)
            elif name in DEAD:
                if value.strip() not in DEAD[name].harmless:
                    warnings.warn(f"{name} has no effect: {DEAD[name].why}", OptionWarning, 3)
            elif name.startswith(FAMILIES) and name not in UPLOAD_KEYS:
                warnings.warn(f"{name} is not an option of this committer", OptionWarning, 3)
        uploads = UploadOptions.of({bare(key): value for key, value in conf.items()})
        return replace(cls(), uploads=uploads, **found)


def rate_among(storage: Mapping[str, Any]) -> float | None:
    """Return the rate that options of a store name, as Hadoop's are; ``None`` for no limit.

    Raises ``OptionError`` for a value that cannot be read.
    """
    return values.rate(AZURE_RATE, str(storage[AZURE_RATE])) if AZURE_RATE in storage else None


def bare(key: str) -> str:
    """Return ``key`` without Spark's prefixes."""
    key = key.strip()
    if key.startswith("spark.hadoop."):
        return key.removeprefix("spark.hadoop.")
    return key.removeprefix("spark.") if key.startswith("spark.asynccommit.") else key


KEYS: dict[str, tuple[str, values.Reader]] = {
    MANIFEST + "io.threads": ("workers", values.workers),
    MANIFEST + "writer.queue.capacity": ("window", values.count),
    MANIFEST + "delete.target.files": ("delete_target_files", values.boolean),
    MANIFEST + "validate.output": ("validate", values.boolean),
    MANIFEST + "summary.report.directory": ("report_directory", values.text),
    MANIFEST + "diagnostics.manifest.directory": ("diagnostics_directory", values.text),
    MANIFEST + "cleanup.parallel.delete": ("parallel_delete", values.boolean),
    MANIFEST + "cleanup.parallel.delete.base.first": ("delete_base_first", values.boolean),
    CLASSIC + "marksuccessfuljobs": ("mark_success", values.boolean),
    CLASSIC + "cleanup.skipped": ("cleanup_skipped", values.boolean),
    CLASSIC + "cleanup-failures.ignored": ("cleanup_failures_ignored", values.boolean),
    CLASSIC + "algorithm.version": ("algorithm", values.version),
    CLASSIC + "failures.attempts": ("commit_attempts", values.count),
    CLASSIC + "task.cleanup.enabled": ("task_cleanup", values.boolean),
    OURS + "rate": ("rate", values.rate),
    AZURE_RATE: ("rate", values.rate),
    OURS + "attempts": ("attempts", values.count),
    OURS + "validate.sample": ("validate_sample", values.count),
    OURS + "check.sources": ("check_sources", values.boolean),
    OURS + "max.manifest.bytes": ("max_manifest_bytes", values.count),
    OURS + "spill.directory": ("spill_directory", values.text),
    OURS + "on.unfinished": ("on_unfinished", values.one_of(OnUnfinished)),
    OURS + "on.failure": ("on_failure", values.one_of(OnFailure)),
    OURS + "lease": ("lease", values.lease),
    OURS + "job.key": ("job_key", values.text),
    OURS + "resume.outside": ("outside", values.boolean),
    **SHARED_KEYS,
}
"""Configuration key -> field of ``Options`` and how its text is read."""


@dataclass(frozen=True, slots=True)
class Dead:
    """An option that others know and that does nothing here, and values not worth a warning."""

    why: str
    harmless: tuple[str, ...] = ()


DEAD: dict[str, Dead] = {
    MANIFEST + "manifest.save.attempts": Dead(
        "Hadoop reads it and never uses it; see asynccommit.attempts"
    ),
    MANIFEST + "store.operations.classname": Dead("stores are chosen by the scheme of the URL"),
    MANIFEST + "io.rate": Dead("no released Hadoop has it; see asynccommit.rate"),
    MANIFEST + "delete.dir.capacity": Dead("no released Hadoop has it"),
    **{key: Dead(*dead) for key, dead in DEAD_UPLOAD_KEYS.items()},
}
"""Keys of the same families that have no effect here."""
