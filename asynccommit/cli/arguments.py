"""Arguments that several commands share, and the functions that read them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from asynccommit.cli.output import Output
from asynccommit.errors import OptionError
from asynccommit.inspect.discovery import layout_of
from asynccommit.inspect.upload_discovery import magic_layout_of
from asynccommit.options.job import Options
from asynccommit.stores.urls import Address, parse_url

Url = Annotated[str, typer.Argument(metavar="URL", help="Destination: a path or a URL.")]
JobId = Annotated[
    str | None, typer.Option("--job-id", help="Job id. May be omitted if there is only one job.")
]
Attempt = Annotated[
    int | None, typer.Option(min=0, help="Job attempt. Needed only if the job has several.")
]
CommitterName = Annotated[
    str | None,
    typer.Option("--committer", help="Committer of a FileOutputCommitter job: file_v1 or file_v2."),
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
Outside = Annotated[
    bool,
    typer.Option("--outside", help="Allow the commit to change files outside the destination."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value to standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")]


def absolute(text: str) -> Address:
    """Read a URL or a path, a relative one from here. Raises ``UrlError``."""
    scheme, colon, _ = text.partition(":")
    if text and not text.startswith("/") and (not colon or "/" in scheme):
        text = os.path.join(os.getcwd(), text)
    return parse_url(text)


def destination(url: str) -> Address:
    """Read a destination. Raises ``UrlError``, and ``OptionError`` for a place inside of a job."""
    dest = absolute(url)
    layout = layout_of(dest) or magic_layout_of(dest)
    if layout is not None:
        raise OptionError(
            f"{dest} is inside of a job: give the destination {layout.dest} and "
            f"--job-id {layout.job_id}"
        )
    return dest


def read_options(given: Sequence[str] | None, output: Output, *, outside: bool = False) -> Options:
    """Read what ``-o`` says, paths in it from here; what has no effect is a warning.

    Args:
        given: key=value, as often as it was said.
        output: is told the warnings.
        outside: what ``--outside`` says.

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
        outside=outside or options.outside,
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
            raise OptionError(f"{flag}{shown} has no value: say {flag} key=value")
        found[key] = value
    return found


def _absolute_if_set(place: str | None) -> str | None:
    return None if place is None else str(absolute(place))
