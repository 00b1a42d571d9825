"""Faults put into the funnel: chosen requests fail before or after they took effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from asynccommit.errors import StoreError
from asynccommit.stores.base import Renamed
from asynccommit.stores.policies.funnel import Call, Op, Policy, renames_of


@dataclass
class Fault:
    """One rule: which requests fail, how, when, and how often.

    Attributes:
        name: the store method.
        error: makes the error from method and path.
        match: part of the path of the request.
        after: the request takes effect first, and its answer is lost.
        times: how often it strikes.
        skip: how many matching requests pass before.
    """

    name: str
    error: Callable[[str, str], BaseException]
    match: str = ""
    after: bool = False
    times: int = 1_000_000
    skip: int = 0
    struck: int = field(default=0, init=False)

    def strikes(self, op: Op) -> bool:
        """Whether this request is to fail."""
        if method_of(op) != self.name or self.match not in " ".join(map(str, op.args[:2])):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.struck >= self.times:
            return False
        self.struck += 1
        return True


def method_of(op: Op) -> str:
    """Return the store method of a request.

    A draft in the job's directory that is put in place counts as ``put``; the marker's draft, in
    the directory of its owner, is renamed on stores without drafts too. A file that is reserved
    there makes that directory.
    """
    if op.name == "reserve" and "/commit-epoch-" in op.path:
        return "mkdir"
    is_draft = op.name == "rename" and "/.asynccommit-" in op.path
    return "put" if is_draft and "/commit-epoch-" not in op.path else op.name


class Faults:
    """A policy that applies rules, and keeps every request in ``seen``; to stand in ``apart``."""

    def __init__(self, *rules: Fault) -> None:
        self.rules = list(rules)
        self.seen: list[Op] = []

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def faulty(op: Op) -> Any:
            self.seen.append(op)
            for rule in self.rules:
                if rule.strikes(op):
                    if rule.after:
                        await call(op)
                    raise rule.error(op.name, op.path)
            return await call(op)

        return faulty

    def count(self, name: str) -> int:
        """Return how many requests of one kind were seen."""
        return sum(op.name == name for op in self.seen)


class Before:
    """A policy that does something once, before the first request of a kind to some path."""

    def __init__(self, name: str, match: str, act: Callable[[], Awaitable[Any]]) -> None:
        self._name, self._match = name, match
        self._act: Callable[[], Awaitable[Any]] | None = act

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> Any:
            asked = op.name == self._name and self._match in " ".join(map(str, op.args[:2]))
            if asked and self._act is not None:
                act, self._act = self._act, None
                await act()
            return await call(op)

        return around


class Apart:
    """A policy that sends what is renamed or listed together one by one.

    So those within, which count, stop or hinder single requests, see each of them.
    """

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def apart(op: Op) -> Any:
            if op.name == "rename_many":
                return await _together(call, renames_of(op))
            if op.name == "list_many":
                return [None] * op.size
            return await call(op)

        return apart


async def _together(call: Call, renames: Sequence[Op]) -> Renamed:
    for done, op in enumerate(renames):
        try:
            await call(op)
        except StoreError as error:
            return done, error
    return len(renames), None


def apart(policies: Sequence[Policy]) -> Sequence[Policy]:
    """Return ``policies`` so that they see each file that is renamed."""
    return (Apart(), *policies) if policies else ()
