"""Arguments that several commands share, and their parsers."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from asynccommit.cli.output import Output, handled, logging_shown
from asynccommit.errors import OptionError
from asynccommit.options.checked import located
from asynccommit.options.job import Options
from asynccommit.stores.elsewhere import JVM, STORE_OPTION
from asynccommit.stores.urls import Address, parse_url

Url = Annotated[str, typer.Argument(metavar="URL", help="Destination: a path or a URL.")]
JobId = Annotated[
    str | None,
    typer.Option("--job-id", metavar="ID", help="Job id. May be omitted if there is only one job."),
]
Attempt = Annotated[
    int | None,
    typer.Option(min=0, metavar="NUMBER", help="Job attempt. Needed only if the job has several."),
]
CommitterName = Annotated[
    str | None,
    typer.Option(
        "--committer",
        metavar="NAME",
        help="Committer of a FileOutputCommitter job: file_v1 or file_v2.",
    ),
]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="KEY=VALUE", help="Option, under its Hadoop name. Repeatable."
    ),
]
Storage = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        "-s",
        metavar="KEY=VALUE",
        help="Option of the store, under its fsspec name. Repeatable. Pass secrets in the "
        "environment.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]
Yes = Annotated[
    bool, typer.Option("--yes/--dry-run", help="Make the changes; the default only shows them.")
]
NotAsked = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Outside = Annotated[
    bool,
    typer.Option("--outside", help="Allow the commit to change files outside the destination."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value to standard output.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only answers, warnings and errors.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        metavar="",
        show_default=False,
        help="Print the log to standard error; -vv also prints each retry.",
    ),
]

_AGE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)([smhd])|0").fullmatch
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command, and ``Output``.

    Whatever the command raises ends it with one message and its exit code.
    """

    @wraps(command)
    def run(json: bool, quiet: bool, debug: bool, verbose: int, **given: Any) -> None:
        output = Output(json, quiet, debug)
        with handled(output), logging_shown(verbose):
            command(output, **given)

    # Typer reads the options from the signature.
    hints = get_type_hints(command, include_extras=True)
    _, *own = signature(command).parameters.values()
    flags = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        for name, kind, default in (
            ("json", Json, False),
            ("quiet", Quiet, False),
            ("verbose", Verbose, 0),
            ("debug", Debug, False),
        )
    ]
    shown = [one.replace(annotation=hints[one.name]) for one in own] + flags
    run.__annotations__ = {one.name: one.annotation for one in shown}
    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    return run


def absolute(text: str) -> Address:
    """Read a URL or a path, a relative one from here.

    ``..`` after a link leads where the system says. Raises ``UrlError``.
    """
    text = located(text)
    place = parse_url(text)
    return _through_links(place, text) if place.scheme == "file" else place


def _through_links(place: Address, text: str) -> Address:
    """Return where the system finds a path whose ``..`` may follow a link."""
    names = text[text.index("/") :].split("/")
    if ".." not in names:
        return place
    after = len(names) - names[::-1].index("..")
    above = "/".join(names[:after])
    real = os.path.realpath(above)
    if real == os.path.realpath(os.path.normpath(above)):
        return place
    return place.at(os.path.join(real, *(name for name in names[after:] if name not in ("", "."))))


def destination(url: str) -> Address:
    """Parse a destination.

    Raises ``UrlError``, and ``OptionError`` for a path inside a job directory.
    """
    dest = absolute(url)
    from asynccommit.inspect.discovery import layout_of, magic_layout_of

    layout = layout_of(dest) or magic_layout_of(dest)
    if layout is not None:
        raise OptionError(
            f"{dest} is inside a job directory: give the destination {layout.dest} and --job-id "
            f"{layout.job_id}"
        )
    return dest


def read_options(given: Sequence[str] | None, output: Output, *, outside: bool = False) -> Options:
    """Parse ``-o`` options; paths are relative to the working directory.

    Options without effect cause warnings.

    Args:
        given: key=value, as often as it was said.
        output: shows the warnings.
        outside: the value of ``--outside``.

    Raises ``OptionError``.
    """
    conf = pairs("-o", given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = Options.from_conf(conf)
    for warning in caught:
        output.warn(str(warning.message))
    return replace(
        options,
        allow_outside_destination=outside or options.allow_outside_destination,
        report_directory=_absolute_if_set(options.report_directory),
        diagnostics_directory=_absolute_if_set(options.diagnostics_directory),
    )


def pairs(flag: str, given: Sequence[str] | None) -> dict[str, str]:
    """Read ``KEY=VALUE`` as often as it is given. Raises ``OptionError``."""
    found: dict[str, str] = {}
    for pair in given or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            shown = "" if flag == "-s" else f" {key!r}"  # what stands there may be a secret
            raise OptionError(f"{flag}{shown} has no value: expected {flag} key=value")
        found[key] = value
    return found


def store_options(given: Sequence[str] | None) -> dict[str, str]:
    """Read the values of ``-s``, and start a JVM if they ask for one.

    Raises ``OptionError``, and ``UnsupportedError`` if no JVM can be started.
    """
    found = pairs("-s", given)
    if found.get(STORE_OPTION, "").strip().lower() == JVM:
        from asynccommit.spark.shell import start_jvm

        start_jvm()
    return found


def read_age(text: str) -> float:
    """Read the value of ``--older-than`` in seconds. Raises ``OptionError``."""
    found = _AGE(text.strip())
    if found is None:
        raise OptionError(f"--older-than {text!r} is not an age: expected 90m, 12h or 7d")
    return float(found[1] or 0) * _SECONDS[found[2] or "s"]


def _absolute_if_set(place: str | None) -> str | None:
    return None if place is None else str(absolute(place))
