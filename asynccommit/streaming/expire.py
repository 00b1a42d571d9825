"""Delete log files that no reader needs, and files of a failed batch."""

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

LISTED = "the log lists it"
"""Why a file is kept that belongs to the table."""


@dataclass(slots=True)
class Discarded:
    """The result of aborting a batch, by file.

    Attributes:
        deleted: URIs of files that were deleted or did not exist.
        kept: URI -> why the file was kept.
    """

    deleted: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


async def expire(
    store: Store, listing: LogListing, interval: int, settings: SinkLogSettings
) -> list[str]:
    """Delete log files older than the oldest compact file that must be kept.

    The newest file of the log tells the store's time, which dates the others.

    Args:
        store: store of the log.
        listing: the log, with its newest batch.
        interval: interval of the log.
        settings: whether to delete, after what time, and how many batches to keep.

    Returns one warning for each file that could not be deleted; the batch is committed anyway.
    """
    newest = listing.newest
    if not settings.deletion or newest is None:
        return []
    below = expired_below(newest, interval, settings.keep)
    if below is None or below not in listing.compacts:  # the only copy
        return []
    files = [*listing.singles.items(), *listing.compacts.items()]
    latest = max(info.modified for _, info in files) - settings.cleanup_delay
    old = [info for batch, info in files if batch < below and info.modified <= latest]
    problems: list[str] = []

    async def delete(info: Info) -> None:
        try:
            await delete_one(store, info)
        except NotFoundError:
            return
        except StoreError as error:
            problems.append(f"{info.path} is no longer needed but could not be deleted: {error}")

    await for_each(old, delete, workers=store.traits.workers)
    return problems


async def delete_one(store: Store, info: Info) -> None:
    """Delete a file; only if it is unchanged, where the store can check that."""
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
        store: store of the files.
        dest: the table: nothing outside it is deleted, nor the log.
        files: files that the tasks of the batch wrote.
        listed: decoded paths of the files that the log lists.
        why: reason why no file may be deleted; empty if they may be.
    """
    done = Discarded()
    under, log = Under(dest), f"{dest.child(FOLDER).path}/"

    async def delete(file: SinkFile) -> None:
        try:
            path = under.path(file.path)
        except UrlError as error:
            done.kept[file.path] = str(error)
            return
        if reason := LISTED if path in listed else why:
            done.kept[file.path] = reason
        elif f"{path}/".startswith(log):
            done.kept[file.path] = "it belongs to the log"
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
