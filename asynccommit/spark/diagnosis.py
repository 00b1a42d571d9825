"""Checks of Spark: its jars, a session, the committer of each scheme."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from asynccommit.errors import AsyncCommitError, UnsupportedError
from asynccommit.inspect.doctor import Check, Diagnosis, check_machine, check_place
from asynccommit.redact import redact
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark import sessions
from asynccommit.spark.clients import CLIENTS, PACKAGES, client_settings, hadoop_in
from asynccommit.spark.hadoop_store.opening import look_at
from asynccommit.spark.identities import check_identities
from asynccommit.spark.jars import spark_jars
from asynccommit.spark.loading import PROTOCOL
from asynccommit.spark.probe import check_classes
from asynccommit.spark.recovery import TableAccess, active_session, url_of
from asynccommit.stores.registry import STORES
from asynccommit.stores.urls import Address, parse_url

SCHEMES = ("file", "abfs", "gs", "hdfs", "s3a")
"""The schemes that are looked at in every session."""

_CLIENTS = ("abfs", "gs", "s3a")
_UPLOADS = ("s3", "s3a")
_CLASS_KEY = "spark.sql.sources.commitProtocolClass"


def diagnose(session: Any, url: str | None, *, write: bool) -> Diagnosis:
    """Return the checks of machine, jars, session and destination.

    See ``asynccommit.spark.doctor``.
    """
    session = session or active_session()
    address = None if url is None else parse_url(url_of(url, session))
    checks = list(check_machine())
    if session is None:
        wanted = None if address is None else address.scheme
        checks += [*check_jars(wanted), Check("session", "no session is running")]
    else:
        checks += check_session(session, address)
    if address is not None:
        checks += _check_destination(address, session, write=write)
    return Diagnosis(checks)


def _check_destination(address: Address, session: Any, *, write: bool) -> Sequence[Check]:
    try:
        storage = TableAccess.of(str(address), session).storage
    except AsyncCommitError as error:
        return [Check("store", redact(str(error)), ok=False)]
    found = list(submit(_collected(address, storage, write=write)))
    if session is not None and address.scheme in STORES:
        found += check_identities(session, address, storage, write=write)
    return found


async def _collected(
    address: Address, storage: Mapping[str, Any], *, write: bool
) -> Sequence[Check]:
    return [check async for check in check_place(address, storage, write=write)]


def check_jars(wanted: str | None = None) -> Iterator[Check]:
    """Yield the Hadoop clients of the installed Spark, if there is one.

    ``wanted`` is the only scheme to look for; by default all with a client are.
    """
    if find_spec("pyspark") is None:
        return
    try:
        jars = spark_jars()
        hadoop = hadoop_in(jars)
    except UnsupportedError as error:
        yield Check("Spark", str(error), ok=False, remedy="pip install 'asynccommit[spark]'")
        return
    yield Check("Hadoop of Spark", f"{hadoop}, {jars}")
    for scheme in _CLIENTS if wanted is None else {wanted} & {*CLIENTS}:
        yield _client_among(jars, scheme, hadoop)


def _client_among(jars: Path, scheme: str, hadoop: str) -> Check:
    for name, pattern in CLIENTS[scheme].jars.items():
        found = next(jars.glob(pattern), None)
        if found is not None:
            return Check(f"client of {scheme}", found.name, ok=True)
        for key in ("spark.jars", PACKAGES):
            if name in sessions.default_setting(key):
                return Check(f"client of {scheme}", f"{key} of spark-defaults.conf", ok=True)
    remedy, lines = _loading(scheme, hadoop)
    return Check(f"client of {scheme}", "not among Spark's jars", None, remedy, lines)


def _loading(scheme: str, hadoop: str) -> tuple[str, Sequence[str]]:
    """Return the call and the settings that load the client of a scheme."""
    if scheme not in CLIENTS:
        return "", ()
    try:
        settings = client_settings([scheme], hadoop, {})
    except UnsupportedError as error:
        return str(error), ()
    remedy = f"before the session starts: configure(builder, hadoop_clients=[{scheme!r}])"
    return remedy, [f"{key} {value}" for key, value in settings.items()]


def check_session(session: Any, address: Address | None = None) -> Iterator[Check]:
    """Yield the checks of a session.

    Args:
        session: a classic session.
        address: a destination, whose scheme is looked at as well.

    Raises ``UnsupportedError`` for Spark Connect, and ``OptionError`` for another object.
    """
    sessions.require_classic(session)
    active = sessions.is_active(session)
    yield from check_versions(session)
    if active:
        yield Check("session", "asynccommit commits what it writes", ok=True)
    else:
        remedy = "asynccommit.spark.configure(spark)"
        yield Check("session", "asynccommit does not commit what it writes", False, remedy)
    if active or session.conf.get(_CLASS_KEY, None) == PROTOCOL:
        yield from check_classes(session)
    mode = session._jsparkSession.sessionState().newHadoopConf().get("fs.permissions.umask-mode")
    yield Check("umask of Hadoop", f"{mode}, fs.permissions.umask-mode")
    others = () if address is None or address.scheme in SCHEMES else (address.scheme,)
    for scheme in (*SCHEMES, *others):
        yield check_scheme(session, scheme, address, active=active)


def check_versions(session: Any) -> Iterator[Check]:
    """Yield the versions in the JVM; PySpark must match its Spark."""
    from pyspark import __version__ as python_side

    jvm, version = session._jvm, str(session.version)
    java = jvm.java.lang.System.getProperty("java.version")
    text = f"{version}, Java {java}, {session.sparkContext.master}"
    same = _numbers(version) == _numbers(python_side)
    remedy = "install the same version of PySpark, or unset SPARK_HOME and PYTHONPATH"
    yield Check("Spark", text if same else f"{text}, but PySpark is {python_side}", same, remedy)
    hadoop = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    yield Check("Hadoop", f"{hadoop}, as user {_hadoop_user(jvm)}")


def _numbers(version: str) -> Sequence[str]:
    """Return a version without what a vendor or a preview adds to it."""
    return re.findall(r"\d+", version)[:3]


def _hadoop_user(jvm: Any) -> str:
    return str(jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getUserName())


def check_scheme(session: Any, scheme: str, address: Address | None, *, active: bool) -> Check:
    """Return which committer is in force for a scheme, and why.

    Args:
        session: a classic session.
        scheme: the scheme.
        address: a destination; it is opened if only its filesystem can tell.
        active: whether the session is configured.
    """
    kind = _class_of(session, scheme)
    meant = address is not None and address.scheme == scheme
    if kind is None:
        version = str(session._jvm.org.apache.hadoop.util.VersionInfo.getVersion())
        found, problem = "no client in this session", False if meant else None
        remedy, lines = _loading(scheme, version)
        return Check(f"{scheme}:", found, problem, remedy, lines if meant or not address else ())
    text = _in_force(session, scheme, address if meant else None, active=active)
    return Check(f"{scheme}:", f"{text} ({kind.rpartition('.')[2]})")


def _in_force(session: Any, scheme: str, address: Address | None, *, active: bool) -> str:
    named = session.conf.get("spark.asynccommit.schemes", ",".join((*STORES, "*"))).split(",")
    if not active:
        return "Spark's own committer: the session is not configured"
    if scheme in named and scheme in _UPLOADS:
        conf = session._jsparkSession.sessionState().newHadoopConf()
        name = conf.get("fs.s3a.committer.name", "magic")
        name = "magic" if name == "file" else name
        return f"{name}: the store has no rename, so the job commit completes uploads"
    if scheme in named and scheme in STORES:
        return "manifest: the store renames files atomically"
    if "*" not in named:
        return f"Spark's own committer: schemes is {','.join(named)}"
    if address is None:
        return "manifest through the JVM, if its renames are atomic"
    try:
        look_at(address)
    except AsyncCommitError as error:
        return f"Spark's own committer: {error}"
    return "manifest through the JVM: its renames are atomic"


def _class_of(session: Any, scheme: str) -> str | None:
    """Return the class that the session opens a scheme with, if it has it."""
    from py4j.protocol import Py4JJavaError

    conf = session._jsparkSession.sessionState().newHadoopConf()
    try:
        found = session._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
    except Py4JJavaError:
        return None
    return str(found.getName())
