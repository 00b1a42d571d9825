"""Processes of a measurement: they are told what to do, and answer, in lines of JSON.

What is measured has a process of its own, so that CPU time is its own too, and no other library's
objects are in the way of its garbage collector.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_ROOT = Path(__file__).parents[1]
_PATIENCE = 20.0


class Child:
    """A running module of this package; a context manager that ends it."""

    def __init__(self, module: str, *arguments: str) -> None:
        self.module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._process
        with process:
            assert process.stdin is not None
            process.stdin.close()  # its loop ends there
            try:
                process.wait(_PATIENCE if error is None else 1.0)
            except subprocess.TimeoutExpired:
                process.kill()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def tell(self, do: str, **arguments: Any) -> None:
        """Have it begin; ``answer`` waits for the result."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return the result of what was told before. Raises ``RuntimeError`` if it died."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.module} ended; its error is above")
        return json.loads(line)

    def ask(self, do: str, **arguments: Any) -> Any:
        """Have it done and return the result."""
        self.tell(do, **arguments)
        return self.answer()


def serve(verbs: Mapping[str, Callable[..., Any]]) -> None:
    """Do what is told on standard input until it ends: the other side of ``Child``."""
    for line in sys.stdin:
        command = json.loads(line)
        result = verbs[command.pop("do")](**command)
        print(json.dumps(result), flush=True)
