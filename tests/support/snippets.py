"""The code of README and docs, and how a reader would run it.

The info string of a fenced block says how. The ```` ```python ```` blocks of a page are one script
in a fresh process, ```` ```console ```` blocks run after it in the same folder. A further word
changes that:

``spark``    needs a Spark session: such blocks are a script of their own
``abfs``     needs Spark, Hadoop's client of ADLS and an account: the same, with an emulator
``make``     only the targets of the Makefile are looked up
``install``  only the extras of the package are looked up
``session``  one shell runs all commands; what it has in the background ends with it

``output``   is what the Python block before it prints
``NAME.py``  is a file of that name, for the blocks after it; and so is ``NAME.json``

``js``, ``java``, ``go``, ``py`` and ``sh`` are programs, which the tests of ``tests/witness`` run;
the block after each is what it prints.

The lines after a ``$ command`` are what the command prints. ``...`` stands for anything. Where a
page says port 10004, it is run with one that is free.
"""

from __future__ import annotations

import doctest
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.spark import ENVIRONMENT

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md")

SHOWN_ONLY = {"text", "json", "ini", "mermaid", "js", "java", "go", "py", "sh"}
HOW = {"spark", "abfs", "make", "install", "session", "output"}
PORT = "10004"
_FILES = (".py", ".json", ".mjs", ".java", ".go", ".sh")

_FENCE = re.compile(r"^( *)```(.*)\n((?:.*\n)*?)\1```$", re.MULTILINE)
_CHECK = doctest.OutputChecker().check_output
_LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Snippet:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    how: frozenset[str]
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def is_code(self) -> bool:
        """Whether this is Python that is run, not a file."""
        return self.language == "python" and not self.file

    @property
    def file(self) -> str | None:
        """The name of the file that this block is, ``None`` if it is to be run."""
        return next((word for word in self.how if word.endswith(_FILES)), None)


def snippets(page: Path) -> list[Snippet]:
    """Return the fenced blocks of a page in order."""
    text = page.read_text("utf-8")
    return [_snippet(page, text, found) for found in _FENCE.finditer(text)]


def _snippet(page: Path, text: str, found: re.Match[str]) -> Snippet:
    language, *how = found[2].split() or [""]
    line = text.count("\n", 0, found.start()) + 2
    indent = len(found[1])
    body = "".join(row[indent:] for row in found[3].splitlines(keepends=True))
    return Snippet(page, line, language, frozenset(how), body)


def run_page(
    found: Sequence[Snippet],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> str:
    """Run the Python blocks as one script of a fresh process, then the commands; compare.

    A former name of the package is an error. Returns what was written to stderr.
    """
    shell = _Shell(folder, environment or {}, python)
    found = [shell.prepared(snippet) for snippet in found]
    blocks = [snippet for snippet in found if snippet.is_code]
    script = folder / f"{found[0].page.stem}.py"
    script.write_text(_script(blocks), "utf-8")
    printed = iter(shell.run([python, script.name]).split(_MARK)) if blocks else iter(())
    last = ""
    for snippet in found:
        if snippet.is_code:
            last = next(printed)
        elif "output" in snippet.how:
            check_output(snippet, snippet.text, last)
        elif snippet.language == "console":
            for (_, wanted), shown in zip(commands(snippet), shell.answers(snippet), strict=True):
                check_output(snippet, wanted, shown)
    return shell.errors


_MARK = "--- end of block ---\n"


def _script(blocks: Sequence[Snippet]) -> str:
    """Return the blocks with every line where the page has it, so that a traceback is right."""
    text = ""
    for block in blocks:
        text += "\n" * (block.line - 1 - text.count("\n")) + block.text
        text += f"print({_MARK!r}, end='', flush=True)\n"
    return text


def commands(snippet: Snippet) -> Iterator[tuple[str, str]]:
    """Return each ``$ command`` of a console block, and the lines after it."""
    for part in re.split(r"^\$ ", snippet.text, flags=re.MULTILINE)[1:]:
        command, _, output = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield command, output


def check_output(snippet: Snippet, wanted: str, printed: str) -> None:
    """Compare what a page shows with what was printed; a page that shows nothing asks nothing."""
    if wanted.strip() and not _CHECK(wanted, printed, _LOOSE):
        raise AssertionError(f"{snippet} shows\n{wanted}\nbut this was printed:\n{printed}")


class _Shell:
    """Where the blocks of a page are run."""

    def __init__(self, folder: Path, environment: Mapping[str, str], python: str) -> None:
        path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
        # An emulator on loopback is not asked through a proxy.
        own = {"PATH": path, "COLUMNS": "100", "NO_PROXY": "*", "no_proxy": "*"}
        own["PYTHONWARNINGS"] = "error:asynccommit:DeprecationWarning"
        self._environment = {**os.environ, **ENVIRONMENT, **own, **environment}
        self._folder = folder
        self.errors = ""
        self._port = str(_free_port())

    def prepared(self, snippet: Snippet) -> Snippet:
        """Return the block as it is run here; one that is a file is written."""
        text = re.sub(rf"\b{PORT}\b", self._port, snippet.text)
        if snippet.file:
            (self._folder / snippet.file).write_text(text, "utf-8")
        return replace(snippet, text=text)

    def answers(self, snippet: Snippet) -> Iterator[str]:
        """Yield what each command of a console block prints."""
        shown = [command for command, _ in commands(snippet)]
        if "session" not in snippet.how:
            yield from (self.run(["bash", "-c", command]) for command in shown)
            return
        each = (f"{self._started(command)}\nprintf '%s' '{_MARK}'" for command in shown)
        lines = [_END_WITH_SHELL, *each]
        yield from self.run(["bash", "-e", "-c", "\n".join(lines)]).split(_MARK)[: len(shown)]

    def _started(self, command: str) -> str:
        """Return a command that returns when the server that it starts is there."""
        if not (command.rstrip().endswith("&") and self._port in command):
            return command
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{self._port}"
        return f"{command}\ntimeout 60 bash -c 'until ({connect}) 2>&-; do sleep 0.1; done'"

    def run(self, command: list[str]) -> str:
        """Return what a command prints; all that it started ends with it."""
        with subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        ) as process:
            try:
                printed, errors = process.communicate(timeout=240)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        self.errors += errors
        if process.returncode:
            said = f"{printed}{errors}"
            raise AssertionError(f"{command} ended with {process.returncode}:\n{said}")
        return printed


_END_WITH_SHELL = (
    "trap 'status=$?; kill $(jobs -p) 2>&- || true; kill -CONT $(jobs -p) 2>&- || true; wait; "
    "exit $status' EXIT"
)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
