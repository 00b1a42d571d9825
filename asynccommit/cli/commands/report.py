"""``asynccommit report``: what a job did, as text or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import (
    JobId,
    Option,
    Storage,
    Url,
    destination,
    read_options,
    reporting,
    store_options,
)
from asynccommit.cli.output import Output
from asynccommit.errors import OptionError
from asynccommit.inspect.errors import NothingThereError
from asynccommit.inspect.record_text import record_text
from asynccommit.inspect.saved import JobRecord, read_record
from asynccommit.inspect.status import Situation, look_under
from asynccommit.options.job import Options
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import Address


@reporting
def report(
    output: Output,
    url: Url,
    job_id: JobId = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write one self-contained page to this file."),
    ] = None,
    option: Option = None,
    storage_option: Storage = None,
) -> None:
    """Show what the last job at a destination did, and what is left to do.

    Reads _SUCCESS, and the report directory if -o names one. Changes nothing
    there. --html writes a page: stages on a time line, requests over time,
    latencies, throttling, partitions, commands for what is left.
    """
    dest, options = destination(url), read_options(option, output)
    storage = store_options(storage_option)
    record, situation = submit(_read(dest, options, storage, job_id))
    value = {"report": record.to_json(), "status": situation.to_json()}
    if html is None:
        output.answer(value, record_text(record, situation))
        return
    _write(html, record, situation)
    output.answer({**value, "html": str(html)}, f"wrote {html}")


async def _read(
    dest: Address, options: Options, storage: StorageOptions, job_id: str | None
) -> tuple[JobRecord, Situation]:
    try:
        situation = await look_under(dest, storage, options)
    except NothingThereError:  # a job that failed may have removed the destination that it made
        if options.report_directory is None:
            raise
        situation = Situation(dest)
    try:
        record = await read_record(dest, storage, options.report_directory, job_id)
    except NothingThereError:
        if job_id is not None or not situation.jobs:
            raise
        begun = any(job.status is not None and job.status.begun for job in situation.jobs)
        text = "a commit has begun and has not ended" if begun else "no job has been committed here"
        record = JobRecord("", str(dest), text)
    return record, situation


def _write(file: Path, record: JobRecord, situation: Situation) -> None:
    from asynccommit.inspect.page import page, save

    try:
        save(file, page(record, situation))
    except OSError as error:
        raise OptionError(
            f"--html {file}: {error.strerror}: name a file that can be written"
        ) from error
