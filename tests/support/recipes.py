"""The recipes of docs/recipes.md as files, with a job that is large enough to be killed in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.snippets import PAGES, snippets

FILES = 90
"""How many files the function of the recipe writes here, instead of one."""
_LINE = 'task.put(f"day={day}/part-{job.job_id}.csv", b"AA,JFK\\n")'
_MANY = (
    "[task.put(f'day={day}/part-{number}-{job.job_id}.csv', str(number).encode()) "
    f"for number in range({FILES})]"
)
_OPTION = '"asynccommit.on.unfinished": "resume"'


def write_recipe(folder: Path, *names: str) -> Path:
    """Write files of the page; return the table that they write.

    ``nightly.py`` writes many files, at a rate that makes its commit last about two seconds.
    """
    (page,) = (page for page in PAGES if page.name == "recipes.md")
    found = {snippet.file: snippet.text for snippet in snippets(page) if snippet.file}
    for name in names:
        text = found[name]
        if name == "nightly.py":
            assert text.count(_LINE) == text.count(_OPTION) == 1
            text = text.replace(_LINE, _MANY)
            text = text.replace(_OPTION, f'{_OPTION}, "asynccommit.rate": {FILES // 3}')
        (folder / name).write_text(text)
    return folder / "flights"


def kill_in_the_commit(table: Path, *, patience: float = 240.0) -> int:
    """Kill the process that commits a job, once that has begun; return its id.

    Raises ``TimeoutError`` if none begins in so many seconds.
    """
    ends = time.monotonic() + patience
    while time.monotonic() < ends:
        for record in table.glob("_temporary/*/*/commit-record.json"):
            with suppress(OSError, ValueError, KeyError):
                pid = int(json.loads(record.read_text())["owner"]["process"].split(".")[0])
                os.kill(pid, signal.SIGKILL)
                return pid
        time.sleep(0.002)
    raise TimeoutError(f"no commit began under {table}")


def is_exact(table: Path, *days: str) -> bool:
    """Return whether each file of these days is visible once, complete, and nothing else."""
    found = sorted((path.parent.name, path.read_text()) for path in table.glob("day=*/*.csv"))
    return found == sorted((f"day={day}", str(n)) for day in days for n in range(FILES))


def logged(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    """Run a command that must succeed in a folder; return what it logged."""
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout
