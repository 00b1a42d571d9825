"""Google Cloud Storage, by its JSON interface."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Info, Kind, Page, Traits
from asynccommit.stores.gcs.batch import GcsDeletions
from asynccommit.stores.gcs.client import GcsClient
from asynccommit.stores.gcs.errors import GcsRequest, explain, says_not_empty
from asynccommit.stores.gcs.moves import Moves
from asynccommit.stores.gcs.objects import PAGES, GcsObjects
from asynccommit.stores.gcs.options import read_settings
from asynccommit.stores.gcs.wire import (
    LONGEST,
    GcsListPage,
    folder_query,
    folders_listed,
    list_query,
    listed,
)
from asynccommit.stores.http.base import Response, Transport, open_transport
from asynccommit.stores.urls import Address

_LISTING = 64 << 20  # most bytes of a page: 5,000 entries with names of a kilobyte take a sixth
_OBJECTS, _FOLDERS = "o", "f"  # what the token of a page of a whole tree begins with
_EMPTY = (b"", b"{}", b"null")


class GcsStore:
    """One bucket, with a hierarchical namespace or without.

    The bucket is asked once, by the first request, whether it has folders. Without them a
    directory is what the names of objects say, and empty ones are placeholders: empty objects
    whose names end in a slash, as Hadoop's connector makes them. With them, files still bring
    their folders along, and a folder is renamed as a whole.

    An etag is ``<generation>-<crc32c>``. The generation names this very object, which a rename
    replaces by one of another generation; the checksum stays. Where the service shows no checksum,
    as in listings of what a key of the caller's encrypts, the etag is the generation alone.
    Wherever an etag is given, the JSON interface's own is taken too.

    A file and a directory of the same name can both be there, as the service has it.

    Args:
        address: scheme and authority of the bucket.
        options: see ``gcs_options``.
        environ: the environment, if not that of the process.
        host: clock and ids.
        transport: what sends, if not what ``open_transport`` finds.

    Raises:
        OptionError: an option or the address cannot be used.
        UnsupportedError: a library is missing.
    """

    def __init__(
        self,
        address: Address,
        options: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        host: Host | None = None,
        transport: Transport | None = None,
    ) -> None:
        host = host or this_host()
        environ = os.environ if environ is None else environ
        settings = read_settings(address, options or {}, environ=environ, now=host.now)
        transport = transport or open_transport(settings.http, prefer=settings.library)
        self._name = f"GcsStore({settings.place.bucket})"
        self._settings = settings
        self._client = GcsClient(settings, host, transport, self._learn)
        self._files = GcsObjects(self._client)
        self._moves = Moves(self._client, self._files, self._learn_no_moves)
        self._deletions = GcsDeletions(self._client, self._learn_no_batches)
        hierarchical = bool(settings.hierarchical)
        self.traits = Traits(
            "Google Cloud Storage",
            directories=False,
            atomic_directory_rename=hierarchical,
            etag_survives_rename=False,
            content_etags=True,
            whole_listings=not settings.write_headers,
            atomic_put=True,
            recursive_delete=False,
            bulk_delete=settings.batch,
            put_tokens=True,
            longest_path=LONGEST + 1,  # a name has no slash at its beginning
            workers=settings.workers,
            account=settings.place.limit,
            ramp=settings.ramp_for(hierarchical),
            name_interval=1.0 if settings.ramp_for(hierarchical) else 0.0,
            costs={"mkdir": 2} if settings.move else {"mkdir": 2, "rename": 2},
        )

    def __repr__(self) -> str:
        return self._name

    async def head(self, path: str) -> Info:
        request, files = GcsRequest("head", path), self._files
        info = await files.find(request, path) if path != "/" else None
        if info is not None:
            return info
        if not await files.is_directory(request, path):
            raise NotFoundError("head", path, "there is no such object")
        return Info(path, Kind.DIRECTORY)

    async def list(self, path: str, token: str | None = None) -> Page:
        request = GcsRequest("list", path)
        found = await self._list(request, path, token, tree=False)
        for _ in range(PAGES):
            if token or found.entries or found.itself or found.token is None:
                break
            # A page of nothing but a token; whether there is a directory has to be known now.
            found = await self._list(request, path, found.token, tree=False)
        else:
            raise UnavailableError("list", path, "its listing has empty pages only")
        if token or found.entries or found.itself or path == "/":
            return Page(tuple(found.entries), found.token)
        # Nothing was found: an empty folder, a file, or nothing.
        client, files = self._client, self._files
        if client.hierarchical and await files.is_directory(request, path):
            return Page(())
        if await files.find(request, path) is not None:
            raise PreconditionError("list", path, "is a file")
        raise NotFoundError("list", path, "there is no such directory")

    async def list_tree(self, path: str, token: str | None = None) -> Page:
        request, client = GcsRequest("list_tree", path), self._client
        if token is None or token[0] == _OBJECTS:
            found = await self._list(request, path, token and token[1:], tree=True)
            more = _OBJECTS + found.token if found.token else None
            if more is None and client.hierarchical:
                more = _FOLDERS
            return Page(tuple(found.entries), more)
        asked = folder_query(path, self._settings.page, token[1:])
        url = client.folders.removesuffix("/")
        answer = await client.ask(request, "GET", url, asked, limit=_LISTING)
        client.need(request, answer, 200)
        try:
            found = folders_listed(answer.body, path)
        except ValueError as error:
            raise client.unread(request, error) from None
        return Page(tuple(found.entries), _FOLDERS + found.token if found.token else None)

    async def get(self, path: str, limit: int) -> bytes:
        return await self._files.read(GcsRequest("get", path), path, limit)

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        request = GcsRequest("put", path, writes=True, new=not overwrite)
        return await self._files.write(request, path, data, token)

    async def delete(self, path: str) -> None:
        request, client = GcsRequest("delete", path, writes=True), self._client
        if path == "/":
            raise RejectedError("delete", path, "the root is not deleted")
        answer = await client.ask(request, "DELETE", client.objects + client.encode(request, path))
        try:
            self._need_deleted(request, answer)
        except NotFoundError:
            await self._delete_directory(request, path)

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        return await self._deletions.delete(entries)

    async def delete_tree(self, path: str) -> None:
        """Refuse: no request deletes a tree; see ``parallel.remove_tree``."""
        raise UnsupportedError(f"delete_tree {path}: it takes many requests: ask remove_tree")

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        client, files = self._client, self._files
        request = GcsRequest("copy", source, writes=True, new=not overwrite, dest=dest)
        names = client.encode(request, source), client.encode(request, dest)
        condition = "&ifGenerationMatch=0" if request.new else ""
        answer = await files.rewrite(request, *names, condition)
        if answer is None:
            return
        error = client.error(request, answer)
        raise await files.missing(request, source) if isinstance(error, NotFoundError) else error

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        request = GcsRequest("rename", source, writes=True, new=not replace, dest=dest)
        await self._moves.rename(request, etag)

    async def mkdir(self, path: str) -> None:
        request, client = GcsRequest("mkdir", path, writes=True), self._client
        if path == "/":
            await self._files.is_directory(request.look, path)
            return
        if await self._files.find(request.look, path) is not None:
            raise PreconditionError("mkdir", path, "a file is there")
        if client.hierarchical:
            await self._files.make_folder(request, path)
        else:
            await self._files.make_placeholder(request, path)

    async def sync(self, path: str) -> None:
        """Nothing is left to do: the service answers when what it was given lasts."""

    async def aclose(self) -> None:
        """Close the connections, and the credential if it was made here."""
        await self._client.aclose()

    # --- what requests have shown --------------------------------------------------------------

    def _learn(self, hierarchical: bool) -> None:
        ramp = self._settings.ramp_for(hierarchical)
        self.traits = replace(self.traits, atomic_directory_rename=hierarchical, ramp=ramp)

    def _learn_no_moves(self) -> None:
        self.traits = replace(self.traits, costs={**self.traits.costs, "rename": 2})

    def _learn_no_batches(self) -> None:
        self.traits = replace(self.traits, bulk_delete=1)

    # --- parts -------------------------------------------------------------------------------

    async def _list(
        self, request: GcsRequest, path: str, token: str | None, *, tree: bool
    ) -> GcsListPage:
        client = self._client
        if path != "/":
            client.encode(request, path)  # for its checks: in a query it is encoded otherwise
        await client.need_layout(request)
        folders = bool(client.hierarchical)
        asked = list_query(path, self._settings.page, token, tree=tree, hierarchical=folders)
        answer = await client.ask(request, "GET", client.place.objects, asked, limit=_LISTING)
        client.need(request, answer, 200)
        try:
            return listed(answer.body, path, tree=tree)
        except ValueError as error:
            raise client.unread(request, error) from None

    async def _delete_directory(self, request: GcsRequest, path: str) -> None:
        """Delete a directory, unless it holds something."""
        client = self._client
        name = client.encode(request, path)
        if client.hierarchical:
            await self._delete_folder(request, name)
            return
        below = await self._files.below(request.look, path, 2)
        if not below:
            raise NotFoundError("delete", path, "there is no such object")
        if [info.path for info in below] != [f"{path}/"]:
            raise ExistsError("delete", path, "the directory is not empty")
        answer = await client.ask(request, "DELETE", f"{client.objects}{name}%2F")
        self._need_deleted(request, answer)

    async def _delete_folder(self, request: GcsRequest, name: str) -> None:
        """Delete an empty folder, after the placeholder that other clients make."""
        client = self._client
        answer = await client.ask(request, "DELETE", f"{client.objects}{name}%2F")
        placeholder = answer.status != 404 or not explain(answer)[0]
        if placeholder:
            self._need_deleted(request, answer)
        answer = await client.ask(request, "DELETE", f"{client.folders}{name}%2F")
        if says_not_empty(answer):
            raise ExistsError("delete", request.path, client.told(explain(answer)[1]))
        if not placeholder or answer.status != 404:
            self._need_deleted(request, answer)

    def _need_deleted(self, request: GcsRequest, answer: Response) -> None:
        # Emulators say 200 with an empty value; a page that says hello has another body.
        if answer.status != 204 and not (answer.status == 200 and answer.body.strip() in _EMPTY):
            raise self._client.error(request, answer)
