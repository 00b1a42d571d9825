"""Run a store emulator as a separate process and talk to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asynccommit.errors import AsyncCommitError
from asynccommit.testing.emulators.config import read_share

_PATIENCE = 10.0


class RunningEmulator:
    """A running emulator.

    Attributes:
        facts: description that the emulator printed when it began to serve.
        endpoint: URL of the emulator.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = facts
        self.endpoint: str = facts["endpoint"]

    def stats(self) -> dict[str, Any]:
        """Return the request counts of the emulator."""
        found: dict[str, Any] = self.ask("/_emulator/stats")
        return found

    def forget_stats(self) -> None:
        """Reset the request counts."""
        self.ask("/_emulator/stats", "DELETE")

    def strike(self, *faults: Mapping[str, Any]) -> None:
        """Replace the faults to inject from now on."""
        self.ask("/_emulator/faults", "PUT", list(faults))

    def ask(self, path: str, method: str = "GET", given: object = None) -> Any:
        """Send a control request and return the JSON value of the response."""
        data = None if given is None else json.dumps(given).encode()
        request = urllib.request.Request(self.endpoint + path, data, method=method)
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return json.load(answer)


def losing(op: str, share: str) -> Mapping[str, object]:
    """Return the fault by which a share of the requests ``op`` are done and not answered.

    Raises ``OptionError`` if ``share`` is invalid.
    """
    return {"kind": "cut", "op": op, "probability": read_share(share)}


@contextmanager
def serving(store: str, arguments: Sequence[str], log: Path) -> Iterator[RunningEmulator]:
    """Run ``asynccommit emulate STORE``.

    Raises ``AsyncCommitError`` if it does not start.
    """
    command = ["asynccommit", "emulate", store, "--json", "--port", "0", *arguments]
    with running("the emulator", command, log) as facts:
        yield RunningEmulator(facts)


@contextmanager
def running(
    what: str, command: Sequence[str], log: Path, *, without: tuple[str, ...] = ()
) -> Iterator[Mapping[str, Any]]:
    """Run a server module, and yield the JSON object that it prints.

    Args:
        what: the server, for errors.
        command: module and arguments.
        log: file for its standard error.
        without: prefixes of environment variables that it must not see.

    Raises:
        AsyncCommitError: it does not start.
    """
    environ = {key: value for key, value in os.environ.items() if not key.startswith(without)}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            env=environ,
        )
    assert process.stdout is not None
    try:
        yield _first_words(process, what, log)
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(30)


def _first_words(process: subprocess.Popen[bytes], what: str, log: Path) -> Mapping[str, Any]:
    assert process.stdout is not None
    text = b""
    for line in process.stdout:
        text += line
        if line.rstrip() == b"}":
            break
    try:
        facts: dict[str, Any] = json.loads(text)
        if "error" in facts:
            raise AsyncCommitError(f"{what} did not start: {facts['message']}")
        if not facts["endpoint"]:
            raise ValueError("no endpoint")
        return facts
    except (ValueError, KeyError) as error:
        raise AsyncCommitError(f"{what} did not start; its log is {log}") from error
