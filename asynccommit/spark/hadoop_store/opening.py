"""Open a store over a filesystem of this process's JVM."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import orjson

from asynccommit.errors import UnsupportedError
from asynccommit.redact import redact, short
from asynccommit.spark.hadoop_store.store import FileFacts, HadoopStore
from asynccommit.stores.databricks import refuse_mapped
from asynccommit.stores.elsewhere import STORE_OPTION, opener_for, provide
from asynccommit.stores.registry import STORES
from asynccommit.stores.urls import Address

PROPERTY = "asynccommit.spark.files"
"""The system property of the JVM with its filesystems; see Filesystems.java."""

_CLASS = "org.asynccommit.spark.Filesystems"
_ROOM = 300  # characters of a message
_NO_JVM = (
    f"needs a Spark session in this process ({STORE_OPTION}): call "
    "asynccommit.spark.configure(spark), then asynccommit.spark.status, resume or rollback"
)
_KNOWN: dict[str, FileFacts] = {}
_FILES: Any = None
"""The filesystems of the JVM that has started this process, if one has."""


def register_files(jvm: Any) -> None:
    """Have this process open what its JVM can open."""
    lang = jvm.java.lang
    properties = lang.System.getProperties()
    if properties.get(PROPERTY) is None:
        loader = lang.Thread.currentThread().getContextClassLoader()
        kind = lang.Class.forName(_CLASS, True, loader)
        properties.put(PROPERTY, kind.newInstance())
        _KNOWN.clear()
    provide("jvm", open_in_jvm)


def work_on(files: Any) -> None:
    """Have this process open what the JVM that has started it can open."""
    global _FILES
    _FILES = files
    provide("jvm", open_in_jvm)


def is_child() -> bool:
    """Return whether the JVM whose jobs this process commits has started it."""
    return _FILES is not None


def prepare(address: Address, options: Mapping[str, Any]) -> None:
    """Look at a filesystem before its store is opened in an event loop.

    Nothing is done for a place whose store needs no JVM. Raises ``UnsupportedError`` as
    ``open_in_jvm`` does.
    """
    if opener_for(address, options, address.scheme in STORES) is open_in_jvm:
        look_at(address)


def open_in_jvm(address: Address, options: Mapping[str, Any]) -> HadoopStore:
    """Open the store of ``address`` through the driver's JVM.

    Raises:
        UnsupportedError: there is no JVM, it cannot open the filesystem, or a commit cannot rely
            on its renames.
    """
    name = _name(address)
    facts = _KNOWN[name] if name in _KNOWN else look_at(address)
    return HadoopStore(lambda: _files().calls(name), facts)


def look_at(address: Address) -> FileFacts:
    """Return the facts about a filesystem of the driver's JVM.

    This takes requests, so it is no function for an event loop. A job has opened the filesystem
    already; otherwise the active session does. Raises ``UnsupportedError``.
    """
    refuse_mapped(address, os.environ)
    name = _name(address)
    try:
        files = _files()
        if not files.has(name):
            _open(files, address)
        _KNOWN[name] = facts_of(files, name)
        return _KNOWN[name]
    except _errors() as error:
        why = message_of(error)
    raise UnsupportedError(f"{name}: the driver's JVM cannot open it: {why}")


def facts_of(files: Any, name: str) -> FileFacts:
    """Return the facts about a filesystem that the JVM has opened.

    Args:
        files: the filesystems of the JVM.
        name: scheme and authority.

    Raises ``UnsupportedError`` if a commit cannot rely on its renames.
    """
    if not files.has(name):
        raise UnsupportedError(f"{name}: the JVM opens it under another name: use that one")
    facts = orjson.loads(files.facts(name))
    if facts["refused"]:
        raise UnsupportedError(
            f"{name} cannot be used for commits: {facts['refused']} ({facts['class']})"
        )
    return FileFacts(name, facts["class"], facts["atomic"], facts["etags"], facts["survives"])


def _name(address: Address) -> str:
    return f"{address.scheme}://{address.authority}"


def _files() -> Any:
    """Return the JVM's filesystems. Raises ``UnsupportedError`` without one."""
    if _FILES is not None:
        return _FILES
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    found = None
    if gateway is not None:
        found = gateway.jvm.java.lang.System.getProperties().get(PROPERTY)
    if found is None:
        raise UnsupportedError(f"this URL {_NO_JVM}")
    return found


def _errors() -> tuple[type[Exception], ...]:
    """Return what is raised if the JVM fails, or has died."""
    if _FILES is not None:
        return (OSError,)
    from py4j.protocol import Py4JError

    return (Py4JError, OSError)


def jvm_user() -> str | None:
    """Return the user that the JVM is on HDFS, as ``Filesystems.user`` does.

    The result is ``None`` in a process that is not registered in its JVM.
    """
    try:
        return str(_files().user())
    except UnsupportedError:
        return None


def _open(files: Any, address: Address) -> None:
    if _FILES is not None:
        files.open(address.encode())
        return
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    session = active or getattr(SparkSession, "_instantiatedSession", None)
    if session is None or not hasattr(session, "_jsparkSession"):
        raise UnsupportedError(f"{address} {_NO_JVM}")
    files.open(address.encode(), session._jsparkSession.sessionState().newHadoopConf())


def message_of(error: Exception) -> str:
    """Return class and message of an exception of the JVM, redacted."""
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else f"{type(error).__name__}: {error}"
    return short(redact(text.partition("\n")[0]), _ROOM)
