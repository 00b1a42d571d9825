"""The store contract over the service, which the storage option ``service`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asynccommit.errors import RejectedError
from asynccommit.stores.base import Info, Page, Traits
from asynccommit.stores.urls import Address
from tests.support.new_store.stores.memory.errors import Answer, translate


class MemoryStore:
    """One bucket of the service."""

    traits = Traits("memory", tokens=False)

    def __init__(self, address: Address, options: Mapping[str, Any]) -> None:
        self._service = options["service"]

    def _ask(self, op: str, path: str, *args: object, **named: object) -> Any:
        answer: Answer = getattr(self._service, op)(path, *args, **named)
        if answer.code:
            raise translate(op, path, answer)
        return answer.value

    async def head(self, path: str) -> Info:
        info: Info = self._ask("head", path)
        return info

    async def list(self, path: str, token: str | None = None) -> Page:
        page: Page = self._ask("list", path, token)
        return page

    async def get(self, path: str, limit: int) -> bytes:
        data: bytes = self._ask("get", path)
        if len(data) > limit:
            raise RejectedError("get", path, f"the file has more than {limit} bytes")
        return data

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        info: Info = self._ask("put", path, data, overwrite=overwrite)
        return info

    async def delete(self, path: str) -> None:
        self._ask("delete", path)

    async def delete_tree(self, path: str) -> None:
        self._ask("delete_tree", path)

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        self._ask("copy", source, dest, overwrite=overwrite)

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        self._ask("rename", source, dest, replace=replace, etag=etag)

    async def mkdir(self, path: str) -> None:
        self._ask("mkdir", path)

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        self._ask("mkdir", path, new=True)

    async def sync(self, path: str) -> None:
        """Do nothing: the service keeps what it has acknowledged."""

    async def aclose(self) -> None:
        """Do nothing: the store holds no connection."""
