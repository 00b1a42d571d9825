"""Hadoop's ABFS client, configured for an emulator, in a JVM with pyspark's jars."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asynccommit.demo.adls import client_conf, client_jar
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from tests.support.hadoop import Hadoop, HadoopJob, HadoopTask, jars, java_command

FACTORY = "org.apache.hadoop.fs.azurebfs.commit.AzureManifestCommitterFactory"


def conf_of(emulator: EmulatorThread) -> dict[str, str]:
    """Return what Hadoop needs to reach the emulator's account, and commits by manifests there."""
    return {
        **client_conf(emulator.account, emulator.key, f"127.0.0.1:{emulator.port}"),
        "mapreduce.outputcommitter.factory.scheme.abfs": FACTORY,
        "fs.azure.io.retry.max.retries": "5",
    }


def token_conf_of(emulator: EmulatorThread, endpoint: str) -> dict[str, str]:
    """Return what Hadoop needs to send tokens of an endpoint.

    With tokens it uses https, whatever the options say. It knows the account of an address alone
    in Azure's public cloud, so OneLake's host must lead to the emulator by a proxy.
    """
    keys = ("fs.azure.account.key", "fs.azure.always.use.https", "fs.azure.abfs.endpoint")
    conf = {name: it for name, it in conf_of(emulator).items() if not name.startswith(keys)}
    oauth = "fs.azure.account.oauth2.client"
    provider = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
    return {
        **conf,
        "fs.azure.account.auth.type": "OAuth",
        "fs.azure.account.oauth.provider.type": provider,
        f"{oauth}.endpoint": endpoint,
        f"{oauth}.id": "client",
        f"{oauth}.secret": "secret",
        "fs.azure.account.hns.enabled": "true",
        "fs.azure.createRemoteFileSystemDuringInitialization": "false",
    }


def trusting(emulator: EmulatorThread, folder: Path) -> str:
    """Return the options of a JVM that trusts the emulator's certificate."""
    ca, trust, password = folder / "ca.pem", folder / "trust.p12", "changeit"
    assert emulator.ca_pem is not None
    ca.write_bytes(emulator.ca_pem)
    java = java_command()
    assert java is not None
    words = ["-importcert", "-noprompt", "-storepass", password]
    files = ["-file", str(ca), "-keystore", str(trust)]
    keytool = str(Path(java).with_name("keytool"))
    subprocess.run([keytool, *words, *files], check=True, capture_output=True)
    store = "-Djavax.net.ssl.trustStore"
    return f"{store}={trust} {store}Password={password}"


def storage_options(emulator: EmulatorThread) -> dict[str, Any]:
    """Return what this package needs to reach the emulator's account by its key."""
    return {
        "account_name": emulator.account,
        "account_key": emulator.key,
        "account_host": f"127.0.0.1:{emulator.port}",
        "use_ssl": False,
    }


@functools.cache
def why_not() -> str | None:
    """Return why there is no ABFS client to test with, or ``None`` if there is one.

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


class Abfs(Hadoop):
    """A JVM whose paths are those of one filesystem of an account; made by ``start_abfs``.

    Attributes:
        account: the name of the account.
        conf: what reaches it.
        filesystem_name: the filesystem that paths are on.
    """

    account: str
    conf: Mapping[str, str]
    filesystem_name: str

    def __init__(self, gateway: Any) -> None:
        super().__init__(gateway)
        # Else Python's collector tells the JVM of each object that went, on whatever thread it
        # runs: on an event loop's too, where that is refused, and then logged at length.
        gateway.gateway_property.enable_memory_management = False

    def use_filesystem_of(self, test: str) -> Abfs:
        """Go to a filesystem of its own for ``test``; it is made when it is first used."""
        self.filesystem_name = f"t-{hashlib.sha256(test.encode()).hexdigest()[:20]}"
        return self

    @property
    def authority(self) -> str:
        """The part of a URL that names filesystem and account."""
        return f"{self.filesystem_name}@{self.account}.dfs.core.windows.net"

    def path(self, text: str) -> Any:
        """Return Hadoop's ``Path`` of a decoded path, qualified (``abfs://...``)."""
        uri = self.new("java.net.URI", "abfs", self.authority, text, None, None)
        return self.new("org.apache.hadoop.fs.Path", uri)

    def url(self, path: str) -> str:
        """Return the URL of a decoded path, as users write it."""
        return f"abfs://{self.authority}{path}"

    def configuration(self, conf: Mapping[str, str] | None = None) -> Any:
        """Return a Hadoop ``Configuration`` that reaches the account, with ``conf`` set too."""
        return super().configuration({**self.conf, **(conf or {})})

    def filesystem(self, conf: Mapping[str, str] | None = None) -> Any:
        """Return Hadoop's client of the filesystem; a new one where ``conf`` differs."""
        java = self.java("org.apache.hadoop.fs.FileSystem")
        with self.errors():
            uri = self.path("/").toUri()
            made = java.newInstance if conf else java.get
            return made(uri, self.configuration(conf))

    def job_of(
        self, dest: str, job_id: str, conf: Mapping[str, str] | None = None, attempt: int = 0
    ) -> AbfsJob:
        """Return a job that writes to ``dest`` by the committer that Hadoop has for ABFS."""
        job = self.job(Path(dest), job_id, attempt=attempt, conf=conf)
        return AbfsJob(self, job.dest, job.kind, job.conf)


class AbfsJob(HadoopJob):
    """A job of Hadoop's manifest committer, bound to ABFS by the factory of its scheme."""

    def make_committer(self, context: Any) -> Any:
        """Make a committer by the factory of the scheme, with its store operations for ABFS."""
        with self.hadoop.errors():
            binding = self.hadoop.java(
                "org.apache.hadoop.mapreduce.lib.output.PathOutputCommitterFactory"
            )
            return binding.createCommitter(self.hadoop.path(str(self.dest)), context)

    def task(self, task: int, attempt: int = 0) -> AbfsTask:
        """Return one task attempt, not yet set up."""
        context = self.task_context(task, attempt)
        return AbfsTask(self.hadoop, self.make_committer(context), context)

    def run(self, tasks: Sequence[Mapping[str, bytes]]) -> AbfsJob:
        """Set up the job, then write and commit one task for each mapping of names to bytes."""
        super().run(tasks)
        return self


class AbfsTask(HadoopTask):
    """One task attempt, which writes through Hadoop's client."""

    def write(self, files: Mapping[str, bytes]) -> AbfsTask:
        """Write files below the work path; a name that ends in ``/`` is an empty directory."""
        for name, data in files.items():
            if name.endswith("/"):
                with self.hadoop.errors():
                    place = self.hadoop.path(str(self.work_path / name))
                    self.hadoop.filesystem().mkdirs(place)
            else:
                self.hadoop.write(self.work_path / name, data)
        return self


@contextmanager
def start_abfs(emulator: EmulatorThread, *options: str) -> Iterator[Abfs]:
    """Run a JVM with pyspark's jars and the ABFS client, configured for the emulator."""
    path = f"{jars()}{os.pathsep}{client_jar()}"
    # Of two class paths the JVM takes the last. It lives too short for its better compiler.
    with Abfs.start("-cp", path, "-XX:TieredStopAtLevel=1", *options) as hadoop:
        assert isinstance(hadoop, Abfs)
        hadoop.account, hadoop.conf = emulator.account, conf_of(emulator)
        yield hadoop
