"""Options of a commit, under the names that Hadoop gave them.

Sources: the constants of Hadoop 3.5.0's manifest committer and FileOutputCommitter; those of the
S3A committers are in ``upload_options``. Keys are accepted bare, with ``spark.hadoop.`` in front,
and ours also as ``spark.asynccommit.*``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any

from asynccommit.errors import OptionError
from asynccommit.options import values
from asynccommit.options.checked import NO_TEXT, PATH, Within, check_fields, show
from asynccommit.options.uploads import (
    NETFLIX,
    OBSOLETE_UPLOAD_KEYS,
    S3A,
    SHARED_KEYS,
    UPLOAD_KEYS,
    UploadOptions,
)
from asynccommit.options.values import OURS as OURS
from asynccommit.options.values import OptionWarning as OptionWarning
from asynccommit.options.values import within_bounds

MANIFEST = "mapreduce.manifest.committer."
CLASSIC = "mapreduce.fileoutputcommitter."
AZURE_RATE = "fs.azure.io.rate.limit"
FAMILIES = (MANIFEST, CLASSIC, OURS, S3A, NETFLIX)
"""How keys begin that are this package's to know."""
MAX_MANIFEST_BYTES = 64 * 1024 * 1024
"""The most that a reader of a manifest asks the store for, unless told otherwise."""


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


WORKERS = Within(1, 4096)
ATTEMPTS = Within(1, 1000)
RATE = Within(0.01, 1_000_000, "requests a second")
LEASE = Within(1, 86_400, "seconds")
_LONGEST_KEY = 10_000


@dataclass(frozen=True, slots=True)
class Options:
    """How a job is committed. Every default is the one to take if in doubt.

    Raises ``OptionError`` for a value of a wrong type or out of bounds; text is taken for the
    member of an enumeration that it names, and a path object for its text.

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

    workers: Annotated[int | None, WORKERS] = None
    window: Annotated[int, Within(1, 65_536)] = 32
    delete_target_files: bool = False
    validate: bool | None = None
    validate_sample: Annotated[int | None, Within(1, 100_000_000)] = None
    check_sources: bool = False
    report_directory: Annotated[str | None, PATH] = None
    diagnostics_directory: Annotated[str | None, PATH] = None
    parallel_delete: bool = True
    delete_base_first: bool = False
    mark_success: bool = True
    cleanup_skipped: bool = False
    cleanup_failures_ignored: bool | None = None
    rate: Annotated[float | None, RATE] = None
    attempts: Annotated[int | None, ATTEMPTS] = None
    max_manifest_bytes: Annotated[int, Within(1, 4 << 30, "bytes")] = MAX_MANIFEST_BYTES
    spill_directory: Annotated[str | None, PATH] = None
    job_id_source: str = "JobID"
    on_unfinished: OnUnfinished = OnUnfinished.REFUSE
    on_failure: OnFailure = OnFailure.KEEP
    lease: Annotated[float | None, LEASE] = None
    job_key: str | None = None
    algorithm: Annotated[int, Within(1, 2)] = 1
    commit_attempts: Annotated[int, Within(1, 100)] = 1
    task_cleanup: bool = False
    outside: bool = False
    logged: bool = False
    uploads: UploadOptions = field(default_factory=UploadOptions)

    def __post_init__(self) -> None:
        check_fields(self)
        _check_key(self.job_key)

    @classmethod
    def from_conf(cls, conf: Mapping[str, str | float]) -> Options:
        """Read options from configuration keys; keys of other families are passed over.

        Values are text, or numbers and truths that stand for theirs. Warns with ``OptionWarning``
        for a key of these families that is unknown or dead, and for a number under a key of
        Hadoop's that is above what is possible here, which is lowered to that.

        Raises ``OptionError`` for a value that cannot be read, naming key and value, and for the
        name of a field in the place of a key.
        """
        told = _texts(conf)
        found: dict[str, Any] = {}
        for name, value in told.items():
            if name in KEYS:
                field_of, read = KEYS[name]
                found[field_of] = within_bounds(cls, field_of, name, read(name, value))
            elif name in OBSOLETE_KEYS:
                if value.strip() not in OBSOLETE_KEYS[name].harmless:
                    warnings.warn(
                        f"{name} has no effect: {OBSOLETE_KEYS[name].why}", OptionWarning, 3
                    )
            elif name.startswith(FAMILIES) and name not in UPLOAD_KEYS:
                warnings.warn(f"{name} is not an option of this committer", OptionWarning, 3)
        return replace(cls(), uploads=UploadOptions.of(told), **found)


def _check_key(key: str | None) -> None:
    """Raise ``OptionError`` for a job key that a marker could not give back as it is."""
    if key is not None and (len(key) > _LONGEST_KEY or NO_TEXT.search(key)):
        text = f"at most {_LONGEST_KEY:,} characters of Unicode, without NUL"
        raise OptionError(f"Options.job_key is {show(key)}: expected {text}")


def _texts(conf: Mapping[Any, Any]) -> dict[str, str]:
    """Return the values of ``conf`` as texts, under keys without Spark's prefixes.

    Raises ``OptionError`` for another value under a key that is known, or for a field's name.
    """
    found: dict[str, str] = {}
    for key, value in conf.items():
        if not isinstance(key, str):
            raise OptionError(f"a key is {show(key)}: expected text")
        name = bare(key)
        _refuse_field(name)
        if isinstance(value, str):
            found[name] = value
        elif isinstance(value, bool | int | float):
            found[name] = str(value).lower()
        elif name.startswith(FAMILIES) or name in KEYS or name in UPLOAD_KEYS:
            raise OptionError(f"{name} is {show(value)}: expected text")
    return found


def _refuse_field(name: str) -> None:
    """Refuse what is no key but the name of a field, or nearly so. Raises ``OptionError``."""
    if "." in name:
        return
    for kind, keys in ((Options, KEYS), (UploadOptions, UPLOAD_KEYS)):
        names = [item.name for item in fields(kind)]
        near = [name] if name in names else get_close_matches(name, names, 1, 0.85)
        if not near:
            continue
        said = [key for key, (field_of, _) in keys.items() if field_of == near[0]]
        keyed = f"the key {said[0]}, or " if said else ""
        text = f"{near[0]} is a field of {kind.__name__}: did you mean {keyed}{kind.__name__}"
        raise OptionError(f"{name!r} is not a configuration key. {text}({near[0]}=...)?")


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


OBSOLETE_KEYS: dict[str, Dead] = {
    MANIFEST + "manifest.save.attempts": Dead(
        "Hadoop reads it and never uses it; see asynccommit.attempts"
    ),
    MANIFEST + "store.operations.classname": Dead("stores are chosen by the scheme of the URL"),
    MANIFEST + "io.rate": Dead("no released Hadoop has it; see asynccommit.rate"),
    MANIFEST + "delete.dir.capacity": Dead("no released Hadoop has it"),
    **{key: Dead(*dead) for key, dead in OBSOLETE_UPLOAD_KEYS.items()},
}
"""Keys of the same families that have no effect here."""
