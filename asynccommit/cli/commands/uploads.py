"""``asynccommit uploads``: multipart uploads left open."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from asynccommit.api import StorageOptions
from asynccommit.cli.arguments import (
    Storage,
    Url,
    Yes,
    absolute,
    read_age,
    reporting,
    store_options,
)
from asynccommit.cli.output import Exit, Output
from asynccommit.cli.program import Program
from asynccommit.commit.by_upload.abort_uploads import Aborted, abort_uploads
from asynccommit.inspect.discovery import open_place
from asynccommit.inspect.garbage import on_clock_of
from asynccommit.inspect.open_uploads import (
    STANDARD_PRICE,
    Choice,
    OpenUploads,
    choose,
    find_uploads,
    list_open,
)
from asynccommit.inspect.upload_text import upload_abort, upload_list, upload_plan
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.multipart import Upload
from asynccommit.stores.urls import Address

app = Program(
    name="uploads",
    help="List or abort multipart uploads that were never completed.",
    no_args_is_help=True,
)

Price = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="DOLLARS",
        help="Price of a GB for a month. The default is that of S3 Standard.",
    ),
]


@app.callback()
def _uploads() -> None:
    """List or abort multipart uploads that were never completed."""


@app.command("list")
@reporting
def list_uploads(
    output: Output,
    url: Url,
    price: Price = STANDARD_PRICE,
    storage_option: Storage = None,
) -> None:
    """List open multipart uploads: age, job, parts, size and monthly cost.

    Changes nothing. Exits with 3 if there are any, so that a check can fail.
    """
    found = submit(_find(absolute(url), store_options(storage_option)))
    _warn(found, output)
    output.answer(found.to_json(price), upload_list(found, price))
    if found.uploads:
        raise typer.Exit(int(Exit.REFUSED))


@app.command("abort")
@reporting
def abort(
    output: Output,
    url: Url,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Minimum age, such as 90m, 12h or 7d. Default: 1d, with --job-id any.",
        ),
    ] = None,
    job_id: Annotated[
        str | None,
        typer.Option("--job-id", metavar="ID", help="Abort only the uploads of this job."),
    ] = None,
    yes: Yes = False,
    price: Price = STANDARD_PRICE,
    storage_option: Storage = None,
) -> None:
    """Abort open multipart uploads, by age or by job.

    Shows what it would do unless --yes is given. Uploads of a job whose
    directory still exists are kept unless --job-id names that job.
    """
    age = None if older_than is None else read_age(older_than)
    dest, storage = absolute(url), store_options(storage_option)
    found, choice, done = submit(_abort(dest, storage, age, job_id, yes=yes))
    _warn(found, output, job_id)
    if done is None:
        output.result(_plan_json(found, choice), upload_plan(found, choice, price))
        return
    output.result(_abort_json(found, choice, done), upload_abort(choice, done))
    if done.failures:
        raise typer.Exit(int(Exit.FAILED))


def _warn(found: OpenUploads, output: Output, job_id: str | None = None) -> None:
    for warning in found.warnings:
        output.warn(warning)
    ours = [job for job in found.jobs if job.job_id == job_id]
    if job_id is not None and found.uploads and not ours:
        output.warn(f"job {job_id} has no directory: the uploads that it began are unknown")
    if any(job.begun for job in ours):
        output.warn(f"the commit of job {job_id} has begun and needs its uploads")


async def _find(dest: Address, storage: StorageOptions) -> OpenUploads:
    async with open_place(dest, storage) as store:
        return await find_uploads(store, dest, this_host().now())


async def _abort(
    dest: Address, storage: StorageOptions, age: float | None, job: str | None, *, yes: bool
) -> tuple[OpenUploads, Choice, Aborted | None]:
    async with open_place(dest, storage) as store:
        host = this_host()
        if yes and (age or job is None):
            host = await on_clock_of(store, dest, host)
        found = await find_uploads(store, dest, host.now())
        choice = choose(found, age, job)
        if not yes:
            return found, choice, None
        chosen = [one.upload for one in choice.uploads]
        done = await abort_uploads(store, chosen, lambda: list_open(store, dest.path))
        return found, choice, done


def _plan_json(found: OpenUploads, choice: Choice) -> dict[str, Any]:
    return {
        "destination": str(found.dest),
        "would_abort": [_named(one.upload) for one in choice.uploads],
        "kept": _kept_json(choice),
        "warnings": list(found.warnings),
    }


def _abort_json(found: OpenUploads, choice: Choice, done: Aborted) -> dict[str, Any]:
    failures = [{**_named(upload), "error": str(error)} for upload, error in done.failures]
    return {
        "destination": str(found.dest),
        "aborted": [_named(upload) for upload in done.aborted],
        "ended": [_named(upload) for upload in done.ended],
        "failures": failures,
        "kept": _kept_json(choice),
        "warnings": list(found.warnings),
    }


def _kept_json(choice: Choice) -> list[dict[str, str]]:
    return [{**_named(kept.found.upload), "reason": kept.reason} for kept in choice.kept]


def _named(upload: Upload) -> dict[str, str]:
    return {"key": upload.path.removeprefix("/"), "upload_id": upload.upload_id}
