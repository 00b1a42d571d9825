"""A dry run: what would be written is noted down and not done."""

from __future__ import annotations

import hashlib
from typing import Any

from asynccommit.stores.base import Info, Kind
from asynccommit.stores.parts import Part
from asynccommit.stores.policies.funnel import Call, Op, renames_of
from asynccommit.stores.streaming import Stream


class Record:
    """Record writes in ``ops``, in call order, instead of doing them; pass reads through.

    So what a recorded write would have made is not there for a later read. A ``sync`` is neither
    done nor recorded, because it has no visible effect.
    """

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def __repr__(self) -> str:
        return f"Record({len(self.ops)} writes)"

    def around(self, call: Call) -> Call:
        async def recorded(op: Op) -> Any:
            if not op.writes:
                return await call(op)
            if op.name == "sync":
                return None
            if op.name == "rename_many":
                self.ops += renames_of(op)
            else:
                self.ops.append(op)
            return self._answer(op)

        return recorded

    def _answer(self, op: Op) -> Any:
        """Return a plausible result for the caller."""
        match op.name:
            case "put" | "draft" | "fill":
                return Info(op.path, Kind.FILE, len(op.args[1]))
            case "put_marker" | "complete_upload":
                return Info(op.path, Kind.FILE)
            case "reserve":
                return f"{op.path}/dry-run-{len(self.ops)}"
            case "create_upload":
                return f"dry-run-{len(self.ops)}"
            case "begin_stream":
                return Stream(op.path)
            case "end_stream":
                return Info(op.path, Kind.FILE, op.args[2] + len(op.args[3]))
            case "put_part":
                return Part(hashlib.md5(op.args[3], usedforsecurity=False).hexdigest())
            case "delete_many":
                return [None] * op.size
            case "rename_many":
                return op.size, None
        return None
