"""A user in an empty folder, who follows a page, types commands and reads what they print."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.snippets import PAGES, Snippet, run_page, snippets


@dataclass(frozen=True, slots=True)
class Said:
    """The answer to a command; a signal ends it with 128 and its number."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class User:
    """A person with an environment in which the wheel is installed."""

    folder: Path
    python: str

    def at(self, name: str) -> User:
        """Return the same person in an empty folder below."""
        (self.folder / name).mkdir()
        return User(self.folder / name, self.python)

    def follows(self, page: str, *words: str) -> None:
        """Run the blocks of a page that have these words, and compare what they print."""
        (path,) = (path for path in PAGES if path.name == page)
        found: list[Snippet] = []
        before = None
        for block in snippets(path):
            shown = "output" in block.how and before in found
            if shown or any(word in block.text for word in words):
                found.append(block)
            before = block
        missing = [word for word in words if not any(word in block.text for block in found)]
        assert not missing, f"{page} no longer has {missing}"
        run_page(found, self.folder, python=self.python)

    def saves(self, name: str, text: str) -> None:
        """Write a file."""
        (self.folder / name).write_text(text, "utf-8")

    def runs(self, script: str) -> list[str]:
        """Return the lines that a program prints, which succeeds."""
        self.saves("program.py", script)
        said = self.types("python program.py")
        assert said.code == 0, said.out + said.err
        return said.out.splitlines()

    def types(self, command: str) -> Said:
        """Run a command to its end."""
        return self._answer(self._started(command))

    def interrupts(self, command: str, when: Callable[[], bool]) -> Said:
        """Press Ctrl-C as soon as ``when`` is true."""
        process = self._started(command)
        end = time.monotonic() + 100
        while not when():
            assert process.poll() is None, self._answer(process)
            assert time.monotonic() < end, "it has not come to that"
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        return self._answer(process)

    def _started(self, command: str) -> subprocess.Popen[str]:
        path = f"{Path(self.python).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_PROXY": "*", "no_proxy": "*"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def _answer(self, process: subprocess.Popen[str]) -> Said:
        """Return what a command printed; a minute and a half is a hang."""
        try:
            out, err = process.communicate(timeout=90)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        ended = process.returncode
        return Said(ended if ended >= 0 else 128 - ended, out, err)  # bash, or the program itself
