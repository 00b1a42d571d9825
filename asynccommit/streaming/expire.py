"""Deleting what no reader of a sink log wants any more, and what a failed batch has left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from asynccommit.errors import NotFoundError, StoreError, UrlError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import BulkStore, Info, Store
from asynccommit.stores.tree import remove_file
from asynccommit.stores.urls import Address, Under
from asynccommit.streaming.batches import expired_below
from asynccommit.streaming.entries import FOLDER, SinkFile
from asynccommit.streaming.listing import LogListing
from asynccommit.streaming.settings import SinkLogSettings


@dataclass(slots=True)
class Discarded:
    """What an abort has done with the files of a batch.

    Attributes:
        deleted: URIs of those that were deleted, or gone.
        kept: URI -> why it was left.
    """

    deleted: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


async def expire(
    store: Store, listing: LogListing, interval: int, settings: SinkLogSettings, now: float
) -> list[str]:
    """Delete files of a log that are older than its oldest compact file that has to be kept.

    Args:
        store: where the log is.
        listing: the log, with its newest batch.
        interval: of the log.
        settings: whether, after what time, and how many batches are kept.
        now: seconds since the epoch.

    Returns one warning for each that could not be deleted; the batch is committed all the same.
    """
    newest = listing.newest
    if not settings.deletion or newest is None:
        return []
    below = expired_below(newest, interval, settings.keep)
    if below is None or below not in listing.compacts:  # without it these are all there is
        return []
    latest = now - settings.cleanup_delay
    files = [*listing.singles.items(), *listing.compacts.items()]
    old = [info for batch, info in files if batch < below and info.modified <= latest]
    problems: list[str] = []

    async def delete(info: Info) -> None:
        try:
            await delete_one(store, info)
        except NotFoundError:
            return
        except StoreError as error:
            problems.append(f"{info.path} is not wanted any more and could not be deleted: {error}")

    await for_each(old, delete, workers=store.traits.workers)
    return problems


async def delete_one(store: Store, info: Info) -> None:
    """Delete a file, only while it is as it was listed where the store can see to that."""
    if not store.traits.bulk_delete:
        await store.delete(info.path)
        return
    error = (await cast(BulkStore, store).delete_many([info]))[0]
    if error is not None:
        raise error


async def discard(
    store: Store, dest: Address, files: list[SinkFile], listed: set[str], why: str
) -> Discarded:
    """Delete files of a batch that no batch lists.

    Args:
        store: where they are.
        dest: the table: nothing outside of it is deleted, nor the log.
        files: what the tasks of the batch wrote.
        listed: decoded paths of what the log lists.
        why: why none may be deleted, empty if they may.
    """
    done = Discarded()
    under, log = Under(dest), f"{dest.child(FOLDER).path}/"

    async def delete(file: SinkFile) -> None:
        try:
            path = under.path(file.path)
        except UrlError as error:
            done.kept[file.path] = str(error)
            return
        if reason := "the log lists it" if path in listed else why:
            done.kept[file.path] = reason
        elif f"{path}/".startswith(log):
            done.kept[file.path] = "it is of the log"
        else:
            await _delete_data(store, path, file, done)

    await for_each(files, delete, workers=store.traits.workers)
    return done


async def _delete_data(store: Store, path: str, file: SinkFile, done: Discarded) -> None:
    try:
        if store.traits.directories and (await store.head(path)).is_dir:
            done.kept[file.path] = "it is a directory"
            return
        await remove_file(store, path)
    except NotFoundError:
        pass
    except StoreError as error:
        done.kept[file.path] = f"it could not be deleted: {error}"
        return
    done.deleted.append(file.path)
