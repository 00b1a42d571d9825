"""The content of task directories, and a check that all sources exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import named
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.full_etags import with_etags
from asynccommit.commit.object_holds import refuse_held
from asynccommit.commit.planning.load_manifests import LoadedManifests, identity
from asynccommit.commit.spill import Entry, in_batches
from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import BulkStore, Info, Kind
from asynccommit.stores.tree import Ask, each_page

_BATCH = 4_096
_Told = Callable[[Entry], tuple[str, int] | tuple[str, int, str]]


async def check_sources(run: CommitContext, loaded: LoadedManifests) -> None:
    """Check that every source exists with its size and etag, and can be moved.

    One listing of each directory, or of each task attempt where the store lists whole trees. Where
    an etag names a version, another version of the same content will do.

    Raises ``NotFoundError`` for a missing one, ``RejectedError`` for one that is held.
    """
    directory, held = run.options.spill_directory, list[Info]()
    whole = not run.store.traits.content_etags
    told = identity if whole else loaded.expected
    tree = run.store.traits.bulk_delete > 0
    places = _attempts(run, loaded.sources) if tree else loaded.sources
    with Fingerprints(directory) as found, Fingerprints(directory) as wanted:
        await add_sources(loaded, wanted, told)
        await for_each(
            sorted(places),
            lambda path: gather(run, path, found, whole=whole, tree=tree, held=held),
            workers=run.workers,
        )
        lost = wanted.missing(found)
    if lost:
        await name_lost(loaded, lost, told)
    if held:
        kept = {info.path: info for info in held}
        async for entry in loaded.spill.each():
            refuse_held(run, [kept[entry.source]] if entry.source in kept else [])


def _attempts(run: CommitContext, sources: Iterable[str]) -> set[str]:
    """Return the directories of the task attempts that ``sources`` are in."""
    depth = run.layout.tasks_dir.count("/") + 2
    return {"/".join(path.split("/")[:depth]) for path in sources}


async def add_sources(loaded: LoadedManifests, wanted: Fingerprints, told: _Told) -> None:
    """Add the expected content of sources to ``wanted``."""
    async for entries in in_batches(loaded.spill.entries(), _BATCH):
        wanted.add([told(entry._replace(dest=entry.source)) for entry in entries])


async def name_lost(loaded: LoadedManifests, lost: set[int], told: _Told) -> None:
    """Raise ``NotFoundError`` with the names of the missing sources."""
    problems = [
        entry.source
        async for entry in loaded.spill.each()
        if fingerprint(told(entry._replace(dest=entry.source))) in lost
    ]
    raise NotFoundError(
        "rename", problems[0], "missing, or not what its task committed: " + named(problems)
    )


async def gather(
    run: CommitContext,
    path: str,
    found: Fingerprints,
    etags: bool | None = None,
    shown_in: str | None = None,
    *,
    since: float = 0.0,
    whole: bool = False,
    tree: bool = False,
    held: list[Info] | None = None,
    ask: Ask | None = None,
) -> None:
    """Add the content of the directory ``path`` to ``found``.

    Args:
        run: the commit under way.
        path: a directory; one that is missing, or is a file, adds nothing.
        found: where to.
        etags: whether the entries to compare with all have an etag, none has, or some.
        shown_in: the directory that ``path`` stands for, if it is another.
        since: files that have not changed since then, in seconds of the store's time, are left out.
        whole: compare etags as a file has them that was not renamed.
        tree: include everything below as well.
        held: receives entries that can be neither moved nor deleted for now.
        ask: what lists the directory, see ``for_each_directory``.
    """
    lasting = None if whole or run.store.traits.etag_survives_rename else run.store.traits.lasting
    ask = ask or (cast(BulkStore, run.store).list_tree if tree else run.store.list)
    with suppress(NotFoundError, PreconditionError):
        async for page in each_page(ask, path):
            files = [
                info for info in page.entries if info.kind is Kind.FILE and info.modified >= since
            ]
            files = list(await with_etags(run, files)) if etags is not False else files
            if held is not None:
                held += [info for info in files if info.held]
            if lasting is not None:
                files = [info._replace(etag=lasting(info.etag)) for info in files]
            if shown_in is not None:
                cut = len(path)
                files = [info._replace(path=shown_in + info.path[cut:]) for info in files]
            if etags is not False:
                found.add([(info.path, info.size, info.etag) for info in files])
            if etags is not True:
                found.add([(info.path, info.size) for info in files])
