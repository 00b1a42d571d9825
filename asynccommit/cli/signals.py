"""Ctrl-C and SIGTERM during a change: stop, and print the next step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from asynccommit.api import StorageOptions
from asynccommit.cli.output import Exit, Stopped
from asynccommit.commit.hints import command, job_command
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import AsyncCommitError
from asynccommit.inspect.discovery import look_at, open_stores
from asynccommit.inspect.status import JobView, view
from asynccommit.results import JobState
from asynccommit.runtime.loop_thread import submit


class Terminated(BaseException):
    """Raised for SIGTERM."""


@contextmanager
def stoppable(layout: Layout, storage: StorageOptions = None) -> Iterator[None]:
    """End the block, and what it submitted, on Ctrl-C or SIGTERM.

    Args:
        layout: the job that is worked on.
        storage: options of its store.

    Raises:
        Stopped: a signal arrived; the message has the progress of the job and the next command.
    """
    try:
        with _terminable():
            yield
    except (KeyboardInterrupt, Terminated) as error:
        terminated = isinstance(error, Terminated)
        code = Exit.TERMINATED if terminated else Exit.INTERRUPTED
        raise Stopped(code, f"{code.name.lower()}; {_what_is_left(layout, storage)}") from error


@contextmanager
def resumable(advice: str = "") -> Iterator[None]:
    """End the block, and what it submitted, on Ctrl-C or SIGTERM.

    ``advice`` says how the work is finished. Raises ``Stopped``.
    """
    try:
        with _terminable():
            yield
    except (KeyboardInterrupt, Terminated) as error:
        code = Exit.TERMINATED if isinstance(error, Terminated) else Exit.INTERRUPTED
        text = f"; {advice}" if advice else ""
        raise Stopped(code, f"{code.name.lower()}{text}") from error


@contextmanager
def _terminable() -> Iterator[None]:
    """Raise ``Terminated`` for SIGTERM instead of ending the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _what_is_left(layout: Layout, storage: StorageOptions) -> str:
    """Return the progress of the job; a second signal cuts this short."""
    status = f"{command('status', layout.dest)} shows how far it got"
    try:
        found = submit(_look(layout, storage))
    except (AsyncCommitError, KeyboardInterrupt, Terminated):
        return status
    if found is None:
        return f"the job was committed or rolled back, and nothing is left of it: {status}"
    if found.status is None:
        return status
    resume = job_command("resume", layout)
    if not found.status.begun:
        commit = job_command("commit", layout, "--tasks", str(found.status.tasks))
        return f"nothing was changed. To continue: {found.resume.command or commit}"
    said = {
        JobState.ROLLING_BACK: f"the rollback can be finished: {found.abort.command}",
        JobState.COMMITTED: f"the job is committed; finish its clean-up with: {resume}",
    }
    return said.get(found.status.state, f"the commit can be resumed: {resume}")


async def _look(layout: Layout, storage: StorageOptions) -> JobView | None:
    async with open_stores(layout, storage) as (store, pending):
        job = await look_at(pending, layout)
        return None if job is None else await view(store, job, pending)
