"""The single funnel of the ``Store`` contract, for every request.

``Wrapped(store, *policies)`` turns each call into an ``Op`` and sends it through the policies,
which are composed once, when the store is opened. A policy is a class with one method, ``around``:
``around`` gets the next inner call and returns the call to make in its place. A policy that has
nothing to do returns the call that it got, and then costs nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast

from asynccommit.errors import StoreError
from asynccommit.stores.base import Info, Move, Page, QuotaUse, Renamed, Store, Traits
from asynccommit.stores.grant import Pins, check_grant
from asynccommit.stores.multipart import PartPage, UploadPage
from asynccommit.stores.parts import Part
from asynccommit.stores.pinning import PinningStore
from asynccommit.stores.streaming import Stream
from asynccommit.stores.urls import Address

_NONE: Mapping[str, Any] = MappingProxyType({})
_READS = ("head", "list", "get")
_WRITES = ("put", "delete", "delete_tree", "copy", "rename", "mkdir", "sync")
_SOME = (  # of stores that have them
    *("get_tagged", "list_tree", "list_many", "delete_many", "rename_many"),
    *("probe", "quotas", "mkdir_new"),
    *("draft", "reserve", "fill"),
    *("begin_stream", "put_block", "end_stream", "abort_stream"),
    *("create_upload", "put_part", "complete_upload", "completed", "abort_upload"),
    "copied_from",
    *("list_uploads", "list_parts", "put_marker", "copy_if", "learn"),
)


class Op:
    """One call of one store method.

    Attributes:
        name: the method, ``rename``.
        args: its positional arguments; the first is the path that the call is about.
        options: its keyword arguments.
        writes: whether it changes the store.
        repeatable: whether it may be sent again after an unknown outcome, because it is idempotent.
            Renames are not, nor are writes that refuse to overwrite.
        first: its first attempt, if that has failed before the policies see the call.
    """

    __slots__ = ("args", "first", "name", "options", "repeatable", "writes")

    def __init__(
        self,
        name: str,
        args: tuple[Any, ...],
        writes: bool,
        repeatable: bool,
        options: Mapping[str, Any] = _NONE,
    ) -> None:
        self.name = name
        self.args = args
        self.writes = writes
        self.repeatable = repeatable
        self.options = options
        self.first: FirstAttempt | None = None

    @property
    def path(self) -> str:
        """The path of the call; for several, the path of the first."""
        first: Any = self.args[0]
        while not isinstance(first, str):
            first = first[0]
        path: str = first
        return path

    @property
    def size(self) -> int:
        """The number of files of the call; some methods take several."""
        first: Any = self.args[0]
        return 1 if isinstance(first, str) else len(first)

    def __repr__(self) -> str:
        shown = [
            f"<{len(arg)} bytes>" if isinstance(arg, bytes) else repr(arg) for arg in self.args
        ]
        shown += [f"{key}={value!r}" for key, value in self.options.items() if value is not None]
        return f"{self.name}({', '.join(shown)})"


class FirstAttempt(NamedTuple):
    """A first attempt that has failed.

    Attributes:
        asked: when it was asked for, by the clock of ``Stats``.
        begun: the same by the clock of ``Retry``.
        error: its error.
    """

    asked: float
    begun: float
    error: StoreError


def renames_of(op: Op) -> list[Op]:
    """Return the files of a ``rename_many`` as requests of their own."""
    moves: Sequence[Move] = op.args[0]
    return [
        Op("rename", (source, dest), True, False, {"etag": etag}) for source, dest, etag in moves
    ]


Call = Callable[[Op], Awaitable[Any]]


class Policy(Protocol):
    """A wrapper around every request of a store."""

    def around(self, call: Call) -> Call:
        """Return the call to make in place of ``call``."""
        ...


def stacked(policies: Sequence[Policy], call: Call) -> Call:
    """Return ``call`` with ``policies`` around it, the outermost first."""
    for policy in reversed(policies):
        call = policy.around(call)
    return call


class Wrapped:
    """A store whose every call goes through ``policies``, the outermost first.

    It is a ``Store`` itself, and a ``BulkStore``, ``BatchStore``, ``BatchListStore``,
    ``ProbingStore``, ``QuotaStore``, ``MultipartStore`` or ``StreamingStore`` where ``store`` is
    one.

    Args:
        store: the store.
        policies: the wrappers.
        compose: puts them around a call.

    Attributes:
        store: the store.
        policies: the wrappers.
        address: a place in the store, for its scheme and container; ``None`` if unknown.
    """

    def __init__(
        self,
        store: Store,
        *policies: Policy,
        compose: Callable[[Sequence[Policy], Call], Call] = stacked,
    ) -> None:
        self.store = store
        self.address: Address | None = None
        self.policies = policies
        self._call = compose(policies, _sender(store))

    @property
    def traits(self) -> Traits:
        """The capabilities of the store."""
        return self.store.traits

    async def head(self, path: str) -> Info:
        info: Info = await self._call(Op("head", (path,), False, True))
        return info

    async def list(self, path: str, token: str | None = None) -> Page:
        page: Page = await self._call(Op("list", (path, token), False, True))
        return page

    async def get(self, path: str, limit: int) -> bytes:
        data: bytes = await self._call(Op("get", (path, limit), False, True))
        return data

    async def get_tagged(self, path: str, limit: int) -> tuple[bytes, str | None]:
        found: tuple[bytes, str | None]
        found = await self._call(Op("get_tagged", (path, limit), False, True))
        return found

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        op = Op("put", (path, data), True, overwrite, {"overwrite": overwrite, "token": token})
        info: Info = await self._call(op)
        return info

    async def delete(self, path: str) -> None:
        await self._call(Op("delete", (path,), True, True))

    async def delete_tree(self, path: str) -> None:
        await self._call(Op("delete_tree", (path,), True, True))

    async def list_tree(self, path: str, token: str | None = None) -> Page:
        page: Page = await self._call(Op("list_tree", (path, token), False, True))
        return page

    async def list_many(self, paths: Sequence[str]) -> Sequence[Page | None]:
        found: Sequence[Page | None]
        found = await self._call(Op("list_many", (paths,), False, True))
        return found

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        errors: Sequence[StoreError | None]
        errors = await self._call(Op("delete_many", (entries,), True, True))
        return errors

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        renamed: Renamed
        renamed = await self._call(Op("rename_many", (pairs,), True, False))
        return renamed

    async def probe(self, path: str, place: str) -> None:
        await self._call(Op("probe", (path, place), False, True))

    async def quotas(self, path: str) -> QuotaUse:
        use: QuotaUse = await self._call(Op("quotas", (path,), False, True))
        return use

    async def create_upload(self, path: str, *, token: str | None = None, owner: str = "") -> str:
        op = Op("create_upload", (path,), True, True, {"token": token, "owner": owner})
        upload_id: str = await self._call(op)
        return upload_id

    async def put_part(self, path: str, upload_id: str, number: int, data: bytes) -> Part:
        part: Part
        part = await self._call(Op("put_part", (path, upload_id, number, data), True, True))
        return part

    async def complete_upload(
        self,
        path: str,
        upload_id: str,
        parts: Sequence[Part],
        *,
        overwrite: bool = True,
        etag: str | None = None,
        token: str | None = None,
    ) -> Info:
        args = path, upload_id, parts
        options = {"overwrite": overwrite, "etag": etag, "token": token}
        info: Info = await self._call(Op("complete_upload", args, True, False, options))
        return info

    async def completed(
        self, path: str, parts: Sequence[Part], token: str | None = None
    ) -> Info | None:
        info: Info | None
        info = await self._call(Op("completed", (path, parts, token), False, True))
        return info

    async def copy_if(
        self, source: str, dest: str, etag: str, *, replaces: str | None = None
    ) -> None:
        options = {"replaces": replaces}
        await self._call(Op("copy_if", (source, dest, etag), True, True, options))

    async def copied_from(self, path: str) -> str | None:
        source: str | None = await self._call(Op("copied_from", (path,), False, True))
        return source

    async def abort_upload(self, path: str, upload_id: str) -> None:
        await self._call(Op("abort_upload", (path, upload_id), True, True))

    async def learn(self, path: str) -> None:
        await self._call(Op("learn", (path,), True, True))

    async def put_marker(self, path: str, metadata: Mapping[str, str]) -> Info:
        info: Info = await self._call(Op("put_marker", (path, metadata), True, True))
        return info

    async def list_uploads(self, path: str, token: str | None = None) -> UploadPage:
        page: UploadPage = await self._call(Op("list_uploads", (path, token), False, True))
        return page

    async def list_parts(self, path: str, upload_id: str, token: str | None = None) -> PartPage:
        page: PartPage
        page = await self._call(Op("list_parts", (path, upload_id, token), False, True))
        return page

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        await self._call(Op("copy", (source, dest), True, overwrite, {"overwrite": overwrite}))

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        options = {"replace": replace, "etag": etag, "token": token}
        await self._call(Op("rename", (source, dest), True, False, options))

    async def mkdir(self, path: str, *, private: bool = False) -> None:
        options = {"private": True} if private else _NONE
        await self._call(Op("mkdir", (path,), True, True, options))

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        await self._call(Op("mkdir_new", (path,), True, False, {"token": token}))

    async def draft(self, folder: str, data: bytes) -> Info:
        info: Info = await self._call(Op("draft", (folder, data), True, True))
        return info

    async def reserve(self, folder: str) -> str:
        path: str = await self._call(Op("reserve", (folder,), True, True))
        return path

    async def fill(self, path: str, data: bytes) -> Info:
        info: Info = await self._call(Op("fill", (path, data), True, False))
        return info

    async def begin_stream(self, path: str, folder: str) -> Stream:
        stream: Stream = await self._call(Op("begin_stream", (path, folder), True, True))
        return stream

    async def put_block(self, path: str, stream: Stream, start: int, data: bytes) -> None:
        await self._call(Op("put_block", (path, stream, start, data), True, True))

    async def end_stream(self, path: str, stream: Stream, start: int, data: bytes) -> Info:
        args = path, stream, start, data
        info: Info = await self._call(Op("end_stream", args, True, True))
        return info

    async def abort_stream(self, path: str, stream: Stream) -> None:
        await self._call(Op("abort_stream", (path, stream), True, True))

    async def sync(self, path: str) -> None:
        await self._call(Op("sync", (path,), True, True))

    async def pin(self, places: Sequence[str], roots: Sequence[str] = ()) -> Pins:
        """See ``PinningStore.pin``.

        No policy sees the call, as it sends no request to a service.
        """
        return await cast(PinningStore, self.store).pin(places, roots)

    async def aclose(self) -> None:
        await self.store.aclose()


def _sender(store: Store) -> Call:
    """Return the innermost call: the store's own method, looked up once.

    The grant is checked here, after every wait of the request.
    """
    table: dict[str, Callable[..., Awaitable[Any]]]
    table = {name: getattr(store, name) for name in (*_READS, *_WRITES)}
    table |= {name: getattr(store, name) for name in _SOME if hasattr(store, name)}

    def send(op: Op) -> Awaitable[Any]:
        if op.writes:
            check_grant()
        return table[op.name](*op.args, **op.options)

    return send
