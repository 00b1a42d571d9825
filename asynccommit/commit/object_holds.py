"""Object holds: refuse objects that cannot be moved or deleted now."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime

from asynccommit.commit.context import CommitContext
from asynccommit.errors import RejectedError
from asynccommit.stores.base import Info


def refuse_held(run: CommitContext, infos: Iterable[Info]) -> None:
    """Raise ``RejectedError`` for the first of ``infos`` that is held."""
    for info in infos:
        if info.held and info.held > run.host.now():
            raise RejectedError("rename", info.path, _why(run, info.held))


def _why(run: CommitContext, until: float) -> str:
    place = run.layout.dest.at("/")
    if run.store.traits.probes:
        return (
            "a mount point, immutable or append-only, which cannot be moved: unmount it "
            "(umount), or clear the attribute (chattr -i -a)"
        )
    if until == math.inf:
        return (
            "is under a hold and can be neither moved nor deleted: release it. If all new "
            f"objects in {place} are held, no job can be committed there: turn that off, or "
            "write elsewhere"
        )
    moment = datetime.fromtimestamp(until, UTC)
    return (
        f"is under retention until {moment:%Y-%m-%dT%H:%M:%SZ} and can be neither moved nor "
        f"deleted before. If all new objects in {place} are retained, no job can be committed "
        "there: remove the policy, or write elsewhere"
    )
