"""Try a destination as Python and as the session's JVM.

Tasks write with the JVM's credential provider, and the job commit renames with Python's. A client
of the JVM's own is opened here, with few retries: those of Hadoop's go on for many minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from asynccommit.errors import AsyncCommitError, NotFoundError
from asynccommit.inspect.doctor import Check, own_directory
from asynccommit.inspect.identities import hadoop_identity, python_identity
from asynccommit.redact import redact, short
from asynccommit.runtime.host import this_host, user_name
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.hadoop_store.opening import message_of, open_in_jvm
from asynccommit.stores.elsewhere import opener_for
from asynccommit.stores.opening import open_place
from asynccommit.stores.urls import Address

_SECONDS = 20.0
_ROOM = 300  # characters of a message
_FEW: Mapping[str, str] = {
    "fs.azure.io.retry.max.retries": "2",
    "fs.azure.oauth.token.fetch.retry.max.retries": "1",
    "fs.s3a.attempts.maximum": "2",
    "fs.s3a.retry.limit": "2",
    "fs.gs.http.max.retry": "2",
    "ipc.client.connect.max.retries": "2",
    "ipc.client.connect.max.retries.on.timeouts": "2",
}
"""Hadoop's options of retries, for the trial alone."""


@dataclass(slots=True)
class _Trial:
    """The outcome of one side's requests at a destination.

    Attributes:
        done: what succeeded, in words.
        error: why the next step failed, redacted.
    """

    done: list[str] = field(default_factory=list)
    error: str = ""


def check_identities(
    session: Any, place: Address, storage: Mapping[str, Any], *, write: bool
) -> Iterator[Check]:
    """Yield who Python and the JVM are at a destination.

    Each must be able to list it.

    Args:
        session: a classic session.
        place: a destination.
        storage: options of Python's store.
        write: whether each makes a directory of its own there, and deletes it.
    """
    python = submit(_try_python(place, storage, write=write))
    remedy = f"give Python credentials: configure(spark, storage_options={{...}}), {_page(place)}"
    yield _row("identity of Python", _python(place, storage), python, remedy)
    with ExitStack() as left:
        jvm, file = _try_jvm(session, place, left, write=write)
        remedy = (
            f"set Hadoop's options of {place.scheme}: in the session, it is spark.hadoop.fs...."
        )
        yield _row("identity of the JVM", _jvm(session, place), jvm, remedy)
        if write and not python.error and not jvm.error:
            yield submit(_hand_over(place, storage, file))


def _python(place: Address, storage: Mapping[str, Any]) -> str:
    if opener_for(place, storage, known=True) is open_in_jvm:
        return "that of the JVM, through which Python works"
    return python_identity(place, storage, os.environ)


def _jvm(session: Any, place: Address) -> str:
    """Return who the JVM is, as far as its settings tell."""
    jvm, conf = session._jvm, session._jsparkSession.sessionState().newHadoopConf()
    if found := hadoop_identity(place, conf.get):
        return found
    if place.scheme == "file":  # the user of the process: HADOOP_USER_NAME is no user of the disk
        with suppress(OSError):
            return user_name(os.stat(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}").st_uid)
        return str(jvm.java.lang.System.getProperty("user.name"))
    user = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    return f"{user.getUserName()}, {user.getAuthenticationMethod().toString()}"


def _page(place: Address) -> str:
    pages = {"gs": "stores-gcs.md", "hdfs": "stores-hdfs.md", "s3a": "stores-s3.md"}
    return f"docs/{pages.get(place.scheme, 'stores.md')}"


def _row(name: str, who: str, trial: _Trial, remedy: str) -> Check:
    done = " and ".join(trial.done)
    if not trial.error:
        return Check(name, f"{who}; {done}", ok=True)
    but = f"{done}, but: " if done else ""
    return Check(name, f"{who}; {but}{trial.error}", False, remedy)


async def _try_python(place: Address, storage: Mapping[str, Any], *, write: bool) -> _Trial:
    trial = _Trial()
    try:
        async with open_place(place, storage_options=storage, retry_seconds=_SECONDS) as store:
            with suppress(NotFoundError):
                await store.list(place.path)
            trial.done.append("lists")
            if write:
                async with own_directory(store, place.path) as directory:
                    await store.put(f"{directory}/python", b"1")
                trial.done.append("writes")
    except AsyncCommitError as error:
        trial.error = short(redact(str(error)), _ROOM)
    return trial


def _try_jvm(
    session: Any, place: Address, left: ExitStack, *, write: bool
) -> tuple[_Trial, Address]:
    """Return what the JVM could do, and the file that it has written.

    ``left`` removes the file, and closes the JVM's client.
    """
    from py4j.protocol import Py4JError

    trial, own = _Trial(), place.child(f"_asynccommit-doctor-{this_host().new_id()}-jvm")
    file = own.child("jvm")
    try:
        files = _opened(session, place)
        left.callback(files.close)
        there = files.exists(_path(session, place))
        if there:
            files.listStatusIterator(_path(session, place)).hasNext()
        trial.done.append("lists")
        if write:
            left.callback(_remove, session, files, [own] if there else [own, place])
            files.mkdirs(_path(session, own))
            files.create(_path(session, file), False).close()
            trial.done.append("writes")
    except Py4JError as error:
        trial.error = message_of(error)
    return trial, file


def _opened(session: Any, place: Address) -> Any:
    """Return a client of the JVM's that gives up soon."""
    conf = session._jsparkSession.sessionState().newHadoopConf()
    for key, value in _FEW.items():
        conf.set(key, value)
    uri = _path(session, place).toUri()
    return session._jvm.org.apache.hadoop.fs.FileSystem.newInstance(uri, conf)


def _path(session: Any, place: Address) -> Any:
    kind = session._jvm.org.apache.hadoop.fs.Path
    return kind(place.scheme, place.authority or None, place.path)


def _remove(session: Any, files: Any, places: Sequence[Address]) -> None:
    """Remove a place with all in it, and the others if they are empty."""
    from py4j.protocol import Py4JError

    for number, place in enumerate(places):
        with suppress(Py4JError):
            files.delete(_path(session, place), number == 0)


async def _hand_over(place: Address, storage: Mapping[str, Any], file: Address) -> Check:
    """Move a file of the JVM's as a job commit does."""
    row = "file of the JVM"
    try:
        async with open_place(place, storage_options=storage, retry_seconds=_SECONDS) as store:
            if not store.traits.atomic_rename:
                await store.head(file.path)
                return Check(row, "Python sees it", ok=True)
            async with own_directory(store, place.path) as directory:
                await store.rename(file.path, f"{directory}/moved")
    except AsyncCommitError as error:
        why = short(redact(str(error)), _ROOM)
        remedy = "let Python's user change what tasks make: one user or group, or an ACL"
        return Check(row, f"Python cannot rename it: {why}", False, remedy)
    return Check(row, "Python can rename it, as a job commit does", ok=True)
