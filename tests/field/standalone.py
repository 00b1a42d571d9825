"""A standalone cluster of Spark, each process on a machine of its own, beside a store of its own.

The master, the workers and the driver have nothing in common but the network: workers see Java, a
bare Python and Spark's own files; the driver's directory and this package are on its machine only.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from pyarrow.fs import FileSelector, FileSystem, FileType

from tests.field.machine_stores import LIBRARY, PORT, STORES, is_ready, tree
from tests.field.machines import Machine, Yard
from tests.field.place import StartError, TooLongError
from tests.support.class_data import SHORT_LIVED
from tests.support.snippets import ROOT

MASTER = "spark://master:7077"
WORKERS = ("worker-1", "worker-2")
HOME = "/home/user"
SPARK = "/opt/spark"
_NAMES = ("store", "master", *WORKERS, "driver", "other", "another")
_READY = 240.0


class Cluster:
    """The machines of a cluster, and the processes on them.

    Args:
        yard: where they stand.
        request: ``python``, the driver's interpreter; ``path``, its PYTHONPATH; ``jars``, files
            that the driver has below ``/opt/jars``; ``store`` and ``served``, the kind of the
            store and what its servers need.
    """

    def __init__(self, yard: Yard, request: Mapping[str, Any]) -> None:
        self._yard, self._request = yard, request
        self._logs = Path("/run/logs")
        self._logs.mkdir(exist_ok=True)
        self.python = Path(request["python"])
        self.store = STORES[request["store"]]
        self.machines: dict[str, Machine] = {}

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def start(self) -> None:
        """Start the store, the master and the workers."""
        self._start_store()
        self.add("master", self.of_worker)
        self._daemon("master", ["master.Master", "--host", "master", "--port", "7077"], "elected")
        for name in WORKERS:
            self.add(name, self.of_worker)
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.start_worker, WORKERS))

    def start_worker(self, name: str, **variables: str) -> None:
        """Start the worker of a machine, with more variables."""
        command = ["worker.Worker", "--host", name, "--cores", "16", "--memory", "16g"]
        command += ["--work-dir", f"{HOME}/spark", MASTER]
        self._daemon(name, command, "registered with master", variables)

    def add(self, name: str, tree: Mapping[str, Path]) -> Machine:
        """Make a machine, with a directory of a user."""
        self.machines[name] = self._yard.machine(name, tree, _NAMES)
        (self[name].root / HOME[1:]).mkdir()
        return self[name]

    @cached_property
    def of_worker(self) -> dict[str, Path]:
        """Return what a worker sees: Spark and a bare Python."""
        base = Path(sys.base_prefix)
        (spark,) = self.python.parent.parent.glob("lib/python*/site-packages/pyspark")
        bare = {} if base.is_relative_to("/usr") else {str(base): base}
        return {SPARK: spark, **bare}

    @cached_property
    def of_driver(self) -> dict[str, Path]:
        """Return what a driver sees: an environment with PySpark and this package."""
        prefix = self.python.parent.parent
        library = {LIBRARY + "/asynccommit": ROOT / "asynccommit"} if self._request["path"] else {}
        jars = {f"/opt/jars/{Path(jar).name}": Path(jar) for jar in self._request["jars"]}
        return {**self.of_worker, str(prefix): prefix, **library, **jars}

    def variables(self, **more: str) -> dict[str, str]:
        """Return the variables of a driver or a command."""
        path = {"PYTHONPATH": LIBRARY} if self._request["path"] else {}
        python = {f"PYSPARK_{_}PYTHON": str(self.python) for _ in ("", "DRIVER_")}
        options = {"SPARK_SUBMIT_OPTS": SHORT_LIVED}
        return {**_variables(f"{self.python.parent}:"), **path, **python, **options, **more}

    def settings(self) -> dict[str, str]:
        """Return the settings of a driver that writes to the store."""
        conf = {**self.store.conf, "fs.defaultFS": self.store.root}
        return {
            "spark.driver.host": "driver",
            # Hadoop's client of ADLS leaves threads that keep a JVM alive.
            "spark.submit.callSystemExitOnMainExit": "true",
            "spark.cores.max": "2",
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.jars": ",".join(f"file:/opt/jars/{Path(_).name}" for _ in self._request["jars"]),
            **{f"spark.hadoop.{key}": value for key, value in conf.items()},
        }

    def submit(self, machine: Machine, program: str, **more: str) -> subprocess.Popen[str]:
        """Submit a program that is in the directory of the machine's user."""
        command = [str(self.python.with_name("spark-submit")), "--master", MASTER, program]
        variables = self.variables(SPARK_CONF_DIR=f"{HOME}/conf", **more)
        return machine.start(command, variables, self.log(program).open("w"), HOME)

    def call(self, machine: Machine, *command: str, timeout: float = 240) -> tuple[int, str]:
        """Run a command of this package on a machine; return exit code and output."""
        log = self._logs / f"call-{time.monotonic_ns()}.log"
        storage = [
            part for key, value in self.store.options.items() for part in ("-s", f"{key}={value}")
        ]
        line = [str(self.python), "-m", "asynccommit", *command, *storage]
        with log.open("w") as file:
            process = machine.start(line, self.variables(), file)
        return ended(process, timeout, command[0]), log.read_text("utf-8")

    def log(self, name: str) -> Path:
        """Return the file with the output of a process."""
        return self._logs / f"{name}.log"

    def _start_store(self) -> None:
        machine = self.add("store", {**self.of_worker, **tree(self._request["served"])})
        self.store.write_settings(machine.root / HOME[1:])
        log = self.log("store")
        variables = _variables("", PYTHONPATH=LIBRARY)
        process = machine.start(self.store.command, variables, log.open("w"), HOME)
        wait_for(
            lambda: is_ready(self.files, self.store.base) or process.poll() is not None,
            _READY,
            "the store",
        )
        if process.poll() is not None:
            raise StartError(f"the store has ended: {log.read_text('utf-8')[-2000:]}")

    def _daemon(
        self, name: str, command: Sequence[str], ready: str, more: Mapping[str, str] | None = None
    ) -> None:
        line = [f"{SPARK}/bin/spark-class", f"org.apache.spark.deploy.{command[0]}", *command[1:]]
        around = {"SPARK_HOME": SPARK, "SPARK_DAEMON_MEMORY": "256m", **(more or {})}
        log = self.log(name)
        variables = _variables("", **around, SPARK_DAEMON_JAVA_OPTS=SHORT_LIVED)
        process = self[name].start(line, variables, log.open("w"))
        wait_for(
            lambda: ready in log.read_text("utf-8") or process.poll() is not None, _READY, name
        )
        if process.poll() is not None:
            raise StartError(f"{name} has ended: {log.read_text('utf-8')[-2000:]}")

    # --- the store, as it is seen from outside of the cluster ------------------------------------

    @cached_property
    def files(self) -> FileSystem:
        """Return a client of the store that is no part of this package."""
        return self.store.client(self["store"].address)

    def names(self, path: str) -> list[str]:
        """Return the files and, with a slash, the directories below a path, relative to it."""
        base = f"{self.store.base}{path}"
        found = self.files.get_file_info(FileSelector(base, allow_not_found=True, recursive=True))
        paths = [each.path + "/" * (each.type == FileType.Directory) for each in found]
        return sorted(name.removeprefix(f"{base}/") for name in paths)

    def put(self, path: str, data: bytes) -> None:
        """Write a file, and its directory."""
        files, place = self.files, f"{self.store.base}{path}"
        files.create_dir(place.rpartition("/")[0])
        with files.open_output_stream(place) as file:
            file.write(data)

    def fetch(self, path: str, folder: Path) -> None:
        """Copy what is below a path of the store into a directory.

        Files of jobs may go meanwhile: a clean-up outlives its commit.
        """
        for name in self.names(path):
            place = folder / name
            if name.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                with self.files.open_input_stream(f"{self.store.base}{path}/{name}") as file:
                    place.write_bytes(file.read())
            except FileNotFoundError:
                if not name.startswith("_temporary/"):
                    raise

    def ask(self, what: str, method: str = "GET", given: object = None) -> Any:
        """Ask the emulator's control endpoint."""
        url = f"http://{self['store'].address}:{PORT}/_emulator/{what}"
        data = None if given is None else json.dumps(given).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, method=method)) as answer:
            return json.load(answer)


def _variables(path: str, **more: str) -> dict[str, str]:
    around = {"HOME": HOME, "LC_ALL": "C.UTF-8", "USER": "root"}
    return {"PATH": f"{path}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", **around, **more}


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until a condition holds. Raises ``StartError``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise StartError(f"{what} has not come in {seconds:.0f} s")
        time.sleep(0.05)


def ended(process: subprocess.Popen[str], seconds: float, what: str) -> int:
    """Wait for the end of a process; return its exit code. Raises ``TooLongError``."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired as error:
        raise TooLongError(f"{what} took more than {seconds:.0f} s") from error


def main(yard: Yard, request: Mapping[str, Any]) -> dict[str, Any]:
    """Run the application of ``folder`` on a cluster; leave its tables there."""
    cluster = Cluster(yard, request)
    cluster.start()
    driver = cluster.add("driver", cluster.of_driver)
    folder, home = Path(request["folder"]), driver.root / HOME[1:]
    shutil.copytree(folder, home, dirs_exist_ok=True)
    conf = home / "conf/spark-defaults.conf"
    given = dict(line.split(" ", 1) for line in conf.read_text("utf-8").splitlines())
    write_settings(driver, {**given, **cluster.settings()})
    code = ended(cluster.submit(driver, "app.py"), request["timeout"], "the driver")
    output = cluster.log("app.py").read_text("utf-8")
    cluster.fetch("/user/root", folder)
    if (home / "found.json").is_file():
        shutil.copy(home / "found.json", folder)
    return {"code": code, "output": output}


def write_settings(machine: Machine, settings: Mapping[str, str]) -> None:
    """Write the ``spark-defaults.conf`` of the machine's user."""
    place = machine.root / HOME[1:] / "conf/spark-defaults.conf"
    place.parent.mkdir(exist_ok=True)
    place.write_text("".join(f"{key} {value}\n" for key, value in settings.items()), "utf-8")
