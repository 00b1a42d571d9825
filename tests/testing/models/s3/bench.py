"""A bucket of the model on a clock of its own."""

from __future__ import annotations

from typing import Any

from asynccommit.stores.urls import Address
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket, S3Service, UploadRules

NAME = "data"
EPOCH = 1_795_000_000.0


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = EPOCH

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Ids:
    """Makes ids whose order is not that of time, as those of the service."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self) -> str:
        """Return the next one."""
        self._next += 1
        return f"{self._next * 7919 % 10_007:05d}-{self._next}"


def new_bucket(rules: UploadRules | None = None, clock: Clock | None = None) -> S3Bucket:
    """Return an empty bucket."""
    service = S3Service(now=clock or Clock(), new_id=Ids())
    return service.create_bucket(NAME, rules)


def open_store(rules: UploadRules | None = None, **options: Any) -> SimS3Store:
    """Return a store over a bucket, an empty one unless one is given."""
    bucket = options.pop("bucket", None) or new_bucket(rules)
    return SimS3Store(Address("s3", NAME, "/"), {"bucket": bucket, **options})
