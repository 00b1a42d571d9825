"""Check that a store enforces the write conditions that a commit relies on, if unknown."""

from __future__ import annotations

from asynccommit.errors import ExistsError, RejectedError
from asynccommit.stores.base import Store


async def prove_conditions(store: Store, path: str, data: bytes) -> None:
    """Check that ``store`` refuses to overwrite an existing file.

    If ``Traits.conditions_proven`` is set, no request is sent. Otherwise the file is written once
    more: a server that ignores the condition accepts that, and would accept two commits of one job.

    Args:
        store: the store of the file.
        path: a file that this caller has just written, and that nobody changes.
        data: its content, so that writing it again does no harm.

    Raises:
        RejectedError: the store does not enforce the condition.
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
