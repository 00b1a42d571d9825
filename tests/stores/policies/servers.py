"""An account with a limit on requests, in virtual time, and clients that ask it all they may."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import Any

from asynccommit.errors import ThrottledError
from asynccommit.stores.base import Traits
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.funnel import Op
from tests.support.stack import rename

LATENCY = 0.02


def share(times: list[float], begin: float, end: float) -> float:
    """Return how many of these times a second lie between the two."""
    return sum(begin <= time < end for time in times) / (end - begin)


class Server:
    """Takes ``limit`` requests a second, and a tenth of that at once; keeps when.

    Args:
        limit: requests a second.
        noise: share of the requests that it refuses without a reason.
        seed: of how long requests take to get here, and of the noise.
    """

    def __init__(self, limit: float, *, noise: float = 0.0, seed: int = 1) -> None:
        self.limit = limit
        self.noise = noise
        self.taken: list[float] = []
        self.refused: list[float] = []
        self._left = 0.0
        self._at = 0.0
        self._rng = random.Random(seed)

    async def __call__(self, op: Op) -> Any:
        """Answer after the latency; the request is here after about half of it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        way = LATENCY * self._rng.uniform(0.3, 0.7)
        loop.call_later(way, self._arrive, loop, op, answer, LATENCY - way)
        return await answer

    def _arrive(
        self, loop: asyncio.AbstractEventLoop, op: Op, answer: asyncio.Future[Any], way: float
    ) -> None:
        now = loop.time()
        self._left = min(self._left + (now - self._at) * self.limit, self.limit / 10)
        self._at = now
        if self._left < 1 or self._rng.random() < self.noise:
            self.refused.append(now)
            loop.call_later(way, answer.set_exception, ThrottledError(op.name, op.path, "busy"))
        else:
            self._left -= 1
            self.taken.append(now)
            loop.call_later(way, answer.set_result, None)

    def refusals(self, begin: float, end: float) -> float:
        """Return the share of what was refused between the two times."""
        bad = share(self.refused, begin, end)
        return bad / (bad + share(self.taken, begin, end))


class Client:
    """Asks a server as fast as its policy lets it, with many requests at a time."""

    def __init__(
        self, server: Server, account: str = "account", *, unlimited: bool = False, **options: Any
    ) -> None:
        self.taken: list[float] = []
        traits = Traits("server", account=account, unlimited=unlimited)
        self.policy = Adaptive(traits, **options)
        self._server = server

    async def run(self, seconds: float, workers: int) -> None:
        """Ask until the clock says so."""
        loop = asyncio.get_running_loop()
        call = self.policy.around(self._server)

        async def work() -> None:
            while loop.time() < seconds:
                try:
                    await call(rename())
                except ThrottledError:
                    await asyncio.sleep(0.05)
                else:
                    self.taken.append(loop.time())

        await asyncio.gather(*[work() for _ in range(workers)])


async def together(*runs: Awaitable[None]) -> None:
    """Run clients side by side."""
    await asyncio.gather(*runs)
