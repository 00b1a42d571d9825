"""Run a part of the tests in two processes: those that start a JVM, and all others beside them.

The first share one Spark session in one process, in the order of their folders: once there is a
session, PySpark reads the exceptions of every other JVM as its own. The others have a process for
each core, so that none is idle while a JVM waits. What the first print is shown when the others
have ended.

Usage: python -m tests.support.run PART [PYTEST_ARGUMENT ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

JVM = "jvm or spark or cluster"
JVM_FOLDERS = ("tests/compat", "tests/demo", "tests/docs", "tests/spark")
MAX_WORKERS = 8
NO_TESTS = 5  # pytest's exit code


def main(part: str, arguments: Sequence[str]) -> int:
    """Run both groups, say how long each took, and return the exit code."""
    spread = ["-n", str(min(MAX_WORKERS, os.cpu_count() or 1)), "--dist", "loadfile"]
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        jvm = _start([part, "-m", JVM, *JVM_FOLDERS, *arguments], output)
        others = _start([part, "-m", f"not ({JVM})", *spread, *arguments], None)
        try:
            results = [("without a JVM", *_ended(others, started))]
            _say("== waiting for the tests with a JVM")
            results.append(("with a JVM", *_ended(jvm, started)))
        finally:
            for process in (jvm, others):
                process.terminate()
        output.seek(0)
        sys.stdout.buffer.write(output.read())
        sys.stdout.buffer.flush()
    for name, code, seconds in results:
        said = "passed" if code in (0, NO_TESTS) else "failed"
        _say(f"== {part} tests {name}: {said} after {seconds:.0f} s")
    return max(0 if code == NO_TESTS else code for _, code, _ in results)


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
