"""Options of a commit, under the names that Hadoop gave them.

Sources: the constants of Hadoop 3.5.0's manifest committer and FileOutputCommitter; those of the
S3A committers are in ``options.uploads``. Keys are accepted bare and with the prefix
``spark.hadoop.``; our own keys also as ``spark.asynccommit.*``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

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
"""Prefixes of the keys that this package must know."""
MAX_MANIFEST_BYTES = 64 * 1024 * 1024
"""The most that a reader of a manifest asks the store for, unless told otherwise."""


class Mode(StrEnum):
    """The treatment of existing data at a job's destination.

    ``APPEND`` keeps it, ``FAIL`` raises an error if there is any, ``REPLACE_TABLE`` replaces all of
    it, ``REPLACE_PARTITIONS`` replaces each directory that receives files of the job. Spark's names
    are taken as well: ``error`` or ``errorifexists`` is ``FAIL``, ``overwrite`` ``REPLACE_TABLE``.
    """

    APPEND = "append"
    FAIL = "fail"
    REPLACE_TABLE = "replace_table"
    REPLACE_PARTITIONS = "replace_partitions"

    @classmethod
    def of(cls, mode: Mode | str) -> Mode:
        """Return the mode with this name, in any case. Raises ``OptionError``."""
        name = str(mode).lower()
        if name == IGNORE:
            raise OptionError(
                "the mode 'ignore' needs a function that writes and commits in one call, like "
                "asynccommit.polars.sink_parquet: the tasks of this job would run anyway"
            )
        try:
            return _SPARKS.get(name) or cls(name)
        except ValueError:
            raise OptionError(f"the mode is {mode!r}: expected one of {MODE_NAMES}") from None


IGNORE = "ignore"
"""Spark's name for writing only where there is nothing."""
_SPARKS = {
    "error": Mode.FAIL,
    "errorifexists": Mode.FAIL,
    "overwrite": Mode.REPLACE_TABLE,
}
MODE_NAMES = (
    "append, overwrite (or replace_table), replace_partitions, error (or errorifexists, fail)"
)


class OnUnfinished(StrEnum):
    """The action of a job's setup on interrupted commits of other jobs."""

    REFUSE = "refuse"
    RESUME = "resume"
    ROLLBACK = "rollback"


class Cleanup(StrEnum):
    """The time at which a blocking commit returns.

    ``BACKGROUND`` is as soon as readers see the whole job; ``WAIT`` is after its clean-up.
    """

    BACKGROUND = "background"
    WAIT = "wait"


class Prefer(StrEnum):
    """The wish of a commit that has a choice between time and money.

    ``FAST`` is by the number of requests; ``CHEAP`` is by that and by their list prices.
    """

    FAST = "fast"
    CHEAP = "cheap"


class OnCleanupFailure(StrEnum):
    """The action on a clean-up that fails after the job is committed.

    ``FAIL`` raises an error after ``_SUCCESS``, as Hadoop does.
    """

    WARN = "warn"
    IGNORE = "ignore"
    FAIL = "fail"

    @classmethod
    def of_ignored(cls, ignored: bool) -> OnCleanupFailure:
        """Return the action for Hadoop's option ``cleanup-failures.ignored``."""
        return cls.IGNORE if ignored else cls.FAIL


class OnFailure(StrEnum):
    """The action on a job commit that failed half-way."""

    KEEP = "keep"
    ROLLBACK = "rollback"


if TYPE_CHECKING:
    ModeName: TypeAlias = Literal[
        "append",
        "error",
        "errorifexists",
        "fail",
        "overwrite",
        "replace_partitions",
        "replace_table",
    ]
    AnyOnUnfinished: TypeAlias = OnUnfinished | Literal["refuse", "resume", "rollback"]
    AnyOnFailure: TypeAlias = OnFailure | Literal["keep", "rollback"]
    AnyOnCleanupFailure: TypeAlias = OnCleanupFailure | Literal["warn", "ignore", "fail"]
    AnyCleanup: TypeAlias = Cleanup | Literal["background", "wait"]
    AnyPrefer: TypeAlias = Prefer | Literal["fast", "cheap"]
else:
    ModeName = str  # checked by ``Mode.of``, whose error names the modes
    # A field has the member: ``Options`` converts a name.
    AnyOnUnfinished = OnUnfinished
    AnyOnFailure = OnFailure
    AnyOnCleanupFailure = OnCleanupFailure
    AnyCleanup = Cleanup
    AnyPrefer = Prefer

T = TypeVar("T")


class FormerName(NamedTuple):
    """The present name of a field, and the conversion of its value."""

    name: str
    convert: Callable[[Any], Any] = lambda value: value


def with_former_names(names: Mapping[str, FormerName]) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that accepts former names of fields.

    The constructor warns with ``DeprecationWarning``, and raises ``OptionError`` for a field that
    is given under both names.
    """

    def decorate(kind: type[T]) -> type[T]:
        init: Callable[..., None] = vars(kind)["__init__"]

        @wraps(init)
        def accept(self: T, *args: Any, **given: Any) -> None:
            for former in names.keys() & given.keys():
                name, convert = names[former]
                if name in given:
                    raise OptionError(f"{former} is the former name of {name}: remove {former}")
                text = f"{kind.__name__}.{former} is deprecated: use {name}"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                given[name] = convert(given.pop(former))
            init(self, *args, **given)

        setattr(kind, "__init__", accept)  # noqa: B010  mypy refuses the assignment
        return kind

    return decorate


AnyMode: TypeAlias = Mode | ModeName
"""A mode or its name, as functions take it: type checkers find a misspelt name."""

WORKERS = Within(1, 4096)
ATTEMPTS = Within(1, 1000)
RETRY = Within(1, 86_400, "seconds")
RATE = Within(0.01, 1_000_000, "requests a second")
LEASE = Within(1, 86_400, "seconds")
_LONGEST_KEY = 10_000


def _cleanup_action(ignored: bool | None) -> OnCleanupFailure:
    return OnCleanupFailure.WARN if ignored is None else OnCleanupFailure.of_ignored(ignored)


FORMER_NAMES: Mapping[str, FormerName] = {
    "cleanup_failures_ignored": FormerName("on_cleanup_failure", _cleanup_action),
    "outside": FormerName("allow_outside_destination"),
    "logged": FormerName("readers_use_sink_log"),
}
"""Former name of a field -> the present one; each works for one version."""


@with_former_names(FORMER_NAMES)
@dataclass(frozen=True, slots=True)
class Options:
    """The options of a job commit. Every default is a sensible choice.

    Raises ``OptionError`` for a value of a wrong type or out of bounds. Text is converted to the
    member of an enumeration that it names, and a path object to its text.

    Attributes:
        workers: maximum requests in flight for one job; ``None`` for the store's default.
        window: maximum number of manifests held in memory while they are loaded.
        delete_target_files: move an existing file at a destination aside instead of raising an
            error.
        validate: compare the destination with the manifests before ``_SUCCESS``; ``None`` to do so
            only if it is cheap on this store.
        validate_sample: compare only this many files, chosen at random and requested by name.
        check_sources: check before the first rename that every file exists with its size; this
            costs one listing of each directory that tasks wrote to.
        report_directory: URL of a directory for a summary of every job, including failed ones.
        diagnostics_directory: URL, on the destination's store, where the manifests are kept.
        parallel_delete: clean up the task attempt directories in parallel.
        delete_base_first: before that, try to delete the whole job directory in one request.
        mark_success: write ``_SUCCESS``.
        cleanup_skipped: keep the job directory, also on abort.
        cleanup: whether a blocking commit returns once ``_SUCCESS`` is visible and cleans up in the
            background, or waits. It always waits on a local disk, if a failed clean-up is an
            error, and if there is a ``report_directory``.
        prefer: whether whole directories are moved where that takes fewer requests, or only where
            it also costs less by the list prices of the store.
        on_cleanup_failure: whether a failed clean-up is a warning of the report, ignored, or an
            error after ``_SUCCESS``.
        rate: maximum requests a second of the job; ``None`` for no limit.
        attempts: how often a request that the store refused is sent; ``None`` for the store's
            default.
        retry_seconds: seconds after which a failing request is not sent again.
        require_files: refuse to commit a job without files.
        ignore_table_metadata: write to tables whose readers go by the metadata of another writer.
        max_manifest_bytes: maximum size of a task manifest; larger ones are refused.
        spill_directory: local directory for data that does not fit in memory; ``None`` for the
            system's temporary directory.
        job_id_source: origin of the job id, as written to ``_SUCCESS``.
        on_unfinished: action of the setup on interrupted commits of other jobs.
        on_failure: whether a commit that fails half-way is kept for resuming, or rolled back.
        lease: seconds without a heartbeat after which another may continue a commit; ``None``
            for 60, and 300 on stores over a network.
        job_key: the user's own name for the work of the job; a rerun with the same key is
            recognised as done.
        algorithm: version of FileOutputCommitter that the name ``file`` selects: 1 or 2.
        commit_attempts: how often FileOutputCommitter version 2 tries a job commit; version 1 tries
            once.
        task_cleanup: FileOutputCommitter version 2 deletes the directory of a task attempt when the
            attempt commits.
        allow_outside_destination: allow a commit that is resumed without the tasks' messages to
            move files outside of the destination, as its plan says.
        readers_use_sink_log: add files although readers see only what a streaming sink log lists;
            the caller lists the files there too.
        runner: processes that rename files of a commit besides this one: ``none``, ``processes``,
            ``dask``, ``ray``, ``spark``, one of these with a number such as ``dask:8``, or ``auto``
            for processes where that saves time.
        uploads: further options of the committers that complete uploads.
    """

    workers: Annotated[int | None, WORKERS] = None
    window: Annotated[int, Within(1, 65_536)] = 64
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
    cleanup: AnyCleanup = Cleanup.BACKGROUND
    prefer: AnyPrefer = Prefer.FAST
    on_cleanup_failure: AnyOnCleanupFailure = OnCleanupFailure.WARN
    rate: Annotated[float | None, RATE] = None
    attempts: Annotated[int | None, ATTEMPTS] = None
    retry_seconds: Annotated[float, RETRY] = 600.0
    require_files: bool = False
    ignore_table_metadata: bool = False
    max_manifest_bytes: Annotated[int, Within(1, 4 << 30, "bytes")] = MAX_MANIFEST_BYTES
    spill_directory: Annotated[str | None, PATH] = None
    job_id_source: str = "JobID"
    on_unfinished: AnyOnUnfinished = OnUnfinished.REFUSE
    on_failure: AnyOnFailure = OnFailure.KEEP
    lease: Annotated[float | None, LEASE] = None
    job_key: str | None = None
    algorithm: Annotated[int, Within(1, 2)] = 1
    commit_attempts: Annotated[int, Within(1, 100)] = 1
    task_cleanup: bool = False
    allow_outside_destination: bool = False
    readers_use_sink_log: bool = False
    runner: str = "none"
    uploads: UploadOptions = field(default_factory=UploadOptions)

    def __post_init__(self) -> None:
        check_fields(self)
        values.runner("Options.runner", self.runner)
        _check_key(self.job_key)

    @property
    def cleans_up_behind(self) -> bool:
        """Return whether a blocking commit may return before its clean-up."""
        must_wait = self.on_cleanup_failure is OnCleanupFailure.FAIL or self.report_directory
        return self.cleanup is Cleanup.BACKGROUND and not must_wait

    @classmethod
    def from_conf(cls, conf: Mapping[str, str | float], *, shared: bool = False) -> Options:
        """Read options from configuration keys; ignore keys of other families.

        Values are text, or the numbers and booleans that the text stands for. Warns with
        ``OptionWarning`` for a key of these families that has no effect, and for a number under a
        Hadoop key that is above the maximum here; the number is lowered to the maximum.

        Args:
            conf: keys, bare or with Spark's prefixes, and values.
            shared: other programs read ``conf`` too, as that of a Spark session: an unknown key
                under a prefix of Hadoop is only a warning.

        Raises ``OptionError``, which names the key, for an unknown key of these families, a value
        that cannot be read, and the name of a field given instead of a key.
        """
        texts = _texts(conf)
        found: dict[str, Any] = {}
        for name, value in texts.items():
            if name in KEYS:
                field_of, read = KEYS[name]
                found[field_of] = within_bounds(cls, field_of, name, read(name, value))
            elif name in OBSOLETE_KEYS:
                if value.strip() not in OBSOLETE_KEYS[name].harmless:
                    warnings.warn(
                        f"{name} has no effect: {OBSOLETE_KEYS[name].why}", OptionWarning, 3
                    )
            elif name.startswith(FAMILIES) and name not in UPLOAD_KEYS:
                text = _unknown(name)
                if not shared or name.startswith(OURS):
                    raise OptionError(text)
                warnings.warn(text, OptionWarning, 3)
        return replace(cls(), uploads=UploadOptions.of(texts), **found)


def _unknown(name: str) -> str:
    near = get_close_matches(name, [*KEYS, *UPLOAD_KEYS], 1, 0.8)
    question = f": did you mean {near[0]}?" if near else "; docs/options.md lists the options"
    return f"{name} is not an option of this committer{question}"


def _check_key(key: str | None) -> None:
    """Raise ``OptionError`` for a job key that a marker cannot preserve."""
    if key is not None and (len(key) > _LONGEST_KEY or NO_TEXT.search(key)):
        text = f"at most {_LONGEST_KEY:,} characters of Unicode, without NUL"
        raise OptionError(f"Options.job_key is {show(key)}: expected {text}")


def _texts(conf: Mapping[Any, Any]) -> dict[str, str]:
    """Return the values of ``conf`` as texts, without Spark's key prefixes.

    Raises ``OptionError`` for another type of value under a known key, or for a field's name.
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
    """Raise ``OptionError`` for the name of a field, or nearly one, as a key."""
    if "." in name:
        return
    present = FORMER_NAMES[name].name if name in FORMER_NAMES else name
    for kind, keys in ((Options, KEYS), (UploadOptions, UPLOAD_KEYS)):
        names = [item.name for item in fields(kind)]
        near = [present] if present in names else get_close_matches(name, names, 1, 0.85)
        if not near:
            continue
        its_keys = [key for key, (field_of, _) in keys.items() if field_of == near[0]]
        keyed = f"the key {its_keys[0]}, or " if its_keys else ""
        text = f"{near[0]} is a field of {kind.__name__}: did you mean {keyed}{kind.__name__}"
        raise OptionError(f"{name!r} is not a configuration key. {text}({near[0]}=...)?")


def rate_among(storage: Mapping[str, Any]) -> float | None:
    """Return the rate limit that a store's options set under Hadoop's keys.

    ``None`` means no limit. Raises ``OptionError`` for a value that cannot be read.
    """
    return values.rate(AZURE_RATE, str(storage[AZURE_RATE])) if AZURE_RATE in storage else None


def bare(key: str) -> str:
    """Return ``key`` without Spark's prefixes."""
    key = key.strip()
    if key.startswith("spark.hadoop."):
        return key.removeprefix("spark.hadoop.")
    return key.removeprefix("spark.") if key.startswith("spark.asynccommit.") else key


def _cleanup_failures(key: str, text: str) -> OnCleanupFailure:
    return OnCleanupFailure.of_ignored(values.boolean(key, text))


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
    CLASSIC + "cleanup-failures.ignored": ("on_cleanup_failure", _cleanup_failures),
    CLASSIC + "algorithm.version": ("algorithm", values.version),
    CLASSIC + "failures.attempts": ("commit_attempts", values.count),
    CLASSIC + "task.cleanup.enabled": ("task_cleanup", values.boolean),
    OURS + "rate": ("rate", values.rate),
    AZURE_RATE: ("rate", values.rate),
    OURS + "attempts": ("attempts", values.count),
    OURS + "retry.seconds": ("retry_seconds", values.seconds),
    OURS + "cleanup": ("cleanup", values.one_of(Cleanup)),
    OURS + "prefer": ("prefer", values.one_of(Prefer)),
    OURS + "validate.sample": ("validate_sample", values.count),
    OURS + "check.sources": ("check_sources", values.boolean),
    OURS + "require.files": ("require_files", values.boolean),
    OURS + "ignore.table.metadata": ("ignore_table_metadata", values.boolean),
    OURS + "max.manifest.bytes": ("max_manifest_bytes", values.count),
    OURS + "spill.directory": ("spill_directory", values.text),
    OURS + "on.unfinished": ("on_unfinished", values.one_of(OnUnfinished)),
    OURS + "on.failure": ("on_failure", values.one_of(OnFailure)),
    OURS + "lease": ("lease", values.seconds),
    OURS + "workers": ("runner", values.runner),
    OURS + "job.key": ("job_key", values.text),
    OURS + "resume.outside": ("allow_outside_destination", values.boolean),
    **SHARED_KEYS,
}
"""Configuration key -> field of ``Options`` and how its text is read."""


@dataclass(frozen=True, slots=True)
class IgnoredOption:
    """A known option that has no effect here, and values that need no warning."""

    why: str
    harmless: tuple[str, ...] = ()


OBSOLETE_KEYS: dict[str, IgnoredOption] = {
    MANIFEST + "manifest.save.attempts": IgnoredOption(
        "Hadoop reads it but never uses it; see asynccommit.attempts"
    ),
    MANIFEST + "store.operations.classname": IgnoredOption(
        "stores are chosen by the scheme of the URL"
    ),
    MANIFEST + "io.rate": IgnoredOption("no released Hadoop has it; see asynccommit.rate"),
    MANIFEST + "delete.dir.capacity": IgnoredOption("no released Hadoop has it"),
    **{key: IgnoredOption(*dead) for key, dead in OBSOLETE_UPLOAD_KEYS.items()},
}
"""Keys of the same families that have no effect here."""
