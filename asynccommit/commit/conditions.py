"""Seeing that a store keeps the conditions that a commit rests on, where that is not known."""

from __future__ import annotations

from asynccommit.errors import ExistsError, RejectedError
from asynccommit.stores.base import Store


async def prove_conditions(store: Store, path: str, data: bytes) -> None:
    """See that ``store`` refuses to write a file over one that is there.

    Where ``Traits.conditions_proven`` says so, nobody is asked. Else the file is written once more:
    a server that passes the condition over says yes to that, and would say yes to two commits of
    one job.

    Args:
        store: where the file is.
        path: a file that this very caller has just written, and nobody changes.
        data: what is in it, so that writing it again does no harm.

    Raises:
        RejectedError: the condition is not kept.
    """
    traits = store.traits
    if traits.conditions_proven or not traits.conditional_put:
        return
    try:
        await store.put(path, data, overwrite=False)
    except ExistsError:
        return
    raise RejectedError(
        "put",
        path,
        "the server passes over the condition that nothing may be there (If-None-Match), so two "
        "commits of one job could run at once, and each would believe that it is alone: use a "
        "server that keeps it",
    )
