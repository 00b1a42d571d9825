"""The process that owns a job or commit, and the store's time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from asynccommit.commit.context import CommitContext
from asynccommit.errors import (
    StoreError,
)
from asynccommit.formats.commit_record import Owner
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.tree import remove_file


def owner_of(run: CommitContext) -> Owner:
    """Return this process as the owner of a commit."""
    return Owner(run.host.new_id(), run.host.name, run.host.user, run.host.process)


def describe(owner: Owner) -> str:
    """Return an owner as people know it."""
    process = owner.process.partition(".")[0]
    return f"{owner.user}@{owner.host}" + (f", process {process}" if process else "")


def clock_file(run: CommitContext, directory: str) -> str:
    """Return the path of a file that tells a job the store's time.

    If it is written late, it is one of the words of a commit, which are no job.
    """
    return f"{directory}/commit-clock-{run.host.new_id()}"


async def time_of(store: Store, probe: str) -> float:
    """Return the store's own time, from a file written for that.

    Raises ``StoreError``.
    """
    try:
        await store.put(probe, b"", overwrite=False)
        return (await store.head(probe)).modified
    finally:
        with suppress(StoreError):
            await remove_file(store, probe)


async def on_store_time(host: Host, store: Store, probe: str) -> Host:
    """Return the host with the store's clock, which dates the files.

    See ``time_of``.
    """
    at = await time_of(store, probe)
    since = host.clock()
    return replace(host, now=lambda: at + host.clock() - since)
