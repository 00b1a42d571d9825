"""Streams: each micro-batch is a job, and what it has published is listed in ``_spark_metadata``.

Readers of Spark's see what the log lists and nothing else, so the batch is committed when the log
has it. Before that its files are moved to names that no other run of the batch gives to its files:
two runs may overlap, and what the log lists is replaced by nothing. What a run has published and
the log does not list is deleted when it has the batch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

from asynccommit.commit.layout import TaskCommit
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
    """What one task of a micro-batch tells.

    Attributes:
        job_id: the job of this run of the batch.
        query: the query's id, the same whenever it is started again.
        batch: the number of the batch.
        written: what the task has done.
    """

    job_id: str
    query: str
    batch: int
    written: TaskMessage

    def to_json(self) -> str:
        """Return the text that Spark carries to the commit."""
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
        """Read what ``to_json`` gave. Raises ``OptionError``."""
        try:
            value: Any = orjson.loads(text)
            files = tuple((str(name), int(size)) for name, size in value["files"])
            task = TaskCommit.from_json(value["task"])
            return cls(
                str(value["job"]), str(value["query"]), value["batch"], TaskMessage(task, files)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise OptionError(
                f"a task of the batch has sent what cannot be read: {error}"
            ) from None


def batch_tag(query: str, batch: int, job_id: str) -> str:
    """Return what the files of a batch have in their names, and those of no other run of it."""
    return str(uuid5(NAMESPACE_URL, f"{query}/{batch}/{job_id}"))


def stream_job(url: str, options: SourceOptions, token: str) -> SourceJob:
    """Return the job of one run of a batch.

    Args:
        url: of the table.
        options: of the stream.
        token: unlike that of any other run.
    """
    conf = Options.from_conf(options.conf)
    commit = replace(conf, mark_success=False, delete_target_files=False, logged=True)
    return SourceJob(url, f"{_family(options)}{token}", commit, options.storage)


def _family(options: SourceOptions) -> str:
    """Return how the ids of all jobs of a query begin, and of no other query's."""
    if options.checkpoint is None:
        return "stream-"
    return f"stream-{sha256(options.checkpoint.encode()).hexdigest()[:16]}-"


# --- before a batch ---------------------------------------------------------------------------


async def set_up(job: SourceJob, options: SourceOptions) -> SourceJob:
    """Remove what earlier runs of the query left, and make what the tasks of this one need.

    Raises what ``jobs.set_up`` does.
    """
    await sweep(job, options)
    return await jobs.set_up(job)


async def sweep(job: SourceJob, options: SourceOptions, *, running: bool = False) -> None:
    """End the jobs that earlier micro-batches of the query left: one runs at a time.

    A commit that was cut short is undone, for the batch is in no log, or finished if it was
    decided. Without the place of its checkpoint nobody knows which jobs are a query's: nothing is
    done then. ``running`` as for ``jobs.abort``.
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
        try:
            await committer.rollback_job()
        except CommittedError:
            await committer.resume_job()


# --- the end of a batch -------------------------------------------------------------------------


async def commit(
    job: SourceJob, options: SourceOptions, batch: int, parts: Sequence[BatchPart]
) -> None:
    """Publish a batch, or see that it is published already: then nothing of this run counts.

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
        await sink.add(batch, files, query=query)  # or it is another's
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
    """Delete what the tasks of a batch left; what is published stays until the log has the batch.

    Args:
        job: the stream's; which of its jobs it is, the messages say.
        options: of the stream.
        parts: of the tasks that have ended.
        running: others may be running still.
    """
    for job_id in {part.job_id for part in parts}:
        await jobs.abort(replace(job, job_id=job_id), running=running)
    try:
        await sweep(job, options, running=running)
    except NotFoundError:
        log.debug("nothing is left of the jobs of %s", job.url)


def _job_of(job: SourceJob, batch: int, parts: Sequence[BatchPart]) -> SourceJob:
    if len({(part.job_id, part.query) for part in parts}) > 1:
        raise OptionError(f"batch {batch}: the messages of its tasks are of different runs")
    if any(part.batch != batch for part in parts):
        raise OptionError(f"batch {batch}: a message of its tasks is of batch {parts[0].batch}")
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
