"""Options of the upload committers, under Hadoop's and Netflix's names.

Sources: the constants of Hadoop 3.5.0's S3A committers (``fs.s3a.committer.*``), and of Netflix'
s3committer (``s3.multipart.committer.*``). The rules of s3committer apply to a job as soon as one
of its keys is given: a conflict fails, and empty files are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from asynccommit.errors import OptionError
from asynccommit.options import values
from asynccommit.options.checked import PATH, Within, check_fields

S3A = "fs.s3a.committer."
NETFLIX = "s3.multipart.committer."
UPLOADS = "asynccommit.uploads."
FACTORY = "mapreduce.outputcommitter.factory.scheme.s3a"
NAME = S3A + "name"
STAGING_PATH = S3A + "staging.tmp.path"
PART_SIZE = "fs.s3a.multipart.size"
IN_FLIGHT = "fs.s3a.fast.upload.active.blocks"
DEFAULT_FS = "fs.defaultFS"
SPARK_UUID = "spark.sql.sources.writeJobUUID"


class EtagForm(StrEnum):
    """The format of parts in pending files, of which each release of Hadoop reads one.

    ``STRINGS`` is for Hadoop up to 3.4.1, ``OBJECTS`` for 3.4.2 and later, which completes uploads
    with every kind of checksum except CRC64NVME; it leaves a given CRC64NVME out.
    """

    STRINGS = "strings"
    OBJECTS = "objects"


class Conflict(StrEnum):
    """The action of a staging committer on existing files at the destination."""

    APPEND = "append"
    FAIL = "fail"
    REPLACE = "replace"


if TYPE_CHECKING:
    AnyEtagForm: TypeAlias = EtagForm | Literal["strings", "objects"]
    AnyConflict: TypeAlias = Conflict | Literal["append", "fail", "replace"]
else:  # a field has the member: ``UploadOptions`` converts a name
    AnyEtagForm = EtagForm
    AnyConflict = Conflict


@dataclass(frozen=True, slots=True)
class UploadOptions:
    """The options for uploading and completing files.

    Attributes:
        committer: default committer of a destination that takes uploads; ``None`` to choose the one
            that suits it.
        magic: whether the magic committer may be used.
        part_size: bytes in one part of a file.
        in_flight: maximum parts of a file in memory, including the one that is being filled.
        etags: format of the etags in pending files: objects for Hadoop 3.4.2 and later, strings for
            earlier releases.
        in_memory: keep a task's uploads in memory, and write neither markers nor pending files.
        keep_magic: keep magic directories that are no longer needed.
        abort_pending: the cleanup of a job aborts the uploads that its killed tasks left. It never
            touches uploads of other jobs.
        conflict: action of a staging committer on existing files, for a job without a mode;
            ``None`` for append.
        unique_names: staging committers put the job's id into file names.
        skip_empty: staging committers leave empty files out.
        staging_path: URL or path of the directory where staging committers keep pending sets;
            ``None`` for beside the data.
        buffer_directory: local directory that staging tasks write to; ``None`` for the system's
            temporary directory.
        job_id: the job's id, if no other is given.
        job_id_source: the key that ``job_id`` came from.
        require_id: raise an error for a job without an id of its own.
    """

    committer: str | None = None
    magic: bool = True
    part_size: Annotated[int, Within(1, 5 << 30, "bytes")] = 64 << 20
    in_flight: Annotated[int, Within(1, 4096)] = 4
    etags: AnyEtagForm = EtagForm.OBJECTS
    in_memory: bool = False
    keep_magic: bool = False
    abort_pending: bool = True
    conflict: AnyConflict | None = None
    unique_names: bool = True
    skip_empty: bool = False
    staging_path: Annotated[str | None, PATH] = None
    buffer_directory: Annotated[str | None, PATH] = None
    job_id: str | None = None
    job_id_source: str = ""
    require_id: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> UploadOptions:
        """Read options from keys without prefixes; ignore other keys.

        If Hadoop and Netflix both have a key for an option, Hadoop's takes precedence. Raises
        ``OptionError``.
        """
        found: dict[str, Any] = {}
        if any(name.startswith(NETFLIX) for name in conf):
            found.update(conflict=Conflict.FAIL, skip_empty=True)
        for name in UPLOAD_KEYS:
            if name in conf:
                field, read = UPLOAD_KEYS[name]
                value = read(name, conf[name])
                if value is not None:
                    found[field] = values.within_bounds(cls, field, name, value)
                if field == "job_id":
                    found["job_id_source"] = name
        if found.get("staging_path", "").startswith("/"):
            found["staging_path"] = conf.get(DEFAULT_FS, "").rstrip("/") + found["staging_path"]
        return replace(cls(), **found)


def _not_of(kind: values.Reader) -> values.Reader:
    return lambda key, value: not kind(key, value)


def _factory(key: str, value: str) -> str | None:
    """Read the class name of Hadoop's committer factory.

    The general S3A factory leaves the choice to ``fs.s3a.committer.name``.
    """
    name = value.strip().rpartition(".")[2]
    if name not in FACTORIES:
        expected = ", ".join(sorted(FACTORIES))
        raise OptionError(f"{key} is {value!r}: expected one of {expected}, or leave it out")
    return FACTORIES[name]


def _staging_path(key: str, value: str) -> str | None:
    """Read a URL or a path; Hadoop's own default counts as not set."""
    text = value.strip()
    if text in ("", "tmp/staging"):
        return None
    if not text.startswith("/") and ":" not in text:
        raise OptionError(f"{key} is {value!r}: expected an absolute path or a URL")
    return text


def _directory(key: str, value: str) -> str | None:
    """Read the first of several local directories; only one is needed here."""
    first = value.split(",")[0].strip().removeprefix("file:").replace("//", "/", 1)
    if not first:
        return None
    if not first.startswith("/") or "${" in first:
        text = "expected an absolute path; variables in it are not substituted"
        raise OptionError(f"{key} is {value!r}: {text}")
    return first


FACTORIES: dict[str, str | None] = {
    "S3ACommitterFactory": None,
    "MagicS3GuardCommitterFactory": "magic",
    "DirectoryStagingCommitterFactory": "directory",
    "PartitionedStagingCommitterFactory": "partitioned",
    "ManifestCommitterFactory": "manifest",
    "FileOutputCommitterFactory": "file",
}
"""Hadoop's class, without its package -> name of a committer."""

UPLOAD_KEYS: dict[str, tuple[str, values.Reader]] = {
    NETFLIX + "upload.size": ("part_size", values.size),
    NETFLIX + "uuid": ("job_id", values.text),
    NETFLIX + "conflict-mode": ("conflict", values.one_of(Conflict)),
    SPARK_UUID: ("job_id", values.text),
    NAME: ("committer", values.text),
    FACTORY: ("committer", _factory),
    S3A + "uuid": ("job_id", values.text),
    S3A + "require.uuid": ("require_id", values.boolean),
    S3A + "magic.enabled": ("magic", values.boolean),
    S3A + "magic.track.commits.in.memory.enabled": ("in_memory", values.boolean),
    S3A + "magic.cleanup.enabled": ("keep_magic", _not_of(values.boolean)),
    S3A + "staging.abort.pending.uploads": ("abort_pending", values.boolean),
    S3A + "abort.pending.uploads": ("abort_pending", values.boolean),
    STAGING_PATH: ("staging_path", _staging_path),
    S3A + "staging.conflict-mode": ("conflict", values.one_of(Conflict)),
    S3A + "staging.unique-filenames": ("unique_names", values.boolean),
    PART_SIZE: ("part_size", values.size),
    IN_FLIGHT: ("in_flight", values.count),
    "fs.s3a.buffer.dir": ("buffer_directory", _directory),
    UPLOADS + "etags": ("etags", values.one_of(EtagForm)),
    UPLOADS + "skip.empty": ("skip_empty", values.boolean),
}
"""Key -> field of ``UploadOptions`` and how its text is read; of two keys for one the later counts.

So a specific factory beats ``fs.s3a.committer.name``, as in Hadoop.
"""

SHARED_KEYS: dict[str, tuple[str, values.Reader]] = {
    NETFLIX + "num-threads": ("workers", values.threads),
    S3A + "threads": ("workers", values.threads),
    S3A + "summary.report.directory": ("report_directory", values.text),
    S3A + "uuid.source": ("job_id_source", values.text),
}
"""Keys of the same families for what all committers have: fields of ``Options``."""

OBSOLETE_UPLOAD_KEYS: dict[str, tuple[str, tuple[str, ...]]] = {
    S3A + "generate.uuid": ("a job without an id gets one anyway", ("true", "false")),
    S3A + "experimental.collect.iostatistics": (
        "requests are always counted",
        ("true", "false"),
    ),
    "fs.s3a.multipart.purge": (
        "uploads are deleted by asynccommit uploads abort, which shows their jobs",
        ("false",),
    ),
}
"""Keys that have no effect: why, and the values that are not worth a warning."""
