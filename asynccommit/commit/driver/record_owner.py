"""The user to whom a commit belongs, where files have owners.

Whoever may make a job's directory in ``_temporary`` can write a whole commit there that seems to
have been interrupted. A recovery that nobody has asked for by name therefore acts only on what this
driver's own user has written.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.hints import job_command
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.paths import ancestors
from asynccommit.errors import DeniedError, ForeignCommitError, StoreError
from asynccommit.results import JobStatus
from asynccommit.runtime.host import user_name
from asynccommit.stores.base import Info, Store
from asynccommit.stores.filesystem_names import temporary_name
from asynccommit.stores.tree import list_if_there, remove_file
from asynccommit.stores.urls import Address

_STATE, _CLOCK = "commit-", "commit-clock-"
"""Prefixes: of a commit's own files, and of files by which others ask the store for the time."""


def is_of_commit(path: str) -> bool:
    """Return whether a file or directory of a job attempt tells of its commit."""
    name = path.rpartition("/")[2].lstrip("_")
    return name.startswith(_STATE) and not name.startswith(_CLOCK)


def foreign_owner(store: Store, found: Iterable[Info]) -> str:
    """Return another user who owns a part of a commit, for people.

    Empty if it is this process's, as far as that is known without writing anything.
    """
    me = store.traits.user
    if me is None or me == "":
        return ""
    others = {info.owner for info in found if is_of_commit(info.path)} - {me, None}
    return next((user_name(owner) for owner in others if owner is not None), "")


def not_ours(layout: Layout, user: str) -> str:
    """Return the advice on a commit of another user."""
    return f"its record belongs to {user}: look at {layout.attempt_dir} before anybody acts on it"


def resume_hint(dest: Address, job: JobStatus) -> str:
    """Return the command that resumes a job, or the user to whom it belongs."""
    if job.belongs_to:
        return f"{job.job_id} of {job.belongs_to}"
    return job_command("resume", Layout(dest, job.job_id, job.attempt))


async def require_own(run: CommitContext, store: Store) -> list[Info]:
    """Refuse a commit of which a part is not the user's who writes here.

    That is, of the directories from the job's to the job attempt's, or of its own files there.

    Args:
        run: the recovery.
        store: where the job's own files are.

    Returns those files. Raises ``ForeignCommitError``.
    """
    job, attempt = run.layout.job_dir, run.layout.attempt_dir
    files = [info for info in await list_if_there(store, attempt) if is_of_commit(info.path)]
    places = [await store.head(path) for path in sorted(ancestors(job, [attempt]) | {job})]
    me = await _own_user(run, store, job.rpartition("/")[0])
    for info in (*places, *files):
        if info.owner != me or info.owner is None:
            raise _foreign(run, info, me)
    return files


async def _own_user(run: CommitContext, store: Store, folder: str) -> int | str | None:
    """Return the owner of a file that is written now.

    The store decides: a server may take the superuser for nobody, and a NameNode names a principal
    by rules of its own.
    """
    probe = f"{folder}/{temporary_name(run.host.new_id())}"
    try:
        await store.put(probe, b"", overwrite=False)
        return (await store.head(probe)).owner
    except DeniedError:
        return store.traits.user
    finally:
        with suppress(StoreError):
            await remove_file(store, probe)


def _foreign(run: CommitContext, info: Info, me: int | str | None) -> ForeignCommitError:
    owner, mine = ("nobody known" if u is None else user_name(u) for u in (info.owner, me))
    text = (
        f"{info.path} belongs to {owner}, and this driver writes as {mine}: unasked, a commit is "
        f"finished or undone only by the user who began it. Nothing was done. Look at "
        f"{run.layout.attempt_dir} before {owner}, or a person by hand, resumes it or rolls it back"
    )
    return ForeignCommitError(run.layout.job_id, run.meter.stage, owner, text)
