"""Keep bulk commands away from the files of unfinished jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from asynccommit.api import StorageOptions
from asynccommit.commit.hints import command, job_command
from asynccommit.commit.job.modes import STAGING as SPARK_STAGING
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import TEMPORARY, Layout
from asynccommit.engine.listing import list_tree
from asynccommit.engine.paths import is_within, parent_of
from asynccommit.engine.renames import find
from asynccommit.formats.magic_paths import ANY_MAGIC
from asynccommit.inspect.discovery import FoundJob, children, find_jobs, open_stores
from asynccommit.inspect.errors import JobFilesError
from asynccommit.inspect.status import JobView, view
from asynccommit.results import JobState
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address

_PREFIXES = (ANY_MAGIC, f"{SPARK_STAGING}-")


def job_directory_of(path: str) -> str | None:
    """Return the outermost directory of jobs that ``path`` is or lies in.

    These are ``_temporary``, ``__magic*`` and ``.spark-staging-*``; ``None`` if there is none.
    """
    end = 0
    for name in path.split("/"):
        end += len(name) + 1
        if name == TEMPORARY or name.startswith(_PREFIXES):
            return path[: end - 1]
    return None


@dataclass(frozen=True, slots=True)
class _OpenJob:
    """A job that has not ended: its directories, and what to say."""

    directories: tuple[str, ...]
    what: str
    command: str


class OpenJobs:
    """Refuses paths in directories of jobs that have not ended.

    Args:
        store: the store.
        place: a place in it.
        storage: options of the store.
        force: refuse nothing.
    """

    def __init__(
        self, store: Store, place: Address, storage: StorageOptions = None, *, force: bool = False
    ) -> None:
        self._store = store
        self._place = place
        self._storage = storage
        self._force = force
        self._known: dict[str, list[_OpenJob]] = {}

    async def refuse(self, path: str) -> None:
        """Refuse a path in the directory of such a job, or that has one in it.

        Only what the path itself tells is looked at, not what is below. Raises ``JobFilesError``.
        """
        top = None if self._force else job_directory_of(path)
        if top is None:
            return
        dest = parent_of(top)
        if dest not in self._known:
            self._known[dest] = await self._find(self._place.at(dest))
        for job in self._known[dest]:
            if any(is_within(path, one) or is_within(one, path) for one in job.directories):
                raise JobFilesError(
                    f"{path} has files of {job.what}, and nothing was changed. Settle it first: "
                    f"{job.command} - or go on regardless with --force"
                )

    async def refuse_all(self, paths: Iterable[str]) -> None:
        """Refuse each of these. Raises ``JobFilesError``."""
        for path in sorted(paths):
            await self.refuse(path)

    async def refuse_tree(self, path: str) -> None:
        """Refuse a directory of which anything is in the directory of a job.

        It is listed as a whole, but not the root of a store, which no command takes. Raises
        ``JobFilesError`` and ``StoreError``.
        """
        await self.refuse(path)
        if self._force or path == "/" or job_directory_of(path) is not None:
            return
        top = await find(self._store, path)
        if top is None or not top.is_dir:
            return
        found = {job_directory_of(info.path) async for info in list_tree(self._store, path)}
        await self.refuse_all(top for top in found if top is not None)

    async def _find(self, dest: Address) -> list[_OpenJob]:
        found = [await self._judge(job) for job in await find_jobs(self._store, dest)]
        for info in await children(self._store, dest.path):
            if info.is_dir and info.path.rpartition("/")[2].startswith(f"{SPARK_STAGING}-"):
                what = "a job of Spark that has left them or is running"
                found.append(_OpenJob((info.path,), what, command("gc", dest)))
        return [job for job in found if job is not None]

    async def _judge(self, job: FoundJob) -> _OpenJob | None:
        layout = job.layout
        if job.classic:
            return _OpenJob(
                (layout.attempt_dir, layout.sources_dir),
                f"a job of FileOutputCommitter under {layout.dest} that has not ended",
                _settling(layout) if isinstance(layout, FileLayout) else command("gc", layout.dest),
            )
        async with open_stores(layout, self._storage) as (store, pending):
            seen = await view(store, job, pending)
        state = "of unknown state" if seen.status is None else str(seen.status.state)
        if seen.status is not None and seen.status.state in (JobState.COMMITTED, JobState.ENDED):
            return None
        what = f"job {seen.name} under {layout.dest}, which is {state}"
        return _OpenJob((layout.attempt_dir, layout.sources_dir), what, _command(seen))


def _command(seen: JobView) -> str:
    """Return the command that ends a job, or that shows when it has ended."""
    status, layout = seen.status, seen.layout
    if status is None or status.state is JobState.RUNNING:
        return command("status", layout.dest)
    if not status.begun:
        return seen.abort.command or _settling(layout)
    return seen.resume.command or seen.abort.command or command("status", layout.dest)


def _settling(layout: Layout) -> str:
    return job_command("abort", layout)
