"""Progress on a terminal, in a log, and not at all."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from asynccommit import Progress
from asynccommit.commit.meter import OUTERMOST
from asynccommit.progress.console import (
    Lines,
    console_progress,
    describe,
    log_progress,
)
from asynccommit.progress.stage_names import STAGES, stage_name

RENAME = "job_stage_rename_files"


def at(done: int, seconds: float, *, stage: str = RENAME, job: str = "j") -> Progress:
    """Return a moment of a job with 1,000 files."""
    return Progress(job, stage, done, 1000, seconds)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.mark.parametrize(
    "progress, rate, silent, line",
    [
        (at(0, 3.0), 0.0, 0.0, "job j, 3.00 s: rename files 0 of 1,000 (0%)"),
        (
            at(500, 7.0),
            100.0,
            0.0,
            "job j, 7.00 s: rename files 500 of 1,000 (50%), 100/s, 5.00 s left",
        ),
        (at(1000, 4.0), 500.0, 0.0, "job j, 4.00 s: rename files 1,000 of 1,000 (100%), 500/s"),
        (at(1, 4.0), 0.5, 30.0, "0.5/s, 33 min 18 s left, no progress for 30.0 s"),
        (Progress("j", "job_stage_cleanup", 0, None, 2.5), 0.0, 0.0, "job j, 2.50 s: clean up"),
        (
            Progress("\x1b[1m", RENAME, 7, None, 2.5),
            14.0,
            0.0,
            "job \\x1b[1m, 2.50 s: rename files 7, ",
        ),
    ],
)
def test_line_says_how_far_and_how_fast(
    progress: Progress, rate: float, silent: float, line: str
) -> None:
    """A line has the stage, how much of it is done, the rate and the time that is left."""
    assert line in describe(progress, rate, silent)


def test_line_says_what_requests_wait_for() -> None:
    """The reason is asked when the line is made, and is shown in place of the silence."""
    reasons = iter(["3 requests wait: away", ""])
    progress = Progress("j", RENAME, 5, 10, 3.0, lambda: next(reasons))

    line = "job j, 12.0 s: rename files 5 of 10 (50%), 3 requests wait: away"
    assert describe(progress, 0.0, 9.0) == line
    assert describe(progress, 0.0, 9.0).endswith("no progress for 9.00 s")


def test_bar_says_what_requests_wait_for() -> None:
    """A bar is drawn with the reason, although nothing has moved since."""
    stream, reason = Terminal(), [""]
    with console_progress(stream) as on_progress:
        on_progress(Progress("j", RENAME, 5, 10, 3.0, lambda: reason[0]))
        reason[0] = "3 requests wait: away"
        for _ in range(400):
            if "away" in stream.getvalue():
                break
            time.sleep(0.05)

    assert "3 requests wait: away" in stream.getvalue()


def test_line_of_an_unknown_stage_is_readable() -> None:
    """A stage without a name of its own is shown without Hadoop's prefix."""
    assert stage_name("job_stage_something_new") == "something new"


def test_rate_begins_anew_with_every_stage() -> None:
    """The seconds of earlier stages do not count in the rate of this one."""
    lines = Lines(lambda: 0.0)
    lines(at(0, 0.0, stage=OUTERMOST))
    lines(at(0, 90.0))
    lines(at(500, 95.0))

    assert lines.take() == [describe(at(500, 95.0), 100.0)]


def test_rate_is_that_of_the_last_seconds() -> None:
    """After a slow minute the remaining time is that of the fast seconds since, and back."""
    lines = Lines(lambda: 0.0)
    lines(at(0, 0.0))
    for second in range(60):
        lines(at(second, float(second)))
    for second in range(60, 72):
        lines(at(60 + (second - 59) * 40, float(second)))

    (fast,) = lines.take()

    assert "40/s" in fast
    assert fast.endswith("11.5 s left")


def test_rate_falls_while_nothing_is_done() -> None:
    """The seconds without progress count, so that the remaining time grows."""
    now = [0.0]
    lines = Lines(lambda: now[0])
    lines(at(0, 0.0))
    lines(at(500, 5.0))
    now[0] = 3.0

    (line,) = lines.take()

    assert "62/s, 8.00 s left" in line


def test_jobs_have_a_line_each_until_they_end() -> None:
    """Two jobs at once are two lines; one that is back in its outermost stage has ended."""
    lines = Lines(lambda: 0.0)
    for job in ("a", "b"):
        lines(at(0, 0.0, stage=OUTERMOST, job=job))
        lines(at(10, 1.0, job=job))
    lines(at(10, 2.0, stage=OUTERMOST, job="a"))

    (line,) = lines.take()
    assert line.startswith("job b,")


def test_lines_come_though_nothing_moves() -> None:
    """A commit that hangs is still heard of, with how long it has been silent."""
    said: list[str] = []
    enough = threading.Event()
    seconds = iter(range(0, 10_000, 10))

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 3:
            enough.set()

    with log_progress(say, every=0.001, clock=lambda: float(next(seconds))) as on_progress:
        on_progress(at(500, 1.0))
        assert enough.wait(20)

    assert [line.rpartition("for ")[2] for line in said[:3]] == ["10.0 s", "20.0 s", "30.0 s"]


def test_no_terminal_gets_lines(tmp_path: Path) -> None:
    """Elsewhere than on a terminal there are whole lines, without escapes."""
    log = tmp_path / "log"
    with log.open("w") as stream, console_progress(stream, every=0.001) as on_progress:
        on_progress(at(500, 1.0))
        while not log.stat().st_size:
            threading.Event().wait(0.001)

    first = log.read_text().splitlines()[0]
    assert first.startswith("asynccommit: job j, ")
    assert "rename files 500 of 1,000 (50%)" in first
    assert "\x1b" not in log.read_text()


def test_stream_that_is_closed_stops_nothing() -> None:
    """Nobody reading the lines is no reason for a commit to fail."""
    stream = io.StringIO()
    with console_progress(stream, every=0.001) as on_progress:
        stream.close()
        on_progress(at(500, 1.0))
        threading.Event().wait(0.02)


def test_terminal_gets_a_bar() -> None:
    """A terminal gets a bar that names the stage and disappears in the end."""
    stream = Terminal()
    with console_progress(stream) as on_progress:
        on_progress(at(0, 0.0, stage=OUTERMOST))
        for stage in STAGES:
            on_progress(at(0, 1.0, stage=stage))
            on_progress(at(500, 2.0, stage=stage))
        on_progress(at(500, 3.0))

    assert "rename files" in stream.getvalue()
    assert "500/1000" in stream.getvalue()


def test_quiet_shows_nothing() -> None:
    """Quiet is quiet, on a terminal too."""
    stream = Terminal()
    with console_progress(stream, quiet=True) as on_progress:
        on_progress(at(500, 1.0))

    assert stream.getvalue() == ""


def test_output_to_a_file_stays_there(tmp_path: Path) -> None:
    """While a terminal shows a bar, what the program prints goes where it sends it."""
    program = """
from asynccommit.progress.console import console_progress
with console_progress():
    print("a row")
"""
    ours, theirs = pty.openpty()
    with (tmp_path / "out").open("wb") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, stderr=theirs, check=True)
    os.close(theirs)
    os.close(ours)

    assert (tmp_path / "out").read_text() == "a row\n"
