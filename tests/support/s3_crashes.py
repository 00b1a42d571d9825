"""Where writers run that die, on the model of S3. See ``tests.support.crashes``."""

from __future__ import annotations

from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import MortalS3Store, Process
from asynccommit.testing.models.invariants import Item
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.models.s3.refusals import S3
from tests.support.crashes import Ids, MemoryWorld, clock


class S3World(MemoryWorld):
    """A bucket of the model. See ``ModelWorld``."""

    dialect = S3

    def __init__(self, bucket: S3Bucket, seed: int = 0) -> None:
        super().__init__(seed)
        self.bucket = bucket

    @classmethod
    def new(cls, seed: int = 0) -> S3World:
        """Return an empty one, on the running loop's clock."""
        return cls(S3Bucket("data", now=clock, new_id=Ids()), seed)

    def copy(self) -> S3World:
        """Return one with the same content, whose processes are the same."""
        return self.shared_with(S3World(self.bucket.copy(), self.seed))

    def store(self, process: Process) -> Store:
        """See ``World.store``."""
        options = {"bucket": self.bucket, "weather": self.weather, "patience": 0.5}
        return MortalS3Store(self.address("/"), options, process)

    def address(self, path: str) -> Address:
        """See ``World.address``."""
        return Address("s3a", "data", path)

    def place(self, path: str, text: str) -> None:
        """See ``World.place``."""
        self.bucket.put(path[1:], text.encode())

    def tree(self) -> dict[str, Item]:
        """See ``World.tree``."""
        return {f"/{o.key}": Item(o.data, o.etag) for o in self.bucket.objects.values()}
