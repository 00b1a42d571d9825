"""The Python end of Spark's job commit: one JSON text from the JVM, one JSON text back."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from importlib import import_module
from typing import Any

import orjson

from asynccommit.api import open_committer
from asynccommit.commit.context import OnProgress
from asynccommit.commit.layout import TaskCommit
from asynccommit.commit.registry import Committer, mode_of
from asynccommit.errors import (
    AsyncCommitError,
    ExistsError,
    NotFoundError,
    OptionError,
    OwnedError,
    UnsupportedError,
)
from asynccommit.inspect.progress import console_progress
from asynccommit.options.job import Mode, Options, bare
from asynccommit.results import JobReport
from asynccommit.runtime.host import Host, this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark import heartbeat, leftovers
from asynccommit.stores.urls import Address, decode_uri

log = logging.getLogger("asynccommit.spark")

on_progress: OnProgress | None = None
"""Called while a job is committed here, on the engine's thread; no line is shown then."""

storage_options: dict[str, Any] = {}
"""Credentials and the like for the stores, besides what the session's configuration says."""

JOB_ID_SOURCE = "spark.sql.sources.writeJobUUID"
OWN_KEYS = ("asynccommit.schemes", "asynccommit.unsupportedScheme", "asynccommit.progress")
"""Options that end at this bridge, and are none of a commit."""

_REMEMBERED = 100
_HIVE_STAGING = re.compile(r"(.*_)?hive_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+_.")  # as in Layout.java

Commit = Callable[[Mapping[str, Any]], JobReport]
Check = Callable[[Mapping[str, Any]], None]
Abort = Callable[[Mapping[str, Any]], None]


def commit(request: Mapping[str, Any]) -> JobReport:
    """Commit what a request of the JVM describes. Raises ``CommitError``, ``OptionError``."""
    tasks = [TaskCommit.from_json(task) for task in request["tasks"]]
    mode, overwrite = _replaced(request)
    with console_progress(quiet=not is_shown(request["conf"])) as shown:
        return submit(_commit(request, tasks, mode, overwrite, on_progress or shown))


class JobTakenError(OwnedError):
    """Another process has set up this very job: what is there is that one's."""


async def _commit(
    request: Mapping[str, Any],
    tasks: Sequence[TaskCommit],
    mode: Mode,
    overwrite: Sequence[str],
    tell: OnProgress,
) -> JobReport:
    async with _committer(request) as committer:
        committer.driver_lives = is_jvm_alive
        committer.signs = heartbeat.signs_of(_key(request))
        try:
            return await committer.commit_job(
                tasks,
                mode=mode,
                overwrite=overwrite,
                on_progress=tell,
                made_destination=request.get("madeDestination"),
            )
        finally:
            await heartbeat.end(_key(request))


def is_jvm_alive() -> bool:
    """Whether the JVM that this process drives answers; true if it drives none."""
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
    """Whether the session that this process drives has not been stopped; true if it drives none."""
    from pyspark import SparkContext

    if SparkContext._gateway is not None and SparkContext._active_spark_context is None:
        return False
    return is_jvm_alive()


def check(request: Mapping[str, Any]) -> None:
    """See before any task runs that the job may run, and that Python reaches what Spark set up.

    Raises ``AsyncCommitError`` if not: ``UnfinishedError`` if commits of other jobs were cut short
    at this destination, ``CommittedError`` if the job's key says that it is done.
    """
    mode, overwrite = _replaced(request)
    submit(_check(request, mode, overwrite))


async def _check(request: Mapping[str, Any], mode: Mode, overwrite: Sequence[str]) -> None:
    async with AsyncExitStack() as stack:
        committer = await stack.enter_async_context(_committer(request))
        try:
            await committer.see_setup()
        except NotFoundError as error:
            raise UnsupportedError(
                f"{error.path} was just made by Spark and Python does not find it: do both use "
                "the same account?"
            ) from error
        await _take(committer, mode, overwrite)
        if committer.signs is not None:
            heartbeat.begin(_key(request), committer.signs, stack.pop_all(), is_session_alive)


async def _take(committer: Committer, mode: Mode, overwrite: Sequence[str]) -> None:
    """Check a job and write whose it is, at once.

    Raises ``JobTakenError`` if another has, whatever the check says: then the JVM, which has made
    the same directories as that one, must not delete them.
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
    """Abort a job whose uploads only Python can. Raises ``AsyncCommitError``."""
    submit(_abort(request))


async def _abort(request: Mapping[str, Any]) -> None:
    await heartbeat.end(_key(request))
    async with _committer(request) as committer:
        report = await committer.abort_job("aborted by Spark")
    for warning in report.warnings:
        log.warning("job %s: %s", report.job_id, warning)


def clear(request: Mapping[str, Any]) -> None:
    """Remove a destination that only dead jobs have made. Raises ``AsyncCommitError``."""
    submit(_clear(request))


async def _clear(request: Mapping[str, Any]) -> None:
    async with _committer(request) as committer:
        await leftovers.clear(
            committer,
            lambda job: _committer({**request, "jobId": job.job_id, "attempt": job.attempt}),
        )


def _key(request: Mapping[str, Any]) -> str:
    return f"{request['dest']} {request['jobId']} {request['attempt']}"


def _committer(request: Mapping[str, Any]) -> AbstractAsyncContextManager[Committer]:
    return open_committer(
        str(decode_uri(request["dest"])),
        request["jobId"],
        attempt=request["attempt"],
        options=options_for(request),
        storage_options=storage_of(request),
        host=host_for(request),
    )


def options_of(conf: Mapping[str, str]) -> Options:
    """Return the options of a commit among what a session says. Raises ``OptionError``.

    Of two spellings of one option ``spark.asynccommit.`` counts, as it does in the JVM.
    """
    known = {k: v for k, v in sorted(conf.items()) if bare(k) not in OWN_KEYS}
    return replace(Options.from_conf(known), job_id_source=JOB_ID_SOURCE)


def options_for(request: Mapping[str, Any]) -> Options:
    """Return the options of a commit as a request says them. Raises ``OptionError``.

    Where Spark's tasks upload, it also says by which of Hadoop's committers, and where that keeps
    its pending sets.
    """
    options = options_of(request["conf"])
    if "committer" not in request:
        return options
    place = str(decode_uri(request["pending"])) if "pending" in request else None
    uploads = replace(options.uploads, committer=request["committer"], staging_path=place)
    return replace(options, uploads=uploads)


def host_for(request: Mapping[str, Any]) -> Host:
    """Return this host, with the user that Spark's tasks have where that is told."""
    host = this_host()
    return replace(host, user=request["user"]) if "user" in request else host


def storage_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the stores: the session's, and those that never leave Python."""
    return {**request.get("storage", {}), **storage_options}


def _replaced(request: Mapping[str, Any]) -> tuple[Mode, list[str]]:
    """Return what becomes of what the destination holds: the mode, and directories to replace.

    Where Spark's tasks upload and the write only adds, the options of Hadoop's staging committers
    say what that means.

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
    """Return whether to show progress here: as the option says, else where a terminal is."""
    if on_progress is not None:
        return False
    wish = conf.get("spark.asynccommit.progress")
    return sys.stderr.isatty() if wish is None else wish.strip().lower() == "true"


def _path_on(dest: Address, uri: str) -> str:
    place = decode_uri(uri)
    if not place.same_store(dest):
        raise OptionError(f"{place} cannot be overwritten: it is not on the store of {dest}")
    return place.path


class Bridge:
    """What answers the JVM. Safe to call from many threads, and twice for one job.

    Args:
        commit: does the work.
        check: says before the work whether it may be done.
        abort: undoes what tasks have done for a job that will not be committed.
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
        """Check, commit or abort a job and say how it went; never raises.

        A request that comes again, because the JVM lost the answer, gets the first one's answer.
        """
        try:
            what = orjson.loads(request)
            kinds = {"check": self._check, "abort": self._abort, "clear": clear}
            if at_once := kinds.get(what.get("what")):
                at_once(what)
                return orjson.dumps({"ok": True}).decode()
            reply, mine = self._reply_for(_key(what))
        except Exception as error:
            return _failure(error)
        if mine:
            self._wait_at_exit()
            reply.set_result(self._answer(what))
        return reply.result()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until no commit is under way. Raises ``TimeoutError``."""
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
        except BaseException as error:  # an interrupt too: Spark has to be told
            return _failure(error)
        self.reports.append(_noted(report))
        for warning in report.warnings:
            log.warning("job %s: %s", report.job_id, warning)
        return orjson.dumps({"ok": True, "files": report.files, "bytes": report.bytes}).decode()

    def _wait_at_exit(self) -> None:
        """Let a commit end though Ctrl-C ends the program: half of it helps nobody."""
        with self._lock:
            if self._draining_in == os.getpid():
                return
            self._draining_in = os.getpid()
        # Plain atexit comes too late: thread pools, which stores use, take no work by then. The
        # last to register is the first to run, so theirs must be registered.
        import_module("concurrent.futures.thread")
        register = getattr(threading, "_register_atexit", atexit.register)
        register(self._drain)

    def _drain(self) -> None:
        if self._draining_in != os.getpid():
            return  # a forked child, whose parent commits
        if not all(reply.done() for reply in self._replies.values()):
            log.warning("waiting for a job commit to end; Ctrl-C stops it half-way")
        self.wait()


def _noted(report: JobReport) -> JobReport:
    """Return a report that says so if Hive moves its files on, which happens after this."""
    if not any(_HIVE_STAGING.match(name) for name in report.dest.split("/")):
        return report
    note = f"Hive moves these files to its table, and then deletes its staging {report.dest}"
    return replace(report, warnings=(*report.warnings, note))


def _failure(error: BaseException) -> str:
    """Return the answer that makes ``error`` the user's exception, its message first."""
    kind = type(error).__name__
    if isinstance(error, AsyncCommitError):
        log.debug("job commit failed", exc_info=error)
        text = "\n".join((str(error), *getattr(error, "__notes__", ())))
    elif isinstance(error, KeyboardInterrupt | CancelledError):
        text = "the job commit was interrupted; asynccommit status URL says what is left of it"
        text = "\n".join((text, *getattr(error, "__notes__", ())))
        log.warning(text)
    else:
        log.error("job commit failed unexpectedly", exc_info=error)
        text = f"{kind}: {error}" if str(error) else kind
    return orjson.dumps({"ok": False, "error": text, "kind": kind}).decode()


BRIDGE = Bridge()
"""The one of this process."""
