"""Options of the committers that complete uploads, under the names that others gave them.

Sources: the constants of Hadoop 3.5.0's S3A committers (``fs.s3a.committer.*``), and of Netflix'
s3committer (``s3.multipart.committer.*``), whose rules a job has as soon as one of its keys is
given: a conflict fails, and empty files are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

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
    """How the parts are written: each release of Hadoop reads one form and no other.

    ``STRINGS`` is for Hadoop up to 3.4.1, ``OBJECTS`` for 3.4.2 and later, which completes with
    every kind of checksum but CRC64NVME, and without that where it is given.
    """

    STRINGS = "strings"
    OBJECTS = "objects"


class Conflict(StrEnum):
    """What a staging committer does where files are at the destination already."""

    APPEND = "append"
    FAIL = "fail"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class UploadOptions:
    """How files are uploaded and completed. Every default is the one to take if in doubt.

    Attributes:
        committer: the committer of a destination that takes uploads, where none is named;
            ``None`` for the one that suits it.
        magic: the magic committer may be used.
        part_size: bytes of a part of a file.
        in_flight: parts of a file in memory at one time, the one that is being filled among them.
        etags: how pending files have the etags: as objects for Hadoop 3.4.2 and later, as
            strings for earlier ones.
        in_memory: a task remembers its uploads, and writes neither markers nor pending files.
        keep_magic: magic directories stay when they are needed no more.
        abort_pending: the clean-up of a job aborts the uploads that its killed tasks left. Those
            of others it never touches.
        conflict: what a staging committer does about files that are there, where the job is given
            no mode; ``None`` for append.
        unique_names: staging puts the job's id into names of files.
        skip_empty: staging leaves empty files out.
        staging_path: URL or path of where staging keeps pending sets; ``None`` for beside the
            data.
        buffer_directory: local directory that staging tasks write to; ``None`` for the system's.
        job_id: the job's id, where none is given otherwise.
        job_id_source: the key that gave it.
        require_id: a job without an id of its own is an error.
    """

    committer: str | None = None
    magic: bool = True
    part_size: Annotated[int, Within(1, 5 << 30, "bytes")] = 64 << 20
    in_flight: Annotated[int, Within(1, 4096)] = 4
    etags: EtagForm = EtagForm.OBJECTS
    in_memory: bool = False
    keep_magic: bool = False
    abort_pending: bool = True
    conflict: Conflict | None = None
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
        """Read options from keys without prefixes; other keys are passed over.

        Where Hadoop and Netflix have a key for one thing, Hadoop's counts. Raises ``OptionError``.
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
    """Read the name of Hadoop's class; the common one leaves it to ``fs.s3a.committer.name``."""
    name = value.strip().rpartition(".")[2]
    if name not in FACTORIES:
        known = ", ".join(sorted(FACTORIES))
        raise OptionError(f"{key} is {value!r}: say one of {known}, or leave it out")
    return FACTORIES[name]


def _staging_path(key: str, value: str) -> str | None:
    """Read a URL or a path; Hadoop's own default is no choice of anybody's."""
    text = value.strip()
    if text in ("", "tmp/staging"):
        return None
    if not text.startswith("/") and ":" not in text:
        raise OptionError(f"{key} is {value!r}: say an absolute path or a URL")
    return text


def _directory(key: str, value: str) -> str | None:
    """Read the first of several directories; whichever the others are for, one is enough here."""
    first = value.split(",")[0].strip().removeprefix("file:").replace("//", "/", 1)
    if not first:
        return None
    if not first.startswith("/") or "${" in first:
        text = "say an absolute path, nothing in it is substituted"
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
    S3A + "generate.uuid": ("a job without an id is given one anyway", ("true", "false")),
    S3A + "experimental.collect.iostatistics": (
        "what requests are made is always counted",
        ("true", "false"),
    ),
    "fs.s3a.multipart.purge": (
        "uploads are deleted by asynccommit uploads abort, which says whose they are",
        ("false",),
    ),
}
"""Keys that have no effect: why, and the values that are not worth a warning."""
