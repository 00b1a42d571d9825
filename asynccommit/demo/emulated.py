"""Run a store emulator as a separate process and talk to it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asynccommit.errors import AsyncCommitError

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


@contextmanager
def serving(store: str, arguments: Sequence[str], log: Path) -> Iterator[RunningEmulator]:
    """Run ``asynccommit emulate STORE``.

    Raises ``AsyncCommitError`` if it does not start.
    """
    command = [sys.executable, "-m", "asynccommit", "emulate", store, "--json", "--port", "0"]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file
        )
    assert process.stdout is not None
    try:
        yield _first_words(process, log)
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(30)


def _first_words(process: subprocess.Popen[bytes], log: Path) -> RunningEmulator:
    assert process.stdout is not None
    text = b""
    for line in process.stdout:
        text += line
        if line.rstrip() == b"}":
            break
    try:
        facts = json.loads(text)
        if "error" in facts:
            raise AsyncCommitError(f"the emulator did not start: {facts['message']}")
        return RunningEmulator(facts)
    except (ValueError, KeyError) as error:
        raise AsyncCommitError(f"the emulator did not start; its log is {log}") from error
