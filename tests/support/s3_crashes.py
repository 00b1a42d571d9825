"""Where writers run that die, on the model of S3. See ``tests.support.crashes``."""

from __future__ import annotations

import asyncio
import random

from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import MortalS3Store, Process
from asynccommit.testing.models.fault_rules import Climate, FaultInjector
from asynccommit.testing.models.invariants import Item
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.models.s3.refusals import S3
from tests.support.crashes import Ids, clock
from tests.support.strikes import CountedWeather


class S3World:
    """A bucket of the model. See ``ModelWorld``."""

    words = False

    def __init__(self, bucket: S3Bucket, seed: int = 0) -> None:
        self.bucket = bucket
        self.weather: FaultInjector | None = None
        self.processes: dict[str, Process] = {}
        self.telling = True
        self.seed = seed

    @classmethod
    def new(cls, seed: int = 0) -> S3World:
        """Return an empty one, on the running loop's clock."""
        return cls(S3Bucket("data", now=clock, new_id=Ids()), seed)

    def copy(self) -> S3World:
        """Return one with the same content, whose processes are the same."""
        made = S3World(self.bucket.copy(), self.seed)
        made.processes = dict(self.processes)
        return made

    def storm(self, rng: random.Random, climate: Climate) -> None:
        """See ``ModelWorld.storm``."""
        self.weather = CountedWeather(rng, asyncio.get_running_loop().time, climate, S3)

    def store(self, process: Process) -> Store:
        """See ``World.store``."""
        options = {"bucket": self.bucket, "weather": self.weather, "patience": 0.5}
        return MortalS3Store(self.address("/"), options, process)

    def address(self, path: str) -> Address:
        """See ``World.address``."""
        return Address("s3a", "data", path)

    def time(self) -> float:
        """See ``World.time``."""
        return asyncio.get_running_loop().time()

    def place(self, path: str, text: str) -> None:
        """See ``World.place``."""
        self.bucket.put(path[1:], text.encode())

    def tree(self) -> dict[str, Item]:
        """See ``World.tree``."""
        return {f"/{o.key}": Item(o.data, o.etag) for o in self.bucket.objects.values()}
