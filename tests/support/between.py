"""Moments of a request at which an actor on the same disk may strike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from asynccommit.stores.grant import granted, granting
from asynccommit.stores.policies.funnel import Call, Op


async def struck(
    call: Call, op: Op, before: Callable[[], object], between: Callable[[], object]
) -> Any:
    """Send a request that an actor disturbs.

    Args:
        call: sends the request.
        op: the request.
        before: called on a thread before the request.
        between: called on the request's thread, between its look-up and its system call.
    """
    grant = granted()
    await asyncio.to_thread(before)

    def check() -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # the request's thread has no loop
            between()
        if grant is not None and grant.check is not None:
            grant.check()

    with granting(check=check):
        return await call(op)
