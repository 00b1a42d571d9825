"""PySpark: an unchanged ``df.write``, committed by the Python driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar

from asynccommit.commit.meter import OnProgress
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.former import Former, former_names, warn_of_former
from asynccommit.inspect.doctor import Diagnosis
from asynccommit.options.checked import HIDDEN, PATH, checked
from asynccommit.results import JobReport
from asynccommit.spark import bridge
from asynccommit.spark.bridge import BRIDGE
from asynccommit.spark.foreach_batch import write_batch
from asynccommit.spark.recovery import resume, rollback, status
from asynccommit.stores.registry import STORES

P = ParamSpec("P")
T = TypeVar("T")

_SCHEMES = (*STORES, "*")
if TYPE_CHECKING:
    Unsupported: TypeAlias = Literal["delegate", "refuse"]
else:
    Unsupported = str  # ``configure`` checks it

__all__ = [
    "Diagnosis",
    "configure",
    "doctor",
    "is_active",
    "last_report",
    "register_data_source",
    "reports",
    "resume",
    "rollback",
    "status",
    "unconfigure",
    "write_batch",
]


def _with_former_stores(configure: Callable[P, T]) -> Callable[P, T]:
    """Return ``configure``, which takes a former name of an argument too."""

    @wraps(configure)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if "stores" in kwargs and "hadoop_clients" not in kwargs:
            warn_of_former("asynccommit.spark.configure(stores=)", "hadoop_clients=")
            kwargs["hadoop_clients"] = kwargs.pop("stores")
        return configure(*args, **kwargs)

    return run


@_with_former_stores
@checked
def configure(
    target: T,
    *,
    unsupported_scheme: Unsupported = "delegate",
    schemes: Sequence[str] = _SCHEMES,
    hadoop_clients: Sequence[str] = (),
    streams: bool = False,
    progress: bool | None = None,
    on_progress: OnProgress | None = None,
    conf: Mapping[str, str | float] | None = None,
    storage_options: Annotated[Mapping[str, Any] | None, HIDDEN] = None,
) -> T:
    """Have this package commit what Spark writes, and return ``target``.

    A builder's ``getOrCreate`` configures the session that it returns, whatever has started Spark.
    A running session is changed at once, and only that session. Writes of all threads count::

        spark = configure(SparkSession.builder.master("local[2]")).getOrCreate()
        df.write.partitionBy("day").parquet("/data/flights")

    Args:
        target: ``SparkSession.builder``, or a classic session.
        unsupported_scheme: what a write to a scheme without a store does: ``"delegate"`` leaves it
            to Spark's own protocol with a warning, ``"refuse"`` fails it.
        schemes: the schemes to commit here. ``"*"`` is any whose filesystem the session can open
            and whose renames are atomic; it works through the JVM. By default that, and all that
            have a store.
        hadoop_clients: schemes whose Hadoop client Spark's tasks need, of ``abfs``, ``abfss``,
            ``gs`` (from Hadoop 3.5 on) and ``s3a``: a builder that starts Spark gets the Maven
            packages in the version of its Hadoop. Where a JVM runs already, as under
            spark-submit, a session without them is an error that names the flags to start
            Spark with.
        streams: commit the batches of ``writeStream`` to parquet, orc, csv, json and text, too.
            Their log stays Spark's.
        progress: whether to show the progress of a commit: a bar on a terminal, and a line every
            five seconds in notebooks and logs; ``None`` for the session's setting, which is true
            unless it is set.
        on_progress: called a few times a second by the commits of every session of this process,
            on the engine's thread, in place of the progress line; the last one given counts.
        conf: options of the commit, as ``mapreduce.manifest.committer.validate.output``.
        storage_options: credentials and the like for the stores, under fsspec's names, for every
            session of this process; they stay in Python. The session's Hadoop configuration
            (``fs.azure.*``, ``fs.gs.*``) need not be repeated.

    Raises:
        UnsupportedError: there is no PySpark or no Java, this is Spark Connect, or a running
            session has no client for one of ``hadoop_clients``. For a builder the last is raised by
            ``getOrCreate``.
        OptionError: an argument is not one of the above.
    """
    if find_spec("pyspark") is None:
        raise UnsupportedError("PySpark is not installed: pip install 'asynccommit[spark]'")
    from asynccommit.spark import sessions
    from asynccommit.spark.loading import STREAM_PROTOCOL

    if unsupported_scheme not in ("delegate", "refuse"):
        raise OptionError(
            f"unsupported_scheme is {unsupported_scheme!r}: expected delegate or refuse"
        )
    said = {key: _text(value) for key, value in (conf or {}).items()}
    sessions.check_conf(said)
    bridge.storage_options.update(storage_options or {})
    if on_progress is not None:
        bridge.on_progress = on_progress
    settings = {
        "spark.asynccommit.schemes": ",".join(schemes),
        "spark.asynccommit.unsupportedScheme": unsupported_scheme,
        **said,
    }
    if streams:
        settings[sessions.STREAM_KEY] = STREAM_PROTOCOL
    if progress is not None:
        settings["spark.asynccommit.progress"] = str(progress).lower()
    if hasattr(target, "getOrCreate"):
        sessions.prepare_builder(target, settings, hadoop_clients)
    else:
        sessions.attach(target, settings, hadoop_clients)
    return target


@checked
def is_active(spark: Any) -> bool:
    """Return whether this package commits what the session writes.

    A session of Spark Connect is never active. Raises ``OptionError`` for an object that is not a
    session.
    """
    from asynccommit.spark import sessions

    return sessions.is_active(spark)


@checked
def unconfigure(spark: Any) -> None:
    """Give a running session back the committer and the options it had.

    Jobs that are running end as they began. ``storage_options`` and ``on_progress``, which are
    those of the process, remain. A session that is not configured is left as it is.

    Raises:
        UnsupportedError: this is Spark Connect.
        OptionError: the argument is not a session.
    """
    from asynccommit.spark import sessions

    if sessions.is_active(spark):
        sessions.detach(spark)


@checked
def doctor(
    spark: Any = None, url: Annotated[str | None, PATH] = None, *, write: bool = False
) -> Diagnosis:
    """Check this machine, a session and the store of a destination.

    The result is shown as a table: versions, missing Hadoop clients with the settings that load
    them, the committer in force for each scheme with the reason, the place that credentials come
    from. Nothing is changed without ``write``.

    Args:
        spark: the session; the active one by default.
        url: a destination, as given to ``df.write``.
        write: try writes, conditions and renames in a directory of its own there, and compare
            clocks.

    Raises:
        UnsupportedError: this is Spark Connect.
        OptionError: the argument is not a session.
    """
    from asynccommit.spark.diagnosis import diagnose

    return diagnose(spark, url, write=write)


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else str(value).lower()


def register_data_source(spark: Any) -> None:
    """Register ``format("asynccommit")`` with a session.

    Sessions of Spark Connect can be registered too.

    Args:
        spark: the session.

    Raises:
        UnsupportedError: PySpark or pyarrow is not installed, or PySpark is older than 4.0.
    """
    for name, extra in (("pyspark", "spark"), ("pyarrow", "datasource")):
        if find_spec(name) is None:
            raise UnsupportedError(f"{name} is not installed: pip install 'asynccommit[{extra}]'")
    if not hasattr(spark, "dataSource"):
        raise UnsupportedError(
            "Python data sources need PySpark 4.0: on older versions use configure()"
        )
    from asynccommit.spark.datasource.source import AsyncCommitDataSource

    spark.dataSource.register(AsyncCommitDataSource)


def reports() -> Sequence[JobReport]:
    """Return the reports of jobs committed here, oldest first.

    The last hundred are kept.
    """
    return tuple(BRIDGE.reports)


def last_report() -> JobReport | None:
    """Return the report of the last job that was committed here."""
    return BRIDGE.reports[-1] if BRIDGE.reports else None


if not TYPE_CHECKING:
    __getattr__ = former_names(
        __name__,
        {
            "takeover": Former(
                lambda: partial(resume, force=True), "asynccommit.spark.resume(..., force=True)"
            )
        },
    )
