"""Inspect, finish or undo the jobs that a crash left under a table.

Credentials and options are those of the session and of ``configure``; without a session those of
``configure`` alone.

On S3, if the job used a staging committer, the session must name the same committer. The job must
be named too, because staging committers keep their pending sets away from the table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from asynccommit import sync
from asynccommit.commit.meter import OnProgress
from asynccommit.errors import OptionError
from asynccommit.options.checked import PATH, checked
from asynccommit.options.job import Options
from asynccommit.progress.console import console_progress
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark import bridge, sessions
from asynccommit.spark.foreach_batch import tables_of
from asynccommit.spark.hadoop_store.opening import jvm_user, prepare
from asynccommit.spark.stream_batches import BATCHES, unfinished_runs
from asynccommit.stores.urls import parse_url
from asynccommit.sync import BlockingJobHandle


@checked
def status(
    path: Annotated[str, PATH] = "", *, query: str = "", spark: Any = None
) -> list[JobStatus]:
    """Return the status of each job under a table, or of a query.

    Args:
        path: the path of the table, as given to ``df.write``.
        query: the id of a streaming query: only what its batches have not finished, under
            ``path`` or, without one, in the tables that this process wrote its batches to. A batch
            of Spark's file sink is running, or dead once the log has a later run of it: the next
            start of the query deletes what a dead one left.
        spark: the session whose options are used; the active one by default.

    Raises ``OptionError`` for neither a path nor a query.
    """
    if not query:
        if not path:
            raise OptionError("status needs the path of a table, or query=ID of a streaming query")
        place = TableAccess.of(path, spark)
        return sync.job_statuses(place.url, storage_options=place.storage)
    paths = [path] if path else sorted({*BATCHES.tables(query), *tables_of(query)})
    return [one for each in paths for one in _of_query(TableAccess.of(each, spark), query)]


def _of_query(place: TableAccess, query: str) -> list[JobStatus]:
    jobs = sync.job_statuses(place.url, storage_options=place.storage)
    mine = [
        job for job in jobs if job.key and job.key.partition(":")[0].endswith(f" of query {query}")
    ]
    return mine + submit(unfinished_runs(parse_url(place.url), query, place.storage))


@checked
def resume(
    path: Annotated[str, PATH],
    job_id: str | None = None,
    *,
    attempt: int | None = None,
    force: bool = False,
    adopt: bool = False,
    spark: Any = None,
    on_progress: OnProgress | None = None,
) -> JobReport:
    """Finish an interrupted commit, as if nothing had happened.

    Args:
        path: the path of the table, as given to ``df.write``.
        job_id: the job; defaults to the only one there that can be resumed.
        attempt: the job attempt.
        force: take the commit from an owner that may be alive; that owner loses it at once.
        adopt: also finish an interrupted commit of Hadoop's own manifest committer.
        spark: the session whose options are used; the active one by default.
        on_progress: called a few times a second; without it progress is shown.

    Raises:
        OwnedError: a process that lives is committing the job; nothing was done.
        CommitError: the commit failed again, and can be resumed again.
        NotFoundError: there is nothing to resume.
        OptionError: there are several jobs, or an option is wrong.
    """
    place = TableAccess.of(path, spark)
    with console_progress(quiet=not bridge.is_shown(place.conf)) as shown:
        job = place.job(job_id, attempt)
        tell = on_progress or bridge.on_progress or shown
        return job.resume(force=force, adopt=adopt, on_progress=tell)


@checked
def rollback(
    path: Annotated[str, PATH],
    job_id: str | None = None,
    *,
    attempt: int | None = None,
    force: bool = False,
    spark: Any = None,
    on_progress: OnProgress | None = None,
) -> AbortReport:
    """Undo an interrupted commit; the table is then as before the job.

    The arguments are those of ``resume``.

    Raises:
        OwnedError: a process that lives is committing the job; nothing was done.
        CommittedError: the job is committed.
        CommitError: the rollback was interrupted by an error, and can be repeated.
        NotFoundError: there is nothing to undo.
        OptionError: there are several jobs, or an option is wrong.
    """
    place = TableAccess.of(path, spark)
    with console_progress(quiet=not bridge.is_shown(place.conf)) as shown:
        job = place.job(job_id, attempt)
        return job.rollback(force=force, on_progress=on_progress or bridge.on_progress or shown)


@dataclass(frozen=True, slots=True)
class TableAccess:
    """A table and how a session reaches it."""

    url: str
    conf: Mapping[str, str]
    storage: Mapping[str, Any]

    @classmethod
    def of(cls, path: Annotated[str, PATH], spark: Any) -> TableAccess:
        """Return the access of a session, or that of ``configure`` alone."""
        session = spark or active_session()
        url = url_of(path, session)
        if session is None:
            return cls(url, {}, dict(bridge.storage_options))
        address = parse_url(url)
        conf, storage = sessions.settings_of(session, address.scheme)
        conf = sessions.with_staging(session, conf)
        store = {**bridge.store_for_user(address.scheme, jvm_user()), **bridge.store_of(conf)}
        options = {**storage, **store, **bridge.storage_options}
        prepare(address, options)
        return cls(url, conf, options)

    @property
    def options(self) -> Options:
        """The commit options of the session."""
        return bridge.options_of(self.conf)

    def job(self, job_id: str | None, attempt: int | None) -> BlockingJobHandle:
        """Return a job of the table. See ``sync.job``."""
        return sync.job(
            self.url,
            job_id,
            attempt=attempt,
            options=self.options,
            storage_options=self.storage,
        )


def active_session() -> Any:
    """Return the active session, or ``None``.

    The result is ``None`` if this thread or program has no session, or its JVM has died.
    """
    if "pyspark.sql" not in sys.modules:
        return None
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    try:
        found = SparkSession.getActiveSession() or getattr(
            SparkSession, "_instantiatedSession", None
        )
    except (Py4JError, OSError):
        return None
    return found if hasattr(found, "_jsparkSession") else None


def url_of(path: str, session: Any) -> str:
    """Return a path as the session resolves it, or else this process."""
    if ":" in path.partition("/")[0]:
        return path
    return os.path.abspath(path) if session is None else sessions.qualified(session, path)
