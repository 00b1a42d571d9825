"""Full etags of files, for stores that list only a part of an etag."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.commit.context import CommitContext
from asynccommit.errors import NotFoundError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind


async def with_etags(run: CommitContext, infos: Sequence[Info]) -> Sequence[Info]:
    """Return listed infos with the etags of files completed.

    No request is sent if listings show full etags. The info of a file that is gone meanwhile, or of
    which nothing more is known, is returned unchanged.
    """
    traits = run.store.traits
    if traits.whole_listings:
        return infos
    found = list(infos)

    async def ask(number: int) -> None:
        info = found[number]
        try:
            there = await run.store.head(info.path)
        except NotFoundError:
            return
        if traits.same(there.etag, info.etag):
            found[number] = info._replace(etag=there.etag)

    await for_each(
        [n for n, _ in enumerate(found) if _.kind is Kind.FILE and not traits.lasting(_.etag)],
        ask,
        workers=run.workers,
    )
    return found
