"""The directories of one publication of Hive's, and how they are moved and removed."""

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
    """What publishing did.

    Attributes:
        dedup: what was cleared away before; ``None`` if there was nothing to publish.
        added: how many files were put beside others; 0 where the whole directory was moved.
        replaced: the directory that was there before is gone.
    """

    dedup: Dedup | None = None
    added: int = 0
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class PublishDirectories:
    """The directories of one publication.

    Attributes:
        final: where the files are to be.
    """

    final: str

    @property
    def written(self) -> str:
        """Return where the tasks write."""
        return temporary_path(self.final)

    @property
    def taken(self) -> str:
        """Return where that is moved, so that no straggler writes to it."""
        return f"{self.written}.intermediate"

    @property
    def adding(self) -> str:
        """Return where files are while they are added one by one."""
        return f"{self.written}.adding"

    @property
    def buckets(self) -> str:
        """Return where empty buckets are written before they are moved."""
        return f"{self.written}.buckets"

    @property
    def discarded(self) -> str:
        """Return where that is moved which is to be removed."""
        return f"{self.written}.discarded"

    @property
    def task(self) -> str:
        """Return where the attempts of tasks write."""
        return task_temporary_path(self.final)

    @property
    def backup(self) -> str:
        """Return where that is moved which is to be replaced."""
        folder, _, name = self.final.rpartition("/")
        return f"{folder}/_backup.{name}"


async def restore(store: Store, places: PublishDirectories) -> None:
    """Put back what is replaced, unless it is there."""
    with suppress(NotFoundError, ExistsError):
        await move(store, places.backup, places.final)


async def move(store: Store, source: str, dest: str) -> None:
    """Rename a directory: this very one, where the store can tell, should the request come late."""
    await store.rename(source, dest, etag=(await store.head(source)).etag)


async def drop(store: Store, directory: str) -> None:
    """Remove a directory, if there is one."""
    with suppress(NotFoundError):
        await remove_tree(store, directory)


@asynccontextmanager
async def cleaning_up(places: PublishDirectories) -> AsyncIterator[None]:
    """Say of whatever ends the block, a cancellation among it, that the job is committed."""
    try:
        yield
    except StoreError as error:
        text = (
            f"the job is committed, but its clean-up failed: {error}. Do not run it again. Publish "
            "once more, which cleans up"
        )
        raise CommitError(places.final, "publish", (error,), text) from error
    except BaseException as error:
        error.add_note(
            f"{places.final}: {COMMITTED}. Publish once more, which removes what is left"
        )
        raise
