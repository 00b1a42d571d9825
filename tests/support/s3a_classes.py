"""The classes of Hadoop's S3A committers that read and write their files, of two releases.

They need neither S3 nor a client of it: three jars of the SDK, for classes that theirs name.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asynccommit.demo.hadoop_jars import cached_jar
from asynccommit.demo.s3 import client_jars
from asynccommit.errors import UnsupportedError
from asynccommit.options.uploads import EtagForm
from asynccommit.stores.parts import Part
from tests.support.hadoop import Hadoop, jars, java_command

OLD = "3.4.1"
_OLD_DIGEST = "01334a07e179cae2b7e251f24857f11e3759108c9d6a79dcbe362a4295227da2"
NEW = "3.5.0"
FORMS: Mapping[str, EtagForm] = {OLD: EtagForm.STRINGS, NEW: EtagForm.OBJECTS}
"""Release -> the form of etags that it reads and writes."""

_COMMIT = "org.apache.hadoop.fs.s3a.commit"
_FILES = f"{_COMMIT}.files"


@functools.cache
def why_not() -> str | None:
    """Return why there are no such classes to test with, or ``None`` if there are.

    The first time they may have to be fetched.
    """
    if java_command() is None or jars() is None:
        return "needs java and pyspark"
    try:
        for release in FORMS:
            _class_path(release)
    except UnsupportedError as error:
        return str(error)
    return None


def _class_path(release: str) -> str:
    """Return the jars of one release, after those of pyspark."""
    client = f"hadoop-aws-{NEW}.jar"
    found = [jar for jar in client_jars() if jar.name != client or release == NEW]
    if release == OLD:
        artifact = f"org.apache.hadoop:hadoop-aws:{OLD}"
        found.append(cached_jar(artifact, f"hadoop-aws-{OLD}.jar", _OLD_DIGEST))
    return os.pathsep.join([jars() or "", *map(str, found)])


class S3aClasses(Hadoop):
    """A JVM with one release of the classes; made by ``start_s3a``.

    Attributes:
        release: which.
    """

    release: str

    @property
    def form(self) -> EtagForm:
        """The form of etags of this release."""
        return FORMS[self.release]

    # What Hadoop reads

    def pending(self, path: Path) -> dict[str, Any]:
        """Load and validate a ``.pending`` file; return every value that Hadoop's class holds."""
        return self._persistent("SinglePendingCommit", path)

    def pending_set(self, path: Path) -> dict[str, Any]:
        """Load and validate a ``.pendingset`` file; return what Hadoop's class holds."""
        return self._persistent("PendingSet", path)

    def s3a_success(self, path: Path) -> dict[str, Any]:
        """Load and validate a ``_SUCCESS`` as S3A does; return what Hadoop's class holds."""
        return self._persistent("SuccessData", path)

    def _persistent(self, name: str, path: Path) -> dict[str, Any]:
        found = self.java(f"{_FILES}.{name}")
        with self.errors():
            status = self.filesystem().getFileStatus(self.path(str(path)))
            load = self.java(f"{_FILES}.PersistentCommitData").load
            loaded = load(self.filesystem(), status, found.serializer())
            loaded.validate()
            value: dict[str, Any] = json.loads(found.serializer().toJson(loaded))
            return value

    # What Hadoop writes

    def new_pending(self, key: str, parts: Sequence[Part], **values: Any) -> Any:
        """Return Hadoop's commit of an upload of these parts, as its tasks make it.

        Args:
            key: in the bucket ``bucket``.
            parts: whose checksums are CRC32C, if any.
            values: further ones, by the names of the setters: ``Text="partition: p=1"``.
        """
        made = self.new(f"{_FILES}.SinglePendingCommit")
        uri = self.new("java.net.URI", "s3a", "bucket", f"/{key}", None, None)
        given = {"Bucket": "bucket", "DestinationKey": key, "UploadId": "upload-1"}
        with self.errors():
            made.touch(1_700_000_000_123)
            for name, value in {**given, "Uri": uri.toString(), **values}.items():
                getattr(made, f"set{name}")(value)
            made.bindCommitData([self._part(*pair) for pair in enumerate(parts, 1)])
        return made

    def new_pending_set(self, job_id: str, commits: Sequence[Any]) -> Any:
        """Return Hadoop's set of these commits."""
        made = self.new(f"{_FILES}.PendingSet")
        with self.errors():
            made.setJobId(job_id)
            for commit in commits:
                made.add(commit)
        return made

    def bytes_of(self, made: Any) -> bytes:
        """Return what Hadoop writes of a commit, a set or a marker."""
        name = str(made.getClass().getName())
        with self.errors():
            return bytes(made.toBytes(self.java(name).serializer()))

    def _part(self, number: int, part: Part) -> Any:
        builder = self.java("software.amazon.awssdk.services.s3.model.CompletedPart").builder()
        builder = builder.partNumber(number).eTag(part.etag)
        if part.checksum:
            builder = builder.checksumCRC32C(part.checksum)
        return builder.build()

    # Names

    def final_path(self, path: str) -> str:
        """Return where Hadoop has a file appear that is written at the absolute ``path``."""
        found = self.java(f"{_COMMIT}.MagicCommitPaths")
        with self.errors():
            names = found.splitPathToElements(self._s3_path(path))
            return "/" + "/".join(map(str, found.finalDestination(names)))

    def is_magic(self, path: str) -> bool:
        """Whether Hadoop takes an absolute path for a magic one."""
        found = self.java(f"{_COMMIT}.MagicCommitPaths")
        with self.errors():
            return bool(found.isMagicPath(found.splitPathToElements(self._s3_path(path))))

    def _s3_path(self, path: str) -> Any:
        uri = self.new("java.net.URI", "s3a", "bucket", path, None, None)
        return self.new("org.apache.hadoop.fs.Path", uri)

    def add_uuid(self, path: str, uuid: str) -> str:
        """Return the name that Hadoop's staging committers give a file."""
        with self.errors():
            return str(self.java(f"{_COMMIT}.staging.Paths").addUUID(path, uuid))


@contextmanager
def start_s3a(release: str, *options: str) -> Iterator[S3aClasses]:
    """Run a JVM with one release of the classes."""
    # Of two class paths the JVM takes the last. It lives too short for its better compiler.
    path = ("-cp", _class_path(release), "-XX:TieredStopAtLevel=1")
    with S3aClasses.start(*path, *options) as hadoop:
        assert isinstance(hadoop, S3aClasses)
        hadoop.release = release
        yield hadoop
