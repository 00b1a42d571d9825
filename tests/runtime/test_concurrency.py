"""``for_each``: what runs, what stops, and what is undone.

The cases are those of ``TestTaskPool`` in Hadoop and ``TestTasks`` in Netflix's s3committer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asynccommit.errors import NotFoundError
from asynccommit.runtime.concurrency import ChunkedItems, RequestSlots, for_each

COUNT = 16
FAILING = 8

Items = Callable[[Iterable[int]], "Iterable[int] | AsyncIterable[int]"]


async def _one_by_one(items: Iterable[int]) -> AsyncIterator[int]:
    for item in items:
        await asyncio.sleep(0)
        yield item


async def _three_by_three(items: Iterable[int]) -> AsyncIterator[Sequence[int]]:
    each = [*items]
    for start in range(0, len(each), 3):
        await asyncio.sleep(0)
        yield each[start : start + 3]
        yield ()


def _chunked(items: Iterable[int]) -> ChunkedItems[int]:
    return ChunkedItems(_three_by_three(items))


KINDS: dict[str, Items] = {
    "list": list,
    "iterator": iter,
    "async": _one_by_one,
    "chunked": _chunked,
}


@pytest.fixture(params=[1, 3, 8, 16])
def workers(request: pytest.FixtureRequest) -> int:
    """How many workers."""
    number: int = request.param
    return number


@pytest.fixture(params=KINDS)
def items(request: pytest.FixtureRequest) -> Items:
    """What the items come in."""
    return KINDS[request.param]


class Job:
    """Work that fails for some items, after as many turns of the loop as it is told."""

    def __init__(
        self, fails: Iterable[int] = (), turns: int = 0, undo_fails: Iterable[int] = ()
    ) -> None:
        self.fails = set(fails)
        self.turns = turns
        self.undo_fails = set(undo_fails)
        self.begun: list[int] = []
        self.done: list[int] = []
        self.failed: list[tuple[int, str]] = []
        self.aborted: list[int] = []
        self.reverted: list[int] = []
        self.running = self.most = 0

    async def work(self, item: int) -> None:
        """Do an item or fail."""
        self.begun.append(item)
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.running -= 1
        if item in self.fails:
            raise NotFoundError("work", f"/{item}")
        self.done.append(item)

    async def on_failure(self, item: int, error: BaseException) -> None:
        """Note a failed item."""
        self.failed.append((item, str(error)))
        self._undo(item)

    async def on_abort(self, item: int) -> None:
        """Note an item never tried."""
        self.aborted.append(item)
        self._undo(item)

    async def on_revert(self, item: int) -> None:
        """Note an item undone."""
        self.reverted.append(item)
        self._undo(item)

    def _undo(self, item: int) -> None:
        assert self.running == 0, "undone while others were running"
        if item in self.undo_fails:
            raise OSError(f"undo {item}")

    async def run(self, items: Items, workers: int) -> None:
        """Do all items with every role given."""
        await for_each(
            items(range(COUNT)),
            self.work,
            workers=workers,
            on_failure=self.on_failure,
            on_abort=self.on_abort,
            on_revert=self.on_revert,
        )

    def check_roles(self) -> None:
        """Every item has exactly one fate, and every done item is reverted."""
        failed = [item for item, _ in self.failed]
        assert sorted(self.begun) == sorted(self.done + failed)
        assert sorted(self.reverted) == sorted(self.done)
        assert sorted(self.done + failed + self.aborted) == list(range(COUNT))


@pytest.mark.parametrize("turns", [0, 3])
async def test_all_items_are_done_once(items: Items, workers: int, turns: int) -> None:
    """Without an error every item is done once and nothing is undone."""
    job = Job(turns=turns)
    await job.run(items, workers)
    assert sorted(job.done) == list(range(COUNT))
    assert (job.failed, job.aborted, job.reverted) == ([], [], [])


async def test_no_more_than_the_workers_run_at_once(items: Items, workers: int) -> None:
    """As many items as there are workers are under way, never more."""
    job = Job(turns=40)
    await job.run(items, workers)
    assert job.most == workers


async def test_no_items_are_no_work(workers: int) -> None:
    """An empty iterable ends at once."""
    job = Job()
    await for_each([], job.work, workers=workers)
    await for_each(iter(()), job.work, workers=workers)
    await for_each(_one_by_one([]), job.work, workers=workers)
    await for_each(_chunked([]), job.work, workers=workers)
    assert job.begun == []


@pytest.mark.parametrize("failing", [0, FAILING, COUNT - 1])
@pytest.mark.parametrize("turns", [0, 5])
async def test_a_failure_stops_fails_aborts_and_reverts(
    items: Items, workers: int, failing: int, turns: int
) -> None:
    """The error is raised; the item fails, those done are reverted, those not tried aborted."""
    job = Job([failing], turns)
    with pytest.raises(NotFoundError, match=f"/{failing}"):
        await job.run(items, workers)
    assert job.failed == [(failing, f"work /{failing}: NotFoundError")]
    job.check_roles()
    assert len(job.begun) <= failing + workers


async def test_the_last_item_failing_reverts_all_others() -> None:
    """With one worker, a failure of the last item leaves nothing to abort."""
    job = Job([COUNT - 1])
    with pytest.raises(NotFoundError):
        await job.run(list, 1)
    assert (job.aborted, sorted(job.reverted)) == ([], list(range(COUNT - 1)))


@pytest.mark.parametrize("workers", [3, 8, 16])
async def test_items_under_way_are_finished(workers: int) -> None:
    """What runs when another item fails is neither cancelled nor forgotten."""
    finish = asyncio.Event()
    done: list[int] = []

    async def work(item: int) -> None:
        if item == workers - 1:
            asyncio.get_running_loop().call_soon(finish.set)
            raise NotFoundError("work", f"/{item}")
        await finish.wait()
        done.append(item)

    with pytest.raises(NotFoundError):
        await for_each(range(COUNT), work, workers=workers)
    assert sorted(done) == list(range(workers - 1))


async def test_all_failing_reports_the_first_with_the_others_as_notes() -> None:
    """The first error is raised itself; a few others are named on it and the rest counted."""
    job = Job(range(COUNT), turns=1)
    with pytest.raises(NotFoundError, match="/0") as caught:
        await job.run(list, 8)
    notes = caught.value.__notes__
    assert notes[0] == "also: NotFoundError: work /1: NotFoundError"
    assert notes[-1] == "and 2 more errors"
    job.check_roles()


@pytest.mark.parametrize("undo_fails", [[FAILING], [0, 1, 2], [COUNT - 1], range(COUNT)])
async def test_an_error_while_undoing_stops_no_undoing(
    items: Items, workers: int, undo_fails: Iterable[int]
) -> None:
    """Every item is undone whatever fails; the first error stays the one raised."""
    job = Job([FAILING], undo_fails=undo_fails)
    with pytest.raises(NotFoundError, match=f"/{FAILING}") as caught:
        await job.run(items, workers)
    job.check_roles()
    assert any("OSError: undo" in note for note in caught.value.__notes__)


async def test_roles_may_be_left_out(workers: int) -> None:
    """A failure without any role is raised all the same."""
    job = Job([FAILING])
    with pytest.raises(NotFoundError):
        await for_each(range(COUNT), job.work, workers=workers)
    assert (job.failed, job.aborted, job.reverted) == ([], [], [])


async def test_an_iterator_that_fails_is_a_failure(workers: int) -> None:
    """Its error is raised, and what was done until then is reverted."""

    def broken() -> Iterator[int]:
        yield from range(FAILING)
        raise OSError("cannot read on")

    for source in (broken(), _one_by_one(broken())):
        job = Job()
        with pytest.raises(OSError, match="cannot read on"):
            await for_each(source, job.work, workers=workers, on_revert=job.on_revert)
        assert sorted(job.reverted) == sorted(job.done) == list(range(FAILING))


async def test_items_are_read_as_they_are_needed(workers: int) -> None:
    """No more items are taken from the iterator than are under way."""
    taken: list[int] = []
    done: list[int] = []

    def source() -> Iterator[int]:
        for item in range(COUNT * 10):
            taken.append(item)
            yield item

    async def work(item: int) -> None:
        await asyncio.sleep(0)
        assert len(taken) - len(done) <= workers
        done.append(item)

    await for_each(source(), work, workers=workers)
    assert len(done) == COUNT * 10


async def test_only_a_chunk_is_waited_for() -> None:
    """The first worker takes all of a chunk while nothing that it does waits."""
    begun: list[int] = []
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(len(begun))
            await asyncio.sleep(0)

    async def work(item: int) -> None:
        begun.append(item)

    task = asyncio.ensure_future(other())
    await for_each(_chunked(range(9)), work, workers=2)
    task.cancel()
    assert {*turns} <= {0, 3, 6, 9}


async def test_one_item_needs_no_task() -> None:
    """A single item, or a single worker, is served in the caller's own task."""
    here = asyncio.current_task()
    seen: list[object] = []

    async def work(item: int) -> None:
        seen.append(asyncio.current_task())

    await for_each([1], work, workers=8)
    await for_each(range(3), work, workers=1)
    assert seen == [here] * 4


async def test_no_more_workers_begin_than_there_are_items() -> None:
    """Of an iterable without a length, each item that comes begins another worker."""
    tasks: set[object] = set()

    async def items() -> AsyncIterator[int]:
        for item in range(3):
            tasks.update(asyncio.all_tasks())
            yield item
        tasks.update(asyncio.all_tasks())

    async def work(item: int) -> None:
        await asyncio.sleep(0)

    before = asyncio.all_tasks()
    await for_each(items(), work, workers=100)
    assert len(tasks - before) <= 4


async def test_cancelling_ends_the_workers_first(items: Items, workers: int) -> None:
    """A cancelled caller gets its cancellation when no work runs any more; nothing is undone."""
    job = Job()
    running = 0

    async def work(item: int) -> None:
        nonlocal running
        running += 1
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            running -= 1

    async def call() -> None:
        try:
            await for_each(items(range(COUNT)), work, workers=workers, on_failure=job.on_failure)
        finally:
            assert running == 0

    task = asyncio.ensure_future(call())
    for _ in range(3 * COUNT):  # until all workers have begun
        await asyncio.sleep(0)
    assert running == workers
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert job.failed == []


async def test_work_that_is_cancelled_from_within_is_a_failure(workers: int) -> None:
    """A cancellation that came out of the work itself loses no item: it fails the run."""
    failed: list[int] = []

    async def work(item: int) -> None:
        if item == 3:
            raise asyncio.CancelledError

    async def on_failure(item: int, error: BaseException) -> None:
        failed.append(item)

    with pytest.raises(asyncio.CancelledError):
        await for_each(range(COUNT), work, workers=workers, on_failure=on_failure)
    assert failed == [3]


async def test_the_loop_turns_while_no_work_ever_waits() -> None:
    """Work that never waits still lets others run now and then."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work(item: int) -> None:
        pass

    async def at_once() -> AsyncIterator[Sequence[int]]:
        yield range(10_000)

    task = asyncio.ensure_future(other())
    await for_each(range(10_000), work, workers=1)
    assert turns > 10
    turns = 0
    await for_each(ChunkedItems(at_once()), work, workers=1)
    task.cancel()
    assert turns > 10


@pytest.mark.parametrize("workers", [0, -1])
async def test_no_workers_are_refused(workers: int) -> None:
    """Without a worker nothing could be done."""
    with pytest.raises(ValueError, match="workers"):
        await for_each([1], Job().work, workers=workers)


@given(
    fails=st.sets(st.integers(0, COUNT - 1)),
    turns=st.lists(st.integers(0, 5), min_size=COUNT, max_size=COUNT),
    workers=st.integers(1, 20),
    kind=st.sampled_from(sorted(KINDS)),
)
@settings(max_examples=100, deadline=None)
async def test_every_item_has_one_fate(
    fails: set[int], turns: list[int], workers: int, kind: str
) -> None:
    """Whatever fails and however long each takes: done, failed or never tried, and told so."""
    job = Job(fails)

    async def work(item: int) -> None:
        job.turns = turns[item]
        await job.work(item)

    run = for_each(
        KINDS[kind](range(COUNT)),
        work,
        workers=workers,
        on_failure=job.on_failure,
        on_abort=job.on_abort,
        on_revert=job.on_revert,
    )
    if fails:
        with pytest.raises(NotFoundError):
            await run
        job.check_roles()
        assert {item for item, _ in job.failed} <= fails
    else:
        await run
        assert sorted(job.done) == list(range(COUNT))


async def test_a_slot_goes_to_the_first_that_waits() -> None:
    """Those that wait have slots in their order, and nobody overtakes them."""
    slots, got = RequestSlots(1), list[int]()
    assert slots.take()
    assert not slots.take()

    async def wait(number: int) -> None:
        await slots.wait()
        got.append(number)

    tasks = [asyncio.create_task(wait(number)) for number in range(2)]
    await asyncio.sleep(0)
    slots.release()
    assert not slots.take()
    await tasks[0]
    assert got == [0]
    slots.release()
    await tasks[1]
    slots.release()
    assert (got, slots.free) == ([0, 1], 1)


@pytest.mark.parametrize("given", [False, True])
async def test_a_cancelled_wait_keeps_no_slot(given: bool) -> None:
    """The slot goes to the next, also if it was given at the moment of the cancellation."""
    slots = RequestSlots(1)
    slots.take()
    cancelled, other = (asyncio.create_task(slots.wait()) for _ in range(2))
    await asyncio.sleep(0)
    if given:
        slots.release()
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    if not given:
        slots.release()
    await other
    slots.release()
    assert slots.free == 1
