"""The engine as a child process, with a test in the place of the JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from asynccommit.spark.frames import Frame, FrameKind, read_frame
from asynccommit.spark.jars import build_id

FIRST = b"00112233445566778899aabbccddeeff"
MODULE = ("-P", "-m", "asynccommit.spark.child")


class Child:
    """A running child.

    Attributes:
        process: the process.
        noise: what it has printed before the first frame.
        greeting: what it has said of itself.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._in, self._out = process, process.stdin, process.stdout
        self.write(FIRST + b"\n")
        self.noise = b""
        while not self.noise.endswith(FIRST + b"\n"):
            read = self._out.read(1)
            assert read, "the child has ended"
            self.noise += read
        self.noise = self.noise.removesuffix(FIRST + b"\n")
        hello = self.read()
        assert hello.kind is FrameKind.HELLO
        self.greeting: dict[str, Any] = json.loads(hello.text)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._in.write(data)
        self._in.flush()

    def send(self, number: int, **request: Any) -> None:
        """Send a request of this build."""
        text = json.dumps({"build": build_id(), **request}).encode()
        self.write(Frame(FrameKind.REQUEST, number, text).encode())

    def read(self) -> Frame:
        """Return the next frame."""
        frame = read_frame(self._out.read)
        assert frame is not None, "the child has ended"
        return frame

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to the only request under way."""
        self.send(1, **request)
        answer: dict[str, Any] = json.loads(self.read().text)
        return answer

    def end(self) -> tuple[int, str]:
        """End the input; return the exit code and what was printed to standard error."""
        with suppress(BrokenPipeError):
            self._in.close()
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was printed to standard error."""
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        return self.process.wait(60), said


@contextmanager
def running_child(*arguments: str, **environment: str) -> Iterator[Child]:
    """Run a child, and end it."""
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, *(arguments or MODULE)],
        env={**os.environ, "PYTHONPATH": root, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Child(process)
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close() if process.stdin else None
