"""HDFS, through a client that needs no JVM."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Info, Move, Page, QuotaUse, Renamed, Traits
from asynccommit.stores.filesystem_names import is_temporary
from asynccommit.stores.hdfs.client import BATCH, HdfsClient, HdfsRequests
from asynccommit.stores.hdfs.errors import HdfsRequest, quota_use
from asynccommit.stores.hdfs.objects import HdfsObjects, content, content_of, copy_of, info_of
from asynccommit.stores.hdfs.options import read_settings
from asynccommit.stores.urls import Address

_Infos = list[Info]  # in the class, the name "list" is the method
_LONGEST = 8000  # the NameNode counts characters


class HdfsStore:
    """The files of one NameNode or name service, or of a view file system.

    A rename is ``rename2``, one atomic request that replaces only if it may. The older ``rename``,
    which moves a source into a directory that exists, is never used.

    The library shows no inode numbers. An etag is made of the modification time in milliseconds and
    the length, of a directory of its time alone. A rename keeps it; two files may have the same.

    With several NameNodes the library sends a request to the next one if a connection breaks, and
    does not say so. A rename without an etag, as of a directory, therefore looks at its source
    first, and settles by its time what became of a request whose answer is lost or doubtful.

    ``put`` and ``copy`` write a temporary file in the same directory, hidden from listings, and
    rename it; ``mkdir_new`` does the same with a directory. Nobody else renames those, so their
    outcome is known as soon as the NameNode answers again.

    A listing is read as a whole and shown as one page.

    Args:
        address: scheme and NameNodes.
        options: see ``asynccommit.stores.hdfs.options``.
        environ: the environment, if not that of the process.
        host: clock and ids.
        client: sends the requests, in place of hdfs-native.

    Raises:
        OptionError: an option or the address cannot be used.
        UnsupportedError: hdfs-native is missing.
    """

    def __init__(
        self,
        address: Address,
        options: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        host: Host | None = None,
        client: HdfsRequests | None = None,
    ) -> None:
        settings = read_settings(
            address, options or {}, environ=os.environ if environ is None else environ
        )
        self._name = f"HdfsStore({settings.name})"
        self._client = client or HdfsClient(settings)
        self._files = HdfsObjects(self._client, (host or this_host()).new_id, settings.umask)
        self.traits = Traits(
            "HDFS",
            weak_etags=True,
            zones=True,
            nested_zones=True,
            user=settings.user,
            bulk_rename=BATCH,
            conditional_rename=False,
            put_tokens=True,
            atomic_put=True,
            longest_path=_LONGEST,
            workers=settings.workers,
            account=settings.name,
            unlimited=True,
            costs={"put": 6, "copy": 7, "mkdir_new": 3},
        )

    def __repr__(self) -> str:
        return self._name

    async def head(self, path: str) -> Info:
        return await self._files.head(HdfsRequest("head", path), path)

    async def list(self, path: str, token: str | None = None) -> Page:
        entries = await self._entries(HdfsRequest("list", path), path)
        return Page(tuple(info for info in entries if not _is_hidden(info)))

    async def get(self, path: str, limit: int) -> bytes:
        request = HdfsRequest("get", path)
        return await self._client.work(request, lambda c: content_of(c, path, limit))

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        request = HdfsRequest("put", path, writes=True, new=not overwrite)
        return await self._files.place(request, path, content(data), token)

    async def delete(self, path: str) -> None:
        request = _below_root(HdfsRequest("delete", path, writes=True))
        try:
            found = await self._files.delete(request, path)
        except ExistsError:
            await self._clear(path)
            found = await self._files.delete(request, path)
        if not found:
            raise NotFoundError("delete", path, "does not exist")

    async def delete_tree(self, path: str) -> None:
        request = _below_root(HdfsRequest("delete_tree", path, writes=True))
        if not await self._files.delete(request, path, recursive=True):
            raise NotFoundError("delete_tree", path, "does not exist")

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        request = HdfsRequest("copy", source, writes=True, new=not overwrite)
        await self._files.place(request, dest, copy_of(source))

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        request = HdfsRequest("rename", source, writes=True, new=not replace)
        if etag is not None:  # tells what became of it
            await self._files.rename(request, source, dest)
            return
        await self._files.rename_known(request, source, dest)

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        """See ``BatchStore.rename_many``; etags are not compared.

        Without them a lost answer could not be settled, so each file is looked at before.
        """
        if all(etag for _, _, etag in pairs):
            return await self._client.rename_many(pairs)
        for done, (source, dest, etag) in enumerate(pairs):
            try:
                await self.rename(source, dest, etag=etag)
            except StoreError as error:
                return done, error
        return len(pairs), None

    async def probe(self, path: str, place: str) -> None:
        """See ``ProbingStore.probe``; the directory ``path`` stays where it is."""
        await self._files.try_rename(path, place)

    async def quotas(self, path: str) -> QuotaUse:
        """See ``QuotaStore.quotas``; the NameNode counts everything below."""
        request = HdfsRequest("quotas", path)
        found = await self._client.work(request, lambda c: c.get_content_summary(path))
        named = found.file_count + found.directory_count
        return quota_use(found.quota, named, found.space_quota, found.space_consumed)

    async def mkdir(self, path: str, *, private: bool = False) -> None:
        request = HdfsRequest("mkdir", path, writes=True)
        await (self._files.make_private if private else self._files.mkdirs)(request, path)

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        request = HdfsRequest("mkdir_new", path, writes=True, new=True)
        if path == "/":
            raise ExistsError("mkdir_new", path, "the root always exists")
        above = request._replace(writes=False, new=False)  # it may be sent again
        await self._files.mkdirs(above, path.rpartition("/")[0] or "/")
        await self._files.place_directory(request, path)

    async def sync(self, path: str) -> None:
        """Do nothing: what ``put`` wrote is on the disks of the DataNodes."""

    async def aclose(self) -> None:
        """End the threads."""
        await self._client.aclose()

    async def _entries(self, request: HdfsRequest, path: str) -> _Infos:
        def read(client: Any) -> Any:
            base = path.rstrip("/")
            return [
                (status.path, info_of(f"{base}/{status.path.rpartition('/')[2]}", status))
                for status in client.list_status(path)
            ]

        found = await self._client.work(request, read)
        if len(found) == 1 and found[0][0] == path and not found[0][1].is_dir:
            raise PreconditionError(request.op, path, "is a file")
        return [info for _, info in found]

    async def _clear(self, path: str) -> None:
        """Delete temporary files of a directory that has nothing else."""
        entries = await self._entries(HdfsRequest("delete", path), path)
        if all(map(_is_hidden, entries)):
            for info in entries:
                await self._files.delete(HdfsRequest("delete", path, writes=True), info.path)


def _is_hidden(info: Info) -> bool:
    return is_temporary(info.path.rpartition("/")[2])


def _below_root(request: HdfsRequest) -> HdfsRequest:
    if request.path == "/":
        raise RejectedError(request.op, request.path, "the root cannot be deleted")
    return request
