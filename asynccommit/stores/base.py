"""The contract of a store: the methods of every implementation.

Every method is one request. ``list`` returns one page and ``get`` returns bytes, so that
throttling, retry, counting and fault injection need no special cases. What takes several requests
(walking a tree, writing through a temporary name) is a function elsewhere.

Paths are absolute and decoded: ``/warehouse/t/day=1/part-0.parquet``, whatever the scheme; an
``Address`` in ``urls.py`` adds scheme and authority. No path ends in ``/`` but the root.

An implementation raises the errors of ``errors.py`` and no others: exactly one function of its
module translates the answers of its service. It never retries, sleeps or caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from asynccommit.errors import StoreError


class Kind(Enum):
    """The kind of an entry at a path.

    ``OTHER`` is an entry that is neither file nor directory: a symbolic link, a socket, a device. A
    link is never followed to find its target, so that no walk leaves a directory through a link.
    """

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"


class Info(NamedTuple):
    """The facts that a store gives about one path.

    It is a tuple, because listings make one for every file.

    Attributes:
        path: absolute and decoded.
        kind: file, directory or other.
        size: bytes; 0 for a directory.
        etag: identifies this object and changes whenever its content does; ``None`` if unknown.
        modified: seconds since the epoch, or 0.0 if unknown.
        volume: the volume of a directory; files can only be renamed within one volume. 0 if the
            store has no volumes.
        writable: false if the store knows that the caller may not create files in this directory,
            or not remove files from it.
        token: the token of the request that brought this object here, if the store remembers tokens
            (``Traits.tokens``); listings leave it out.
        held: time until which the entry can be neither moved nor deleted, in seconds since the
            epoch; ``math.inf`` until it is released, 0.0 if it is free. If ``Traits.probes`` is
            true, listings give it for directories only.
        made: time of creation in nanoseconds since the epoch, which no later change alters; 0 if
            unknown. Listings leave it out.
        owner: the user whose entry it is: a number on local disks, a name on HDFS; ``None`` if the
            store has no owners (``Traits.user``).
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
    owner: int | str | None = None

    @property
    def is_dir(self) -> bool:
        """Return whether this is a directory."""
        return self.kind is Kind.DIRECTORY


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing; ``token`` is ``None`` on the last page.

    ``stale`` are the paths of checksum files without their file, if the store has checksum files
    (``Traits.checksums``). ``hidden`` are the paths of what is named like the store's temporary
    files, if only a write under way leaves these. The entries have neither, the first page all.
    """

    entries: tuple[Info, ...]
    token: str | None = None
    stale: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


NOT_A_LINK = "*"
"""An etag for renames on stores with links: any file or directory has it, and no link."""
Move = tuple[str, str, str | None]
"""Source, destination and the required etag of a rename; the etag may be unknown."""
Renamed = tuple[int, StoreError | None]
"""The number of files renamed, and the error of the next one, if it was tried."""


class Ramp(NamedTuple):
    """A limit on the growth of the request rate of an account.

    Attributes:
        reads: initial rate of read requests, per second.
        writes: initial rate of write requests, per second.
        doubling: minimum number of seconds in which a rate may double.
    """

    reads: float
    writes: float
    doubling: float


class Multipart(NamedTuple):
    """The rules of a store for the parts of an upload.

    Attributes:
        smallest: minimum size in bytes of every part but the last.
        largest: maximum size in bytes of a part.
        parts: maximum number of parts of one upload.
        conditional: whether ``complete_upload(overwrite=False)`` is atomic against other writers.
        matches: whether ``complete_upload(etag=...)`` is atomic too; if not, the store checks the
            etag first, and another writer may come between.
        abort_tells: whether ``abort_upload`` reports a completed upload as missing; if not, a
            successful abort may mean that the upload was completed.
        checked: whether parts have checksums, which ``complete_upload`` must then name.
        aborts: whether ``abort_upload`` deletes the parts and bars a completion. If not, parts
            stay until ``expires``, or until another file is written to their path, and a completion
            that is late takes effect until ``late``.
        expires: seconds after its last part in which an upload ends of itself; 0.0 for never.
        late: seconds after which a completion that was sent has no effect any more; 0.0 where an
            abort bars it.
        copy_etags: whether a copy has the etag of its source; if not, ``copied_from`` tells what a
            file is a copy of.
    """

    smallest: int = 5 << 20
    largest: int = 5 << 30
    parts: int = 10_000
    conditional: bool = True
    matches: bool = True
    abort_tells: bool = True
    checked: bool = False
    aborts: bool = True
    expires: float = 0.0
    late: float = 0.0
    copy_etags: bool = True


class Modes(NamedTuple):
    """The permissions of new directories and files.

    The umask of the process does not change them.
    """

    directory: int
    file: int


class Streaming(NamedTuple):
    """The rules of a store for the blocks of a file that is sent in blocks.

    Attributes:
        block: size in bytes of every block but the last.
        at_once: maximum number of blocks of one file that may be sent at once; 1 if the store needs
            them in order.
    """

    block: int
    at_once: int


@dataclass(frozen=True, slots=True)
class Traits:
    """The capabilities of a store, as data.

    Check these, never the class or the name of a store.

    Attributes:
        name: the name of the store for messages.
        directories: a file needs its parent directory; otherwise parents exist with their files.
        atomic_rename: a file rename happens completely or not at all, in O(1).
        atomic_directory_rename: the same for a directory with all it holds.
        rename_no_replace: ``rename(replace=False)`` is one atomic request.
        rename_replaces: ``rename(replace=True)`` leaves no moment in which neither file is there.
        etag_survives_rename: the etag of a file is the same after a rename.
        file_etags: an etag is ``<number>-<time>-<size>`` in hexadecimal digits: the number stays
            the same on a change in place, and may be reused once the file is deleted.
        content_etags: an etag is ``<version>-<checksum>``: a rename changes the version, and the
            checksum of the content stays.
        rename_keeps_version: with ``content_etags``: a rename may keep version and time, so a file
            that comes back under a former name must be a copy, or a late rename could take it.
        weak_etags: two files may have the same etag, so a file at the destination of a rename
            with the etag of its source is the renamed one only once the source is gone.
        tagged_get: ``get_tagged`` returns a file's etag with its content.
        whole_listings: listings show whole etags; otherwise an etag of ``head`` may be longer.
        conditional_rename: a rename with an etag moves nothing that has another etag.
        conditional_put: ``put(overwrite=False)`` is atomic against other writers.
        conditions_proven: this service is known to honour that condition; otherwise the service may
            ignore the condition, and callers must check it before they rely on it.
        learns: ``learn`` finds out what the service does; call it at the set-up of a job.
        atomic_put: ``put`` makes the whole file visible at once, and nothing before.
        drafts: ``draft`` and a rename take fewer round trips than ``put``.
        recursive_delete: ``delete_tree`` is supported; otherwise use ``list_tree`` and
            ``delete_many``.
        bulk_delete: maximum number of files of one ``delete_many``; 0 if it is unsupported.
        conditional_delete: ``delete_many`` deletes nothing that has another etag.
        bulk_rename: recommended batch size of ``rename_many``; 0 if it is unsupported.
        bulk_list: recommended batch size of ``list_many``; 0 if it is unsupported.
        multipart: rules for uploads in parts that are completed later; ``None`` if unsupported.
        streaming: rules for files that are sent in blocks; ``None`` if unsupported.
        consistent_listing: a listing shows every change that was acknowledged before it.
        tokens: the store remembers the ``token`` of a rename or put, and ``head`` returns it.
        put_tokens: the store remembers tokens of puts only.
        links: paths may be symbolic links, which lead elsewhere.
        probes: renames may fail for reasons that listings do not show, and ``probe`` finds these.
        zones: a directory may be of a zone that no rename enters, which ``probe`` tells, or have
            a quota, which ``quotas`` tells.
        nested_zones: a zone may begin at any directory, and ``probe`` is one request that changes
            nothing.
        user: the owner of what this process makes, as far as that is known without making anything;
            ``""`` if it is not. ``None`` if entries have no owners, or none that proves who has
            made them. Where it is set, ``mkdir`` makes private directories.
        modes: permissions of what callers make in directories of this machine; ``None`` if the
            store has none there.
        handles: a process can have a directory open, or work in it, and reach it wherever it was
            renamed; otherwise a directory is reached by its path only.
        pins: directories can be pinned, see ``asynccommit.stores.pinning``.
        durable: an acknowledged change survives a power cut; otherwise ``sync`` ensures that.
        checksums: Hadoop keeps the checksum of a file beside it, and readers refuse a file that
            does not match; listings leave checksums out.
        longest_path: maximum length of a path in bytes of UTF-8; 0 if only names are limited.
        longest_text: maximum length of a path in characters; 0 if bytes count.
        workers: recommended number of requests in flight.
        account: the name of what shares one limit on requests; empty if nothing does.
        unlimited: the service has no limit on the rate of requests: it is asked as fast as it
            responds, until it refuses.
        ramp: limit on the growth of the request rate; ``None`` for no limit.
        name_interval: minimum number of seconds between two changes of one name.
        costs: method -> number of requests that one call sends, if not one.
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
    rename_keeps_version: bool = False
    weak_etags: bool = False
    tagged_get: bool = False
    whole_listings: bool = True
    conditional_rename: bool = True
    conditional_put: bool = True
    conditions_proven: bool = True
    learns: bool = False
    atomic_put: bool = False
    drafts: bool = False
    recursive_delete: bool = True
    bulk_delete: int = 0
    conditional_delete: bool = True
    bulk_rename: int = 0
    bulk_list: int = 0
    multipart: Multipart | None = None
    streaming: Streaming | None = None
    consistent_listing: bool = True
    tokens: bool = False
    put_tokens: bool = False
    links: bool = False
    probes: bool = False
    zones: bool = False
    nested_zones: bool = False
    user: int | str | None = None
    modes: Modes | None = None
    handles: bool = False
    pins: bool = False
    durable: bool = True
    checksums: bool = False
    longest_path: int = 0
    longest_text: int = 0
    workers: int = 64
    account: str = ""
    unlimited: bool = False
    ramp: Ramp | None = None
    name_interval: float = 0.0
    costs: Mapping[str, int] = field(default_factory=dict)

    def guarded(self, etag: str | None) -> str | None:
        """Return what to require of the source of a rename: its etag, or no link."""
        return NOT_A_LINK if etag is None and self.links else etag

    @property
    def aborts(self) -> bool:
        """Return whether the abort of an upload bars its completion."""
        return self.multipart is None or self.multipart.aborts

    @property
    def fences(self) -> bool:
        """Return whether no path leads into a directory once it is renamed away."""
        return self.directories and self.atomic_directory_rename

    def lasting(self, etag: str | None) -> str | None:
        """Return the part of an etag that a rename preserves, or ``None``."""
        if etag is None or self.etag_survives_rename:
            return etag
        return etag.partition("-")[2] or None if self.content_etags else None

    def same(self, one: str | None, other: str | None) -> bool:
        """Return whether two etags identify the same version of a file.

        They may differ in other parts.
        """
        if one is None or other is None or not self.content_etags:
            return one == other
        return one.partition("-")[0] == other.partition("-")[0]


class Store(Protocol):
    """A store of files, such as an account, a bucket or a disk.

    The module has the rules that all methods follow.

    Every method may raise ``ThrottledError``, ``UnavailableError``, ``OutcomeUnknownError``,
    ``DeniedError`` and ``RejectedError`` besides the errors that it documents.
    """

    @property
    def traits(self) -> Traits:
        """The capabilities of this store."""
        ...

    async def head(self, path: str) -> Info:
        """Return the facts about ``path``. Raises ``NotFoundError``."""
        ...

    async def list(self, path: str, token: str | None = None) -> Page:
        """Return one page of direct children of ``path``, in no fixed order.

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
        """Write the whole file ``path``, visible as a whole where supported.

        ``token`` is a UUID that marks this write, the same for every sending of it. The parent
        directory must exist where the store has directories. Raises ``ExistsError`` if something is
        there and ``overwrite`` is false, ``NotFoundError`` without the parent,
        ``PreconditionError`` if ``path`` is a directory.
        """
        ...

    async def delete(self, path: str) -> None:
        """Delete one file or one empty directory, and never a symbolic link.

        A link in the place of a directory was made on purpose, and its target may be in use. Raises
        ``NotFoundError``, ``ExistsError`` for a directory that is not empty, and
        ``PreconditionError`` for a link.
        """
        ...

    async def delete_tree(self, path: str) -> None:
        """Delete ``path`` and everything below it.

        Requires ``Traits.recursive_delete``. Raises ``NotFoundError``.
        """
        ...

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        """Copy one file.

        Raises ``NotFoundError``, ``ExistsError``, ``PreconditionError``.
        """
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
        """Move a file or a whole directory to ``dest`` itself, never into it.

        ``etag`` is the etag that the source must have, if the store supports that condition; after
        an unknown outcome, the etag at ``dest`` shows whether the rename happened. ``token`` is a
        UUID that marks this rename, the same for every sending of it.

        Raises ``NotFoundError`` if the source or the parent of ``dest`` is missing, ``ExistsError``
        if something is at ``dest`` and ``replace`` is false, ``PreconditionError`` if the source
        has another etag, or ``replace`` would put a file in a directory's place or the other way
        round, ``RejectedError`` if ``dest`` is on another filesystem.
        """
        ...

    async def mkdir(self, path: str) -> None:
        """Make the directory ``path`` and missing parents, unless they exist.

        Raises ``PreconditionError`` if ``path`` or a parent is a file.
        """
        ...

    async def sync(self, path: str) -> None:
        """Return once acknowledged changes of ``path`` survive a power cut.

        For a file these are changes of its content, for a directory of its entries. If
        ``Traits.durable`` is true, this does nothing and need not be called.

        Raises ``NotFoundError``, and ``RejectedError`` if the disk has lost the change already;
        either only if ``Traits.durable`` is false.
        """
        ...

    async def aclose(self) -> None:
        """Release threads and connections; the store is unusable afterwards."""
        ...


class BulkStore(Store, Protocol):
    """A store without directories, which lists and deletes trees in bulk.

    ``Traits.bulk_delete`` is the maximum number of files of one request.
    """

    async def list_tree(self, path: str, token: str | None = None) -> Page:
        """Return one page of everything below ``path``; empty if there is nothing.

        Files, and objects that represent a directory, both with etags, come before real
        directories.
        """
        ...

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        """Delete up to ``Traits.bulk_delete`` entries whose etags match.

        An entry without an etag is deleted without a check; a directory without an etag is deleted
        if it is empty. Returns the result for each, ``None`` for deleted; a transient error of a
        single entry is raised, so that the request is sent again.
        """
        ...


class ProbingStore(Store, Protocol):
    """A store whose renames depend on facts that listings lack.

    Such facts are mounts, attributes and layers of the filesystem (``Traits.probes``), or zones of
    directories (``Traits.zones``).
    """

    async def probe(self, path: str, place: str) -> None:
        """Return if ``path`` could be renamed to below the directory ``place``.

        Nothing is changed. Raises ``NotFoundError``; ``RejectedError`` or ``DeniedError`` with the
        reason why the store would refuse.
        """
        ...


class OwnedStore(Store, Protocol):
    """A store whose entries have owners: ``Traits.user``."""

    async def mkdir(self, path: str, *, private: bool = False) -> None:
        """Make the directory ``path`` as ``Store.mkdir`` does.

        A ``private`` one that is made now can be entered by its owner only, whatever permissions
        other new directories have; missing parents are made like those.
        """
        ...


class QuotaUse(NamedTuple):
    """The quotas of a directory, and what is used of them.

    Attributes:
        names: maximum number of files and directories; ``None`` for no quota.
        named: those that are there, the directory itself included.
        space: maximum number of bytes of all replicas; ``None`` for no quota.
        spent: those that are used.
    """

    names: int | None
    named: int
    space: int | None
    spent: int


class QuotaStore(ProbingStore, Protocol):
    """A store whose directories may have quotas: ``Traits.zones``.

    A rename inside of such a directory uses nothing of its quotas, one into it does.
    """

    async def quotas(self, path: str) -> QuotaUse:
        """Return the quotas of a directory and their use; of a file, what it uses.

        The service may have to look at everything below. Raises ``NotFoundError``.
        """
        ...


class DirectoryStore(Store, Protocol):
    """A store with real directories: ``Traits.directories``."""

    async def mkdir_new(self, path: str, *, token: str | None = None) -> None:
        """Make ``path`` and its missing parents.

        Of concurrent callers one succeeds. Raises ``ExistsError`` if ``path`` exists,
        ``PreconditionError`` if a parent is a file.
        """
        ...


class LearningStore(Store, Protocol):
    """A store that finds out what its service does: ``Traits.learns``."""

    async def learn(self, path: str) -> None:
        """Find out, by requests about new objects in the directory ``path``.

        Raises ``RejectedError`` if no job is safe there.
        """
        ...


class TaggedStore(Store, Protocol):
    """A store that returns etags with contents: ``Traits.tagged_get``."""

    async def get_tagged(self, path: str, limit: int) -> tuple[bytes, str | None]:
        """Return the content of the file ``path``, and its etag.

        The etag is as ``Traits.same`` compares it, ``None`` if the store does not tell. Raises what
        ``get`` does.
        """
        ...


class DraftingStore(Store, Protocol):
    """A store that can write a file ahead of its rename: ``Traits.drafts``."""

    async def draft(self, folder: str, data: bytes) -> Info:
        """Write a hidden file with a new name in the directory ``folder``.

        Listings leave it out, and a rename makes it a file like any other. A repeated request
        writes another file. A directory that is missing may be created.
        """
        ...

    async def reserve(self, folder: str) -> str:
        """Create an empty hidden file as ``draft`` does, and return its path."""
        ...

    async def fill(self, path: str, data: bytes) -> Info:
        """Write the content of a reserved file, once.

        Unlike ``draft`` it creates nothing. Raises ``NotFoundError`` if the file is gone, as when
        its directory was renamed.
        """
        ...


class BatchListStore(Store, Protocol):
    """A store where a call for a listing would cost more than the listing."""

    async def list_many(self, paths: Sequence[str]) -> Sequence[Page | None]:
        """Return the first page of each directory, in order.

        There may be ``Traits.bulk_list`` directories. One that is missing, cannot be listed or
        has more pages has ``None``, and so has each that was not reached when the time was up or
        the answers were long: ask for these by ``list``.
        """
        ...


class BatchStore(Store, Protocol):
    """A store where a call for each file would cost more than its rename."""

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        """Rename up to ``Traits.bulk_rename`` files in order, or directories.

        Directories need ``Traits.bulk_list``. Each is renamed as by ``rename`` with its etag.
        Returns the number renamed before one failed or the time was up, and the error of that one.
        """
        ...
