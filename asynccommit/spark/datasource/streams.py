"""Commit micro-batches of streams, listed in ``_spark_metadata``.

Spark's readers see the files that the log lists and nothing else, so a batch is committed once it
is in the log. Before that, its files are renamed to names that no other run of the batch uses: two
runs may overlap, and a file that the log lists must never be replaced. Files that a run has
published and the log does not list are deleted once the log has the batch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.registry import Committer
from asynccommit.errors import CommittedError, NotFoundError, OptionError
from asynccommit.options.job import Options
from asynccommit.results import JobStatus
from asynccommit.runtime.host import this_host
from asynccommit.spark.datasource import jobs
from asynccommit.spark.datasource.jobs import SourceJob
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.spark.datasource.tasks import TaskMessage
from asynccommit.streaming.entries import SinkFile, sink_uri
from asynccommit.streaming.log import Added, SinkLog
from asynccommit.streaming.publish_intents import Announced
from asynccommit.streaming.settings import SinkLogSettings

log = logging.getLogger("asynccommit.spark")


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The message of one task of a micro-batch.

    Attributes:
        job_id: the job of this run of the batch.
        query: the query's id, which stays the same when the query is restarted.
        batch: the number of the batch.
        written: the result of the task.
    """

    job_id: str
    query: str
    batch: int
    written: TaskMessage

    def to_json(self) -> str:
        """Return the text that Spark sends to the commit."""
        value = {
            "job": self.job_id,
            "query": self.query,
            "batch": self.batch,
            "task": self.written.commit.to_json(),
            "files": list(self.written.files),
        }
        return orjson.dumps(value).decode()

    @classmethod
    def from_json(cls, text: str) -> BatchPart:
        """Parse the result of ``to_json``. Raises ``OptionError``."""
        try:
            value: Any = orjson.loads(text)
            files = tuple((str(name), int(size)) for name, size in value["files"])
            task = TaskCommit.from_json(value["task"])
            return cls(
                str(value["job"]), str(value["query"]), value["batch"], TaskMessage(task, files)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise OptionError(f"a task of the batch sent an invalid message: {error}") from None


def batch_tag(query: str, batch: int, job_id: str) -> str:
    """Return the part of file names that is unique to this run of a batch."""
    return str(uuid5(NAMESPACE_URL, f"{query}/{batch}/{job_id}"))


def stream_job(url: str, options: SourceOptions, token: str) -> SourceJob:
    """Return the job of one run of a batch.

    Args:
        url: the URL of the table.
        options: options of the stream.
        token: unique to the run.
    """
    conf = Options.from_conf(options.conf)
    commit = replace(conf, mark_success=False, delete_target_files=False, readers_use_sink_log=True)
    return SourceJob(url, f"{_family(options)}{token}", commit, options.storage)


def _family(options: SourceOptions) -> str:
    """Return the common prefix of the ids of a query's jobs, and of no others."""
    if options.checkpoint is None:
        return "stream-"
    return f"stream-{sha256(options.checkpoint.encode()).hexdigest()[:16]}-"


# --- before a batch ---------------------------------------------------------------------------


async def set_up(job: SourceJob, options: SourceOptions) -> SourceJob:
    """Remove what earlier runs left; create what this run's tasks need.

    Raises the errors of ``jobs.set_up``.
    """
    await sweep(job, options)
    return await jobs.set_up(job)


async def sweep(job: SourceJob, options: SourceOptions, *, running: bool = False) -> None:
    """End the jobs that earlier micro-batches of the query left.

    Only one micro-batch runs at a time. An interrupted commit is undone, as its batch is in no log,
    or finished if it was decided. Without the location of its checkpoint, the jobs of a query are
    unknown, and nothing is done. See ``jobs.abort`` for ``running``.
    """
    if options.checkpoint is None:
        return
    family = _family(options)
    async with jobs.opened(job) as committer:
        statuses = await committer.job_statuses()
    for status in statuses:
        if status.job_id.startswith(family):
            await _end(replace(job, job_id=status.job_id), status, running=running)


async def _end(job: SourceJob, status: JobStatus, *, running: bool) -> None:
    if not status.begun:
        await jobs.abort(job, running=running)
        return
    async with jobs.opened(job) as committer:
        committer.asked = False
        try:
            await committer.rollback_job()
        except CommittedError:
            await committer.resume_job()


# --- the end of a batch -------------------------------------------------------------------------


async def commit(
    job: SourceJob, options: SourceOptions, batch: int, parts: Sequence[BatchPart]
) -> None:
    """Publish a batch, or discard this run if the batch is published already.

    Raises:
        OptionError: the messages of the tasks do not belong together.
        SinkLogForeignError: the log has such a batch of another query.
        SinkLogError: the log cannot be used as it is.
        CommitError: the job of this run failed.
    """
    job = _job_of(job, batch, parts)
    query = parts[0].query if parts else None
    async with jobs.opened(job) as committer:
        sink, files = _sink(committer, options), _sink_files(committer, parts)
        announced = Announced(committer.store, committer.layout.dest, sink)
        if await sink.wants(batch):
            if files:
                await announced.say(batch, job.job_id, files)
            await _publish(committer, job, parts)
            added = await sink.add(batch, files, query=query)
            await announced.settle(batch, None if added is Added.NEW else files)
            return
        await sink.add(batch, files, query=query)  # or another query owns it
        await announced.settle(batch)
    await jobs.abort(job, running=False)


async def _publish(committer: Committer, job: SourceJob, parts: Sequence[BatchPart]) -> None:
    if not parts:
        return
    await committer.commit_job(
        [part.written.commit for part in parts],
        mode=job.mode,
        made_destination=job.made_destination,
    )


async def abort(
    job: SourceJob, options: SourceOptions, parts: Sequence[BatchPart], *, running: bool
) -> None:
    """Delete the files of a batch's tasks that are not published.

    Args:
        job: the stream's job; the messages name which of its jobs it is.
        options: options of the stream.
        parts: the messages of the tasks that have ended.
        running: other tasks may still be running.
    """
    for job_id in {part.job_id for part in parts}:
        await jobs.abort(replace(job, job_id=job_id), running=running)
    try:
        await sweep(job, options, running=running)
    except NotFoundError:
        log.debug("no files remain of the jobs of %s", job.url)


def _job_of(job: SourceJob, batch: int, parts: Sequence[BatchPart]) -> SourceJob:
    if len({(part.job_id, part.query) for part in parts}) > 1:
        raise OptionError(f"batch {batch}: the messages of its tasks belong to different runs")
    if any(part.batch != batch for part in parts):
        raise OptionError(
            f"batch {batch}: a message of its tasks belongs to batch {parts[0].batch}"
        )
    return replace(job, job_id=parts[0].job_id) if parts else job


def _sink(committer: Committer, options: SourceOptions) -> SinkLog:
    settings = SinkLogSettings.from_conf(options.sink)
    return SinkLog(committer.store, committer.layout.dest, settings)


def _sink_files(committer: Committer, parts: Sequence[BatchPart]) -> list[SinkFile]:
    now = int(this_host().now() * 1000)
    dest = committer.layout.dest
    return [
        SinkFile(sink_uri(dest.child(*name.split("/"))), size, now)
        for part in parts
        for name, size in part.written.files
    ]
