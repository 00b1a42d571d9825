"""Sources that cannot be committed, as known before the commit."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import named
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.paths import ancestors
from asynccommit.commit.planning.load_manifests import LoadedManifests, identity
from asynccommit.commit.planning.movability import refuse_unfit
from asynccommit.commit.planning.sources import add_sources, name_lost
from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import pages


async def refuse_repeated(loaded: LoadedManifests) -> None:
    """Refuse a source that has more than one destination.

    Raises ``PreconditionError``.
    """
    suspects = loaded.origins.repeated()
    if not suspects:
        return
    seen: dict[str, str] = {}
    problems: list[str] = []
    async for entry in loaded.spill.each():
        if fingerprint(entry.source) not in suspects:
            continue
        if entry.source in seen:
            problems.append(f"{entry.source} for {seen[entry.source]} and {entry.dest}")
        seen[entry.source] = entry.dest
    if problems:
        text = f"manifests name one file for two destinations: {named(problems)}"
        raise PreconditionError("rename", problems[0].split(" for ", 1)[0], text)


async def refuse_unfit_sources(
    run: CommitContext, loaded: LoadedManifests, volume: int, *, adopt: bool
) -> None:
    """Refuse a source that cannot be moved or was not committed.

    A task commit of ours, which its message vouches for, has refused links among the files: then
    only the directories above are read. Without messages, all manifests are checked.

    Raises ``PreconditionError``, and ``NotFoundError`` for a file that is missing or another.
    """
    top = run.layout.sources_dir
    needed = ancestors(top, loaded.sources)
    odd: dict[str, Kind] = {}
    above = {path.rpartition("/")[0] for path in needed} & (needed | {top})
    unread = set() if loaded.vouched else loaded.sources
    with Fingerprints(run.options.spill_directory) as found:

        async def look(path: str) -> None:
            try:
                async for page in pages(run.store, path):
                    odd.update({info.path: info.kind for info in page if not _is_file(info)})
                    for info in page:
                        if info.is_dir and info.path in needed:
                            refuse_unfit(info, volume, top)
                    if path in unread:
                        _add(found, page)
            except NotFoundError:
                return  # the rename, or the check of the sources, names what is missing

        await for_each(sorted(above.union(unread)), look, workers=run.workers)
        await _refuse_odd(run, loaded, odd, needed)
        if unread and not adopt:
            await _refuse_lost(run, loaded, found)


def _is_file(info: Info) -> bool:
    return info.kind is Kind.FILE


def _add(found: Fingerprints, page: Sequence[Info]) -> None:
    files = [info for info in page if _is_file(info)]
    found.add([(info.path, info.size, info.etag) for info in files])
    found.add([(info.path, info.size) for info in files])


async def _refuse_odd(
    run: CommitContext, loaded: LoadedManifests, odd: dict[str, Kind], needed: set[str]
) -> None:
    """Refuse links above the sources, and sources that are no files."""
    links = [path for path, kind in odd.items() if kind is Kind.OTHER and path in needed]
    if links:
        raise PreconditionError("rename", min(links), "a link: files behind it are not of this job")
    with Fingerprints(run.options.spill_directory) as prints:
        prints.add(odd)
        suspects = loaded.origins.common(prints)
    if not suspects:
        return
    found = sorted([entry.source async for entry in loaded.spill.each() if entry.source in odd])
    if found:
        text = "a directory, where its manifest names a file"
        if odd[found[0]] is Kind.OTHER:
            text = "a link: files behind it are not of this job"
        raise PreconditionError("rename", found[0], text)


async def _refuse_lost(run: CommitContext, loaded: LoadedManifests, found: Fingerprints) -> None:
    with Fingerprints(run.options.spill_directory) as wanted:
        await add_sources(loaded, wanted, identity)
        lost = wanted.missing(found)
    if lost:
        await name_lost(loaded, lost, identity)
