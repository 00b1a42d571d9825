"""Run a part of the tests in groups beside each other: those that start a JVM, and all others.

Tests with Spark share one session in one process, in the order of their folders; those that start
programs of their own are another. Those with a JVM of their own, to which Hadoop's classes belong,
are a third: once there is a session, PySpark reads the exceptions of every other JVM as its own.
The others have three processes for two cores, so that none is idle while a test waits; they begin
first, beside the archive of classes that Spark's drivers use. What the groups with a JVM print is
shown when the others have ended.

Usage: python -m tests.support.run PART [PYTEST_ARGUMENT ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import IO

from tests.support.class_data import make_archive

JVM = "jvm or spark or cluster"
JVM_GROUPS = {
    "with Hadoop": ("tests/compat",),
    "with a session of Spark": ("tests/spark", "tests/test_engine_tables.py"),
    "with programs of Spark": ("tests/demo", "tests/docs", "tests/field", "tests/walk"),
}
JVM_FOLDERS = tuple(folder for folders in JVM_GROUPS.values() for folder in folders)
MAX_WORKERS = 8
NO_TESTS = 5  # pytest's exit code


def main(part: str, arguments: Sequence[str]) -> int:
    """Run all groups, say how long each took, and return the exit code."""
    # Tests wait for more than half of their time, for a timer or a program that they have started.
    cores = os.cpu_count() or 1
    workers = min(MAX_WORKERS, cores + cores // 2)
    spread = ["-n", str(workers), "--dist", "loadfile"]
    started = time.monotonic()
    with ExitStack() as stack:
        groups = {name: stack.enter_context(tempfile.TemporaryFile()) for name in JVM_GROUPS}
        others = _start([part, "-m", f"not ({JVM})", *spread, *arguments], None)
        stack.callback(others.terminate)
        make_archive()
        jvms = {
            name: _start([part, "-m", JVM, *JVM_GROUPS[name], *arguments], output)
            for name, output in groups.items()
        }
        for process in jvms.values():
            stack.callback(process.terminate)
        results = [("without a JVM", *_ended(others, started))]
        _say("== waiting for the tests with a JVM")
        for name, process in jvms.items():
            results.append((name, *_ended(process, started)))
            _copy(groups[name])
    for name, code, seconds in results:
        said = "passed" if code in (0, NO_TESTS) else "failed"
        _say(f"== {part} tests {name}: {said} after {seconds:.0f} s")
    return max(0 if code == NO_TESTS else code for _, code, _ in results)


def _copy(output: IO[bytes]) -> None:
    output.seek(0)
    sys.stdout.buffer.write(output.read())
    sys.stdout.buffer.flush()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _start(arguments: Sequence[str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "--durations=30", "--part", *arguments]
    return subprocess.Popen(command, stdout=output, stderr=output, env=_environment())


def _environment() -> Mapping[str, str]:
    """Return an environment where Python keeps what it has compiled: many tests start it again."""
    return {key: it for key, it in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def _ended(process: subprocess.Popen[bytes], started: float) -> tuple[int, float]:
    return process.wait(), time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
