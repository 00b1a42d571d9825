"""Print results as text or as JSON, and map outcomes to exit codes.

Exit codes, which scripts can rely on:

====  =========================================================================================
0     done; also: nothing was left to do, or a dry run shows that it can be done
1     failed after changes were made, or for an unexpected reason
2     usage: invalid argument or option, a scheme without a store, or a missing package
3     refused, and nothing was changed; or a check found problems
4     outcome unknown: the response to a request was lost, and nothing was cleaned up
5     no such job, file or directory
130   interrupted by Ctrl-C: running requests have ended
141   what read the output has gone, as ``head`` does
143   terminated by SIGTERM: the same
====  =========================================================================================

With ``--json`` standard output holds one JSON value and nothing else, for errors too:
``{"error": kind, "message": text, "exit_code": number, ...}``, where the kind is ``failed``,
``usage``, ``refused``, ``unknown``, ``not_found``, ``interrupted`` or ``terminated``. The value has
a ``schema_version``, which changes when a field goes or changes its meaning; docs/schemas has the
schemas.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NoReturn, TextIO

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from asynccommit.engine.report import BulkError
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    CommittedError,
    CommitUnknownError,
    ManifestError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    OwnedError,
    PreflightError,
    UnfinishedError,
    UnsupportedError,
    UrlError,
)
from asynccommit.inspect.errors import JobFilesError, NothingThereError, SeveralJobsError
from asynccommit.redact import redact
from asynccommit.runtime.cells import printed, safe
from asynccommit.runtime.terminal import plain

SCHEMA_VERSION = 1
"""The version of the JSON of all commands."""


class Exit(IntEnum):
    """The exit codes; see the package."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    UNKNOWN = 4
    NOT_FOUND = 5
    INTERRUPTED = 130
    PIPE = 141
    TERMINATED = 143


@dataclass(frozen=True, slots=True)
class Output:
    """Standard output and standard error of one command.

    Attributes:
        json: one JSON value on standard output and nothing else.
        quiet: only answers, warnings and errors, and JSON if asked for.
        debug: show where an error comes from.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False

    def result(self, value: Mapping[str, Any], shown: RenderableType) -> None:
        """Say what a command has done, or that a check has passed."""
        if self.json or not self.quiet:
            self.answer(value, shown)

    def answer(self, value: Mapping[str, Any], shown: RenderableType) -> None:
        """Say what a command was asked, whatever the options."""
        if self.json:
            _write_json(value)
        else:
            _show(shown, sys.stdout)

    def note(self, text: str) -> None:
        """Say what a person may want to know."""
        if not self.json and not self.quiet:
            _show(safe(text), sys.stderr)

    def ask(self, shown: RenderableType) -> None:
        """Show what a question is about, whatever the options."""
        _show(shown, sys.stderr)

    def warn(self, text: str) -> None:
        """Say what a person should know, whatever the options."""
        _show(safe(f"warning: {text}", "yellow"), sys.stderr)

    def fail(self, error: BaseException) -> NoReturn:
        """Say what went wrong, and end."""
        code = exit_code(error)
        message = _message(error)
        if self.debug:
            lines = "".join(traceback.format_exception(error)).splitlines()
            sys.stderr.write("\n".join(plain(line) for line in lines) + "\n")
        if self.json:
            value = {"error": code.name.lower(), "message": message, "exit_code": int(code)}
            _write_json({**value, **_details(error)})
        else:
            # One error is a list; in all others a line that ends is part of some hostile name.
            lines = message.split("\n") if isinstance(error, UnfinishedError) else [message]
            shown = [safe(line, "red") for line in (f"error: {lines[0]}", *lines[1:])]
            _show(Text("\n").join(shown), sys.stderr)
        raise typer.Exit(int(code))


class Stopped(Exception):  # noqa: N818  it is no error
    """A signal has ended a verb, and all that it had under way.

    Args:
        code: how the command ends.
        message: the remaining state, and the command that continues.
    """

    def __init__(self, code: Exit, message: str) -> None:
        self.code = code
        super().__init__(message)


_CODES: tuple[tuple[tuple[type[BaseException], ...], Exit], ...] = (
    ((CommitUnknownError, OutcomeUnknownError), Exit.UNKNOWN),
    (
        (
            PreflightError,
            ManifestError,
            OwnedError,
            UnfinishedError,
            CommittedError,
            JobFilesError,
        ),
        Exit.REFUSED,
    ),
    ((NothingThereError, NotFoundError), Exit.NOT_FOUND),
    ((OptionError, UrlError, UnsupportedError, SeveralJobsError), Exit.USAGE),
    ((KeyboardInterrupt,), Exit.INTERRUPTED),
)


def exit_code(error: BaseException) -> Exit:
    """Return how the command ends after this error."""
    if isinstance(error, Stopped):
        return error.code
    if isinstance(error, BulkError):
        report = error.report
        changed = (report.done or report.directories) and not report.dry_run
        return Exit.FAILED if changed else _refusal(exit_code(error.cause))
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), Exit.FAILED)


def _refusal(code: Exit) -> Exit:
    return Exit.REFUSED if code is Exit.FAILED else code


@contextmanager
def logging_shown(verbose: int) -> Iterator[None]:
    """Print the log of the package to standard error during the block.

    ``verbose`` is 0 for nothing, 1 for the steps of a commit, 2 for each retry as well.
    """
    if not verbose:
        yield
        return
    log, handler = logging.getLogger("asynccommit"), _PlainHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _PlainHandler(logging.StreamHandler[TextIO]):
    """Handler whose lines have neither control characters nor credentials."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(plain(line) for line in super().format(record).splitlines())


@contextmanager
def handled(output: Output) -> Iterator[None]:
    """End the command with a message and exit code on any exception."""
    try:
        yield
    except typer.Exit:
        raise
    except BrokenPipeError:
        # Whoever read standard output has gone, as head does.
        _is_stdout_refused()
        raise typer.Exit(int(Exit.PIPE)) from None
    except OSError as error:
        if _is_stdout_refused():
            output.fail(Stopped(Exit.FAILED, f"standard output: {error.strerror}"))
        output.fail(error)
    except (Exception, KeyboardInterrupt) as error:
        output.fail(error)


def _is_stdout_refused() -> bool:
    """Drop what standard output refuses; return whether it refuses.

    Python would write it again at the end of the program, and end with 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _message(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; asynccommit inspect shows how far it got"
    if isinstance(error, AsyncCommitError | Stopped):
        return redact(str(error))
    return redact(f"unexpected {type(error).__name__}: {error} (--debug shows where)")


def _details(error: BaseException) -> dict[str, Any]:
    if isinstance(error, UnfinishedError):
        return {"job_id": error.job_id, "stage": error.stage, "jobs": list(error.jobs)}
    if isinstance(error, BulkError):
        return {"report": error.report.to_json()}
    if isinstance(error, CommitError):
        failures = [redact(f"{type(cause).__name__}: {cause}") for cause in error.failures]
        return {"job_id": error.job_id, "stage": error.stage, "failures": failures}
    if isinstance(error, SeveralJobsError):
        layouts = [job.layout for job in error.jobs]
        return {"jobs": [{"job_id": _.job_id, "attempt": _.attempt} for _ in layouts]}
    return {}


def _show(shown: RenderableType, stream: TextIO) -> None:
    if stream.isatty():
        console = Console(file=stream, highlight=False, markup=False, emoji=False)
        # A message may end with a command: the terminal wraps it, so that it can be copied.
        console.print(shown, soft_wrap=isinstance(shown, Text), crop=False)
    else:
        stream.write(printed(shown) + "\n")
    stream.flush()


def usage_error(text: str) -> int:
    """Say as JSON that the command line cannot be read; return the exit code."""
    value = {"error": "usage", "message": plain(text), "exit_code": int(Exit.USAGE)}
    with suppress(BrokenPipeError):  # whoever read standard output has gone
        _write_json(value)
    return int(Exit.USAGE)


def _write_json(value: Mapping[str, Any]) -> None:
    versioned = {**value, "schema_version": SCHEMA_VERSION}
    sys.stdout.write(json.dumps(versioned, indent=2) + "\n")
    sys.stdout.flush()  # a program may wait for it while the command goes on
