"""One job's tasks in directories that FileOutputCommitter shares."""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.layouts.file_output import FileLayout, is_number
from asynccommit.commit.layouts.layout import TEMPORARY, Layout
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import list_if_there


async def own_tasks(run: CommitContext, *, until: int | None = None) -> list[Info]:
    """Return the directories of this job's tasks and task attempts.

    Args:
        run: context of the job.
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


async def _attempts(store: Store, layout: Layout) -> list[str]:
    """Return all directories of application attempts, by number."""
    names = await list_if_there(store, layout.temporary)
    found = [info.path for info in names if info.is_dir and is_number(_name(info.path))]
    return sorted(found, key=lambda path: int(_name(path)))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
