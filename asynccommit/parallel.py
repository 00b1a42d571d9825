"""Jobs whose tasks run in a pool, committed once.

    def write(task, day):
        task.put(f"day={day}/part.csv", rows_of(day))

    with ProcessPoolExecutor() as executor:
        commit_parallel("/data/flights", write, days, executor)

The caller sets the job up and commits it. Each item is a task, whose commit message is the result
of the call in the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from asynccommit import sync
from asynccommit.api import OptionsLike, StorageOptions, open_kept_job
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.unsupported_committers import is_classic
from asynccommit.errors import ExistsError, OptionError, PreflightError, UnsupportedError
from asynccommit.formats.partition_names import Single, directory, moment_of
from asynccommit.options.checked import Url, storage_of, url_text
from asynccommit.options.job import IGNORE, AnyMode, Mode, Options
from asynccommit.results import JobReport
from asynccommit.stores.urls import parse_url
from asynccommit.sync import BlockingJob, BlockingTask

__all__ = ["Executor", "Pool", "commit_parallel", "partition_directory"]

Item = TypeVar("Item")
if TYPE_CHECKING:
    EngineMode: TypeAlias = AnyMode | Literal["ignore"]
else:
    EngineMode = AnyMode  # checked by ``JobArguments``, whose error names the modes


class Executor(Protocol):
    """The part of ``concurrent.futures.Executor`` that is needed."""

    def submit(self, fn: Any, /, *args: Any) -> Any:
        """Start a call, and return its future."""
        ...


class Pool(Protocol):
    """The part of ``multiprocessing.Pool`` that is needed."""

    def apply_async(self, func: Any, args: Any = ...) -> Any:
        """Start a call, and return its result to come."""
        ...


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """A job as its tasks in other processes need it; can be pickled.

    Attributes:
        url: the destination.
        job_id: the job.
        options: the options of the job.
        storage_options: credentials and other options of the store.
        committer: the name of the committer, see ``open_job``.
    """

    url: str
    job_id: str
    options: OptionsLike = field(default=None, repr=False)
    storage_options: StorageOptions = field(default=None, repr=False)
    committer: str | None = None

    def run(self, number: int, write: Callable[[BlockingTask], object]) -> TaskCommit:
        """Run an attempt of a task, and return its commit message.

        A repeated call is another attempt, of which the message counts that the job accepts.
        Raises ``CommitError``, and what ``write`` raises.
        """
        job = sync.job(
            self.url,
            self.job_id,
            options=self.options,
            storage_options=self.storage_options,
            committer=self.committer,
        )
        with job.task(number) as task:
            write(task)
        return task.commit


@dataclass(frozen=True, slots=True)
class JobArguments:
    """The arguments of a job that the functions of every engine take.

    Attributes:
        mode: a mode, or its name; ``ignore`` writes only where there is nothing.
        job_id: unique under the destination; a fresh one by default.
        options: the options of the job.
        storage_options: credentials and other options of the store.
        committer: the name of the committer, see ``open_job``.

    Raises ``OptionError`` for an unknown mode.
    """

    mode: Mode | str = Mode.APPEND
    job_id: str | None = None
    options: OptionsLike = field(default=None, repr=False)
    storage_options: StorageOptions = field(default=None, repr=False)
    committer: str | None = None

    def __post_init__(self) -> None:
        if not self._ignores:
            Mode.of(self.mode)

    @property
    def _ignores(self) -> bool:
        return str(self.mode).lower() == IGNORE

    def open(self, url: Url) -> AbstractContextManager[BlockingJob]:
        """Return the context of the job. Raises ``CommitError``."""
        return sync.open_job(
            url,
            job_id=self.job_id,
            mode=Mode.of(self.mode),
            options=self.options,
            storage_options=self.storage_options,
            committer=self.committer,
        )

    def kept_id(self, given: str | None = None) -> str:
        """Return the id of a job that an error keeps, as its key tells it.

        Args:
            given: the id that the user has chosen.

        Raises ``OptionError`` without a job key, and ``UnsupportedError`` for a committer whose
        tasks are not kept.
        """
        options = self.options
        options = options if isinstance(options, Options) else Options.from_conf(options or {})
        if options.job_key is None:
            raise OptionError(
                "a job that a later run continues needs the option asynccommit.job.key"
            )
        if self.committer is not None and is_classic(self.committer.strip().lower()):
            raise UnsupportedError(
                f"the committer {self.committer!r} does not keep the tasks of a job for a later "
                "run: use 'manifest'"
            )
        return given or f"job-{sha256(options.job_key.encode()).hexdigest()[:32]}"

    def open_kept(self, url: Url) -> AbstractContextManager[BlockingJob]:
        """Return the context of a job that an error keeps for the next call.

        Raises what ``open`` does.
        """
        assert self.job_id is not None
        return sync.blocking_job(
            open_kept_job(
                url,
                self.job_id,
                mode=Mode.of(self.mode),
                options=self.options,
                storage_options=self.storage_options,
                committer=self.committer,
            )
        )

    def place(self, url: Url, job_id: str) -> TaskPlace:
        """Return the job as its tasks need it."""
        text = url_text(url)
        storage = storage_of(text, self.storage_options)
        return TaskPlace(str(text), job_id, self.options, storage, self.committer)

    def commit(self, url: Url, run: Callable[[TaskPlace], Iterable[TaskCommit]]) -> JobReport:
        """Set the job up, have ``run`` run its tasks, and commit their messages.

        Raises ``CommitError``, and what ``run`` raises.
        """
        with self._opened(url) as job:
            if job is None:
                return self._nothing(url)
            for commit in run(self.place(url, job.job_id)):
                job.accept(commit)
        return job.report

    def commit_one(self, url: Url, write: Callable[[BlockingTask, str], object]) -> JobReport:
        """Commit a job of one task, whose files ``write(task, job_id)`` writes.

        Raises ``CommitError``, and what ``write`` raises.
        """
        with self._opened(url) as job:
            if job is None:
                return self._nothing(url)
            with job.task(0) as task:
                write(task, job.job_id)
        return job.report

    @contextmanager
    def _opened(self, url: Url) -> Iterator[BlockingJob | None]:
        """Open the job; yield ``None`` if it is to be ignored."""
        with ExitStack() as stack:
            if not self._ignores:
                yield stack.enter_context(self.open(url))
                return
            try:
                job = stack.enter_context(replace(self, mode=Mode.FAIL).open(url))
            except PreflightError as error:
                if not any(isinstance(one, ExistsError) for one in error.failures):
                    raise
                yield None
            else:
                yield job

    def _nothing(self, url: Url) -> JobReport:
        dest = str(parse_url(url_text(url)))
        warning = f"{dest} is not empty, and the mode is {IGNORE}: nothing was written"
        return JobReport(self.job_id or "", dest, warnings=(warning,))


def commit_parallel(
    url: Url,
    function: Callable[[BlockingTask, Item], object],
    items: Iterable[Item],
    executor: Executor | Pool,
    *,
    mode: EngineMode = Mode.APPEND,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
) -> JobReport:
    """Call ``function(task, item)`` for each item in a pool; commit once.

    If a call fails, those that have not begun are cancelled, the others end, nothing becomes
    visible, and the error is raised.

    Args:
        url: the destination.
        function: writes the files of an item into its task.
        items: what to write; each is one task.
        executor: a ``concurrent.futures`` executor, or a ``multiprocessing`` pool, which waits
            forever for a process that was killed.
        mode: ``append``, ``error``, ``ignore``, ``overwrite`` or ``replace_partitions``, see
            ``Mode``; with ``ignore`` nothing is called if the destination is not empty.
        job_id: unique under the destination; a fresh one by default.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``open_job``.

    Raises ``CommitError``, ``OptionError``, and what ``function`` raises.
    """

    def run(place: TaskPlace) -> Sequence[TaskCommit]:
        calls = [(place, number, function, item) for number, item in enumerate(items)]
        return _futures(executor, calls) if hasattr(executor, "submit") else _pool(executor, calls)

    return JobArguments(mode, job_id, options, storage_options, committer).commit(url, run)


def _call(place: TaskPlace, number: int, function: Callable[..., object], item: Any) -> TaskCommit:
    return place.run(number, lambda task: function(task, item))


def _futures(executor: Any, calls: Sequence[tuple[Any, ...]]) -> list[TaskCommit]:
    futures = [executor.submit(_call, *call) for call in calls]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        for future in futures:  # the job is not aborted under a task that still writes
            with suppress(BaseException):
                future.result()
        raise


def _pool(pool: Any, calls: Sequence[tuple[Any, ...]]) -> list[TaskCommit]:
    results = [pool.apply_async(_call, call) for call in calls]
    try:
        return [result.get() for result in results]
    except Exception:
        for result in results:
            result.wait()
        raise


def partition_directory(values: Mapping[str, object]) -> str:
    """Return the directory of a partition, named and escaped as Spark does.

    Args:
        values: column -> value, in order; a float that is NaN is a null, as in pandas.

    Raises ``OptionError`` without columns, and for a value whose name would not lead back to it.
    """
    if not values:
        raise OptionError("a partition needs at least one column")
    return directory(values, map(plain_value, values.values()))


def plain_value(value: Any) -> object:
    """Return a value of Python, or ``None`` for a null of pandas."""
    if type(value).__module__ == "numpy":
        value = _of_numpy(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    return value


def _of_numpy(value: Any) -> object:
    """Return a scalar of numpy without the loss of digits."""
    kind = value.dtype.name
    if kind.startswith("datetime64[") and not kind.endswith("[D]"):
        number = int(value.astype("datetime64[ns]").astype("int64"))
        return None if value != value else moment_of(number)
    return Single(value) if kind == "float32" else value.item()
