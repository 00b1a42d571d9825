"""Ctrl-C and SIGTERM while a verb changes something: both end it, and say how to go on."""

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
from asynccommit.commit.layout import Layout
from asynccommit.errors import AsyncCommitError
from asynccommit.inspect.discovery import look_at, open_stores
from asynccommit.inspect.status import JobView, view
from asynccommit.results import State
from asynccommit.runtime.loop_thread import submit


class Terminated(BaseException):
    """SIGTERM has come."""


@contextmanager
def stoppable(layout: Layout, storage: StorageOptions = None) -> Iterator[None]:
    """End the block on Ctrl-C or SIGTERM; what it had submitted has ended then.

    Args:
        layout: the job that is worked on.
        storage: options of its store.

    Raises:
        Stopped: says how far the job is, and which command goes on.
    """
    try:
        with _terminable():
            yield
    except (KeyboardInterrupt, Terminated) as error:
        terminated = isinstance(error, Terminated)
        code = Exit.TERMINATED if terminated else Exit.INTERRUPTED
        raise Stopped(code, f"{code.name.lower()}; {_what_is_left(layout, storage)}") from error


@contextmanager
def _terminable() -> Iterator[None]:
    """Raise ``Terminated`` for SIGTERM, which else would end the process where it stands."""
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
    """Return how far the job is, as a look tells; a second signal ends the look."""
    status = f"{command('status', layout.dest)} shows how far it came"
    try:
        found = submit(_look(layout, storage))
    except (AsyncCommitError, KeyboardInterrupt, Terminated):
        return status
    if found is None:
        return f"nothing is left of the job, which was committed or rolled back: {status}"
    if found.status is None:
        return status
    resume = job_command("resume", layout)
    if not found.status.begun:
        commit = job_command("commit", layout, "--tasks", str(found.status.tasks))
        return f"nothing was changed. To go on: {found.resume.command or commit}"
    said = {
        State.ROLLING_BACK: f"the rollback can be finished: {found.abort.command}",
        State.COMMITTED: f"the job is committed, and what is left to do is done by: {resume}",
    }
    return said.get(found.status.state, f"the commit can be resumed: {resume}")


async def _look(layout: Layout, storage: StorageOptions) -> JobView | None:
    async with open_stores(layout, storage) as (store, pending):
        job = await look_at(pending, layout)
        return None if job is None else await view(store, job, pending)
