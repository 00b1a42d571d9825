"""Record the local demo for the README: run it in a terminal, and draw what it showed.

Usage: ``build/docs-venv/bin/python website/record_demo.py .venv/bin/asynccommit [CAST]``, after
``make docs``. The command runs in a temporary directory, on a terminal of 80 columns. The screen,
as far as the comparison of the two tables, becomes ``docs/img/demo.svg``; with a second argument
the whole recording is written in the format of asciinema as well.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLUMNS, LINES = 80, 200
IMAGES = Path(__file__).parents[1] / "docs/img"
COMMAND = "asynccommit demo"
IDLE = 1.0  # seconds: longer waits are cut to this in the recording

Events = list[tuple[float, str]]


def record(command: Sequence[str], directory: str) -> Events:
    """Run a command on a terminal; return what it wrote, with seconds since it began."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(directory)
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES="50")
        os.execv(command[0], list(command))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    begin, events = time.monotonic(), Events()
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the terminal has closed
            break
        if not data:
            break
        events.append((time.monotonic() - begin, decode(data)))
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise SystemExit("".join(text for _, text in events))
    return events


def to_cast(events: Events) -> str:
    """Return events in the second format of asciinema, with long waits shortened."""
    header = {"version": 2, "width": COLUMNS, "height": 50, "title": COMMAND}
    lines, shown, before = [json.dumps(header)], 0.0, 0.0
    for moment, text in events:
        shown += min(moment - before, IDLE)
        before = moment
        lines.append(json.dumps([round(shown, 3), "o", text], ensure_ascii=False))
    return "\n".join(lines) + "\n"


def to_svg(events: Events) -> str:
    """Return the screen at the end as a picture."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.Stream(screen)
    for _, text in events:
        stream.feed(text)
    shown = list(_shown(screen.display))
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(Text(f"$ {COMMAND}", "bold"))
    for row in shown:
        text = Text("...", "dim") if row is None else _line(screen, row)
        console.print(text, no_wrap=True, crop=True)
    drawn = console.export_svg(title=COMMAND, unique_id="demo")
    # The picture stands alone: no font is fetched from elsewhere.
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def _shown(lines: Sequence[str]) -> Iterator[int | None]:
    """Yield the numbers of the lines that the picture has, ``None`` for a gap.

    What compares times is left out: it depends on how busy the machine is.
    """
    timed = False
    for row, line in enumerate(lines):
        if line.startswith("now undisturbed"):
            timed = True
            yield None
        timed = timed and not line.startswith("The driver was killed")
        if not timed:
            yield row
        if line.startswith("exact to the row"):
            return


def _line(screen: pyte.Screen, row: int) -> Text:
    """Return one line of a screen with its colours."""
    cells = [screen.buffer[row][column] for column in range(COLUMNS)]
    line = Text()
    for (colour, bold), run in groupby(cells, lambda cell: (cell.fg, cell.bold)):
        line.append("".join(cell.data for cell in run), Style(color=_colour(colour), bold=bold))
    line.rstrip()
    return line


def _colour(name: str) -> str | None:
    """Return the colour of a cell under the name that rich has for it."""
    if name == "default":
        return None
    return {"brown": "yellow"}.get(name, f"#{name}" if len(name) == 6 and _is_hex(name) else name)


def _is_hex(name: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in name)


def main(program: str, cast: str = "") -> None:
    """Record the demo, draw it, and write the recording to ``cast`` if that is given."""
    with tempfile.TemporaryDirectory() as directory:
        events = record([str(Path(program).absolute()), "demo"], directory)
    told = [(moment, text.replace(directory, "")) for moment, text in events]
    if cast:
        Path(cast).write_text(to_cast(told), "utf-8")
    (IMAGES / "demo.svg").write_text(to_svg(told), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
