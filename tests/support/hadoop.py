"""Hadoop's own committers and formats, driven from Python: one JVM with pyspark's jars.

There is no Spark session here. ``Hadoop.start()`` runs a Py4J gateway on loopback and gives
Hadoop's view of a manifest or marker, and jobs that run by Hadoop's committers in this process's
place. Files are written by Python into the committers' work paths, because the JVM forks a
``chmod`` for every file that it makes without Hadoop's native library.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_LIB = "org.apache.hadoop.mapreduce.lib.output"
_MANIFEST = f"{_LIB}.committer.manifest"
JOB_UUID = "spark.sql.sources.writeJobUUID"
JOB_TRACKER = "202601010000"

Committer = Literal["manifest", "v1", "v2"]


class HadoopError(Exception):
    """A Java exception: the name of its class without packages, and its message."""

    def __init__(self, java_class: str, message: str) -> None:
        self.java_class = java_class
        self.message = message
        super().__init__(f"{java_class}: {message}")


def java_command() -> str | None:
    """Return the ``java`` to run, from JAVA_HOME or PATH, or ``None``."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def jars() -> str | None:
    """Return the class path of pyspark's jars, or ``None`` without pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "jars"
    return str(folder / "*") if folder.is_dir() else None


class Hadoop:
    """A running JVM with Hadoop's classes; made by ``Hadoop.start``."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._py4j = importlib.import_module("py4j.protocol")

    @classmethod
    @contextmanager
    def start(cls, *options: str) -> Iterator[Hadoop]:
        """Run a JVM with the JVM ``options``; stop it, and leave nothing open, at the end."""
        java, classpath = java_command(), jars()
        if java is None or classpath is None:
            raise RuntimeError("Hadoop's classes need java and pyspark")
        command = [
            *(java, "-cp", classpath, "-Dfile.encoding=UTF-8"),
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options),
            *("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"),
        ]
        # Without a UTF-8 locale the JVM cannot name non-ASCII files.
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        with (
            tempfile.TemporaryFile() as log,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env
            ) as process,
        ):
            gateway = None
            try:
                gateway = _connect(process, log)
                yield cls(gateway)
            finally:
                if gateway is not None:
                    gateway.shutdown()
                process.kill()

    @property
    def jvm(self) -> Any:
        """The Py4J view of the JVM, for what has no method here."""
        return self._gateway.jvm

    def new(self, name: str, *args: Any) -> Any:
        """Call the constructor of the class ``name``, translating Java's exceptions."""
        with self.errors():
            return self.java(name)(*args)

    def java(self, name: str) -> Any:
        """Return the Java class of that full name."""
        found = self.jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def array(self, java_class: Any, *items: Any) -> Any:
        """Return a Java array of ``java_class`` with ``items``."""
        made = self._gateway.new_array(java_class, len(items))
        for number, item in enumerate(items):
            made[number] = item
        return made

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn Java's exceptions inside the block into ``HadoopError``."""
        try:
            yield
        except self._py4j.Py4JJavaError as error:
            thrown = error.java_exception
            name = str(thrown.getClass().getName()).rpartition(".")[2]
            raise HadoopError(name, str(thrown.getMessage())) from None

    # Paths and files

    def path(self, text: str) -> Any:
        """Return Hadoop's ``Path`` of a decoded local path, qualified (``file:/...``)."""
        uri = self.new("java.net.URI", "file", None, text, None)
        return self.new("org.apache.hadoop.fs.Path", uri)

    def encode(self, text: str) -> str:
        """Return the text of the URI that Hadoop writes for a decoded local path."""
        return str(self.path(text).toUri().toString())

    def decode(self, uri: str) -> str:
        """Return the decoded path of a URI text as Hadoop reads it from a manifest."""
        with self.errors():
            found = self.new("org.apache.hadoop.fs.Path", self.new("java.net.URI", uri))
            return str(found.toUri().getPath())

    def filesystem(self) -> Any:
        """Return Hadoop's checksumming ``LocalFileSystem``."""
        return self.java("org.apache.hadoop.fs.FileSystem").getLocal(self.configuration())

    def configuration(self, conf: Mapping[str, str] | None = None) -> Any:
        """Return a Hadoop ``Configuration`` with the keys of ``conf`` set."""
        made = self.new("org.apache.hadoop.conf.Configuration")
        for key, value in (conf or {}).items():
            made.set(key, value)
        return made

    def write(self, path: Path, data: bytes) -> None:
        """Write a file by Hadoop's LocalFileSystem, which leaves a ``.crc`` beside it."""
        with self.errors():
            stream = self.filesystem().create(self.path(str(path)), True)
            stream.write(data)
            stream.close()

    def read(self, path: Path) -> bytes:
        """Read a file by Hadoop's LocalFileSystem, which checks a ``.crc`` that is beside it."""
        with self.errors():
            stream = self.filesystem().open(self.path(str(path)))
            try:
                return bytes(self.java("org.apache.hadoop.io.IOUtils").readFullyToByteArray(stream))
            finally:
                stream.close()

    # Formats

    def manifest(self, path: Path) -> dict[str, Any]:
        """Load and validate a task manifest; return every value that Hadoop's class holds."""
        return self._load(f"{_MANIFEST}.files.TaskManifest", path)

    def success(self, path: Path) -> dict[str, Any]:
        """Load and validate a ``_SUCCESS`` or summary; return what Hadoop's class holds."""
        return self._load(f"{_MANIFEST}.files.ManifestSuccessData", path)

    def _load(self, name: str, path: Path) -> dict[str, Any]:
        with self.errors():
            loaded = self.java(name).load(self.filesystem(), self.path(str(path)))
            value: dict[str, Any] = json.loads(loaded.validate().toJson())
            return value

    def print_success(self, path: Path) -> str:
        """Return what ``mapred successfile`` prints of a ``_SUCCESS``."""
        out = self.new("java.io.ByteArrayOutputStream")
        stream = self.new("java.io.PrintStream", out, True, "UTF-8")
        name = f"{_MANIFEST}.files.ManifestPrinter"
        with self.errors():
            printer = self.new(name, self.configuration(), stream)
            printer.loadAndPrintManifest(self.filesystem(), self.path(str(path)))
        return bytes(out.toByteArray()).decode()

    # Jobs

    def job(
        self,
        dest: Path,
        job_id: str,
        *,
        committer: Committer = "manifest",
        attempt: int = 0,
        conf: Mapping[str, str] | None = None,
    ) -> HadoopJob:
        """Return a job that writes to ``dest`` by one of Hadoop's committers."""
        keys = {JOB_UUID: job_id, "mapreduce.job.application.attempt.id": str(attempt)}
        return HadoopJob(self, dest, committer, {**keys, **(conf or {})})


def _connect(process: subprocess.Popen[bytes], log: Any) -> Any:
    """Read the port and token that the gateway prints, and connect to it."""
    assert process.stdout is not None
    port, token = process.stdout.readline().strip(), process.stdout.readline().strip()
    if not token:
        log.seek(0)
        raise RuntimeError(f"the JVM did not start: {log.read().decode(errors='replace')}")
    # Imported by name: py4j has no types.
    py4j = importlib.import_module("py4j.java_gateway")
    # Its finalizers would run wherever Python collects, in the middle of another thread's import.
    parameters = py4j.GatewayParameters(
        port=int(port),
        auth_token=token.decode(),
        auto_convert=True,
        auto_field=True,
        enable_memory_management=False,
    )
    return py4j.JavaGateway(gateway_parameters=parameters)


@dataclass
class HadoopJob:
    """One job of one of Hadoop's committers; each task has a committer of its own, as in life."""

    hadoop: Hadoop
    dest: Path
    kind: Committer
    conf: Mapping[str, str]
    _committer: Any = field(default=None, repr=False)

    @property
    def committer(self) -> Any:
        """The committer of the job side."""
        if self._committer is None:
            self._committer = self.make_committer(self.task_context(0, 0))
        return self._committer

    def make_committer(self, context: Any) -> Any:
        """Make a committer as Hadoop's output formats do: by the factory that is configured."""
        factory = "FileOutputCommitterFactory"
        if self.kind == "manifest":
            factory = "committer.manifest.ManifestCommitterFactory"
        conf = context.getConfiguration()
        conf.set("mapreduce.outputcommitter.factory.class", f"{_LIB}.{factory}")
        conf.set("mapreduce.fileoutputcommitter.algorithm.version", self.kind[1:2])
        with self.hadoop.errors():
            binding = self.hadoop.java(f"{_LIB}.PathOutputCommitterFactory")
            return binding.createCommitter(self.hadoop.path(str(self.dest)), context)

    def context(self) -> Any:
        """A ``JobContextImpl`` of this job."""
        job = self.hadoop.new("org.apache.hadoop.mapreduce.JobID", JOB_TRACKER, 1)
        conf = self.hadoop.configuration(self.conf)
        return self.hadoop.new("org.apache.hadoop.mapreduce.task.JobContextImpl", conf, job)

    def task_context(self, task: int, attempt: int) -> Any:
        """A ``TaskAttemptContextImpl`` of one attempt of this job."""
        map_type = self.hadoop.java("org.apache.hadoop.mapreduce.TaskType").MAP
        name = "org.apache.hadoop.mapreduce.TaskAttemptID"
        attempt_id = self.hadoop.new(name, JOB_TRACKER, 1, map_type, task, attempt)
        conf = self.hadoop.configuration(self.conf)
        conf.set("mapreduce.task.attempt.id", str(attempt_id))
        implementation = "org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl"
        return self.hadoop.new(implementation, conf, attempt_id)

    def setup(self) -> HadoopJob:
        """Run setupJob; returns the job."""
        with self.hadoop.errors():
            self.committer.setupJob(self.context())
        return self

    def commit(self) -> None:
        """Run commitJob."""
        with self.hadoop.errors():
            self.committer.commitJob(self.context())

    def abort(self) -> None:
        """Run abortJob with the state FAILED."""
        failed = self.hadoop.java("org.apache.hadoop.mapreduce.JobStatus").State.FAILED
        with self.hadoop.errors():
            self.committer.abortJob(self.context(), failed)

    def cleanup(self) -> None:
        """Run cleanupJob."""
        with self.hadoop.errors():
            self.committer.cleanupJob(self.context())

    def task(self, task: int, attempt: int = 0) -> HadoopTask:
        """Return one task attempt, not yet set up."""
        context = self.task_context(task, attempt)
        return HadoopTask(self.hadoop, self.make_committer(context), context)

    def run(self, tasks: Sequence[Mapping[str, bytes]]) -> HadoopJob:
        """Set up the job, then write and commit one task for each mapping of names to bytes."""
        self.setup()
        for number, files in enumerate(tasks):
            self.task(number).setup().write(files).commit()
        return self


@dataclass
class HadoopTask:
    """One task attempt of one of Hadoop's committers."""

    hadoop: Hadoop
    committer: Any
    context: Any

    @property
    def attempt_id(self) -> str:
        """The text of the task attempt id."""
        return str(self.context.getTaskAttemptID())

    @property
    def task_id(self) -> str:
        """The text of the task id."""
        return str(self.context.getTaskAttemptID().getTaskID())

    @property
    def work_path(self) -> Path:
        """The directory in which this attempt writes."""
        return Path(str(self.committer.getWorkPath().toUri().getPath()))

    def setup(self) -> HadoopTask:
        """Run setupTask; returns the task."""
        with self.hadoop.errors():
            self.committer.setupTask(self.context)
        return self

    def write(self, files: Mapping[str, bytes]) -> HadoopTask:
        """Write files below the work path; a name that ends in ``/`` is an empty directory."""
        write_tree(self.work_path, files)
        return self

    def commit(self) -> HadoopTask:
        """Run commitTask; returns the task."""
        with self.hadoop.errors():
            self.committer.commitTask(self.context)
        return self

    def abort(self) -> None:
        """Run abortTask."""
        with self.hadoop.errors():
            self.committer.abortTask(self.context)


def write_tree(root: Path, files: Mapping[str, bytes]) -> None:
    """Write ``files`` below ``root``; a name that ends in ``/`` is an empty directory."""
    for name, data in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def read_tree(root: Path) -> dict[str, bytes]:
    """Return what is below ``root`` as ``write_tree`` takes it, without ``_SUCCESS`` and crc."""
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        for name in names:
            if not (name == "_SUCCESS" and here == root) and not name.endswith(".crc"):
                found[str((here / name).relative_to(root))] = (here / name).read_bytes()
        if not folders and not names and here != root:
            found[f"{here.relative_to(root)}/"] = b""
    return found
