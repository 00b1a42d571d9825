"""A dry run: what would be written is noted down and not done."""

from __future__ import annotations

from typing import Any

from asynccommit.store import Info, Kind
from asynccommit.wrappers.base import Call, Op


class Record:
    """Keep every write in ``ops``, in the order of the calls, and do none; reads pass through.

    So what a recorded write would have made is not there for a later read. A ``sync`` is neither
    done nor kept: there is nothing that it could make last, and nothing that anybody would see.
    """

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def __repr__(self) -> str:
        return f"Record({len(self.ops)} writes)"

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def recorded(op: Op) -> Any:
            if not op.writes:
                return await call(op)
            if op.name == "sync":
                return None
            self.ops.append(op)
            if op.name == "put":
                return Info(op.path, Kind.FILE, len(op.args[1]))
            return None

        return recorded
