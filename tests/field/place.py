"""The place of one cell: a directory with Spark's configuration, and processes that run in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.field import programs
from tests.field.belongings import LOADS
from tests.field.environments import Environment
from tests.support.class_data import SHORT_LIVED
from tests.support.spark import LOOPBACK

PROTOCOL = "org.asynccommit.spark.AsyncCommitProtocol"
_DEFAULTS = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
}


class StartError(Exception):
    """A program that failed, or had another effect than it must."""


class TooLongError(StartError):
    """A program that was ended because of its time."""


class MissingError(Exception):
    """Something that this machine does not have, without which a start cannot be tried."""


class Place:
    """A directory where one application runs, as a user's would be.

    Args:
        folder: an empty directory; it is the working directory of the application.
        environment: the interpreter.
        master: Spark's master.
        jars: the user's jar, and the jar of the user's Maven package.
        timeout: seconds that the application may take.

    A start changes these before it writes the application:

    Attributes:
        settings: ``spark-defaults.conf``; it has a jar of the user's.
        given: what the checks look for.
        variables: variables of the application.
        left_out: variables that it does not have.
    """

    def __init__(
        self,
        folder: Path,
        environment: Environment,
        master: str,
        jars: tuple[Path, Path],
        timeout: float,
    ) -> None:
        self.folder, self.environment, self.master = folder, environment, master
        self.jar, self.extra = jars
        self.settings = {**_DEFAULTS, "spark.jars": str(self.jar)}
        self.given = {"classes": [PROTOCOL, LOADS], "module": ""}
        self.variables: dict[str, str] = {}
        self.left_out: set[str] = set()
        self.timeout = timeout
        (folder / "checks.py").write_text(programs.checks(), "utf-8")

    def write(self, program: str) -> str:
        """Write the application, and the files that it needs; return its name."""
        conf = self.folder / "conf"
        conf.mkdir()
        lines = [f"{key} {value}\n" for key, value in self.settings.items()]
        (conf / "spark-defaults.conf").write_text("".join(lines), "utf-8")
        (self.folder / "given.json").write_text(json.dumps(self.given), "utf-8")
        (self.folder / "app.py").write_text(program, "utf-8")
        return "app.py"

    def variables_of(self) -> Mapping[str, str]:
        """Return the environment of the application: this one's, without anything of Spark."""
        own = ("SPARK_", "PYSPARK_", "PYTHON")
        python = str(self.environment.python)
        path = f"{self.environment.programs}{os.pathsep}{os.environ['PATH']}"
        said = {
            **{key: it for key, it in os.environ.items() if not key.startswith(own)},
            "LC_ALL": "C.UTF-8",  # the JVM names files in the locale's encoding
            "PATH": path,
            "PYSPARK_DRIVER_PYTHON": python,
            "PYSPARK_PYTHON": python,
            "PYTHONPATH": self.environment.path,
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_SUBMIT_OPTS": SHORT_LIVED,
            **self.variables,
        }
        return {key: it for key, it in said.items() if key not in self.left_out}

    def run(self, program: str, *arguments: str, given: str = "") -> str:
        """Run a program of the environment; return its output.

        Raises ``StartError`` if it fails. All processes that it has started end with it.
        """
        command = [str(self.environment.programs / program), *arguments]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.variables_of(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        ) as process:
            try:
                output, _ = process.communicate(given, timeout=self.timeout)
            except subprocess.TimeoutExpired as error:
                raise TooLongError(f"{program} took more than {self.timeout:.0f} s") from error
            finally:
                end_group(process.pid)
        if process.returncode:
            raise StartError(f"{program} ended with {process.returncode}:\n{output}")
        return output

    def python(self, *arguments: str) -> str:
        """Run the environment's interpreter."""
        return self.run(self.environment.python.name, *arguments)


def end_group(group: int) -> None:
    """Kill a group of processes."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def options_of(settings: Mapping[str, str]) -> Sequence[str]:
    """Return settings as options of ``spark-submit``."""
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
