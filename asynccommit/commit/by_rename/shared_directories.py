"""Directories that jobs of FileOutputCommitter share: what in them is this job's, and no other's.

Hadoop deletes all of ``_temporary`` when one of the jobs ends, and the others lose their work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from asynccommit.commit.context import CommitContext
from asynccommit.commit.layout import TEMPORARY, Layout
from asynccommit.commit.layout_file_output import FileLayout, is_number, job_of_task
from asynccommit.errors import ExistsError, NotFoundError, OptionError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import is_there, list_if_there, remove_directory, remove_tree, walk
from asynccommit.stores.urls import Address


async def find_jobs(store: Store, dest: Address) -> dict[FileLayout, int]:
    """Return the jobs that have tasks under a destination, and how many of each have committed.

    Raises ``StoreError``.
    """
    found: dict[FileLayout, int] = {}
    names = await _own_names(store, dest)
    for place in await _attempts(store, Layout(dest, "any")):
        number = int(_name(place))
        for path in [place, f"{place}/{TEMPORARY}"]:
            for info in await list_if_there(store, path):
                job_id = job_of_task(_name(info.path)) if info.is_dir else None
                if job_id is not None:
                    layout = FileLayout(dest, job_id, number)
                    layout = replace(layout, job_id=names.get(layout.run_id, job_id))
                    found.setdefault(layout, 0)
                    found[layout] += path == place
    return found


async def _own_names(store: Store, dest: Address) -> dict[str, str]:
    """Return the ids of jobs that have a directory of their own, by what their tasks begin with.

    Only of a job of ours is the id another than that of its tasks.
    """
    names: dict[str, str] = {}
    for info in await list_if_there(store, Layout(dest, "any").temporary):
        with suppress(OptionError):  # no name of ours
            if info.is_dir and not is_number(_name(info.path)):
                layout = FileLayout(dest, _name(info.path))
                names[layout.run_id] = layout.job_id
    return names


async def own_tasks(run: CommitContext, *, until: int | None = None) -> list[Info]:
    """Return the directories of this job's tasks and task attempts, committed or not.

    Args:
        run: whose job is meant.
        until: the last application attempt to look at; ``None`` for all.
    """
    layout = run.layout
    if not isinstance(layout, FileLayout):
        return []
    found: list[Info] = []
    for place in await _attempts(run.store, layout):
        if until is not None and int(_name(place)) > until:
            continue
        committed = await list_if_there(run.store, place)
        under_way = await list_if_there(run.store, f"{place}/{TEMPORARY}")
        found += [info for info in committed if layout.has_committed(_name(info.path))]
        found += [info for info in under_way if layout.has_attempt(_name(info.path))]
    return found


async def holds_files(run: CommitContext) -> bool:
    """Return whether this job's task directories contain files.

    Directories of application attempts up to this one are examined.
    """
    for info in await own_tasks(run, until=run.layout.attempt):
        async for below in walk(run.store, info.path):
            if not below.is_dir:
                return True
    return False


async def delete_own(run: CommitContext) -> None:
    """Delete the directories of this job's tasks, those of its other attempts too."""
    if not run.layout.shared:
        return
    own = await own_tasks(run)
    run.total = len(own) + 1

    async def delete(info: Info) -> None:
        with suppress(NotFoundError):
            await remove_tree(run.store, info.path)
        run.step()

    await for_each(own, delete, workers=run.workers)


async def take_own(run: CommitContext, place: str) -> bool:
    """Move the directories of this job's tasks, up to this attempt's, below ``place``.

    Each is gone in one moment: a commit that begins meanwhile sees that one is missing. Returns
    whether there were some.
    """
    own = await own_tasks(run, until=run.layout.attempt) if run.layout.shared else []
    if not own:
        return False
    await run.store.mkdir(f"{place}/tasks")

    async def take(info: Info) -> None:
        number = info.path.removeprefix(f"{run.layout.temporary}/").partition("/")[0]
        with suppress(NotFoundError):
            await run.store.rename(info.path, f"{place}/tasks/{number}-{_name(info.path)}")

    await for_each(own, take, workers=run.workers)
    return True


async def is_aborted(run: CommitContext, sources: Collection[str]) -> bool:
    """Return whether an abort is in progress or has taken one of ``sources``.

    In this order: an abort that has not renamed the job's own directory by now finds the record;
    one that has ended has taken the tasks before.
    """
    if await is_there(run.store, run.layout.ended("aborted")):
        return True
    there = {_name(info.path) for info in await list_if_there(run.store, run.layout.committed_dir)}
    cut = len(run.layout.sources_dir) + 1
    return not {path[cut:].partition("/")[0] for path in sources} <= there


def identity_of(info: Info) -> str:
    """Return what tells a committed task's directory from one that has come in its place."""
    return info.etag or str(info.modified)


async def refuse_replaced(run: CommitContext, read: Mapping[str, str | None]) -> None:
    """Refuse a commit that has read what a task is not any more, now that its record is there.

    From then on no task of ours takes another's place.

    Args:
        run: the commit under way.
        read: path of each task's directory -> what it was.

    Raises ``PreconditionError``.
    """
    there = await list_if_there(run.store, run.layout.committed_dir)
    now = {info.path: identity_of(info) for info in there}
    for path, identity in read.items():
        if now.get(path) != identity:
            text = "another attempt of the task committed while the job began to; commit it again"
            raise PreconditionError("rename", path, text)


async def remove_shared(run: CommitContext) -> None:
    """Remove the directories of application attempts in which no job has anything any more."""
    for place in await _attempts(run.store, run.layout):
        with suppress(ExistsError, NotFoundError, PreconditionError):
            with suppress(NotFoundError):
                await remove_directory(run.store, f"{place}/{TEMPORARY}")
            await remove_directory(run.store, place)


async def _attempts(store: Store, layout: Layout) -> list[str]:
    """Return the directories of application attempts, whosever, in the order of their numbers."""
    names = await list_if_there(store, layout.temporary)
    found = [info.path for info in names if info.is_dir and is_number(_name(info.path))]
    return sorted(found, key=lambda path: int(_name(path)))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
