"""Configure new and running Spark sessions for the commit protocol."""

from __future__ import annotations

import os
import re
import shlex
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.options.job import Options, OptionWarning, bare
from asynccommit.spark.bridge import BRIDGE, OWN_KEYS, options_of
from asynccommit.spark.callback import leave
from asynccommit.spark.clients import (
    CLIENT_KEYS,
    check_schemes,
    client_settings,
    hadoop_beside,
    require_clients,
)
from asynccommit.spark.hadoop_store.opening import register_files
from asynccommit.spark.jars import installed_spark, spark_jars
from asynccommit.spark.loading import (
    PROTOCOL,
    STREAM_PROTOCOL,
    guard_streams,
    is_loadable,
    load_jar,
)

CALLBACK = "asynccommit.spark.callback"
PYTHON = "asynccommit.spark.python"
PYTHON_PATH = "asynccommit.spark.python.path"
_COMMITS = (
    r"^(mapreduce\.manifest\.committer|mapreduce\.fileoutputcommitter|fs\.s3a\.committer|"
    r"(spark\.)?asynccommit)\."
)
_STORES = r"^(fs\.azure|fs\.gs|fs\.s3a|google\.cloud)\."
_LOCAL = r"^fs\.permissions\."
_HDFS = (  # as in Keys.java
    r"^(dfs\.client\.|dfs\.ha\.|dfs\.namenode\.rpc-address|dfs\.nameservices|dfs\.data\.transfer\.|"
    r"dfs\.encrypt\.data\.transfer|fs\.defaultFS|fs\.permissions\.|fs\.viewfs\.|"
    r"hadoop\.rpc\.protection|hadoop\.security\.authentication)"
)
_STAGING = "fs.s3a.committer.staging.tmp.path"
CLASS_KEY = "spark.sql.sources.commitProtocolClass"
STREAM_KEY = "spark.sql.streaming.commitProtocolClass"
_MARK = "_asynccommit_conf"
_BEFORE = "_asynccommit_before"
_UNUSED = (
    "asynccommit.spark.configure() was given a builder that was then discarded, so no session is "
    "configured by it: write spark = configure(SparkSession.builder).getOrCreate(), or "
    "configure(spark) for a running session"
)
_PASSED_BY = (
    "this session is not configured: asynccommit.spark.configure() was given another builder, and "
    "each SparkSession.builder is a new one. Spark's own protocol commits its writes. Call "
    "configure(spark), or write spark = configure(SparkSession.builder).getOrCreate()"
)
_NOT_INHERITED = (
    "newSession() of a session configured by asynccommit has made one that is not: Spark's own "
    "protocol commits its writes. Call asynccommit.spark.configure() with the new session"
)


_waiting: MutableMapping[Any, Any] = weakref.WeakKeyDictionary()
"""Configured builder -> what warns if it is discarded, until it makes its session."""


def prepare_builder(builder: Any, conf: Mapping[str, str], stores: Sequence[str] = ()) -> None:
    """Set the options that a session needs, and let ``getOrCreate`` attach it."""
    _refuse_connect_builder(builder)
    check_schemes(stores)
    if not _jvm_runs():
        spark = installed_spark()
        if stores:
            _load_clients(builder, stores, hadoop_beside(spark))
    for key, value in conf.items():
        builder.config(key if key.startswith("spark.") else f"spark.hadoop.{key}", value)
    if hasattr(builder, _MARK):
        settings, wanted = getattr(builder, _MARK)
        settings.update(conf)
        wanted.extend(stores)
        return
    setattr(builder, _MARK, (dict(conf), list(stores)))
    kind: Any = type(builder)
    unused = weakref.finalize(builder, _warn_of_unused)
    unused.atexit = False
    _waiting[builder] = unused
    _watch_other_builders(kind)

    class Configured(kind):  # type: ignore[misc]
        def getOrCreate(self) -> Any:  # noqa: N802  PySpark's name
            unused.detach()
            _waiting.pop(self, None)
            makes_context = not _context_runs()
            session = super().getOrCreate()
            settings, wanted = getattr(self, _MARK)
            attach(session, settings, wanted, inherited=makes_context)
            return session

    # A function in the object itself would keep the object alive, and hide that it was discarded.
    Configured.__name__, Configured.__qualname__ = kind.__name__, kind.__qualname__
    builder.__class__ = Configured


def _load_clients(builder: Any, stores: Sequence[str], hadoop: str) -> None:
    """Have the JVM that a builder starts load clients for its Hadoop."""
    before = {key: builder._options.get(key) or default_setting(key) for key in CLIENT_KEYS}
    for key, value in client_settings(stores, hadoop, before).items():
        builder.config(key, value)


def _warn_of_unused() -> None:
    warnings.warn(_UNUSED, OptionWarning, stacklevel=2)


def _watch_other_builders(kind: Any) -> None:
    """Warn when another builder makes a session while a configured one waits.

    A notebook keeps the value of each cell, so a builder that is passed over is not discarded.
    """
    make = kind.getOrCreate
    if hasattr(make, _MARK):
        return

    @wraps(make)
    def get_or_create(self: Any) -> Any:
        session = make(self)
        if not hasattr(self, _MARK) and _waiting and not _is_configured(session):
            for unused in _waiting.values():
                unused.detach()
            _waiting.clear()
            warnings.warn(_PASSED_BY, OptionWarning, stacklevel=2)
        if not _waiting:
            kind.getOrCreate = make
        return session

    setattr(get_or_create, _MARK, True)
    kind.getOrCreate = get_or_create


def _is_configured(session: Any) -> bool:
    with suppress(OptionError):
        return is_active(session)
    return False


def _jvm_runs() -> bool:
    """Return whether Spark's JVM runs, whose class path is settled then."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def _context_runs() -> bool:
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def attach(
    session: Any, conf: Mapping[str, str], stores: Sequence[str] = (), *, inherited: bool = False
) -> None:
    """Make a running session commit through this package.

    Args:
        session: a classic session.
        conf: settings of the session.
        stores: schemes that it must have a client for.
        inherited: whether sessions that ``newSession`` makes of it do the same.

    Raises ``UnsupportedError`` if it cannot, or if it has no client for one of ``stores``.
    """
    require_classic(session)
    if stores:
        require_clients(session, stores)
    load_jar(session)
    before = session.__dict__.setdefault(_BEFORE, {})
    for name, value in {**conf, CLASS_KEY: PROTOCOL}.items():
        key = name.removeprefix("spark.hadoop.")
        found = session.conf.get(key, None)
        before.setdefault(key, None if found == value else found)
        session.conf.set(key, value)
    if inherited:  # set now, as Spark checks the class when it makes the first session
        session.sparkContext._jsc.sc().conf().set(CLASS_KEY, PROTOCOL)
    if conf.get(STREAM_KEY) == STREAM_PROTOCOL:
        guard_streams(session)
    register(session.sparkContext._gateway)
    _watch_new_sessions(session)


def is_active(session: Any) -> bool:
    """Return whether this process commits what the session writes.

    Raises ``OptionError`` for an object that is not a session.
    """
    try:
        require_classic(session)
    except UnsupportedError:
        return False
    properties = session._jvm.java.lang.System.getProperties()
    left = properties.get(CALLBACK) is not None
    return left and session.conf.get(CLASS_KEY, None) == PROTOCOL and is_loadable(session)


def detach(session: Any) -> None:
    """Give a session back the settings that ``attach`` has changed.

    Raises ``UnsupportedError`` for Spark Connect, and ``OptionError``.
    """
    require_classic(session)
    before = session.__dict__.pop(_BEFORE, {})
    for key, value in {CLASS_KEY: None, **before}.items():
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)
    session.__dict__.pop("newSession", None)


def _watch_new_sessions(session: Any) -> None:
    """Warn when the session makes another one that does not inherit."""
    make = type(session).newSession

    def new_session() -> Any:
        made = make(session)
        if not is_active(made):
            warnings.warn(_NOT_INHERITED, OptionWarning, stacklevel=2)
        return made

    session.newSession = new_session


def register(gateway: Any, answer: Callable[[str], str] = BRIDGE.apply) -> None:
    """Register this process in its JVM, with a command for recovery.

    Args:
        gateway: PySpark's, which leads to the JVM.
        answer: answers the JVM's requests.
    """
    leave(gateway, CALLBACK, answer)
    register_files(gateway.jvm)
    properties = gateway.jvm.java.lang.System.getProperties()
    if sys.executable:  # used after this process has died; see Undo.java
        properties.put(PYTHON, sys.executable)
        properties.put(PYTHON_PATH, os.pathsep.join(map(os.path.abspath, sys.path)))


def check_conf(conf: Mapping[str, str]) -> None:
    """Refuse unknown commit options, and invalid values of our options.

    Raises ``OptionError``.
    """
    for key in conf:
        if not bare(key).startswith(("mapreduce.", "asynccommit.", "fs.s3a.committer.")):
            raise OptionError(f"{key} is not an option of a commit: set it on the session itself")
    Options.from_conf({key: text for key, text in conf.items() if bare(key) not in OWN_KEYS})


def settings_of(session: Any, scheme: str = "") -> tuple[dict[str, str], dict[str, str]]:
    """Return a session's settings for commits, and for the store of a scheme."""
    conf = session._jsparkSession.sessionState().newHadoopConf()
    stores = {"file": _LOCAL, "hdfs": _HDFS, "viewfs": _HDFS}.get(scheme, _STORES)
    return _set_by_user(conf, _COMMITS), _set_by_user(conf, stores)


def qualified(session: Any, path: str) -> str:
    """Resolve a path without a scheme as the session does."""
    found = session._jvm.org.apache.hadoop.fs.Path(path)
    conf = session._jsparkSession.sessionState().newHadoopConf()
    return str(found.getFileSystem(conf).makeQualified(found).toString())


def with_staging(session: Any, conf: Mapping[str, str]) -> dict[str, str]:
    """Return a session's commit settings with the staging path.

    The default place is in the working directory of the session's own filesystem. Raises
    ``OptionError``.
    """
    if options_of(conf).uploads.committer not in ("directory", "partitioned", "staging"):
        return dict(conf)
    return {**conf, _STAGING: qualified(session, conf.get(_STAGING, "tmp/staging"))}


def _set_by_user(conf: Any, keys: str) -> dict[str, str]:
    found = {str(key): str(value) for key, value in dict(conf.getValByRegex(keys)).items()}
    return {key: value for key, value in found.items() if not _is_default(conf, key)}


def _is_default(conf: Any, key: str) -> bool:
    sources = list(conf.getPropertySources(key) or ())
    last = str(sources[-1]) if sources else ""
    return last.endswith("-default.xml") or last == "Set by Spark to default values"


def require_classic(session: Any) -> None:
    """Refuse a session of Spark Connect, and what has no JVM.

    Raises ``UnsupportedError`` for Spark Connect, and ``OptionError`` for another object.
    """
    names = [kind.__module__ for kind in type(session).__mro__]
    if any(name.startswith("pyspark.sql.connect") for name in names):
        raise _connect_error()
    if not hasattr(session, "_jsparkSession"):
        raise OptionError(
            f"{type(session).__name__} is neither a SparkSession nor a SparkSession.builder"
        )


def _refuse_connect_builder(builder: Any) -> None:
    options = getattr(builder, "_options", None)
    if not isinstance(options, dict):
        raise OptionError(
            f"{type(builder).__name__} is neither a SparkSession nor a SparkSession.builder"
        )
    connect = options.get("spark.api.mode") == "connect" or "spark.remote" in options
    # The launchers of Spark 4 set the mode to 0 for a classic session.
    connect |= bool(os.environ.get("SPARK_REMOTE")) or os.environ.get("SPARK_CONNECT_MODE") == "1"
    if connect:
        raise _connect_error()


def _connect_error() -> UnsupportedError:
    return UnsupportedError(
        "Spark Connect's client has no JVM in which a job could be committed: use a classic "
        "session (SparkSession.builder.master(...), no spark.remote), or start the server with "
        "the settings of asynccommit spark-conf and call nothing, or "
        "register_data_source(spark) and df.write.format('asynccommit')"
    )


def default_setting(wanted: str, home: Path | None = None) -> str:
    """Return a setting that spark-submit reads from a file, or nothing.

    A builder's value would replace it. The file is that of ``--properties-file`` in
    PYSPARK_SUBMIT_ARGS, otherwise spark-defaults.conf, of the Spark at ``home`` if it is given.
    """
    for line in _properties(home).splitlines():
        key, *value = re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1)
        if key == wanted and value:
            return value[0]
    return ""


def _properties(home: Path | None) -> str:
    given = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(home or spark_jars().parent, "conf")
    path = os.path.join(folder, "spark-defaults.conf")
    if "--properties-file" in given[:-1]:
        path = given[given.index("--properties-file") + 1]
    try:
        return Path(path).read_text("utf-8")
    except OSError:
        return ""
