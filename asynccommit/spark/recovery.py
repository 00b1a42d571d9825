"""After a crash: what is left of jobs under a table, and finishing or undoing it.

Credentials and options are those of the session, and of ``configure``; without a session those of
``configure`` alone.

On S3 the session has to name the committer where that is a staging one, as it was when the job was
written; and as these keep their pending sets away from the table, the job has to be named too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from asynccommit import sync
from asynccommit.commit.context import OnProgress
from asynccommit.inspect.progress import console_progress
from asynccommit.options.checked import PATH, checked
from asynccommit.options.job import Options
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.spark import bridge, sessions


@checked
def status(path: Annotated[str, PATH], *, spark: Any = None) -> list[JobStatus]:
    """Return what is known of the jobs under the table at ``path``.

    Args:
        path: the table, as ``df.write`` was given it.
        spark: the session whose options are used; the active one by default.
    """
    place = _TableAccess.of(path, spark)
    return sync.job_statuses(place.url, storage_options=place.storage)


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
    """Finish a commit that was cut short: the table is then as if nothing had happened.

    Args:
        path: the table, as ``df.write`` was given it.
        job_id: the job; the only one there that has something to resume by default.
        attempt: the job attempt.
        force: take it from an owner that may be alive; see ``takeover``.
        adopt: finish what Hadoop's own manifest committer has left half-done.
        spark: the session whose options are used; the active one by default.
        on_progress: called a few times a second; a line is shown on a terminal without it.

    Raises:
        OwnedError: a process that lives is committing the job; nothing was done.
        CommitError: it failed again, and can be resumed again.
        NotFoundError: there is nothing to resume.
        OptionError: there are several jobs, or an option is wrong.
    """
    place = _TableAccess.of(path, spark)
    with console_progress(quiet=not bridge.is_shown(place.conf)) as shown:
        return sync.resume_job(
            place.url,
            job_id,
            attempt=attempt,
            force=force,
            adopt=adopt,
            options=place.options,
            storage_options=place.storage,
            on_progress=on_progress or bridge.on_progress or shown,
        )


@checked
def takeover(
    path: Annotated[str, PATH],
    job_id: str | None = None,
    *,
    attempt: int | None = None,
    spark: Any = None,
    on_progress: OnProgress | None = None,
) -> JobReport:
    """Finish a commit though its owner may live, which loses it at once. See ``resume``."""
    return resume(path, job_id, attempt=attempt, force=True, spark=spark, on_progress=on_progress)


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
    """Undo a commit that was cut short: the table is then as before the job.

    The arguments are those of ``resume``.

    Raises:
        OwnedError: a process that lives is committing the job; nothing was done.
        CommittedError: the job is committed.
        CommitError: it failed half-way, and can be done again.
        NotFoundError: there is nothing to undo.
        OptionError: there are several jobs, or an option is wrong.
    """
    place = _TableAccess.of(path, spark)
    with console_progress(quiet=not bridge.is_shown(place.conf)) as shown:
        return sync.rollback_job(
            place.url,
            job_id,
            attempt=attempt,
            force=force,
            options=place.options,
            storage_options=place.storage,
            on_progress=on_progress or bridge.on_progress or shown,
        )


@dataclass(frozen=True, slots=True)
class _TableAccess:
    """A table and how a session reaches it."""

    url: str
    conf: Mapping[str, str]
    storage: Mapping[str, Any]

    @classmethod
    def of(cls, path: Annotated[str, PATH], spark: Any) -> _TableAccess:
        session = spark or _active()
        if session is None:
            return cls(_absolute(path), {}, dict(bridge.storage_options))
        conf, storage = sessions.settings_of(session)
        conf = sessions.with_staging(session, conf)
        url = path if _has_scheme(path) else sessions.qualified(session, path)
        return cls(url, conf, {**storage, **bridge.storage_options})

    @property
    def options(self) -> Options:
        """The options of a commit that the session says."""
        return bridge.options_of(self.conf)


def _active() -> Any:
    """Return the session of this thread or program; ``None`` if it has none, or its JVM died."""
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


def _absolute(path: str) -> str:
    return path if _has_scheme(path) else os.path.abspath(path)


def _has_scheme(path: str) -> bool:
    return ":" in path.partition("/")[0]
