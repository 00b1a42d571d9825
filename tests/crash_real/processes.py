"""Child processes that commit: started, seen to begin, ended at a moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.crash_real.places import JOB, Place

DRIVER = Path(__file__).with_name("driver.py")
ROOT = Path(__file__).parents[2]
_PATIENCE = 60.0


def command(place: Place, verb: str, *arguments: str) -> list[str]:
    """Return the command on the place's job, ready to be run."""
    named = (verb, place.url, "--job-id", JOB)
    return [sys.executable, "-m", "asynccommit", *named, *place.arguments, *arguments]


def run(place: Place, verb: str, *arguments: str) -> tuple[int, Any]:
    """Run the command in a new process; return its exit code, and what its JSON says."""
    done = subprocess.run(
        command(place, verb, *arguments, "--json"),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=_PATIENCE,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def environment() -> dict[str, str]:
    """Return the environment of a child: the emulator is not asked through a proxy."""
    return {**os.environ, "NO_PROXY": "*", "no_proxy": "*", "PYTHONPATH": str(ROOT)}


@contextmanager
def started(place: Place, verb: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a verb in a child, yield it once it has found its job; it has ended after the block."""
    words = command(place, verb, *arguments)
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment()
    ) as child:
        try:
            assert child.stderr is not None
            said = child.stderr.readline()
            assert said.startswith("found job"), said + child.stderr.read()
            yield child
        finally:
            child.kill()


def committing(place: Place, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start a commit in a child; see ``started``."""
    return started(place, "commit", "--trust-manifests", *arguments)


@contextmanager
def paused(
    folder: Path, number: int, words: Sequence[str | Path]
) -> Iterator[subprocess.Popen[str]]:
    """Start the command in a child, yield it once it waits before the rename of that number.

    It does one thing after the other, so nothing else is under way then.
    """
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    one = ("-o", "mapreduce.manifest.committer.io.threads=1")
    line = [sys.executable, str(DRIVER), str(folder), str(number), *map(str, words), *one]
    with subprocess.Popen(
        line,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as child:
        try:
            wait_until(lambda: (folder / "paused").exists() or child.poll() is not None)
            assert child.poll() is None, child.communicate()
            yield child
        finally:
            child.kill()


def kill(place: Place, child: subprocess.Popen[Any]) -> None:
    """Kill the only client of the place, and wait until all that it sent is executed.

    On a busy machine an emulator gets to its last requests after it has died. A connection is
    counted some turns of the emulator's loop after it was made, so one look is not enough.
    """
    child.kill()
    child.wait()
    for _ in range(3):
        wait_until(lambda: not place.busy())


def go_on(folder: Path) -> None:
    """Let a paused command go on."""
    (folder / "go").touch()


def wait_until(true: Callable[[], bool]) -> None:
    """Wait until something is true. Raises ``TimeoutError``."""
    end = time.monotonic() + _PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)
