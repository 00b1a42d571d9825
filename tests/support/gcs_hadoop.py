"""Google's Hadoop connector, configured for an emulator, in a JVM with pyspark's jars."""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asynccommit.demo.gcs import client_jar
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread, client_conf
from asynccommit.testing.models.fault_rules import Fault
from asynccommit.testing.models.gcs.model import BucketOptions, GcsObject
from asynccommit.testing.models.gcs.refusals import GCS
from tests.support.abfs import AbfsJob
from tests.support.hadoop import Hadoop, jars, java_command

FACTORY = "org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitterFactory"


def conf_of(emulator: GcsEmulatorThread) -> dict[str, str]:
    """Return what Hadoop needs to reach the emulator, and commits by manifests there."""
    return {
        **client_conf(emulator.endpoint),
        "mapreduce.outputcommitter.factory.scheme.gs": FACTORY,
    }


def storage_options(emulator: GcsEmulatorThread) -> dict[str, Any]:
    """Return what this package needs to reach the emulator."""
    return {"endpoint_url": emulator.endpoint, "token": "anon"}


@functools.cache
def why_not() -> str | None:
    """Return why there is no connector to test with, or ``None`` if there is one.

    The first time it may have to be fetched.
    """
    if java_command() is None or jars() is None:
        return "needs java and pyspark"
    try:
        with warnings.catch_warnings():
            # It may import PySpark, which takes an error for pandas' absence, and remembers.
            warnings.simplefilter("ignore")
            client_jar()
    except UnsupportedError as error:
        return str(error)
    return None


class Bucket:
    """What one bucket of an emulator holds, straight from its model."""

    def __init__(self, emulator: GcsEmulatorThread, name: str) -> None:
        self.emulator = emulator
        self.name = name

    def make(self, *, hns: bool = False) -> Bucket:
        """Make the bucket."""
        options = BucketOptions(hns=hns)
        self.emulator.do(lambda running: running.service.create_bucket(self.name, options))
        return self

    def objects(self, path: str = "") -> dict[str, GcsObject]:
        """Return the objects below ``path``, placeholders with a slash at the end."""

        held = self.emulator.do(
            lambda running: dict(running.service.storage_layout(self.name).objects)
        )
        start = path[1:]
        return {name[len(start) :]: one for name, one in held.items() if name.startswith(start)}

    def folders(self) -> set[str]:
        """Return the folders of a hierarchical bucket."""
        return self.emulator.do(
            lambda running: set(running.service.storage_layout(self.name).folders)
        )

    def tree(self, path: str = "") -> dict[str, bytes]:
        """Return the files below ``path`` with their content."""
        found = self.objects(path)
        return {name: one.content.data for name, one in found.items() if name[-1:] != "/"}

    def put(self, path: str, data: bytes) -> GcsObject:
        """Write a file."""
        return self.emulator.do(lambda running: running.service.insert(self.name, path[1:], data))

    def count(self, op: str) -> int:
        """Return how many requests of a kind have come so far."""
        return self.emulator.do(lambda running: running.weather.requests[op])

    def counts(self) -> dict[str, int]:
        """Return how many requests of each kind have come so far."""
        return self.emulator.do(lambda running: dict(running.weather.requests))

    def strike(self, **fault: Any) -> None:
        """Have the emulator do this to requests to come."""
        self.emulator.do(lambda running: running.weather.add(Fault.from_json(fault, dialect=GCS)))

    def struck(self, what: str) -> int:
        """Return how many requests have met such a fault, as ``cut move``."""
        return self.emulator.do(lambda running: running.weather.struck[what])


def etag_of(found: GcsObject) -> str:
    """Return the etag that our store gives an object."""
    return f"{found.generation}-{found.crc32c:08x}"


class Gcs(Hadoop):
    """A JVM whose paths are those of one bucket; made by ``start_gcs``.

    Attributes:
        emulator: what it reaches.
        conf: how it reaches that.
        bucket: the bucket that paths are in.
    """

    emulator: GcsEmulatorThread
    conf: Mapping[str, str]
    bucket: Bucket

    def __init__(self, gateway: Any) -> None:
        super().__init__(gateway)
        # See ``tests.support.abfs``.
        gateway.gateway_property.enable_memory_management = False

    def use_bucket_of(self, test: str, *, hns: bool = False) -> Gcs:
        """Make a bucket of its own for ``test``, and go there."""
        name = f"t-{hashlib.sha256(test.encode()).hexdigest()[:20]}"
        self.bucket = Bucket(self.emulator, name).make(hns=hns)
        return self

    def path(self, text: str) -> Any:
        """Return Hadoop's ``Path`` of a decoded path, qualified (``gs://...``)."""
        uri = self.new("java.net.URI", "gs", self.bucket.name, text, None, None)
        return self.new("org.apache.hadoop.fs.Path", uri)

    def url(self, path: str) -> str:
        """Return the URL of a decoded path, as users write it."""
        return f"gs://{self.bucket.name}{path}"

    def configuration(self, conf: Mapping[str, str] | None = None) -> Any:
        """Return a Hadoop ``Configuration`` that reaches the emulator, with ``conf`` set too."""
        return super().configuration({**self.conf, **(conf or {})})

    def filesystem(self, conf: Mapping[str, str] | None = None) -> Any:
        """Return Hadoop's client of the bucket; a new one where ``conf`` differs."""
        java = self.java("org.apache.hadoop.fs.FileSystem")
        with self.errors():
            uri = self.path("/").toUri()
            made = java.newInstance if conf else java.get
            return made(uri, self.configuration(conf))

    def job_of(
        self, dest: str, job_id: str, conf: Mapping[str, str] | None = None, attempt: int = 0
    ) -> AbfsJob:
        """Return a job that writes to ``dest`` by Hadoop's manifest committer, as on ABFS."""
        job = self.job(Path(dest), job_id, attempt=attempt, conf=conf)
        return AbfsJob(self, job.dest, job.kind, job.conf)


@contextmanager
def start_gcs(emulator: GcsEmulatorThread, *options: str) -> Iterator[Gcs]:
    """Run a JVM with pyspark's jars and Google's connector, configured for the emulator."""
    path = f"{jars()}{os.pathsep}{client_jar()}"
    # Of two class paths the JVM takes the last. It lives too short for its better compiler.
    with Gcs.start("-cp", path, "-XX:TieredStopAtLevel=1", *options) as hadoop:
        assert isinstance(hadoop, Gcs)
        hadoop.emulator, hadoop.conf = emulator, conf_of(emulator)
        yield hadoop
