"""Flat object stores, where directories are implied by names.

Empty objects may stand for directories as well.

Directories are implied by the names of objects; an empty directory is a placeholder: an empty
object whose name ends in a slash.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    StoreError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.runtime.concurrency import both
from asynccommit.stores.base import Info, Kind, Page, Traits
from asynccommit.stores.http.client import HttpClient
from asynccommit.stores.http.errors import Request

LONGEST = 1024
"""Bytes of a name at most."""
PAGES = 1000  # without an entry, after which a listing is given up

# --- names and listings ----------------------------------------------------------------------


class Listing(NamedTuple):
    """One page of a listing.

    Attributes:
        entries: files, and directories if the listing has one level.
        itself: whether the listed directory's own placeholder was among them.
        token: asks for the next page.
    """

    entries: list[Info]
    itself: bool
    token: str | None


def prefix_of(path: str) -> str:
    """Return the decoded name prefix of all objects below ``path``."""
    return f"{path[1:]}/" if path != "/" else ""


def can_be_named(name: str) -> bool:
    """Return whether a path can have this segment."""
    return name not in ("", ".", "..")


def check_length(path: str, text: str) -> None:
    """Raise ``ValueError`` if the encoded ``path`` is too long."""
    if len(text) > LONGEST and len(path.encode()) > LONGEST + 1:
        raise ValueError(f"the name {path[1:81]!r}... has more than {LONGEST} bytes")


def placeholder(name: str, etag: str | None = None) -> Info | None:
    """Return the directory that a name with a slash at its end stands for."""
    path = name[:-1]
    if all(map(can_be_named, path.split("/")[1:])):
        return Info(path, Kind.DIRECTORY, etag=etag)
    return None


def below_only(entries: list[Info], path: str, seen: Callable[[Info], Info]) -> Listing:
    """Return the listed entries below ``path``.

    Raises ``ValueError`` if one is not below ``path``.
    """
    start = "/" + prefix_of(path)
    for info in entries:
        if not info.path.startswith(start):
            raise ValueError(f"the response is not a listing of {path}: it has {info.path[:300]!r}")
    itself = any(info.path == start for info in entries)
    kept = [found for info in entries if (found := seen(info)).path not in (path, start)]
    return Listing(kept, itself, None)


def directories(names: Iterable[str], path: str) -> list[Info]:
    """Return the directories that common prefixes below ``path`` stand for.

    An entry with an invalid path is of kind ``OTHER``. Raises ``ValueError`` if one is not below
    ``path``.
    """
    start, found = "/" + prefix_of(path), []
    for name in names:
        if not name.startswith(start) or name[-1] != "/":
            raise ValueError(f"the response is not a listing below {start}: it has {name[:300]!r}")
        if name != start:
            found.append(placeholder(name) or Info(name, Kind.OTHER))
    return found


# --- objects and the store -------------------------------------------------------------------


class FlatRequest(Request, Protocol):
    """The facts about a request to a flat store."""

    @property
    def look(self) -> Self:
        """The same as a question that goes with it: it changes nothing."""


F = TypeVar("F", bound=FlatRequest)


class FlatObjects(ABC, Generic[F]):
    """Reads and writes objects.

    Attributes:
        asks_both: a path is asked for as an object and as a directory at once. That costs a listing
            where an object is found, and saves a round trip where none is.
    """

    asks_both: ClassVar[bool] = False

    @abstractmethod
    async def find(self, request: F, path: str) -> Info | None:
        """Return the object at ``path``, if there is one."""

    @abstractmethod
    async def page(
        self, request: F, path: str, most: int, token: str | None, *, tree: bool
    ) -> Listing:
        """Return one page of a listing."""

    @abstractmethod
    async def read(self, request: F, path: str, limit: int) -> bytes:
        """Return the content of an object that holds at most ``limit`` bytes."""

    @abstractmethod
    async def write(self, request: F, path: str, data: bytes, token: str | None) -> Info:
        """Make the object at ``path``."""

    @abstractmethod
    async def make_directory(self, request: F, path: str) -> None:
        """Make the directory ``path``, unless it exists."""

    async def is_directory(self, request: F, path: str) -> bool:
        """Return whether ``path`` is a prefix of an object's name."""
        return bool(await self.below(request, path, 1)) or path == "/"

    async def has_empty_folder(self, request: F, path: str) -> bool:
        """Return whether the empty ``path`` is a directory of its own."""
        return False

    async def below(self, request: F, path: str, most: int) -> list[Info]:
        """Return the first objects below ``path/``, its placeholder included."""
        found = await self.pages(request, path, most, None, tree=True)
        itself = [Info(f"/{prefix_of(path)}", Kind.DIRECTORY)] if found.itself else []
        return itself + found.entries

    async def pages(
        self, request: F, path: str, most: int, token: str | None, *, tree: bool
    ) -> Listing:
        """Return the first page of a listing that is not empty, or the last one.

        A page of nothing but a token does not tell whether there is a directory.
        """
        for _ in range(PAGES):
            found = await self.page(request, path, most, token, tree=tree)
            if found.entries or found.itself or found.token is None:
                return found
            token = found.token
        raise UnavailableError(request.op, request.path, "its listing has only empty pages")

    async def missing(self, request: F, path: str) -> StoreError:
        """Return the error for a path where no object is."""
        if await self.is_directory(request.look, path):
            return PreconditionError(request.op, path, "is a directory")
        return NotFoundError(request.op, path, "there is no such object")

    async def need_empty(self, request: F) -> None:
        """Raise unless there is a directory with nothing in it but itself."""
        path = request.path
        below = await self.below(request.look, path, 2)
        if not below:
            raise NotFoundError("delete", path, "there is no such object")
        if [info.path for info in below] != [f"{path}/"]:
            raise ExistsError("delete", path, "the directory is not empty")


class FlatStore(ABC, Generic[F]):
    """A bucket: the part of the contract that is the same on every service.

    Args:
        bucket: its name.
        client: what sends the requests.
        files: its objects.
        most: entries of a page of a listing.
    """

    traits: Traits

    def __init__(
        self, bucket: str, client: HttpClient[F], files: FlatObjects[F], most: int
    ) -> None:
        self._name = f"{type(self).__name__}({bucket})"
        self._closes = client
        self._objects = files
        self._most = most

    def __repr__(self) -> str:
        return self._name

    @abstractmethod
    def asked(self, op: str, path: str, *, writes: bool = False, new: bool = False) -> F:
        """Return the facts about a request."""

    async def head(self, path: str) -> Info:
        request, files = self.asked("head", path), self._objects
        if path != "/" and files.asks_both:
            info, is_directory = await both(
                lambda: files.find(request, path), lambda: files.is_directory(request, path)
            )
        else:
            info = await files.find(request, path) if path != "/" else None
            is_directory = info is None and await files.is_directory(request, path)
        if info is not None:
            return info
        if not is_directory:
            raise NotFoundError("head", path, "there is no such object")
        return Info(path, Kind.DIRECTORY)

    async def list(self, path: str, token: str | None = None) -> Page:
        request, files = self.asked("list", path), self._objects
        get = files.page if token else files.pages
        found = await get(request, path, self._most, token, tree=False)
        if token or found.entries or found.itself or path == "/":
            return Page(tuple(found.entries), found.token)
        # Nothing was found: an empty folder, a file, or nothing.
        has_folder, file = await both(
            lambda: files.has_empty_folder(request, path), lambda: files.find(request, path)
        )
        if has_folder:
            return Page(())
        if file is not None:
            raise PreconditionError("list", path, "is a file")
        raise NotFoundError("list", path, "there is no such directory")

    async def get(self, path: str, limit: int) -> bytes:
        return await self._objects.read(self.asked("get", path), path, limit)

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        request = self.asked("put", path, writes=True, new=not overwrite)
        return await self._objects.write(request, path, data, token)

    async def delete_tree(self, path: str) -> None:
        """Refuse: no request deletes a tree; see ``remove_tree``."""
        raise UnsupportedError(f"delete_tree {path}: it takes many requests; use remove_tree")

    async def mkdir(self, path: str) -> None:
        request, files = self.asked("mkdir", path, writes=True), self._objects
        if path == "/":
            await files.is_directory(request.look, path)
            return
        if await files.find(request.look, path) is not None:
            raise PreconditionError("mkdir", path, "a file is there")
        await files.make_directory(request, path)

    async def sync(self, path: str) -> None:
        """Do nothing: the service responds only once data is durable."""

    async def aclose(self) -> None:
        """Close the connections, and the credential if it was made here."""
        await self._closes.aclose()
