"""The rules of the ``StreamingStore`` contract, as ``contract`` has those of every store.

@pytest.mark.parametrize("rule", STREAMING_RULES, ids=name_of)
async def test_streams(rule: StreamingRule, store: StreamingStore[Any]) -> None:
    await rule(store, "/root")
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from asynccommit.errors import ExistsError, NotFoundError
from asynccommit.stores.base import Info, Streaming
from asynccommit.stores.streaming import Stream, StreamingStore
from asynccommit.stores.tree import list_all

StreamingRule = Callable[[StreamingStore[Any], str], Awaitable[None]]
STREAMING_RULES: list[StreamingRule] = []


def rule(function: StreamingRule) -> StreamingRule:
    """Add a rule to the suite."""
    STREAMING_RULES.append(function)
    return function


def rules_of(store: StreamingStore[Any]) -> Streaming:
    """Return what the blocks of a file may be."""
    found = store.traits.streaming
    assert found is not None
    return found


def blocks(store: StreamingStore[Any]) -> list[tuple[int, bytes]]:
    """Return start and content of three blocks, the last of which is short."""
    size = rules_of(store).block
    full = [(number * size, b"%d" % number * size) for number in range(2)]
    return [*full, (2 * size, b"the last")]


async def place(store: StreamingStore[Any], path: str, info: Info) -> None:
    """Move a file that was completed beside its place to it."""
    if info.path != path:
        await store.rename(info.path, path, etag=info.etag)


async def begin(store: StreamingStore[Any], path: str) -> Stream:
    """Begin a file whose directory holds the incomplete ones."""
    folder = path.rpartition("/")[0]
    await store.mkdir(folder)
    stream: Stream = await store.begin_stream(path, folder)
    return stream


@rule
async def blocks_become_one_file(store: StreamingStore[Any], root: str) -> None:
    """Nothing is listed before the end, which gives the facts about the whole file."""
    path = f"{root}/d/f"
    stream, (first, second, last) = await begin(store, path), blocks(store)
    await store.put_block(path, stream, *first)
    await store.put_block(path, stream, *second)
    assert [info.path for info in await list_all(store, f"{root}/d")] == []

    info = await store.end_stream(path, stream, *last)
    await place(store, path, info)

    size = last[0] + len(last[1])
    found = await store.head(path)
    assert (info.size, found.size) == (size, size)
    assert store.traits.same(info.etag, found.etag)
    assert await store.get(path, size) == first[1] + second[1] + last[1]


@rule
async def blocks_may_be_sent_again(store: StreamingStore[Any], root: str) -> None:
    """A repeated block, and a repeated end, change nothing."""
    path = f"{root}/d/f"
    stream, (first, second, last) = await begin(store, path), blocks(store)
    for block in (first, first, second, second):
        await store.put_block(path, stream, *block)
    once = await store.end_stream(path, stream, *last)
    twice = await store.end_stream(path, stream, *last)
    await place(store, path, twice)

    assert (once.path, once.size) == (twice.path, twice.size)
    assert await store.get(path, 1 << 30) == first[1] + second[1] + last[1]


@rule
async def blocks_come_in_any_order(store: StreamingStore[Any], root: str) -> None:
    """If the store takes several at once, the order is that of their positions."""
    path = f"{root}/d/f"
    stream, (first, second, last) = await begin(store, path), blocks(store)
    pair = (second, first) if rules_of(store).at_once > 1 else (first, second)
    for block in pair:
        await store.put_block(path, stream, *block)
    await place(store, path, await store.end_stream(path, stream, *last))

    assert await store.get(path, 1 << 30) == first[1] + second[1] + last[1]


@rule
async def aborted_streams_leave_nothing(store: StreamingStore[Any], root: str) -> None:
    """A late block and a late end find no stream; a second abort is harmless."""
    path = f"{root}/d/f"
    stream, (first, second, last) = await begin(store, path), blocks(store)
    await store.put_block(path, stream, *first)
    await store.abort_stream(path, stream)

    for late in (
        lambda: store.put_block(path, stream, *second),
        lambda: store.end_stream(path, stream, *last),
    ):
        with pytest.raises(NotFoundError):
            await late()
    with suppress(NotFoundError):
        await store.abort_stream(path, stream)
    with pytest.raises(NotFoundError):
        await store.head(path)
    assert await list_all(store, f"{root}/d") == []


@rule
async def streams_replace_nothing(store: StreamingStore[Any], root: str) -> None:
    """Whatever comes to the place in the meantime stays there."""
    path = f"{root}/d/f"
    stream, (first, _, _) = await begin(store, path), blocks(store)
    await store.put_block(path, stream, *first)
    await store.put(path, b"another's")

    with pytest.raises(ExistsError):
        await place(store, path, await store.end_stream(path, stream, len(first[1]), b"mine"))
    assert await store.get(path, 100) == b"another's"


@rule
async def two_streams_of_one_name(store: StreamingStore[Any], root: str) -> None:
    """They do not mix; the first that ends has the place."""
    path = f"{root}/d/f"
    one, other = await begin(store, path), await begin(store, path)
    (start, data), *_ = blocks(store)
    await store.put_block(path, one, start, data)
    await store.put_block(
        path, other, start, data.swapcase() if data.isalpha() else b"x" * len(data)
    )
    await place(store, path, await store.end_stream(path, one, len(data), b"one"))

    with pytest.raises(ExistsError):
        await place(store, path, await store.end_stream(path, other, len(data), b"other"))
    assert await store.get(path, 1 << 30) == data + b"one"
