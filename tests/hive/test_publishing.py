"""Publishing what a Hive job left: in Hive's order, with a way back, and after any crash."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import (
    CommitError,
    DeniedError,
    ManifestError,
    OutcomeUnknownError,
    StoreError,
    UnsupportedError,
)
from asynccommit.hive.names import HiveRules
from asynccommit.hive.publishing import discard, publish
from asynccommit.hive.scan import Reading
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.testing.models.crashes import Crash, Process, When
from asynccommit.testing.models.fault_profiles import STORM
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.worlds import new_world
from tests.hive.tables import HOSTILE, Content, Table, open_table, patient, until_death
from tests.support.faults import Fault, Faults

WRITTEN: dict[str, Content] = {
    "_tmp.X/d=1/000000_0": "one",
    "_tmp.X/d=1/000000_1": "one, whole",
    "_tmp.X/d=1/000001_0": "two",
    "_tmp.X/d=1/_tmp.000002_0": "unfinished",
    "_tmp.X/d=2": None,
    "_task_tmp.X/d=1/_tmp.000000_3": "never closed",
}
OLD: dict[str, Content] = {"X/d=1/000000_1": "old", "X/d=9/000000_0": "older"}
NEW = {"X/d=1/000000_1": b"one, whole", "X/d=1/000001_0": b"two", "X/d=1/000002_1": b""}
ADDED = {
    "X/d=1/000000_1": b"old",
    "X/d=1/000000_1_copy_1": b"one, whole",
    "X/d=1/000001_0": b"two",
    "X/d=1/000002_1": b"",
    "X/d=9/000000_0": b"older",
}
READING = Reading(partitions=1, buckets=3)


@pytest.fixture(params=["local", "adls"])
async def table(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Table]:
    """An empty place, on stores that rename directories."""
    made = open_table(request.param, tmp_path)
    yield made
    await made.store.aclose()


def final(table: Table) -> str:
    """Return where the files are published."""
    return f"{table.path}/X"


async def visible(table: Table) -> dict[str, bytes]:
    """Return what is published, with anything that is left beside it."""
    return await table.tree()


async def test_to_a_new_place(table: Table) -> None:
    """The files are cleaned and moved as one directory; both temporary ones are gone."""
    await table.fill(WRITTEN)
    done = await publish(table.store, final(table), READING)

    assert await visible(table) == NEW
    assert await table.directories() == ["X", "X/d=1"]
    assert done.dedup is not None
    assert len(done.dedup.deleted) == 2
    assert (done.added, done.replaced) == (0, False)


async def test_in_the_place_of_what_is_there(table: Table) -> None:
    """What is replaced is gone, and so is its backup."""
    await table.fill({**OLD, **WRITTEN})
    done = await publish(table.store, final(table), READING, replaces=True)

    assert await visible(table) == NEW
    assert await table.directories() == ["X", "X/d=1"]
    assert done.replaced


async def test_beside_what_is_there(table: Table) -> None:
    """A file whose name is taken becomes a copy, which is nobody's attempt ever after."""
    await table.fill({**OLD, **WRITTEN})
    done = await publish(table.store, final(table), READING)

    assert await visible(table) == ADDED
    assert await table.directories() == ["X", "X/d=1", "X/d=9"]
    assert done.added == 3

    await table.fill(WRITTEN)
    await publish(table.store, final(table), READING)

    assert "X/d=1/000000_1_copy_2" in await visible(table)


async def test_names_of_copies(table: Table) -> None:
    """A copy gets the number after the highest, or the first that is free where none is higher."""
    await table.fill(
        {
            "X/000000_0.gz": "old",
            "X/000000_0_copy_7.gz": "old",
            "X/000001_0": "old",
            "X/000001_0_copy_999999": "old",
            "_tmp.X/000000_0.gz": "new",
            "_tmp.X/000000_0_copy_7.gz": "newer",
            "_tmp.X/000001_0": "new",
            "_tmp.X/000002_0_copy_7": "new",
        }
    )
    await publish(table.store, final(table))
    left = {name: data for name, data in (await visible(table)).items() if data != b"old"}

    assert left == {
        "X/000000_0_copy_8.gz": b"new",
        "X/000000_0_copy_9.gz": b"newer",
        "X/000001_0_copy_1": b"new",
        "X/000002_0_copy_7": b"new",
    }


async def test_nothing_was_written(table: Table) -> None:
    """A job without output changes nothing, and a second run neither."""
    await table.fill({**OLD, "_task_tmp.X/000000_0": "never closed"})
    done = await publish(table.store, final(table), READING, replaces=True)

    assert await visible(table) == {"X/d=1/000000_1": b"old", "X/d=9/000000_0": b"older"}
    assert (done.dedup, done.added, done.replaced) == (None, 0, False)


class Straggler:
    """A task closes its file late: right after the directory was taken from it."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def around(self, call: Call) -> Call:
        """Return the call that it is late for."""

        async def late(op: Op) -> Any:
            answer = await call(op)
            if op.name == "rename" and op.args[1].endswith(".intermediate"):
                await self.table.fill({"_tmp.X/d=1/000001_7": "two, and far larger than it was"})
            return answer

        return late


async def test_a_straggler_is_cut_off(table: Table) -> None:
    """What comes to the old name is not published, and a next run does not take it either."""
    await table.fill({**OLD, **WRITTEN})
    store = Wrapped(table.store, Straggler(table))
    await publish(store, final(table), READING, replaces=True)
    left = {"_tmp.X/d=1/000001_7": b"two, and far larger than it was"}

    assert await visible(table) == NEW | left


@pytest.mark.parametrize("taken", ["_tmp.X.intermediate", "_tmp.X.adding"])
async def test_what_came_late_is_refused(table: Table, taken: str) -> None:
    """Nobody can tell a straggler's files from the next job's: neither is lost in silence."""
    await table.fill({**OLD, f"{taken}/d=1/000000_0": "one", "_tmp.X/d=1/000000_0": "?"})
    before = await visible(table)

    with pytest.raises(ManifestError, match=r"by a late task or another job"):
        await publish(table.store, final(table), READING)
    assert await visible(table) == before


async def test_what_came_after_a_crash_is_refused(table: Table) -> None:
    """A run that only had its backup to delete does so, and takes nothing that came since."""
    await table.fill({"X/d=1/000000_0": "new", "_backup.X/a": "old", "_tmp.X/d=1/000000_0": "?"})

    with pytest.raises(ManifestError, match="by a late task"):
        await publish(table.store, final(table), READING, replaces=True)
    assert await visible(table) == {"X/d=1/000000_0": b"new", "_tmp.X/d=1/000000_0": b"?"}


@pytest.mark.parametrize("replaces", [True, False])
async def test_duplicates_without_a_winner(table: Table, replaces: bool) -> None:
    """Nothing is published, and what is there stays; a discard clears the rest away."""
    await table.fill({**OLD, **WRITTEN})
    before = await table.tree("t/X")

    await table.fill({"_tmp.X/d=1/000001_1": "t"})
    reading = Reading(HiveRules.THREE, partitions=1)

    with pytest.raises(ManifestError, match="is the newer attempt and smaller"):
        await publish(table.store, final(table), reading, replaces=replaces)
    assert await table.tree("t/X") == before

    await discard(table.store, final(table))

    assert await visible(table) == {f"X/{name}": data for name, data in before.items()}
    assert await table.directories() == ["X", "X/d=1", "X/d=9"]


async def test_a_failure_puts_back_what_is_replaced(table: Table) -> None:
    """The old output is where it was, and another run publishes the new one."""
    await table.fill({**OLD, **WRITTEN})
    before = await table.tree("t/X")
    refusal = Fault("rename", DeniedError, f".intermediate {final(table)}")

    with pytest.raises(DeniedError):
        await publish(Wrapped(table.store, Faults(refusal)), final(table), READING, replaces=True)
    assert await table.tree("t/X") == before

    await publish(table.store, final(table), READING, replaces=True)

    assert await visible(table) == NEW


async def test_an_unknown_outcome_touches_nothing(table: Table) -> None:
    """A rename that nobody answers may have been done: the backup stays until another run."""
    await table.fill({**OLD, **WRITTEN})
    lost = Fault("rename", OutcomeUnknownError, f".intermediate {final(table)}", after=True)

    with pytest.raises(OutcomeUnknownError):
        await publish(Wrapped(table.store, Faults(lost)), final(table), READING, replaces=True)
    assert set(await visible(table)) > {"_backup.X/d=1/000000_1", "X/d=1/000001_0"}

    await publish(table.store, final(table), READING, replaces=True)

    assert await visible(table) == NEW


async def test_a_failure_takes_back_what_was_added(table: Table) -> None:
    """Files that were added are taken back when one cannot be; another run adds them all."""
    await table.fill({**OLD, **WRITTEN})
    before = await table.tree("t/X")
    refusal = Fault("rename", DeniedError, "adding/d=1/000001_0")

    with pytest.raises(DeniedError):
        await publish(Wrapped(table.store, Faults(refusal)), final(table), READING)
    assert await table.tree("t/X") == before

    await publish(table.store, final(table), READING)

    assert await visible(table) == ADDED


async def test_an_unknown_outcome_while_adding(table: Table) -> None:
    """Where one file is nobody knows, so none is taken back; another run adds the rest."""
    await table.fill({**OLD, **WRITTEN})
    lost = Fault("rename", OutcomeUnknownError, "adding/d=1/000001_0", after=True)

    with pytest.raises(OutcomeUnknownError):
        await publish(Wrapped(table.store, Faults(lost)), final(table), READING)
    assert "X/d=1/000001_0" in await visible(table)

    await publish(table.store, final(table), READING)

    assert await visible(table) == ADDED


@pytest.mark.parametrize(
    "replaces,fails,back,note",
    [
        (True, ".intermediate ", "_backup.X ", "_backup.X could not be restored"),
        (
            False,
            "adding/d=1/000001_0",
            "X/d=1/000000_1_copy_1 ",
            "the added files could not be removed",
        ),
    ],
)
async def test_a_way_back_that_fails(
    table: Table, replaces: bool, fails: str, back: str, note: str
) -> None:
    """The first error is raised, and says what could not be restored; another run ends it all."""
    await table.fill({**OLD, **WRITTEN})
    if replaces:
        fails += final(table)
    faults = Faults(
        Fault("rename", DeniedError, fails), Fault("rename", DeniedError, f"{table.path}/{back}")
    )

    with pytest.raises(DeniedError) as caught:
        await publish(Wrapped(table.store, faults), final(table), READING, replaces=replaces)
    assert note in "".join(caught.value.__notes__)

    await publish(table.store, final(table), READING, replaces=replaces)

    assert await visible(table) == (NEW if replaces else ADDED)


@pytest.mark.parametrize(
    "replaces, refused",
    [
        (True, ("delete_tree", "_task_tmp")),
        (True, ("delete_tree", "_backup.X")),
        (False, ("delete_tree", "_tmp.X.adding")),
    ],
)
async def test_a_failure_after_publishing_says_that_it_is_published(
    table: Table, replaces: bool, refused: tuple[str, str]
) -> None:
    """What cannot be deleted then is a failure that keeps nobody from trusting what is there."""
    await table.fill({**OLD, **WRITTEN})
    name, path = refused
    store = Wrapped(table.store, Faults(Fault(name, DeniedError, path)))

    with pytest.raises(CommitError, match="the job is committed, but its clean-up failed") as said:
        await publish(store, final(table), READING, replaces=replaces)
    assert isinstance(said.value.__cause__, DeniedError)
    assert await table.tree("t/X") == {
        name.removeprefix("X/"): data for name, data in (NEW if replaces else ADDED).items()
    }

    await publish(table.store, final(table), READING, replaces=replaces)

    assert await visible(table) == (NEW if replaces else ADDED)


async def test_a_cancellation_after_publishing_says_that_it_is_published(table: Table) -> None:
    """Whatever else ends the clean-up has it as a note."""

    def cancel(op: str, path: str) -> BaseException:
        return asyncio.CancelledError()

    await table.fill(WRITTEN)
    store = Wrapped(table.store, Faults(Fault("delete_tree", cancel, "_task_tmp")))

    with pytest.raises(asyncio.CancelledError) as caught:
        await publish(store, final(table), READING)
    assert "the job is committed, do not run it again" in caught.value.__notes__[0]


async def test_a_failed_job(table: Table) -> None:
    """Both temporary directories are removed, and what was there before is back."""
    await table.fill({**WRITTEN, "_backup.X/d=1/000000_1": "old"})
    await discard(table.store, final(table))

    assert await visible(table) == {"X/d=1/000000_1": b"old"}
    assert await table.directories() == ["X", "X/d=1"]

    await discard(table.store, final(table))

    assert await visible(table) == {"X/d=1/000000_1": b"old"}


@pytest.mark.parametrize("place", ["_tmp.X", "_tmp.X.intermediate"])
async def test_what_is_half_discarded_is_not_published(table: Table, place: str) -> None:
    """A discard that dies while it deletes has taken the files out of a later publication's way."""
    await table.fill({f"{place}/000000_0": "one", f"{place}/000001_0": "two"})
    refusal = Fault("delete_tree", DeniedError, "_tmp.X.discarded", skip=1)
    with pytest.raises(DeniedError):
        await discard(Wrapped(table.store, Faults(refusal)), final(table))
    done = await publish(table.store, final(table))

    assert done.dedup is None
    assert await visible(table) == {}
    assert await table.directories() == []


@pytest.mark.parametrize(
    "files,why",
    [
        ({"_tmp.X.adding/a": "new", "X/b": "old"}, "is partly added to"),
        ({"_tmp.X.intermediate/a": "n", "_backup.X/a": "o", "X/a": "?"}, "exists, and so does"),
    ],
)
async def test_what_cannot_be_discarded(
    table: Table, files: Mapping[str, Content], why: str
) -> None:
    """A job that is half published, or in whose place somebody put something, is not undone."""
    await table.fill(files)
    before = await visible(table)

    with pytest.raises(ManifestError, match=why):
        await discard(table.store, final(table))
    assert await visible(table) == before


async def test_somebody_else_made_the_place(table: Table) -> None:
    """With a backup and something else in its place nobody can tell which is to go."""
    files: dict[str, Content] = {"_tmp.X.intermediate/a": "n", "_backup.X/a": "o", "X/a": "?"}
    await table.fill(files)
    before = await visible(table)

    with pytest.raises(ManifestError, match="another writer created it"):
        await publish(table.store, final(table), replaces=True)
    assert await visible(table) == before


async def test_stores_that_copy_directories(tmp_path: Path) -> None:
    """Where a rename is many copies nothing is cut off, so it is refused."""
    table = open_table("s3", tmp_path)

    for act in (publish, discard):
        with pytest.raises(UnsupportedError, match="rename a directory atomically"):
            await act(table.store, final(table))


@pytest.mark.sample(4)
@pytest.mark.parametrize("replaces", [True, False])
@pytest.mark.parametrize("kind", ["adls", "hns"])
@pytest.mark.parametrize("old", [OLD, {}], ids=["old", "new"])
def test_a_crash_at_every_write(kind: str, replaces: bool, old: dict[str, Content]) -> None:
    """Whichever write a run dies at, another run ends where an undisturbed one does."""
    wanted = ADDED if old and not replaces else NEW

    async def scenario() -> int:
        world = new_world(kind)
        await Table(world.store(Process("writer"))).fill({**old, **WRITTEN})
        whole = Process("whole")
        await _publish(world.copy().store(whole), replaces)
        writes = range(1, len(whole.writes) + 1)
        for crash in [Crash(n, when) for n in writes for when in (When.BEFORE, When.AFTER)]:
            there = world.copy()
            dying = Process("dying", crash)
            await until_death(dying, _publish(there.store(dying), replaces))
            after = there.store(Process("after"))
            await _publish(after, replaces)

            assert await Table(after).tree() == wanted, f"{crash}: {dying.writes[-1]}"
            assert [name for name in await Table(after).directories() if name[0] == "_"] == []
        return len(whole.writes)

    assert run_virtual(scenario()) >= 7


async def _publish(store: Store, replaces: bool) -> None:
    await publish(patient(store), "/t/X", READING, replaces=replaces)


@pytest.mark.parametrize("replaces", [True, False])
@pytest.mark.parametrize("kind", ["adls", "hns"])
def test_a_last_word_that_comes_late(kind: str, replaces: bool) -> None:
    """A write of a dead process that takes effect when all is published does no harm."""
    wanted = ADDED if not replaces else NEW

    async def scenario() -> None:
        world = new_world(kind)
        await Table(world.store(Process("writer"))).fill({**OLD, **WRITTEN})
        whole = Process("whole")
        await _publish(world.copy().store(whole), replaces)
        for n in range(1, len(whole.writes) + 1):
            there = world.copy()
            dying = Process("dying", Crash(n, When.LATE, late=10.0))
            await until_death(dying, _publish(there.store(dying), replaces))
            after = there.store(Process("after"))
            await _publish(after, replaces)

            assert await Table(after).tree() == wanted, dying.writes[-1]

            await asyncio.sleep(20.0)
            await _publish(after, replaces)

            assert await Table(after).tree() == wanted, f"late {dying.writes[-1]}"

    run_virtual(scenario())


@pytest.mark.parametrize("replaces", [True, False])
def test_a_crash_before_a_job_is_discarded(replaces: bool) -> None:
    """Whichever write a run dies at, the job is published whole, or undone whole, or refused."""

    async def scenario() -> set[str]:
        world = new_world()
        await Table(world.store(Process("writer"))).fill({**OLD, **WRITTEN})
        before = await Table(world.store(Process("reader"))).tree("t/X")
        whole = Process("whole")
        await _publish(world.copy().store(whole), replaces)
        ends = set()
        for n in range(1, len(whole.writes) + 1):
            there = world.copy()
            dying = Process("dying", Crash(n))
            await until_death(dying, _publish(there.store(dying), replaces))
            table = Table(there.store(Process("after")))
            ends.add(await _discarded(table, before, NEW if replaces else ADDED))
        return ends

    ways = {"undone", "published"} if replaces else {"undone", "published", "refused"}
    assert run_virtual(scenario()) == ways


async def _discarded(table: Table, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    try:
        await discard(table.store, "/t/X")
    except ManifestError:
        return "refused"
    there = await table.tree("t/X")
    if there == before:
        return "undone"
    assert {f"X/{name}": data for name, data in there.items()} == after
    return "published"


@pytest.mark.parametrize("replaces", [True, False])
@pytest.mark.parametrize("kind", ["adls", "hns"])
@pytest.mark.parametrize("seed", range(5))
def test_in_storms(kind: str, replaces: bool, seed: int) -> None:
    """Throttled requests and lost responses may stop a run; enough runs end as one would."""

    async def scenario() -> dict[str, bytes]:
        world = new_world(kind)
        await Table(world.store(Process("writer"))).fill({**OLD, **WRITTEN})
        world.storm(random.Random(seed), STORM)
        for turn in range(10):
            try:
                await _publish(world.store(Process(f"turn {turn}")), replaces)
                break
            except StoreError:
                continue
        world.weather = None
        return await Table(world.store(Process("reader"))).tree()

    assert run_virtual(scenario()) == (NEW if replaces else ADDED)


@given(st.lists(st.lists(HOSTILE, min_size=1, max_size=6, unique=True), min_size=2, max_size=3))
def test_any_names(jobs: list[list[str]]) -> None:
    """Jobs that add files of whatever names lose none of them."""

    async def scenario() -> None:
        table = Table(new_world().store(Process("one")))
        written: list[str] = []
        for number, names in enumerate(jobs):
            files = {f"_tmp.X/d=1/{name}": f"{number} {name}" for name in names}
            await table.fill(files)
            written += files.values()
            # Nothing is as deep as that, so nothing is compared.
            await publish(table.store, "/t/X", Reading(partitions=9))
        there = await visible(table)

        assert sorted(data.decode() for data in there.values()) == sorted(written)
        assert {name.rpartition("/")[0] for name in there} == {"X/d=1"}

    run_virtual(scenario())
