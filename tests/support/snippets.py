"""The code of README and docs, and how a reader would run it.

The info string of a fenced block says how. The ```` ```python ```` blocks of a page are one script
in a fresh process, ```` ```console ```` blocks run after it in the same folder. A further word
changes that:

``spark``    needs a Spark session: such blocks are a script of their own
``make``     only the targets of the Makefile are looked up
``install``  only the extras of the package are looked up

``output``   is what the Python block before it prints
``NAME.py``  is a file of that name, for the blocks after it

The lines after a ``$ command`` are what the command prints. ``...`` stands for anything.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.spark import ENVIRONMENT

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md")

SHOWN_ONLY = {"text", "json", "ini"}
HOW = {"spark", "make", "install", "output"}

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
        return next((word for word in self.how if word.endswith(".py")), None)


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


def run_page(found: Sequence[Snippet], folder: Path) -> None:
    """Run the Python blocks as one script of a fresh process, then the commands; compare."""
    for snippet in found:
        if snippet.file:
            (folder / snippet.file).write_text(snippet.text, "utf-8")
    blocks = [snippet for snippet in found if snippet.is_code]
    script = folder / f"{found[0].page.stem}.py"
    script.write_text(_script(blocks), "utf-8")
    printed = iter(_run([sys.executable, script.name], folder).split(_MARK))
    last = ""
    for snippet in found:
        if snippet.is_code:
            last = next(printed)
        elif "output" in snippet.how:
            check_output(snippet, snippet.text, last)
        elif snippet.language == "console":
            for command, output in commands(snippet):
                check_output(snippet, output, _run(["bash", "-c", command], folder))


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


def _run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **ENVIRONMENT, "PATH": path, "COLUMNS": "100"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
