"""The Python side of Spark's job commit: JSON requests and replies."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import orjson

from asynccommit.api import JobRef
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.log_fields import log_fields
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.registry import Committer, mode_of
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    ExistsError,
    NotFoundError,
    OptionError,
    OwnedError,
    UnfinishedError,
    UnsupportedError,
)
from asynccommit.options.job import Mode, OnUnfinished, Options, bare
from asynccommit.progress.console import console_progress
from asynccommit.results import JobReport
from asynccommit.runtime.host import Host, this_host
from asynccommit.runtime.loop_thread import Early, submit
from asynccommit.spark import heartbeat, leftovers
from asynccommit.spark.hadoop_store.opening import is_child, prepare
from asynccommit.spark.jars import build_id, other_build
from asynccommit.spark.stream_batches import BATCHES
from asynccommit.spark.stream_reports import report_of, tell
from asynccommit.stores.elsewhere import JVM, STORE_OPTION
from asynccommit.stores.hdfs.options import hadoop_user
from asynccommit.stores.urls import Address, decode_uri

log = logging.getLogger("asynccommit.spark")

HDFS = frozenset({"hdfs", "viewfs"})
"""The schemes whose servers know a user by name."""

on_progress: OnProgress | None = None
"""Progress callback of commits in this process, called on the engine's thread.

No progress line is shown while it is set.
"""

storage_options: dict[str, Any] = {}
"""Store options in addition to those of the session's configuration, such as credentials."""

JOB_ID_SOURCE = "spark.sql.sources.writeJobUUID"
OWN_KEYS = (
    "asynccommit.schemes",
    "asynccommit.unsupportedScheme",
    "asynccommit.progress",
    "asynccommit.python",
    STORE_OPTION,
)
"""Options that this bridge uses itself and does not pass to a commit."""

_REMEMBERED = 100
_NAMED = 5  # jobs for which an error has calls
_HIVE_STAGING = re.compile(r"(.*_)?hive_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+_.")  # as in Layout.java

Commit = Callable[[Mapping[str, Any]], JobReport]
Check = Callable[[Mapping[str, Any]], None]
Abort = Callable[[Mapping[str, Any]], None]


def commit(request: Mapping[str, Any]) -> JobReport:
    """Commit what a request of the JVM describes.

    Raises ``CommitError``, ``OptionError``.
    """
    _look_ahead(request)
    tasks = [TaskCommit.from_json(task) for task in request["tasks"]]
    mode, overwrite = _replaced(request)
    early: Early[JobReport] = Early()
    with console_progress(quiet=not is_shown(request["conf"])) as shown:
        tell = on_progress or shown
        return submit(_commit(request, tasks, mode, overwrite, tell, early), early)


class JobTakenError(OwnedError):
    """Raised when another process has set up the same job and owns its files."""


async def _commit(
    request: Mapping[str, Any],
    tasks: Sequence[TaskCommit],
    mode: Mode,
    overwrite: Sequence[str],
    tell: OnProgress,
    early: Early[JobReport],
) -> JobReport:
    async with AsyncExitStack() as stack:
        stack.push_async_callback(heartbeat.end, _key(request))
        committer = heartbeat.committer_of(_key(request))
        if committer is None:
            committer = await stack.enter_async_context(_committer(request))
        dest = str(committer.layout.dest)
        committer.driver_lives = is_jvm_alive
        return await committer.commit_job(
            tasks,
            mode=mode,
            overwrite=overwrite,
            on_progress=tell,
            made_destination=request.get("madeDestination"),
            on_visible=None if _is_of_hive(dest) else lambda told: early.give(told, dest),
        )


def is_jvm_alive() -> bool:
    """Return whether the driver's JVM answers; true if there is no JVM.

    A child of the JVM ends with it.
    """
    if is_child():
        return True
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return True
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except (Py4JError, OSError):
        return False
    return True


def is_session_alive() -> bool:
    """Return whether the driver's session is running; true without one."""
    if is_child():
        return True
    from pyspark import SparkContext

    if SparkContext._gateway is not None and SparkContext._active_spark_context is None:
        return False
    return is_jvm_alive()


def check(request: Mapping[str, Any]) -> None:
    """Check before any task runs that the job may run.

    Python must reach what Spark set up. Raises ``AsyncCommitError`` if a check fails:
    ``UnfinishedError`` if commits of other jobs were interrupted at this destination,
    ``CommittedError`` if the job with this key is committed.
    """
    _look_ahead(request)
    _check_user(request)
    mode, overwrite = _replaced(request)
    settles = options_for(request).on_unfinished is not OnUnfinished.REFUSE
    with console_progress(quiet=not (settles and is_shown(request["conf"]))) as shown:
        submit(_check(request, mode, overwrite, on_progress or shown))


def _check_user(request: Mapping[str, Any]) -> None:
    """Refuse pending sets on HDFS that are another user's than this process's.

    Raises ``UnsupportedError``.
    """
    user, pending = request.get("actsAs"), request.get("pending")
    if user is None or pending is None or decode_uri(pending).scheme not in HDFS:
        return
    if user != hadoop_user(os.environ):
        raise UnsupportedError(
            f"this session acts as {user}, but Python, which completes its uploads, is "
            f"another user on HDFS, where tasks leave their lists ({pending}). Set "
            "fs.s3a.committer.name=magic, which leaves them on S3"
        )


async def _check(
    request: Mapping[str, Any], mode: Mode, overwrite: Sequence[str], tell: OnProgress
) -> None:
    async with AsyncExitStack() as stack:
        committer = await stack.enter_async_context(_committer(request))
        committer.on_settling = tell
        try:
            await committer.see_setup()
        except NotFoundError as error:
            raise UnsupportedError(
                f"{error.path} was just made by Spark, but Python does not find it: do both use "
                "the same account?"
            ) from error
        await _take(committer, mode, overwrite)
        if committer.heartbeats is not None:
            heartbeat.begin(_key(request), committer, stack.pop_all(), is_session_alive)


async def _take(committer: Committer, mode: Mode, overwrite: Sequence[str]) -> None:
    """Check a job and record its owner, in one step.

    Raises ``JobTakenError`` if another process owns the job, whatever the check's result: the JVM
    has made the same directories as that process and must not delete them.
    """
    taken, refused = await asyncio.gather(
        committer.take_job(),
        committer.check_job(mode=mode, overwrite=overwrite),
        return_exceptions=True,
    )
    if isinstance(taken, ExistsError):
        job_id = committer.layout.job_id
        raise JobTakenError(job_id, "job_stage_setup", (taken,)) from taken
    for error in (refused, taken):
        if error is not None:
            raise error


def abort(request: Mapping[str, Any]) -> None:
    """Abort a job whose uploads only Python can abort.

    Raises ``AsyncCommitError``.
    """
    _look_ahead(request)
    submit(_abort(request))


async def _abort(request: Mapping[str, Any]) -> None:
    await heartbeat.end(_key(request))
    async with _committer(request) as committer:
        report = await committer.abort_job("aborted by Spark")
    for warning in report.warnings:
        log.warning("job %s: %s", report.job_id, warning, extra=committer.layout.log_fields)


def clear(request: Mapping[str, Any]) -> None:
    """Remove a destination that only dead jobs have made.

    Raises ``AsyncCommitError``.
    """
    _look_ahead(request)
    submit(_clear(request))


async def _clear(request: Mapping[str, Any]) -> None:
    async with _committer(request) as committer:
        await leftovers.clear(
            committer,
            lambda job: _committer({**request, "jobId": job.job_id, "attempt": job.attempt}),
        )


def stream(request: Mapping[str, Any]) -> dict[str, Any]:
    """Check a query of Spark's own file sink, or end or abort a batch of it.

    Returns what the JVM is to know. Raises ``AsyncCommitError``.
    """
    _look_ahead(request)
    return BATCHES.answer(request, storage_of(request))


def streamed(request: Mapping[str, Any]) -> None:
    """Note the batches of Spark's own file sink that are in their logs."""
    batches = [report_of(batch) for batch in request["batches"]]
    schemes = [decode_uri(batch["dest"]).scheme for batch in request["batches"]]
    BRIDGE.reports.extend(batches)
    tell(batches, schemes, on_progress or (lambda progress: None))


def _look_ahead(request: Mapping[str, Any]) -> None:
    """Ask the JVM about its filesystem, if the store works through it."""
    prepare(decode_uri(request["dest"]), storage_of(request))


def _key(request: Mapping[str, Any]) -> str:
    return f"{request['dest']} {request['jobId']} {request['attempt']}"


def _committer(request: Mapping[str, Any]) -> AbstractAsyncContextManager[Committer]:
    return JobRef(
        str(decode_uri(request["dest"])),
        request["jobId"],
        attempt=request["attempt"],
        options=options_for(request),
        storage_options=storage_of(request),
        host=host_for(request),
    ).open()


def options_of(conf: Mapping[str, str]) -> Options:
    """Return the options of a commit from a session's settings.

    If an option is given in two spellings, ``spark.asynccommit.`` wins, as in the JVM. An unknown
    key under a prefix of Hadoop is a warning, because other programs may read it. Raises
    ``OptionError``, also for an unknown key of this package.
    """
    known = {k: v for k, v in sorted(conf.items()) if bare(k) not in OWN_KEYS}
    return replace(Options.from_conf(known, shared=True), job_id_source=JOB_ID_SOURCE)


def options_for(request: Mapping[str, Any]) -> Options:
    """Return the options of a commit from a request.

    If Spark's tasks upload, the request also names the Hadoop committer they use, and the place of
    its pending sets. Raises ``OptionError``.
    """
    options = options_of(request["conf"])
    if "committer" not in request:
        return options
    if decode_uri(request["dest"]).authority.endswith("--x-s3"):
        raise UnsupportedError(
            f"{request['dest']} is in a directory bucket, where files are renamed into place, but "
            "Spark's tasks upload to it through S3A, with Hadoop's magic committer: write from "
            "Python (open_job), or to a general purpose bucket"
        )
    place = str(decode_uri(request["pending"])) if "pending" in request else None
    uploads = replace(options.uploads, committer=request["committer"], staging_path=place)
    return replace(options, uploads=uploads)


def host_for(request: Mapping[str, Any]) -> Host:
    """Return this host, with the user of Spark's tasks if it is given."""
    host = this_host()
    return replace(host, user=request["user"]) if "user" in request else host


def storage_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the store options: the session's, and those kept in Python only."""
    scheme, user = decode_uri(request["dest"]).scheme, request.get("hadoopUser")
    return {
        **request.get("storage", {}),
        **store_for_user(scheme, user),
        **store_of(request["conf"]),
        **storage_options,
    }


def store_for_user(scheme: str, user: str | None) -> dict[str, str]:
    """Have the JVM open HDFS if this process would be another user there.

    Only the JVM renews tokens, logs in by a keytab, and acts for another user.

    Args:
        scheme: of the table.
        user: as whom Spark's tasks write, empty for one that this process cannot be; ``None`` if
            it is not known.
    """
    given = any(name.startswith("kerberos_") for name in storage_options)
    if scheme not in HDFS or user is None or given:
        return {}
    return {} if user and user == hadoop_user(os.environ) else {STORE_OPTION: JVM}


def store_of(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the storage option that names the store, if there is one."""
    found = [text for key, text in sorted(conf.items()) if bare(key) == STORE_OPTION]
    return {STORE_OPTION: found[-1]} if found else {}


def _replaced(request: Mapping[str, Any]) -> tuple[Mode, list[str]]:
    """Return the write mode and the directories to replace.

    If Spark's tasks upload and the write only appends, the options of Hadoop's staging committers
    select the mode.

    Raises ``OptionError`` for a directory on another store.
    """
    dest = decode_uri(request["dest"])
    if request.get("dynamic"):
        return Mode.REPLACE_PARTITIONS, []
    overwrite = [_path_on(dest, uri) for uri in request.get("overwrite", ())]
    if not overwrite and "committer" in request:
        return mode_of(options_for(request), request["committer"]), []
    if dest.path not in overwrite:
        return Mode.APPEND, overwrite
    return Mode.REPLACE_TABLE, [path for path in overwrite if path != dest.path]


def is_shown(conf: Mapping[str, str]) -> bool:
    """Return whether to show progress here.

    The option decides; by default progress is shown: as a bar on a terminal, and as a line every
    few seconds in notebooks and logs.
    """
    if on_progress is not None:
        return False
    return conf.get("spark.asynccommit.progress", "true").strip().lower() == "true"


def _path_on(dest: Address, uri: str) -> str:
    place = decode_uri(uri)
    if not place.same_store(dest):
        raise OptionError(f"{place} cannot be overwritten: it is not on the store of {dest}")
    return place.path


class Bridge:
    """The object that answers the JVM.

    It is safe to call from many threads, and twice for one job.

    Args:
        commit: commits a job.
        check: checks before the work whether a job may run.
        abort: undoes the work of tasks for a job that will not be committed.
    """

    def __init__(self, commit: Commit = commit, check: Check = check, abort: Abort = abort) -> None:
        self.reports: deque[JobReport] = deque(maxlen=_REMEMBERED)
        self._commit = commit
        self._check = check
        self._abort = abort
        self._lock = threading.Lock()
        self._replies: OrderedDict[str, Future[str]] = OrderedDict()
        self._draining_in = 0

    def apply(self, request: str) -> str:
        """Check, commit or abort a job and return the result; never raise.

        A request that is repeated because the JVM lost the reply gets the first reply.
        """
        what: Any = None
        try:
            what = orjson.loads(request)
            _refuse_other_builds(what.get("build"))
            kinds: dict[str, Callable[[Mapping[str, Any]], Any]] = {
                "check": self._check,
                "abort": self._abort,
                "clear": clear,
                "stream": stream,
                "streamed": streamed,
            }
            if at_once := kinds.get(what.get("what")):
                said = at_once(what) or {}
                return orjson.dumps({"ok": True, "build": build_id(), **said}).decode()
            reply, mine = self._reply_for(_key(what))
        except Exception as error:
            return _failure(error, what)
        if mine:
            self._wait_at_exit()
            reply.set_result(self._answer(what))
        return reply.result()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until no commit is running. Raises ``TimeoutError``."""
        for reply in list(self._replies.values()):
            reply.result(timeout)

    def _reply_for(self, key: str) -> tuple[Future[str], bool]:
        with self._lock:
            if key in self._replies:
                return self._replies[key], False
            reply: Future[str] = Future()
            self._replies[key] = reply
            while len(self._replies) > _REMEMBERED and next(iter(self._replies.values())).done():
                self._replies.popitem(last=False)
            return reply, True

    def _answer(self, what: Mapping[str, Any]) -> str:
        try:
            report = self._commit(what)
        except BaseException as error:  # an interrupt too: Spark needs a reply
            return _failure(error, what)
        self.reports.append(_noted(report))
        fields = log_fields(report.job_id, report.dest)
        for warning in report.warnings:
            log.warning("job %s: %s", report.job_id, warning, extra=fields)
        return orjson.dumps({"ok": True, "files": report.files, "bytes": report.bytes}).decode()

    def _wait_at_exit(self) -> None:
        """Let a commit finish although Ctrl-C ends the program."""
        with self._lock:
            if self._draining_in == os.getpid():
                return
            self._draining_in = os.getpid()
        # A plain atexit hook runs too late: thread pools, which stores use, accept no work by then.
        # Hooks run in reverse order of registration, so the pools' hook must be registered first.
        import_module("concurrent.futures.thread")
        register = getattr(threading, "_register_atexit", atexit.register)
        register(self._drain)

    def _drain(self) -> None:
        if self._draining_in != os.getpid():
            return  # a forked child, whose parent commits
        if not all(reply.done() for reply in self._replies.values()):
            log.warning("waiting for a job commit to end; Ctrl-C stops it in the middle")
        self.wait()


def _refuse_other_builds(build: str | None) -> None:
    """Refuse a request of a jar that is of another version."""
    if build != build_id():
        raise UnsupportedError(other_build(build))


def _is_of_hive(dest: str) -> bool:
    """Return whether Hive moves and deletes the destination after the commit."""
    return any(_HIVE_STAGING.match(name) for name in dest.split("/"))


def _noted(report: JobReport) -> JobReport:
    """Return a report that mentions whether Hive will move the files."""
    if not _is_of_hive(report.dest):
        return report
    note = f"Hive moves these files to its table, and then deletes its staging {report.dest}"
    return replace(report, warnings=(*report.warnings, note))


def _calls(error: BaseException, request: Any) -> str:
    """Return the calls that finish or undo the commits that an error is about.

    They have the credentials of the session, which the commands of a shell lack. A driver without
    Python can make none.
    """
    if is_child():
        return ""
    jobs = error.jobs if isinstance(error, UnfinishedError) else ()
    if isinstance(error, CommitError) and not jobs and "asynccommit resume " in str(error):
        jobs = (error.job_id,)
    if not jobs or not isinstance(request, Mapping) or "dest" not in request:
        return ""
    place = str(decode_uri(request["dest"]))
    lines = ["In this session, with its credentials:"]
    for job_id in jobs[:_NAMED]:
        named = f"({place!r}, {job_id!r})"
        lines.append(f"  finish it: asynccommit.spark.resume{named}")
        lines.append(f"  or roll it back: asynccommit.spark.rollback{named}")
    return "\n".join(lines)


def _failure(error: BaseException, request: Any = None) -> str:
    """Return the reply that raises the user's exception, message first."""
    kind, fields = type(error).__name__, _log_fields(request)
    if isinstance(error, AsyncCommitError):
        log.debug("job commit failed", exc_info=error, extra=fields)
        parts = (str(error), *getattr(error, "__notes__", ()), _calls(error, request))
        text = "\n".join(part for part in parts if part)
    elif isinstance(error, KeyboardInterrupt | CancelledError):
        text = "the job commit was interrupted; asynccommit status URL shows its state"
        text = "\n".join((text, *getattr(error, "__notes__", ())))
        log.warning(text, extra=fields)
    else:
        log.error("job commit failed unexpectedly", exc_info=error, extra=fields)
        text = f"{kind}: {error}" if str(error) else kind
    return orjson.dumps({"ok": False, "error": text, "kind": kind}).decode()


def _log_fields(request: Any) -> dict[str, str] | None:
    """Return the ``extra`` of a log record, if the request names a job."""
    if not isinstance(request, Mapping) or not {"dest", "jobId"} <= request.keys():
        return None
    with suppress(AsyncCommitError):
        return log_fields(request["jobId"], decode_uri(request["dest"]))
    return None


BRIDGE = Bridge()
"""The bridge of this process."""
