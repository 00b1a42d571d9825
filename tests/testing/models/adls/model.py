"""What the tests of the model share: an account under a clock that they move, and refusals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from asynccommit.testing.models.adls.account import AdlsAccount, AdlsLimits, Refusal

FS = "data"
A = "aaaaaaaa-0000-0000-0000-000000000001"
B = "bbbbbbbb-0000-0000-0000-000000000002"


class Clock:
    """Seconds since the epoch, moved by the test alone."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.25

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Bench(AdlsAccount):
    """An account with one filesystem, a clock to move and ids that count."""

    def __init__(self, *, hns: bool = True, limits: AdlsLimits | None = None) -> None:
        self.clock = Clock()
        ids = itertools.count(1)
        super().__init__(
            "acct",
            now=self.clock,
            new_id=lambda: f"id-{next(ids)}",
            hns=hns,
            limits=limits or AdlsLimits(),
        )
        self.create_filesystem(FS)

    def file(self, path: str, data: bytes = b"") -> str:
        """Make a file and return its etag."""
        node = self.create(FS, path)
        if data:
            node = self.append(FS, path, 0, data, flush=True)
        return node.etag

    def dir(self, path: str) -> str:
        """Make a directory and return its etag."""
        return self.create(FS, path, directory=True).etag

    def data(self, path: str) -> bytes:
        """Return the content of a file."""
        return self.read(FS, path)[1]

    def names(self, directory: str = "", recursive: bool = True) -> list[str]:
        """Return every path below a directory, through all pages."""
        found: list[str] = []
        token = None
        while True:
            page = self.list(FS, directory, recursive=recursive, token=token)
            found += [path for path, _ in page.entries]
            token = page.token
            if token is None:
                return found


@contextmanager
def refused(status: int, code: str) -> Iterator[pytest.ExceptionInfo[Refusal]]:
    """Expect this refusal."""
    with pytest.raises(Refusal) as caught:
        yield caught
    assert (caught.value.status, caught.value.code) == (status, code)
