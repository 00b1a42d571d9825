"""Appending, flushing and reading bytes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.testing.models.adls.model import FS, Bench, refused


@pytest.fixture
def account() -> Bench:
    """An account with an empty file ``f``."""
    account = Bench()
    account.create(FS, "f")
    return account


def test_appends_may_come_in_any_order(account: Bench) -> None:
    """What counts is that no gap is left at the flush."""
    account.append(FS, "f", 4, b"data")
    account.append(FS, "f", 0, b"some")

    account.flush(FS, "f", 8)

    assert account.data("f") == b"somedata"


def test_an_append_that_is_sent_twice_counts_once(account: Bench) -> None:
    """The last one at a position is the one that is flushed."""
    account.append(FS, "f", 0, b"some")
    account.append(FS, "f", 0, b"same")

    account.flush(FS, "f", 4)

    assert account.data("f") == b"same"


def test_gap_is_refused(account: Bench) -> None:
    """A flush over a gap commits nothing; filled, it does."""
    account.append(FS, "f", 5, b"data")
    with refused(400, "InvalidFlushPosition"):
        account.flush(FS, "f", 9)
    assert account.head(FS, "f").size == 0

    account.append(FS, "f", 0, b"12345")
    account.flush(FS, "f", 9)

    assert account.data("f") == b"12345data"


def test_append_before_the_end_changes_nothing(account: Bench) -> None:
    """Committed bytes are never written again: a request that arrives twice is accepted twice."""
    for _ in range(2):
        account.append(FS, "f", 0, b"data", flush=True)
    account.append(FS, "f", 3, b"x")
    account.flush(FS, "f", 4)

    assert account.data("f") == b"data"


def test_flush_before_the_end_is_refused(account: Bench) -> None:
    """A file is never cut."""
    account.append(FS, "f", 0, b"data", flush=True)

    with refused(400, "InvalidFlushPosition"):
        account.flush(FS, "f", 2)


def test_retained_bytes_wait_for_the_next_flush(account: Bench) -> None:
    """What is beyond the position is kept if asked for, and dropped if not."""
    account.append(FS, "f", 0, b"some")
    account.append(FS, "f", 4, b"data")
    account.flush(FS, "f", 4, retain=True)
    assert account.data("f") == b"some"

    account.flush(FS, "f", 8)

    assert account.data("f") == b"somedata"


def test_append_and_flush_in_one(account: Bench) -> None:
    """With a gap before it, neither happens."""
    etag = account.head(FS, "f").etag
    with refused(400, "InvalidFlushPosition"):
        account.append(FS, "f", 4, b"data", flush=True)
    assert account.head(FS, "f").etag == etag
    assert account.head(FS, "f").pending == {}

    node = account.append(FS, "f", 0, b"data", flush=True)

    assert (node.size, node.etag != etag) == (4, True)


def test_md5_is_compared(account: Bench) -> None:
    """A digest of other bytes is refused and nothing is kept."""
    with refused(400, "Md5Mismatch"):
        account.append(FS, "f", 0, b"data", md5=hashlib.md5(b"date").digest())
    with refused(400, "InvalidFlushPosition"):
        account.flush(FS, "f", 4)

    account.append(FS, "f", 0, b"data", md5=hashlib.md5(b"data").digest())


def test_flush_sets_content_headers(account: Bench) -> None:
    """They come with the flush, and stay with the next that has none."""
    account.flush(FS, "f", 0, headers={"content-type": "text/plain"})

    assert dict(account.flush(FS, "f", 0).headers) == {"content-type": "text/plain"}


def test_directories_have_no_content(account: Bench) -> None:
    """Append, flush and read want a file."""
    account.dir("d")
    for act in (
        lambda: account.append(FS, "d", 0, b"x"),
        lambda: account.flush(FS, "d", 0),
        lambda: account.read(FS, "d"),
    ):
        with refused(409, "ResourceTypeMismatch"):
            act()


def test_create_drops_what_was_appended(account: Bench) -> None:
    """What was appended to the old file does not get into the new one."""
    account.append(FS, "f", 0, b"old")
    account.create(FS, "f")

    with refused(400, "InvalidFlushPosition"):
        account.flush(FS, "f", 3)


@pytest.mark.parametrize("start,end", [(10, None), (11, None), (10, 12), (3, 3), (5, 2)])
def test_range_that_is_none(account: Bench, start: int, end: int | None) -> None:
    """A range without a byte in it is refused, and told the size."""
    account.append(FS, "f", 0, b"0123456789", flush=True)
    with refused(416, "InvalidRange") as caught:
        account.read(FS, "f", start, end)

    assert caught.value.headers == {"Content-Range": "bytes */10"}


def test_range_of_an_empty_file(account: Bench) -> None:
    """An empty file is read whole, not in part."""
    assert account.read(FS, "f")[1] == b""
    with refused(416, "InvalidRange"):
        account.read(FS, "f", 0, 1)


@given(
    st.lists(st.binary(min_size=1, max_size=9), max_size=6),
    st.integers(-60, 60),
    st.none() | st.integers(1, 60),
)
def test_ranges_are_those_of_bytes(pieces: list[bytes], start: int, end: int | None) -> None:
    """Whatever the appends were, any range reads as it would from the whole."""
    account = Bench()
    account.create(FS, "f")
    whole = b"".join(pieces)
    position = 0
    for piece in pieces:
        account.append(FS, "f", position, piece)
        position += len(piece)
        if len(piece) % 2:
            account.flush(FS, "f", position)
    account.flush(FS, "f", position)
    first = max(0, len(whole) + start) if start < 0 else start
    expected = whole[first:end]

    assert account.data("f") == whole
    if expected:
        assert account.read(FS, "f", start, end)[1] == expected
