"""What the tests of the model share: a service under a clock that they move, and refusals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from asynccommit.testing.models.gcs.model import (
    BucketOptions,
    GcsLimits,
    GcsRefusal,
    GcsService,
    ListQuery,
)
from tests.testing.models.adls.model import Clock

BUCKET = "data"


class Bench(GcsService):
    """A service with one bucket, a clock to move and ids that count."""

    def __init__(self, *, limits: GcsLimits | None = None, **options: Any) -> None:
        self.clock = Clock()
        ids = itertools.count(1)
        super().__init__(
            now=self.clock, new_id=lambda: f"id-{next(ids)}", limits=limits or GcsLimits()
        )
        self.create_bucket(BUCKET, BucketOptions(**options))

    def put(self, *names: str, data: bytes = b"") -> int:
        """Make objects and return the generation of the last."""
        return [self.insert(BUCKET, name, data).generation for name in names][-1]

    def data(self, name: str) -> bytes:
        """Return the content of an object."""
        return self.read(BUCKET, name)[1]

    def names(self, **query: Any) -> list[str]:
        """Return items and prefixes of a listing in one order, through all pages."""
        found: list[str] = []
        for items, prefixes in self.pages(**query):
            found += sorted(items + prefixes)
        return found

    def pages(self, **query: Any) -> Iterator[tuple[list[str], list[str]]]:
        """Yield items and prefixes of each page of a listing."""
        token = ""
        while True:
            page = self.list(BUCKET, ListQuery(**query, page_token=token))
            yield [item.name for item in page.items], page.prefixes
            token = page.token
            if not token:
                return

    def folder_names(self, **query: Any) -> list[str]:
        """Return the names of the folders."""
        return [folder.name for folder in self.list_folders(BUCKET, **query).items]


@contextmanager
def refused(status: int, reason: str, said: str = "") -> Iterator[pytest.ExceptionInfo[GcsRefusal]]:
    """Expect this refusal."""
    with pytest.raises(GcsRefusal) as caught:
        yield caught
    assert (caught.value.status, caught.value.reason) == (status, reason)
    assert said in caught.value.message
