"""Name, move and remove the directories of one Hive publication."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from asynccommit.commit.errors import COMMITTED
from asynccommit.errors import CommitError, ExistsError, NotFoundError, StoreError
from asynccommit.hive.deduplication import Dedup
from asynccommit.hive.names import task_temporary_path, temporary_path
from asynccommit.stores.base import Store
from asynccommit.stores.tree import remove_tree


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing.

    Attributes:
        dedup: result of the cleanup before; ``None`` if there was nothing to publish.
        added: number of files added beside others; 0 if the whole directory was moved.
        replaced: the previous directory was removed.
    """

    dedup: Dedup | None = None
    added: int = 0
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class PublishDirectories:
    """The directories of one publication.

    Attributes:
        final: destination of the files.
    """

    final: str

    @property
    def written(self) -> str:
        """Return the directory that tasks write to."""
        return temporary_path(self.final)

    @property
    def taken(self) -> str:
        """Return the directory it is moved to, out of the reach of stragglers."""
        return f"{self.written}.intermediate"

    @property
    def adding(self) -> str:
        """Return the directory of the files while they are added one by one."""
        return f"{self.written}.adding"

    @property
    def buckets(self) -> str:
        """Return the directory in which empty buckets are written before the move."""
        return f"{self.written}.buckets"

    @property
    def discarded(self) -> str:
        """Return the directory to which removed directories are moved."""
        return f"{self.written}.discarded"

    @property
    def task(self) -> str:
        """Return the directory that task attempts write to."""
        return task_temporary_path(self.final)

    @property
    def backup(self) -> str:
        """Return the directory to which the replaced directory is moved."""
        folder, _, name = self.final.rpartition("/")
        return f"{folder}/_backup.{name}"


async def restore(store: Store, places: PublishDirectories) -> None:
    """Put back the replaced directory, unless the destination exists."""
    with suppress(NotFoundError, ExistsError):
        await move(store, places.backup, places.final)


async def move(store: Store, source: str, dest: str) -> None:
    """Rename a directory.

    Where the store can check it, only this directory is moved, even if the request is late.
    """
    await store.rename(source, dest, etag=(await store.head(source)).etag)


async def drop(store: Store, directory: str) -> None:
    """Remove a directory, if there is one."""
    with suppress(NotFoundError):
        await remove_tree(store, directory)


@asynccontextmanager
async def cleaning_up(places: PublishDirectories) -> AsyncIterator[None]:
    """Report any error or cancellation in the block as one after the commit."""
    try:
        yield
    except StoreError as error:
        text = (
            f"the job is committed, but its clean-up failed: {error}. Do not run it again. "
            "Publish again to clean up"
        )
        raise CommitError(places.final, "publish", (error,), text) from error
    except BaseException as error:
        error.add_note(f"{places.final}: {COMMITTED}. Publish again to remove the remains")
        raise
