"""Provide the model as an in-process store: ``AdlsStore`` without HTTP.

Each request passes the fault injector first. A refusal, a lost response and a late effect become
the same errors as over HTTP, so that a commit can be run against thousands of them in a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Info, Kind, Page, Traits
from asynccommit.stores.filesystem_names import is_temporary, temporary_name
from asynccommit.stores.urls import Address
from asynccommit.testing.models.adls.account import (
    IF_ABSENT,
    NO_CONDITIONS,
    AdlsAccount,
    Conditions,
    Node,
    Refusal,
)
from asynccommit.testing.models.adls.refusals import refusal
from asynccommit.testing.models.adls.renames import LEGACY
from asynccommit.testing.models.in_process import Sender, SimRequest

_KINDS: dict[str, type[StoreError]] = {
    "DestinationPathIsBeingDeleted": UnavailableError,
    "DirectoryNotEmpty": ExistsError,
    "FilesystemBeingDeleted": UnavailableError,
    "FilesystemNotFound": RejectedError,
    "InvalidDestinationPath": NotFoundError,
    "InvalidSourceOrDestinationResourceType": PreconditionError,
    "PathAlreadyExists": ExistsError,
    "PathConflict": PreconditionError,
    "ResourceTypeMismatch": PreconditionError,
    "SourcePathIsBeingDeleted": NotFoundError,
}
_BY_STATUS: dict[int, type[StoreError]] = {
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    412: PreconditionError,
}
# Of a write, about its temporary file: it is written anew.
_GONE_ASIDE = frozenset({"SourcePathNotFound", "SourceConditionNotMet"})


def kind_of(asked: SimRequest, answer: Refusal) -> type[StoreError]:
    """Return the store error that a refusal means."""
    kind = _KINDS.get(answer.code) or _BY_STATUS.get(answer.status, RejectedError)
    if asked.method == "mkdir" and kind is ExistsError:
        return PreconditionError
    if asked.aside and answer.status in (404, 409, 412):
        return UnavailableError
    if answer.code in _GONE_ASIDE and asked.method != "rename":
        return UnavailableError
    return kind


_WORKERS = 64
_FENCES = 5  # maximum number of checks of a file's outcome
_COSTS = {"put": 4, "copy": 5, "draft": 2}


class SimStore(Sender):
    """One filesystem of an account of the model, as a store.

    ``put`` writes to a hidden temporary name in the same directory, new for every attempt, and
    renames; ``copy`` reads and puts. Late effects happen in the background; ``aclose`` waits for
    them.

    Args:
        address: its authority names the filesystem, ``FILESYSTEM@anything``.
        options: ``account``, an ``AdlsAccount``; and, optionally, ``weather``, a ``Weather``;
            ``patience``, the timeout in seconds for a response that never comes; ``page``, the
            maximum number of entries on a page; ``workers``, the recommended number of requests in
            flight.

    Raises:
        OptionError: the options contain no account.
    """

    def __init__(self, address: Address, options: Mapping[str, Any]) -> None:
        account = options.get("account")
        if not isinstance(account, AdlsAccount):
            raise OptionError(f"account is {account!r}: expected an Account of the model")
        self._account = account
        self._fs = address.authority.partition("@")[0]
        super().__init__(options, kind_of)
        self._page: int | None = options.get("page")
        self._serial = 0
        self._traits = Traits(
            "simulated ADLS",
            atomic_directory_rename=account.hns,
            etag_survives_rename=account.hns,
            tokens=True,
            workers=int(options.get("workers", _WORKERS)),
            account=f"sim:{account.name}",
            atomic_put=True,
            drafts=True,
            tagged_get=True,
            costs=_COSTS,
        )

    def __repr__(self) -> str:
        return f"SimStore({self._account.name}/{self._fs})"

    @property
    def traits(self) -> Traits:
        """The capabilities of this store."""
        return self._traits

    async def head(self, path: str) -> Info:
        """See ``Store.head``."""

        def answer() -> Info:
            return _info(path, self._account.head(self._fs, path[1:]))

        return await self._ask(SimRequest("head", path), "head", path, answer)

    async def list(self, path: str, token: str | None = None) -> Page:
        """See ``Store.list``."""

        def answer() -> Page:
            entries, more = self._account.list(self._fs, path[1:], limit=self._page, token=token)
            if [name for name, _ in entries] == [path[1:]]:  # a file's listing is the file
                raise refusal("ResourceTypeMismatch")
            shown = [
                _info(f"/{name}", node)._replace(token=None)
                for name, node in entries
                if not _is_hidden(name)
            ]
            return Page(tuple(shown), more)

        return await self._ask(SimRequest("list", path), "list", path, answer)

    async def get(self, path: str, limit: int) -> bytes:
        """See ``Store.get``."""
        return (await self.get_tagged(path, limit))[0]

    async def get_tagged(self, path: str, limit: int) -> tuple[bytes, str | None]:
        """See ``TaggedStore.get_tagged``."""
        node, data = await self._read(SimRequest("get", path), limit)
        return data, node.etag

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        """See ``Store.put``."""
        return await self._write("put", path, data, overwrite, token)

    async def draft(self, folder: str, data: bytes) -> Info:
        """See ``DraftingStore.draft``."""
        aside = SimRequest("draft", folder, aside=True)
        self._serial += 1
        temp = self._temporary(folder)
        try:
            return _info(temp, await self._fill(aside, temp, data))
        except StoreError:
            await self._discard(aside, temp)
            raise

    async def reserve(self, folder: str) -> str:
        """See ``DraftingStore.reserve``."""
        self._serial += 1
        temp = self._temporary(folder)
        asked = SimRequest("reserve", folder, aside=True)
        await self._ask(asked, "create", temp, partial(self._create, temp))
        return temp

    async def fill(self, path: str, data: bytes) -> Info:
        """See ``DraftingStore.fill``."""
        if not data:
            return await self.head(path)
        asked = SimRequest("fill", path, writes=True)
        append = partial(self._append, path, data)
        return _info(path, await self._ask(asked, "append", path, append))

    async def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        ask = partial(self._account.delete, self._fs, path[1:])
        await self._ask(SimRequest("delete", path, writes=True), "delete", path, ask)

    async def delete_tree(self, path: str) -> None:
        """See ``Store.delete_tree``."""
        asked = SimRequest("delete_tree", path, writes=True)
        token: str | None = None
        while True:
            ask = partial(self._account.delete, self._fs, path[1:], recursive=True, token=token)
            try:
                token = await self._ask(asked, "delete", path, ask)
            except NotFoundError:
                if token is None:
                    raise
                return  # another request deleted the rest
            if token is None:
                return

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        """See ``Store.copy``."""
        _, data = await self._read(SimRequest("copy", source), None)
        await self._write("copy", dest, data, overwrite, None)

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
        asked = SimRequest("rename", source, writes=True, new=not replace)
        await self._ask(asked, "rename", dest, self._move(asked, source, dest, etag, token))

    async def mkdir(self, path: str) -> None:
        """See ``Store.mkdir``."""
        if path == "/":
            return
        ask = partial(self._account.create, self._fs, path[1:], directory=True)
        await self._ask(SimRequest("mkdir", path, writes=True), "mkdir", path, ask)

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        """See ``DirectoryStore.mkdir_new``."""
        asked = SimRequest("mkdir_new", path, writes=True, new=True)
        make = partial(self._account.create, self._fs, path[1:], directory=True)
        ask = partial(make, conditions=IF_ABSENT, token=token)
        await self._ask(asked, "mkdir", path, ask)

    async def sync(self, path: str) -> None:
        """Do nothing: ``Store.sync`` has no work here."""

    # --- several requests ----------------------------------------------------------------------

    def _temporary(self, folder: str) -> str:
        return f"{folder}/{temporary_name(f'{self._account.new_id()}-{self._serial}')}"

    async def _read(self, asked: SimRequest, limit: int | None) -> tuple[Node, bytes]:
        ask = partial(self._account.read, self._fs, asked.path[1:])
        node, data = await self._ask(asked, "read", asked.path, ask)
        if limit is not None and node.size > limit:
            detail = f"holds {node.size} bytes, more than {limit}"
            raise RejectedError(asked.method, asked.path, detail)
        return node, data

    async def _write(
        self, method: str, path: str, data: bytes, overwrite: bool, token: str | None
    ) -> Info:
        """Write to a temporary file and rename it: no partial file is visible."""
        directory = path.rpartition("/")[0]
        look = SimRequest(method, path)
        await self._ask(look, "head", directory or "/", lambda: self._need_directory(directory))
        self._serial += 1
        # As the real store does: a file that must be new must not recreate its directory.
        above = directory.rpartition("/")[0]
        place = directory if overwrite or not above else above
        temp = self._temporary(place)
        aside = SimRequest(method, path, aside=True)
        asked = SimRequest(method, path, writes=True, new=not overwrite)
        try:
            node = await self._fill(aside, temp, data)
            info = _info(path, node)._replace(token=token)
            await self._ask(asked, "rename", path, self._move(asked, temp, path, node.etag, token))
        except OutcomeUnknownError as error:
            if not await self._is_moved(look, temp, info):
                raise UnavailableError(method, path, error.detail) from error
        except StoreError:
            await self._discard(aside, temp)
            raise
        return info

    async def _discard(self, aside: SimRequest, path: str) -> None:
        with suppress(StoreError):
            await self._ask(aside, "delete", path, partial(self._remove, path))

    async def _fill(self, aside: SimRequest, temp: str, data: bytes) -> Node:
        """Create and write a temporary file."""
        node = await self._ask(aside, "create", temp, partial(self._create, temp))
        if data:
            node = await self._ask(aside, "append", temp, partial(self._append, temp, data))
        return node

    async def _is_moved(self, look: SimRequest, temp: str, info: Info) -> bool:
        """Return whether an unanswered move has happened; if not, it never will.

        The temporary file is deleted, so that the move cannot take effect late.
        """
        for _ in range(_FENCES):
            with suppress(UnavailableError, ThrottledError):
                try:
                    await self._ask(look, "delete", temp, partial(self._remove, temp))
                except NotFoundError:  # deleted by the move, or by an unanswered delete
                    return await self._has_etag(look, info)
                return False
        raise OutcomeUnknownError(look.method, look.path, "no response, nor to any later request")

    async def _has_etag(self, look: SimRequest, info: Info) -> bool:
        ask = partial(self._account.head, self._fs, info.path[1:])
        for _ in range(_FENCES):
            with suppress(UnavailableError, ThrottledError):
                try:
                    return (await self._ask(look, "head", info.path, ask)).etag == info.etag
                except NotFoundError:
                    return False
        raise OutcomeUnknownError(look.method, look.path, "no response, nor to any later request")

    def _remove(self, path: str) -> None:
        self._account.delete(self._fs, path[1:])

    def _need_directory(self, path: str) -> None:
        if not self._account.head(self._fs, path[1:]).is_dir:
            raise Refusal(404, "PathNotFound", "The directory is a file.")

    def _create(self, path: str) -> Node:
        return self._account.create(self._fs, path[1:], conditions=IF_ABSENT)

    def _append(self, path: str, data: bytes) -> Node:
        return self._account.append(self._fs, path[1:], 0, data, flush=True)

    def _move(
        self, asked: SimRequest, source: str, dest: str, etag: str | None, token: str | None
    ) -> Callable[[], Node]:
        return partial(
            self._account.rename,
            self._fs,
            dest[1:],
            self._fs,
            source[1:],
            mode=LEGACY,
            conditions=IF_ABSENT if asked.new else NO_CONDITIONS,
            source_conditions=Conditions(if_match=etag) if etag else NO_CONDITIONS,
            token=token,
        )


def _info(path: str, node: Node) -> Info:
    kind = Kind.FILE if node.children is None else Kind.DIRECTORY
    return Info(path, kind, node.size, node.etag, node.modified, token=node.token)


def _is_hidden(path: str) -> bool:
    return is_temporary(path.rpartition("/")[2])
