"""Read the files that a command names, and open their store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import TextIO, TypeVar

from asynccommit.cli.arguments import absolute, store_options
from asynccommit.cli.output import Output
from asynccommit.cli.signals import resumable
from asynccommit.commit.meter import OnProgress, Progress
from asynccommit.commit.spill import Rows
from asynccommit.engine.listing import list_tree
from asynccommit.engine.paths import is_within
from asynccommit.engine.renames import find
from asynccommit.engine.report import BulkProgress
from asynccommit.errors import NotFoundError, OptionError
from asynccommit.inspect.job_files import OpenJobs, job_directory_of
from asynccommit.progress.console import console_progress
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.base import Info
from asynccommit.stores.opening import open_place
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.traffic import waiting_for
from asynccommit.stores.urls import Address

T = TypeVar("T")
OnBulk = Callable[[BulkProgress], object]

_WILD = frozenset("*?[")
_STANDARD_INPUT = "-"
_READ_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class FileCall:
    """The command line of a command on files.

    Attributes:
        place: the directory, file or pattern.
        storage: options of the store.
        rate: maximum number of requests a second.
        workers: maximum number of requests in flight.
        output: where results go.
    """

    place: Address
    storage: dict[str, str]
    rate: float | None
    workers: int | None
    output: Output

    def run(
        self,
        step: Callable[[Wrapped, OnBulk], Awaitable[T]],
        advice: str = "",
        *,
        progress: bool = True,
    ) -> T:
        """Run a step on the open store, with its progress shown.

        Args:
            step: given the store and ``on_progress``.
            advice: how to finish what a signal has cut short.
            progress: whether to show progress; not for a step that prints lines itself.
        """
        shown = console_progress(quiet=self.output.quiet or not progress)
        with resumable(advice), shown as on_progress:
            return submit(self._run(step, on_progress))

    def open_jobs(self, store: Wrapped, *, force: bool) -> OpenJobs:
        """Return what refuses files of jobs that have not ended."""
        return OpenJobs(store, self.place, self.storage, force=force)

    async def _run(
        self, step: Callable[[Wrapped, OnBulk], Awaitable[T]], on_progress: OnProgress
    ) -> T:
        async with open_place(
            self.place,
            storage_options=self.storage,
            rate=self.rate,
            max_concurrency=self.workers,
        ) as store:
            return await step(store, _translated(on_progress, store))


def read_file_call(
    url: str,
    storage: Sequence[str] | None,
    output: Output,
    *,
    rate: float | None = None,
    workers: int | None = None,
) -> FileCall:
    """Read the command line of a command on files.

    Raises ``OptionError`` and ``UrlError``.
    """
    return FileCall(absolute(url), store_options(storage), rate, workers, output)


def refuse_dots(url: str) -> None:
    """Refuse to move or delete ``.`` or ``..``, as ``rm`` and ``mv`` do.

    Raises ``OptionError``.
    """
    if url.rstrip("/").rpartition("/")[2] in (".", ".."):
        raise OptionError(f"{url!r} is the working directory or above another one: give its name")


def second_place(first: Address, url: str, into: str = "") -> Address:
    """Read a destination in the same store.

    One that ends with a slash is a directory to move into.

    Args:
        first: the source.
        url: the destination.
        into: the name that the source gets in a directory.

    Raises ``OptionError`` for another store.
    """
    dest = absolute(url)
    if not first.same_store(dest):
        raise OptionError(f"{first} and {dest} are in different stores: copy the files instead")
    return dest.child(into) if into and url.endswith("/") else dest


def is_pattern(place: Address) -> bool:
    """Return whether a path has wildcards."""
    return not _WILD.isdisjoint(place.path)


def fixed_part(place: Address) -> str:
    """Return the directory above the first wildcard of a pattern."""
    parts = place.path.split("/")
    first = next(number for number, part in enumerate(parts) if not _WILD.isdisjoint(part))
    return "/".join(parts[:first]) or "/"


async def matching(
    store: Wrapped, place: Address, *, but: str | None = None, jobs: OpenJobs | None = None
) -> AsyncIterator[Info]:
    """Yield the files that match a pattern; ``*`` matches ``/`` as well.

    Files in directories of jobs match only if the pattern names such a directory.

    Args:
        store: the store.
        place: the pattern.
        but: a directory whose files are left out.
        jobs: refuses directories of jobs that have not ended, after the last file.

    Raises ``NotFoundError`` if there is none, and ``JobFilesError``.
    """
    top, found, met = fixed_part(place), False, set[str]()
    named = job_directory_of(place.path) is not None
    async for info in list_tree(store, top):
        if (directory := job_directory_of(info.path)) is not None:
            met.add(directory)
        left_out = info.is_dir or (but is not None and is_within(info.path, but))
        left_out = left_out or (directory is not None and not named)
        if not left_out and fnmatchcase(info.path, place.path):
            found = True
            yield info
    if not found:
        outside = "" if but is None else f" outside of {but}"
        raise NotFoundError("list", place.path, f"no file{outside} matches")
    if jobs is not None:
        await jobs.refuse_all({top} if job_directory_of(top) is not None else met)


@asynccontextmanager
async def gathered(paths: AsyncIterable[str]) -> AsyncIterator[AsyncIterator[str]]:
    """Read all paths before the first is used, so that any may be refused."""
    with Rows(tuple[str]) as rows:
        async for path in paths:
            await rows.append([(path,)])
        yield (path async for (path,) in rows.each())


async def is_literal(store: Wrapped, place: Address) -> bool:
    """Return whether a path has no wildcards, or exists with them."""
    return not is_pattern(place) or await find(store, place.path) is not None


def read_lines(name: str) -> Iterator[str]:
    """Yield the lines of a file, without those that are empty.

    ``-`` is standard input.

    Raises ``OptionError`` if the file cannot be read.
    """
    with ExitStack() as stack:
        try:
            stream: TextIO = (
                sys.stdin
                if name == _STANDARD_INPUT
                else stack.enter_context(open(name, encoding="utf-8"))
            )
            for line in stream:
                if text := line.rstrip("\r\n"):
                    yield text
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"--from-file {name}: {error}") from error


async def read_lines_aside(name: str) -> AsyncIterator[str]:
    """Yield the same lines, read by a thread."""
    lines = read_lines(name)
    while batch := await asyncio.to_thread(lambda: list(islice(lines, _READ_AT_ONCE))):
        for line in batch:
            yield line


def below(directory: str, name: str) -> str:
    """Return the path of a name that is relative to a directory."""
    top = "" if directory == "/" else directory
    return f"{top}/{name}"


def _translated(on_progress: OnProgress, store: Wrapped) -> OnBulk:
    waiting = partial(waiting_for, store)

    def tell(progress: BulkProgress) -> None:
        done, total, seconds = progress.done, progress.total, progress.seconds
        on_progress(Progress("", progress.operation, done, total, seconds, waiting))

    return tell
