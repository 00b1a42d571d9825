"""The contract between the engine and a store: what an implementation must do.

Every method is one request. ``list`` returns one page and ``get`` returns bytes, so that
throttling, retry, counting and fault injection need no special cases. What takes several
requests (walking a tree, writing through a temporary name) is a function elsewhere.

Paths are absolute and decoded: ``/warehouse/t/day=1/part-0.parquet``, whatever the scheme; an
``Address`` in ``urls.py`` adds scheme and authority. No path ends in ``/`` but the root.

An implementation raises the errors of ``errors.py`` and no others: exactly one function of its
module translates the answers of its service. It never retries, sleeps or caches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from asynccommit.errors import StoreError

_FILE_ETAG = re.compile("([0-9a-f]+)-([0-9a-f]+)-[0-9a-f]+").fullmatch


class Kind(Enum):
    """What is at a path.

    ``OTHER`` is what is neither: a symbolic link, a socket, a device. A link is never followed to
    find out what it points to, so that nobody walks out of a directory through one.
    """

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"


class Info(NamedTuple):
    """What a store says of one path. A tuple, because listings make one for every file.

    Attributes:
        path: absolute and decoded.
        kind: file, directory or something else.
        size: bytes; 0 for a directory.
        etag: changes whenever the content does, and names this very object; ``None`` if unknown.
        modified: seconds since the epoch, or 0.0 if unknown.
        volume: of a directory: files can only be renamed within one volume; 0 where there are none.
        writable: false if the store knows that the caller may not make files in this directory, or
            not take them out of it.
        token: what the request that brought this object here was marked with, where the store
            remembers it (``Traits.tokens``); listings leave it out.
        held: until when the store lets nobody move or delete it, in seconds since the epoch, and
            ``math.inf`` for until somebody releases it; 0.0 if it is free. Where ``Traits.probes``
            is true, a listing says it of directories only.
        made: when the file was made, in nanoseconds since the epoch, which no later change alters;
            0 if unknown. Listings leave it out.
    """

    path: str
    kind: Kind
    size: int = 0
    etag: str | None = None
    modified: float = 0.0
    volume: int = 0
    writable: bool = True
    token: str | None = None
    held: float = 0.0
    made: int = 0

    @property
    def is_dir(self) -> bool:
        """Whether this is a directory."""
        return self.kind is Kind.DIRECTORY


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing; ``token`` asks for the next one and is ``None`` at the end.

    ``stale`` are the paths of checksum files beside which the file is missing, where the store has
    such files (``Traits.checksums``); the entries leave them out. The first page names them all.
    """

    entries: tuple[Info, ...]
    token: str | None = None
    stale: tuple[str, ...] = ()


Move = tuple[str, str, str | None]
"""Where a file is, where it goes, and the etag that it must have, if that is known."""
Renamed = tuple[int, StoreError | None]
"""How many files were renamed, and the error of the next one, if that was tried."""


class Ramp(NamedTuple):
    """How fast the rate of requests to an account may grow.

    Attributes:
        reads: requests a second that read, at the start.
        writes: requests a second that change something, at the start.
        doubling: seconds in which a rate may double at most.
    """

    reads: float
    writes: float
    doubling: float


class Multipart(NamedTuple):
    """What the parts of an upload may be.

    Attributes:
        smallest: bytes of every part but the last.
        largest: bytes of a part.
        parts: of one upload at most.
        conditional: ``complete_upload(overwrite=False)`` is atomic against other writers.
        matches: ``complete_upload(etag=...)`` is so too; without this the store looks first, and
            another may come between.
        abort_tells: ``abort_upload`` says of what was completed that there is no such upload;
            without this a yes may mean just that.
        checked: parts have checksums, and whoever completes an upload has to name them.
    """

    smallest: int = 5 << 20
    largest: int = 5 << 30
    parts: int = 10_000
    conditional: bool = True
    matches: bool = True
    abort_tells: bool = True
    checked: bool = False


@dataclass(frozen=True, slots=True)
class Traits:
    """What a store can do, as data: ask here, never for the store's class or name.

    Attributes:
        name: for messages.
        directories: a file needs its parent directory; without this, files bring theirs along.
        atomic_rename: a file rename happens wholly or not at all, in O(1).
        atomic_directory_rename: the same for a directory with all it holds.
        rename_no_replace: ``rename(replace=False)`` is one atomic request.
        rename_replaces: ``rename(replace=True)`` leaves no moment in which neither file is there.
        etag_survives_rename: the etag of a file is the same after a rename.
        file_etags: an etag is ``<number>-<time>-<size>`` in hexadecimal digits: a change in place
            leaves the number as it is, and another file has it once this one is deleted.
        content_etags: an etag is ``<version>-<checksum>``: a rename gives another version, and the
            checksum of the content stays.
        whole_listings: listings show whole etags; without this, ``head`` may say more of one.
        conditional_rename: a rename with an etag moves nothing whose etag is another.
        conditional_put: ``put(overwrite=False)`` is atomic against other writers.
        conditions_proven: that is known of this service; without this, one that passes the
            condition over is possible: see that it is kept before anything depends on it.
        atomic_put: ``put`` makes the whole file visible in one moment, and nothing before.
        recursive_delete: ``delete_tree`` can be asked; else ``list_tree`` and ``delete_many``.
        bulk_delete: how many files one ``delete_many`` takes; 0 where there is none.
        conditional_delete: ``delete_many`` deletes nothing whose etag is another.
        bulk_rename: how many files one ``rename_many`` takes gladly; 0 where there is none.
        multipart: files can be uploaded in parts and completed later; ``None`` where they cannot.
        consistent_listing: a listing shows every change that was acknowledged before it.
        tokens: the store remembers the ``token`` of a rename or put, and ``head`` returns it.
        put_tokens: it remembers those of puts only.
        links: paths may be symbolic links, which lead elsewhere.
        probes: renames fail for reasons that listings do not show, and ``probe`` finds out.
        pins: directories can be pinned, see ``asynccommit.stores.pinning``.
        durable: what is acknowledged outlives a power cut; if not, ``sync`` sees to it.
        checksums: Hadoop keeps the checksum of a file beside it, and readers refuse a file that
            does not agree with it; listings leave checksums out.
        longest_path: bytes of a path in UTF-8 at most; 0 where only names are bounded.
        workers: how many requests in flight the store takes gladly.
        account: names what shares one limit on requests; empty if nothing does.
        ramp: how fast the rate of requests to it may grow; ``None`` is as it likes.
        name_interval: seconds that the store wants between two changes of one name.
        costs: method -> requests that one call of it sends, where it is not one.
    """

    name: str
    directories: bool = True
    atomic_rename: bool = True
    atomic_directory_rename: bool = True
    rename_no_replace: bool = True
    rename_replaces: bool = True
    etag_survives_rename: bool = True
    file_etags: bool = False
    content_etags: bool = False
    whole_listings: bool = True
    conditional_rename: bool = True
    conditional_put: bool = True
    conditions_proven: bool = True
    atomic_put: bool = False
    recursive_delete: bool = True
    bulk_delete: int = 0
    conditional_delete: bool = True
    bulk_rename: int = 0
    multipart: Multipart | None = None
    consistent_listing: bool = True
    tokens: bool = False
    put_tokens: bool = False
    links: bool = False
    probes: bool = False
    pins: bool = False
    durable: bool = True
    checksums: bool = False
    longest_path: int = 0
    workers: int = 64
    account: str = ""
    ramp: Ramp | None = None
    name_interval: float = 0.0
    costs: Mapping[str, int] = field(default_factory=dict)

    @property
    def fences(self) -> bool:
        """Whether nothing can come to a directory any more once it is renamed away."""
        return self.directories and self.atomic_directory_rename

    def lasting(self, etag: str | None) -> str | None:
        """Return what of an etag is the same after a rename; ``None`` for nothing."""
        if etag is None or self.etag_survives_rename:
            return etag
        return etag.partition("-")[2] or None if self.content_etags else None

    def same(self, one: str | None, other: str | None) -> bool:
        """Whether two etags name one version of a file, whatever else they say."""
        if one is None or other is None or not self.content_etags:
            return one == other
        return one.partition("-")[0] == other.partition("-")[0]

    def is_changed(self, etag: str | None, info: Info, until: int) -> bool:
        """Return whether ``info`` is surely of the file that had ``etag``, changed in place since.

        The number of a file is used again once it is deleted, so this file has to be as old as the
        etag and no younger than ``until``, nanoseconds since the epoch.
        """
        known = _FILE_ETAG(etag or "") if self.file_etags else None
        if known is None or not info.made or (info.etag or "").partition("-")[0] != known[1]:
            return False
        return info.made <= min(int(known[2], 16), until)


class Store(Protocol):
    """A place of files, as one account, bucket or disk. See the module for the rules.

    Every method may raise ``ThrottledError``, ``UnavailableError``, ``OutcomeUnknownError``,
    ``DeniedError`` and ``RejectedError`` besides what it names.
    """

    @property
    def traits(self) -> Traits:
        """What this store can do."""
        ...

    async def head(self, path: str) -> Info:
        """Return what is at ``path``. Raises ``NotFoundError``."""
        ...

    async def list(self, path: str, token: str | None = None) -> Page:
        """Return one page of the direct children of the directory ``path``, in no set order.

        Raises ``NotFoundError``, and ``PreconditionError`` if ``path`` is a file.
        """
        ...

    async def get(self, path: str, limit: int) -> bytes:
        """Return the content of the file ``path``.

        Raises ``NotFoundError``, ``PreconditionError`` if it is a directory, and
        ``RejectedError`` if it holds more than ``limit`` bytes.
        """
        ...

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        """Write the whole file ``path``; readers see all of it or none where the store can.

        ``token`` is a UUID that marks this write, the same for every sending of it. The parent
        directory must exist where the store has directories. Raises ``ExistsError`` if something
        is there and ``overwrite`` is false, ``NotFoundError`` without the parent,
        ``PreconditionError`` if ``path`` is a directory.
        """
        ...

    async def delete(self, path: str) -> None:
        """Delete one file or one empty directory, and never a symbolic link.

        A link is somebody's decision where a directory is to be, and what lies behind it may be in
        use. Raises ``NotFoundError``, ``ExistsError`` for a directory that is not empty, and
        ``PreconditionError`` for a link.
        """
        ...

    async def delete_tree(self, path: str) -> None:
        """Delete ``path`` and everything below it, where ``Traits.recursive_delete`` says so.

        Raises ``NotFoundError``.
        """
        ...

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        """Copy one file. Raises ``NotFoundError``, ``ExistsError``, ``PreconditionError``."""
        ...

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        """Move a file, or a directory with all it holds, to ``dest`` itself, never into it.

        ``etag`` is what the source must have, where the store can make that a condition; whoever
        does not know the outcome tells by it at ``dest``. ``token`` is a UUID that marks this
        rename, the same for every sending of it.

        Raises ``NotFoundError`` if the source or the parent of ``dest`` is missing,
        ``ExistsError`` if something is at ``dest`` and ``replace`` is false,
        ``PreconditionError`` if the source has another etag, or ``replace`` would put a file in a
        directory's place or the other way round, ``RejectedError`` if ``dest`` is on another
        filesystem.
        """
        ...

    async def mkdir(self, path: str) -> None:
        """Make the directory ``path`` and its missing parents; existing ones are fine.

        Raises ``PreconditionError`` if ``path`` or a parent is a file.
        """
        ...

    async def sync(self, path: str) -> None:
        """Return once what was acknowledged at ``path`` outlives a power cut.

        Of a file that is its content, of a directory its entries. Where ``Traits.durable`` is
        true this does nothing, and need not be asked.

        Raises ``NotFoundError``, and ``RejectedError`` if the disk has lost it already; either
        only where ``Traits.durable`` is false.
        """
        ...

    async def aclose(self) -> None:
        """Give back what the store holds (threads, connections); nothing is asked afterwards."""
        ...


class BulkStore(Store, Protocol):
    """A store without directories: ``Traits.bulk_delete`` is how many files go in one request."""

    async def list_tree(self, path: str, token: str | None = None) -> Page:
        """Return one page of everything below ``path``; nothing is an empty page.

        Files, and objects that stand for a directory, both with etags; then real directories.
        """
        ...

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        """Delete up to ``Traits.bulk_delete`` entries, each only while it has its etag, if any.

        A directory without an etag is deleted if it is empty. Returns what became of each, ``None``
        for deleted; a single entry's error that may pass is raised, so that it is sent again.
        """
        ...


class ProbingStore(Store, Protocol):
    """A store whose renames depend on more than it lists: mounts, attributes, layers."""

    async def probe(self, path: str, place: str) -> None:
        """Return if a rename of ``path`` to below the directory ``place`` would be carried out.

        Nothing is changed. Raises ``NotFoundError``; ``RejectedError`` or ``DeniedError`` with the
        reason why the store would refuse.
        """
        ...


class DirectoryStore(Store, Protocol):
    """A store whose directories are there of themselves: ``Traits.directories``."""

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        """Make ``path``, and its missing parents; of all who ask for it at once one succeeds.

        Raises ``ExistsError`` if it is there, ``PreconditionError`` if a parent is a file.
        """
        ...


class BatchStore(Store, Protocol):
    """A store that renames so quickly that asking for each file alone would take longer."""

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        """Rename up to ``Traits.bulk_rename`` files in order, each as ``rename`` with its etag.

        Return how many were renamed before one failed or it took long, and that one's error.
        """
        ...
