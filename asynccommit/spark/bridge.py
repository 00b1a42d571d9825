"""The Python end of Spark's job commit: one JSON text from the JVM, one JSON text back."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar

import orjson

from asynccommit import sync
from asynccommit.api import open_committer
from asynccommit.engine import submit
from asynccommit.errors import AsyncCommitError, NotFoundError, OptionError, UnsupportedError
from asynccommit.job import TaskCommit
from asynccommit.options import Options, bare
from asynccommit.report.progress import console_progress
from asynccommit.results import JobReport
from asynccommit.stages.run import OnProgress
from asynccommit.urls import Address, decode_uri

log = logging.getLogger("asynccommit.spark")

on_progress: OnProgress | None = None
"""Called while a job is committed here, on the engine's thread; no line is shown then."""

storage_options: dict[str, Any] = {}
"""Credentials and the like for the stores, besides what the session's configuration says."""

JOB_ID_SOURCE = "spark.sql.sources.writeJobUUID"
OWN_KEYS = ("asynccommit.schemes", "asynccommit.unsupportedScheme", "asynccommit.progress")
"""Options that end at this bridge, and are none of a commit."""

_REMEMBERED = 100

Commit = Callable[[Mapping[str, Any]], JobReport]


def commit(request: Mapping[str, Any]) -> JobReport:
    """Commit what a request of the JVM describes. Raises ``CommitError``, ``OptionError``."""
    dest = decode_uri(request["dest"])
    overwrite = [_path_on(dest, uri) for uri in request["overwrite"]]
    tasks = [TaskCommit.from_json(task) for task in request["tasks"]]
    with console_progress(quiet=not _is_shown(request["conf"])) as shown:
        return sync.commit_job(
            str(dest),
            request["jobId"],
            tasks,
            attempt=request["attempt"],
            options=_options(request),
            storage_options=_storage(request),
            overwrite=overwrite,
            on_progress=on_progress or shown,
        )


def check(request: Mapping[str, Any]) -> None:
    """See that Python reaches what the JVM has just set up, before any task runs.

    Raises ``AsyncCommitError`` if it does not.
    """
    submit(_check(request))


async def _check(request: Mapping[str, Any]) -> None:
    opened = open_committer(
        str(decode_uri(request["dest"])),
        request["jobId"],
        attempt=request["attempt"],
        options=_options(request),
        storage_options=_storage(request),
    )
    async with opened as committer:
        try:
            await committer.store.head(committer.layout.manifests_dir)
        except NotFoundError as error:
            raise UnsupportedError(
                f"{error.path} was just made by Spark and Python does not find it: do both use "
                "the same account?"
            ) from error


def _options(request: Mapping[str, Any]) -> Options:
    conf = {k: v for k, v in request["conf"].items() if bare(k) not in OWN_KEYS}
    return replace(Options.from_conf(conf), job_id_source=JOB_ID_SOURCE)


def _storage(request: Mapping[str, Any]) -> dict[str, Any]:
    return {**request.get("storage", {}), **storage_options}


def _is_shown(conf: Mapping[str, str]) -> bool:
    """Whether to show progress here: as the option says, else where a terminal is."""
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
    """What the JVM calls. Safe to call from many threads, and twice for one job.

    Args:
        commit: does the work.
    """

    def __init__(self, commit: Commit = commit) -> None:
        self.reports: deque[JobReport] = deque(maxlen=_REMEMBERED)
        self._commit = commit
        self._lock = threading.Lock()
        self._replies: OrderedDict[str, Future[str]] = OrderedDict()
        self._draining_in = 0

    def apply(self, request: str) -> str:
        """Commit a job and say how it went; never raises.

        A request that comes again, because the JVM lost the answer, gets the first one's answer.
        """
        try:
            what = orjson.loads(request)
            if what.get("what") == "check":
                check(what)
                return orjson.dumps({"ok": True}).decode()
            reply, mine = self._reply_for(f"{what['dest']} {what['jobId']} {what['attempt']}")
        except Exception as error:
            return _failure(error)
        if mine:
            self._wait_at_exit()
            reply.set_result(self._answer(what))
        return reply.result()

    def toString(self) -> str:  # noqa: N802  the JVM may print its system properties
        """Return a text for the JVM."""
        return repr(self)

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
        self.reports.append(report)
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

    class Java:
        """The interface that the JVM sees."""

        implements: ClassVar = ["java.util.function.Function"]


def _failure(error: BaseException) -> str:
    """Return the answer that makes ``error`` the user's exception, its message first."""
    kind = type(error).__name__
    if isinstance(error, AsyncCommitError):
        log.debug("job commit failed", exc_info=error)
        text = str(error)
    elif isinstance(error, KeyboardInterrupt | CancelledError):
        text = "the job commit was interrupted; what it had begun is kept"
        log.warning(text)
    else:
        log.error("job commit failed unexpectedly", exc_info=error)
        text = f"{kind}: {error}" if str(error) else kind
    return orjson.dumps({"ok": False, "error": text, "kind": kind}).decode()


BRIDGE = Bridge()
"""The one of this process."""
