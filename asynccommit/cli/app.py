"""The verbs: commit, abort, inspect, demo."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli import emulate
from asynccommit.cli.output import Exit, Output, handled, usage_error
from asynccommit.engine import submit
from asynccommit.errors import NotFoundError, OptionError, PreflightError
from asynccommit.job import Layout
from asynccommit.options import Options
from asynccommit.report.inspection import inspect as inspect_place
from asynccommit.report.jobs import (
    FoundJob,
    NothingThereError,
    choose,
    find_jobs,
    layout_of,
    open_layout,
    open_place,
)
from asynccommit.report.plain import count_of
from asynccommit.report.progress import console_progress
from asynccommit.report.text import abort_report, inspection, job_report
from asynccommit.results import AbortReport, JobReport
from asynccommit.stages.run import OnProgress
from asynccommit.urls import Address, parse_url
from asynccommit.version import __version__

app = typer.Typer(
    name="asynccommit",
    help="Commit, abort and inspect the output of parallel jobs.",
    epilog="Exit codes: 0 done, 1 failed half-way, 2 usage, 3 refused and nothing changed, "
    "4 outcome unknown, 5 not found, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(emulate.app)

Url = Annotated[str, typer.Argument(metavar="URL", help="The destination: a path or a URL.")]
JobId = Annotated[
    str | None, typer.Option("--job-id", help="The job; may be left out if there is only one.")
]
Attempt = Annotated[int | None, typer.Option(min=0, help="The job attempt, if there are several.")]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option, under Hadoop's name."),
]
Storage = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        "-s",
        metavar="KEY=VALUE",
        help="An option of the store, under fsspec's name; secrets are better in the environment.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON value on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes, no table.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    json: Json = False,
) -> None:
    """Commit, abort and inspect the output of parallel jobs."""
    if version:
        Output(json).result({"version": __version__}, f"asynccommit {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


@app.command()
def commit(
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    tasks: Annotated[
        int | None, typer.Option(min=0, help="How many tasks must have committed.")
    ] = None,
    trust_manifests: Annotated[
        bool, typer.Option("--trust-manifests", help="Commit whatever tasks have committed.")
    ] = False,
    option: Option = None,
    storage_option: Storage = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Commit a job whose tasks have committed: make their files visible.

    The tasks' commit messages are not at hand here, so say with --tasks how many there must be,
    or that every manifest which is there is to be trusted.
    """
    output = Output(json, quiet, debug)
    with handled(output):
        if tasks is None and not trust_manifests and not dry_run:
            raise OptionError("say --tasks N, the number of tasks that ran, or --trust-manifests")
        options, dest = _read_options(option, output), _destination(url)
        storage = _pairs("-s", storage_option)
        job = _find(dest, job_id, attempt, output, storage)
        _check(job, tasks)
        with console_progress(quiet=quiet) as on_progress:
            report = submit(_commit(job, options, storage, on_progress, dry_run=dry_run))
        for warning in report.warnings:
            output.warn(warning)
        value = {"dry_run": dry_run, **report.to_json()}
        output.result(value, job_report(report, dry_run=dry_run))


@app.command()
def abort(
    url: Url,
    job_id: JobId = None,
    attempt: Attempt = None,
    option: Option = None,
    storage_option: Storage = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Abort a job: delete what it left, unless its commit has begun."""
    output = Output(json, quiet, debug)
    with handled(output):
        options, dest = _read_options(option, output), _destination(url)
        storage = _pairs("-s", storage_option)
        job = _find(dest, job_id, attempt, output, storage)
        report = submit(_abort(job, options, storage))
        output.result(report.to_json(), abort_report(report))
        if report.kept:
            raise typer.Exit(int(Exit.REFUSED))


@app.command()
def inspect(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A manifest, a _SUCCESS, a summary, a commit record, a job or a destination.",
        ),
    ],
    storage_option: Storage = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what is there and what a commit would do; changes nothing.

    Ends with 3 if something speaks against a commit.
    """
    output = Output(json, debug=debug)
    with handled(output):
        found = submit(inspect_place(absolute(path), _pairs("-s", storage_option)))
        output.result({**found.to_json(), "sound": found.sound}, inspection(found))
        if not found.sound:
            raise typer.Exit(int(Exit.REFUSED))


@app.command()
def demo(
    big: Annotated[
        bool, typer.Option("--big", help="Partition by carrier as well: some 5,400 partitions.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Write to this new directory; otherwise to demo-out, replaced each time."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write 336,776 flights with PySpark, committed by Spark and by asynccommit, and compare."""
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import run, table

        outcome = run(keep, big=big, say=output.note)
        output.result(outcome.to_json(), table(outcome))
        if not outcome.proven:
            raise typer.Exit(int(Exit.FAILED))


@app.command()
def demo_adls(
    latency: Annotated[str, typer.Option(metavar="TIME", help="Of each answer.")] = "20ms",
    limit: Annotated[int, typer.Option(min=50, help="Requests a second.")] = 1000,
    lost: Annotated[
        str, typer.Option(metavar="SHARE", help="Of renames: done, and the answer lost.")
    ] = "2%",
    month: Annotated[
        list[int] | None, typer.Option(min=1, max=12, help="Only this month; all otherwise.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Put logs into this new directory; otherwise into demo-out."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the flights with PySpark to an emulated ADLS Gen2 that is slow and loses answers."""
    output = Output(json, quiet, debug)
    with handled(output):
        from asynccommit.demo import Weather, adls_table, run_on_adls

        weather = Weather(latency, limit, lost)
        outcome = run_on_adls(keep, months=month or (), weather=weather, say=output.note)
        output.result(outcome.to_json(), adls_table(outcome))
        if not outcome.proven:
            raise typer.Exit(int(Exit.FAILED))


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    # What is logged is also in the report; without a handler Python would print it raw.
    logging.getLogger("asynccommit").addHandler(logging.NullHandler())
    given = list(sys.argv[1:] if args is None else args)
    try:
        if "--json" not in given:
            app(given)
            return int(Exit.DONE)
        return int(app(given, standalone_mode=False) or 0)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(Exit.FAILED)
    except Exception as error:
        # Typer brings its own click or takes the installed one: there is no one class to name.
        if not hasattr(error, "format_message"):
            raise
        return usage_error(error.format_message())


def absolute(text: str) -> Address:
    """Read a URL or a path, a relative one from here. Raises ``UrlError``."""
    scheme, colon, _ = text.partition(":")
    if text and not text.startswith("/") and (not colon or "/" in scheme):
        text = os.path.join(os.getcwd(), text)
    return parse_url(text)


def _destination(url: str) -> Address:
    dest = absolute(url)
    layout = layout_of(dest)
    if layout is not None:
        raise OptionError(
            f"{dest} is inside of a job: give the destination {layout.dest} and "
            f"--job-id {layout.job_id}"
        )
    return dest


def _read_options(pairs: Sequence[str] | None, output: Output) -> Options:
    conf = _pairs("-o", pairs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = Options.from_conf(conf)
    for warning in caught:
        output.warn(str(warning.message))
    return replace(
        options,
        report_directory=_absolute_if_set(options.report_directory),
        diagnostics_directory=_absolute_if_set(options.diagnostics_directory),
    )


def _pairs(flag: str, pairs: Sequence[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            shown = "" if flag == "-s" else f" {key!r}"  # what stands there may be a secret
            raise OptionError(f"{flag}{shown} has no value: say {flag} key=value")
        found[key] = value
    return found


def _absolute_if_set(place: str | None) -> str | None:
    return None if place is None else str(absolute(place))


def _find(
    dest: Address,
    job_id: str | None,
    attempt: int | None,
    output: Output,
    storage: StorageOptions,
) -> FoundJob:
    """Return the job that is meant; one that was named need not be there any more."""
    found = submit(_jobs(dest, storage))
    try:
        job = choose(found, dest, job_id, attempt)
    except NothingThereError:
        if job_id is None:
            raise
        return FoundJob(Layout(dest, job_id, attempt or 0))
    output.note(f"found job {job.name}: {count_of(job.manifests, 'task')} committed")
    return job


async def _jobs(dest: Address, storage: StorageOptions) -> list[FoundJob]:
    async with open_place(dest, storage) as store:
        return await find_jobs(store, dest)


def _check(job: FoundJob, tasks: int | None) -> None:
    """Refuse what only the commit messages of the tasks, which are not here, could settle."""
    problem = ""
    if job.begun:
        problem = f"a commit of it has begun already; see asynccommit inspect {job.layout.dest}"
    elif job.staged:
        problem = (
            "its tasks staged files for places outside of the destination, and only their commit "
            "messages say where: run it again, or commit it from the program that ran it"
        )
    elif tasks is not None and job.present and tasks != job.manifests:
        problem = f"{count_of(job.manifests, 'task')} committed, and --tasks says {tasks:,}"
    if problem:
        text = f"{problem}. Nothing under {job.layout.dest} was changed."
        raise PreflightError(job.layout.job_id, "job_stage_load_manifests", (), text)


async def _commit(
    job: FoundJob,
    options: Options,
    storage: StorageOptions,
    on_progress: OnProgress,
    *,
    dry_run: bool,
) -> JobReport:
    async with open_layout(job.layout, options, storage) as committer:
        try:
            if dry_run:
                return await committer.plan_job()
            return await committer.commit_job(on_progress=on_progress)
        except PreflightError as error:
            if job.present or not isinstance(error.failures[0], NotFoundError):
                raise
            text = f"no job {job.name} is under {job.layout.dest}"
            raise NothingThereError(text) from error


async def _abort(job: FoundJob, options: Options, storage: StorageOptions) -> AbortReport:
    async with open_layout(job.layout, options, storage) as committer:
        return await committer.abort_job("asynccommit abort")
