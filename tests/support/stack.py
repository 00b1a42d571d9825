"""What a test of a policy needs: a clock that moves only when told, and a call with set answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

from asynccommit.stores.policies.funnel import Op


def rename() -> Op:
    """A write that must not be repeated."""
    return Op("rename", ("/a", "/b"), True, False, {"replace": False})


def head() -> Op:
    """A read."""
    return Op("head", ("/a",), False, True)


def put() -> Op:
    """A write that may be repeated."""
    return Op("put", ("/a", b"data"), True, True, {"overwrite": True})


def delete() -> Op:
    """A write that may be repeated, and then finds nothing."""
    return Op("delete", ("/a",), True, True)


class Clock:
    """The time of the running loop, moved by ``sleep`` and ``advance`` alone."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def time(self) -> float:
        """Stand in for ``loop.time``."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Stand in for ``asyncio.sleep``."""
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Move on, and let everything run that is due."""
        self.now += seconds
        await self.settle()

    async def settle(self) -> None:
        """Let everything run that is due."""
        for _ in range(50):
            await asyncio.sleep(0)


class Answers:
    """The call at the end of a stack: each operation gets the next answer, and is kept."""

    def __init__(self, *answers: object) -> None:
        self.answers: Iterator[object] = iter(answers)
        self.ops: list[Op] = []

    async def __call__(self, op: Op) -> Any:
        """Raise or return the next answer, ``None`` when there are no more."""
        self.ops.append(op)
        answer = next(self.answers, None)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Random(random.Random):
    """Draws always the same share of what it may draw."""

    def __init__(self, share: float) -> None:
        super().__init__(0)
        self._share = share

    def uniform(self, a: float, b: float) -> float:
        """Return a fixed share of the way from ``a`` to ``b``."""
        return a + self._share * (b - a)
