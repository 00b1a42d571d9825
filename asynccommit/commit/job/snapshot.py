"""A snapshot: what a commit asks before its record, read at once.

Before its record a commit asks a dozen questions, one after the other. What they read does not
depend on one another, so it is read in one round trip. The snapshot ends with the first write of
the commit: what matters then is asked again, or is a condition of the write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
)
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind, Page, Store, TaggedStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped

MAX_FILE_BYTES = 256 << 10
"""Maximum size of a file in a snapshot, in bytes."""
MAX_FILES = 64
Read = dict[str, tuple[bytes, str | None]]
"""Path -> content, and the etag that came with it."""


@dataclass(slots=True)
class Snapshot:
    """Facts that were read at once, valid until the first write.

    Attributes:
        infos: path -> the facts about it, ``None`` if nothing is there.
        listings: directory -> its children by path, ``None`` if it is missing.
        files: path -> content.
    """

    infos: dict[str, Info | None] = field(default_factory=dict)
    listings: dict[str, Mapping[str, Info] | None] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def asked(op: Op) -> Any:
            if op.writes:
                self.clear()
                return await call(op)
            answer = self._answer(op)
            return await call(op) if answer is None else answer

        return asked

    def clear(self) -> None:
        """Forget all answers."""
        self.infos.clear()
        self.listings.clear()
        self.files.clear()

    def _answer(self, op: Op) -> Info | Page | bytes | None:
        """Return the answer to ``op``; ``None`` if it is unknown.

        Raises ``NotFoundError`` for a path that is known to be missing.
        """
        match op.name:
            case "head":
                found: Info | Page | bytes | None = self._info(op.path)
            case "list":
                listing = self.listings.get(op.path)
                found = None if listing is None else Page(tuple(listing.values()))
            case "get":
                data = self.files.get(op.path)
                found = data if data is not None and len(data) <= op.args[1] else None
            case _:
                return None
        if found is None and self._is_missing(op.path):
            raise NotFoundError(op.name, op.path, "it is not there")
        return found

    def _info(self, path: str) -> Info | None:
        known = self.infos.get(path)
        if known is None:
            known = (self.listings.get(_parent(path)) or {}).get(path)
        if known is None and self.listings.get(path) is not None:
            known = Info(path, Kind.DIRECTORY)
        return known

    def _is_missing(self, path: str) -> bool:
        """Return whether nothing can be at ``path``."""
        if path in self.infos:
            return self.infos[path] is None
        while path:
            if path in self.listings:
                return self.listings[path] is None
            parent = _parent(path)
            if parent in self.listings:
                return path not in (self.listings[parent] or {})
            path = parent
        return False


async def take_snapshot(
    store: Store, *, listings: Iterable[str], files: Iterable[str], infos: Iterable[str] = ()
) -> Snapshot:
    """Return a snapshot of paths, directories and small files, read at once.

    It leaves out a listing of several pages or with two entries of one path, a file over
    ``MAX_FILE_BYTES``, a file that is not surely the one that the listing of its directory shows,
    and what the store refuses to show. Raises ``UnavailableError``, ``ThrottledError``,
    ``OutcomeUnknownError``.
    """
    found = Snapshot()
    read: Read = {}

    async def ask_info(path: str) -> None:
        try:
            found.infos[path] = await store.head(path)
        except NotFoundError:
            found.infos[path] = None

    async def ask_listing(path: str) -> None:
        try:
            page = await store.list(path)
        except NotFoundError:
            found.listings[path] = None
            return
        children = {info.path: info for info in page.entries}
        if page.token is None and not page.stale and len(children) == len(page.entries):
            found.listings[path] = children

    async def ask_file(path: str) -> None:
        read[path] = await cast(TaggedStore, store).get_tagged(path, MAX_FILE_BYTES)

    async def ask(question: tuple[Callable[[str], Awaitable[None]], str]) -> None:
        try:
            await question[0](question[1])
        except (DeniedError, ExistsError, NotFoundError, PreconditionError, RejectedError):
            return  # whoever needs the answer asks again, and reports the error

    questions = [(ask_info, path) for path in infos]
    questions += [(ask_listing, path) for path in listings]
    if store.traits.tagged_get:
        questions += [(ask_file, path) for path in [*files][:MAX_FILES]]
    await for_each(questions, ask, workers=max(1, len(questions)))
    _keep_listed(found, store, read)
    return found


def _keep_listed(found: Snapshot, store: Store, read: Read) -> None:
    """Add the files that are those of the listings.

    A listing may be of a later run of the job, whose file has another content. The check after the
    record compares etags of listings, so the content must be that of the etag.
    """
    for path, (data, etag) in read.items():
        listed = (found.listings.get(_parent(path)) or {}).get(path)
        if listed is not None and etag is not None and store.traits.same(listed.etag, etag):
            found.files[path] = data


def view(store: Store, snapshot: Snapshot) -> Store:
    """Return ``store`` with the answers of ``snapshot``."""
    return Wrapped(store, snapshot)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
