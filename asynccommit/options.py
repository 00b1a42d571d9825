"""Options of a commit, under the names that Hadoop gave them.

Sources: the constants of Hadoop 3.5.0's manifest committer and FileOutputCommitter. Keys are
accepted bare, with ``spark.hadoop.`` in front, and ours also as ``spark.asynccommit.*``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.formats.manifest import MAX_MANIFEST_BYTES

MANIFEST = "mapreduce.manifest.committer."
CLASSIC = "mapreduce.fileoutputcommitter."
OURS = "asynccommit."
AZURE_RATE = "fs.azure.io.rate.limit"


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
        outside: a commit that is resumed without the tasks' messages may move files outside of the
            destination, as its plan says.
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
    outside: bool = False

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
                field, read = KEYS[name]
                found[field] = read(name, value)
            elif name in DEAD:
                if value.strip() not in DEAD[name].harmless:
                    warnings.warn(f"{name} has no effect: {DEAD[name].why}", OptionWarning, 3)
            elif name.startswith((MANIFEST, CLASSIC, OURS)):
                warnings.warn(f"{name} is not an option of this committer", OptionWarning, 3)
        return replace(cls(), **found)


def rate_among(storage: Mapping[str, Any]) -> float | None:
    """Return the rate that options of a store name, as Hadoop's are; ``None`` for no limit.

    Raises ``OptionError`` for a value that cannot be read.
    """
    return _rate(AZURE_RATE, str(storage[AZURE_RATE])) if AZURE_RATE in storage else None


def bare(key: str) -> str:
    """Return ``key`` without Spark's prefixes."""
    key = key.strip()
    if key.startswith("spark.hadoop."):
        return key.removeprefix("spark.hadoop.")
    return key.removeprefix("spark.") if key.startswith("spark.asynccommit.") else key


def _boolean(key: str, value: str) -> bool:
    text = value.strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"{key} is {value!r}: say true or false")
    return text == "true"


def _integer(key: str, value: str) -> int:
    try:
        return int(value.strip())
    except ValueError:
        raise OptionError(f"{key} is {value!r}: say a whole number") from None


def _count(key: str, value: str) -> int:
    number = _integer(key, value)
    if number < 1:
        raise OptionError(f"{key} is {value!r}: say a number of at least 1")
    return number


def _workers(key: str, value: str) -> int | None:
    number = _integer(key, value)
    return number if number > 0 else None


def _rate(key: str, value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        raise OptionError(f"{key} is {value!r}: say requests a second, or 0 for no limit") from None
    if not 0 <= number < 1e9:
        raise OptionError(f"{key} is {value!r}: say requests a second, or 0 for no limit")
    return number or None


def _text(key: str, value: str) -> str | None:
    return value.strip() or None


def _lease(key: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86_400:
        raise OptionError(f"{key} is {value!r}: say seconds, from 1 to 86400")
    return seconds


def _one_of(kind: type[Enum]) -> Reader:
    def read(key: str, value: str) -> Enum:
        try:
            return kind(value.strip().lower())
        except ValueError:
            known = ", ".join(choice.value for choice in kind)
            raise OptionError(f"{key} is {value!r}: say one of {known}") from None

    return read


Reader = Callable[[str, str], object]

KEYS: dict[str, tuple[str, Reader]] = {
    MANIFEST + "io.threads": ("workers", _workers),
    MANIFEST + "writer.queue.capacity": ("window", _count),
    MANIFEST + "delete.target.files": ("delete_target_files", _boolean),
    MANIFEST + "validate.output": ("validate", _boolean),
    MANIFEST + "summary.report.directory": ("report_directory", _text),
    MANIFEST + "diagnostics.manifest.directory": ("diagnostics_directory", _text),
    MANIFEST + "cleanup.parallel.delete": ("parallel_delete", _boolean),
    MANIFEST + "cleanup.parallel.delete.base.first": ("delete_base_first", _boolean),
    CLASSIC + "marksuccessfuljobs": ("mark_success", _boolean),
    CLASSIC + "cleanup.skipped": ("cleanup_skipped", _boolean),
    CLASSIC + "cleanup-failures.ignored": ("cleanup_failures_ignored", _boolean),
    OURS + "rate": ("rate", _rate),
    AZURE_RATE: ("rate", _rate),
    OURS + "attempts": ("attempts", _count),
    OURS + "validate.sample": ("validate_sample", _count),
    OURS + "check.sources": ("check_sources", _boolean),
    OURS + "max.manifest.bytes": ("max_manifest_bytes", _count),
    OURS + "spill.directory": ("spill_directory", _text),
    OURS + "on.unfinished": ("on_unfinished", _one_of(OnUnfinished)),
    OURS + "on.failure": ("on_failure", _one_of(OnFailure)),
    OURS + "lease": ("lease", _lease),
    OURS + "job.key": ("job_key", _text),
    OURS + "resume.outside": ("outside", _boolean),
}
"""Configuration key -> field of ``Options`` and how its text is read."""


@dataclass(frozen=True, slots=True)
class Dead:
    """An option that others know and that does nothing here, and values not worth a warning."""

    why: str
    harmless: tuple[str, ...] = ()


_CLASSIC_ONLY = "it belongs to FileOutputCommitter"

DEAD: dict[str, Dead] = {
    MANIFEST + "manifest.save.attempts": Dead(
        "Hadoop reads it and never uses it; see asynccommit.attempts"
    ),
    MANIFEST + "store.operations.classname": Dead("stores are chosen by the scheme of the URL"),
    MANIFEST + "io.rate": Dead("no released Hadoop has it; see asynccommit.rate"),
    MANIFEST + "delete.dir.capacity": Dead("no released Hadoop has it"),
    CLASSIC + "algorithm.version": Dead(_CLASSIC_ONLY, ("1",)),
    CLASSIC + "failures.attempts": Dead(_CLASSIC_ONLY),
    CLASSIC + "task.cleanup.enabled": Dead(_CLASSIC_ONLY),
}
"""Keys of the same families that have no effect here."""
