"""A store whose renames do nothing."""

from __future__ import annotations

from asynccommit.stores.base import Info, Page, Traits


class Nowhere:
    """Says of every request that it was done."""

    traits = Traits("nowhere", workers=64)

    async def head(self, path: str) -> Info:
        """See ``Store.head``."""
        raise NotImplementedError

    async def list(self, path: str, token: str | None = None) -> Page:
        """See ``Store.list``."""
        raise NotImplementedError

    async def get(self, path: str, limit: int) -> bytes:
        """See ``Store.get``."""
        raise NotImplementedError

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        """See ``Store.put``."""
        raise NotImplementedError

    async def delete(self, path: str) -> None:
        """See ``Store.delete``."""

    async def delete_tree(self, path: str) -> None:
        """See ``Store.delete_tree``."""

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        """See ``Store.copy``."""

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        """See ``Store.rename``."""

    async def mkdir(self, path: str) -> None:
        """See ``Store.mkdir``."""

    async def sync(self, path: str) -> None:
        """See ``Store.sync``."""

    async def aclose(self) -> None:
        """See ``Store.aclose``."""
