"""Check that a store enforces the conditions a commit needs."""

from __future__ import annotations

from asynccommit.errors import ExistsError, RejectedError
from asynccommit.stores.base import Store


async def prove_conditions(store: Store, path: str, data: bytes) -> None:
    """Check that ``store`` refuses to overwrite an existing file.

    If ``Traits.conditions_proven`` is set, no request is sent. Otherwise the file is written once
    more: a server that ignores the condition accepts that, and would accept two commits of one job.

    Args:
        store: the store of the file.
        path: a file that the caller has just written and that does not change.
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
        "the server ignores the condition If-None-Match, so two commits of one job could run at "
        "once without noticing each other: use a server that supports it",
    )
