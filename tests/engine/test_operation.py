"""An operation keeps what was done, whatever ends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asynccommit.engine.operation import BulkOperation, workers_of
from asynccommit.engine.report import NAMED, BulkError, BulkProgress
from asynccommit.errors import ExistsError
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.opening import open_store


def _operation(**options: object) -> BulkOperation:
    return BulkOperation("test", LocalStore(), **options)  # type: ignore[arg-type]


async def test_workers_are_those_of_the_store() -> None:
    """The number of requests in flight is what the caller has set, or what suits the store."""
    assert workers_of(LocalStore()) == LocalStore.traits.workers
    async with open_store("/tmp", max_concurrency=3) as store:
        assert workers_of(store) == 3


async def test_the_source_of_items_may_fail() -> None:
    """An error of the input is raised with the report of what was done before."""
    operation = _operation()

    def items() -> Iterator[int]:
        yield 1
        raise RuntimeError("no more input")

    async def work(item: int) -> None:
        operation.finish()

    with pytest.raises(BulkError, match=r"no more input \(1 done") as caught:
        await operation.each(items(), work)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.report.done == 1


async def test_a_stopped_operation_begins_nothing() -> None:
    """After a failure nothing more is begun, in later steps as well."""
    operation, seen = _operation(), list[int]()

    async def work(item: int) -> None:
        seen.append(item)
        operation.fail("/a", "", ExistsError("rename", "/a", "there"))

    await operation.each(iter(range(1)), work)
    await operation.each([1, 2, 3], work)

    assert seen == [0]
    assert operation.has_stopped
    with pytest.raises(BulkError, match="there"):
        await operation.result()


async def test_failures_are_bounded() -> None:
    """A report counts every failure and names a thousand."""
    operation = _operation(on_error="continue")
    for number in range(NAMED + 5):
        operation.record(f"/{number}", "", ExistsError("rename", "/a", "there"))

    report = await operation.result()

    assert (report.failed, len(report.failures)) == (NAMED + 5, NAMED)
    assert len(repr(report)) < 300


async def test_secrets_are_not_reported() -> None:
    """The reason of a failure has no signature of a URL."""
    operation = _operation(on_error="continue")
    operation.record("/a", "", ExistsError("rename", "/a", "https://x/?sig=SECRETSECRET%3D&se=1"))

    assert "SECRETSECRET" not in str((await operation.result()).failures)


async def test_progress_ends_with_the_result() -> None:
    """The last call of ``on_progress`` has all items."""
    told: list[BulkProgress] = []
    operation = _operation(on_progress=told.append)
    for _ in range(10):
        operation.finish(size=1)
    operation.skip()
    await operation.result()

    assert told[-1].done == 11


async def test_broken_progress_does_not_stop_the_work(caplog: pytest.LogCaptureFixture) -> None:
    """An error of ``on_progress`` is logged once, and no call follows."""
    calls: list[BulkProgress] = []

    def broken(progress: BulkProgress) -> None:
        calls.append(progress)
        raise BrokenPipeError("nobody reads")

    operation = _operation(on_progress=broken)
    operation.finish()
    assert (await operation.result()).done == 1
    await operation.result()

    assert len(calls) == 1
    assert "nobody reads" in caplog.text
