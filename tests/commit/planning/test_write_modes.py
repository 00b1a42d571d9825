"""What a mode replaces: decided before anything changes, and told to other jobs."""

from __future__ import annotations

import json

import pytest

from asynccommit.commit.context import CommitContext, Environment
from asynccommit.commit.job.modes import is_output, refuse_mode
from asynccommit.commit.job.places import OtherCommit, resolve_places
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.planning.conflicts import places_of, refuse_others
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.write_modes import find_targets, plan_replacement
from asynccommit.commit.spill import Entry
from asynccommit.errors import ExistsError, PreconditionError, UnsupportedError
from asynccommit.options.job import Mode, Options
from asynccommit.results import NOT_BEGUN, JobState, JobStatus
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.urls import Address
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from tests.support.commits import DEST, Site, run_of
from tests.support.crashes import EPOCH
from tests.support.faults import Faults
from tests.support.jobs import HOST

TABLE = {
    "/table/day=1/old": "1",
    "/table/day=1/hour=1/old": "2",
    "/table/day=2/old": "3",
    "/table/loose": "4",
    "/table/_notes/n": "5",
    "/table/.hidden": "6",
    "/table/_SUCCESS": "7",
    "/table/_temporary/x/00/manifests/": "",
    "/table/.spark-staging-1/part": "8",
    "/table/_metadata": "9",
    "/table/_spark_metadata/0": "10",
}


async def planned(
    site: Site,
    mode: Mode,
    *files: str,
    overwrite: tuple[str, ...] = (),
    empty: tuple[str, ...] = (),
) -> tuple[CommitContext, Plan]:
    """Return what a job that writes these files plans to replace."""
    run = run_of(site.job())
    plan = Plan(LoadedManifests(run.options, run.store.traits))
    entries = [Entry(f"/s/{path}", site.path(path), 1, "e") for path in files]
    await plan.loaded.add(entries, [site.path(path) for path in empty])
    paths = [site.path(path) for path in overwrite]
    plan.targets = find_targets(run, plan.loaded, paths, mode)
    await plan_replacement(run, plan)
    return run, plan


def replaced(site: Site, plan: Plan) -> list[str]:
    """Return what is replaced, in order."""
    return sorted(site.bare(aside.path) for aside in plan.replaced)


def units(site: Site, plan: Plan) -> list[str]:
    """Return what is moved in as one, in order."""
    return sorted(site.bare(path) for path in plan.units)


async def old(site: Site, plan: Plan) -> list[str]:
    """Return the files that are remembered, in order."""
    return sorted([site.bare(entry.dest) async for entry in plan.old.each()])


async def test_nothing_is_replaced_by_an_append(site: Site) -> None:
    """Only the marker is moved aside."""
    site.place(TABLE)
    _, plan = await planned(site, Mode.APPEND, "/table/day=1/new", "/table/new")

    assert (plan.replaced, plan.units, plan.old.count) == ([], set(), 0)
    assert [site.bare(aside.path) for aside in plan.aside] == ["/table/_SUCCESS"]


async def test_a_whole_table(site: Site) -> None:
    """All data and the log of a streaming query; a unit is what is first below the table."""
    site.place(TABLE)
    files = ("/table/day=1/hour=2/new", "/table/day=9/new", "/table/new")
    _, plan = await planned(site, Mode.REPLACE_TABLE, *files, empty=("/table/none/at/all",))

    assert replaced(site, plan) == [
        "/table/_metadata",
        "/table/_spark_metadata",
        "/table/day=1",
        "/table/day=2",
        "/table/loose",
    ]
    assert units(site, plan) == ["/table/day=1", "/table/day=9", "/table/none"]
    assert [site.bare(aside.path) for aside in plan.aside] == ["/table/_SUCCESS"]
    assert await old(site, plan) == [
        "/table/_metadata",
        "/table/_spark_metadata/0",
        "/table/day=1/hour=1/old",
        "/table/day=1/old",
        "/table/day=2/old",
        "/table/loose",
    ]


async def test_partitions(site: Site) -> None:
    """Every directory that files go to, and of one in another the outer one."""
    site.place(TABLE)
    files = ("/table/day=1/new", "/table/day=1/hour=3/new", "/table/day=7/new")
    _, plan = await planned(site, Mode.REPLACE_PARTITIONS, *files)

    assert replaced(site, plan) == ["/table/day=1"]
    assert units(site, plan) == ["/table/day=1", "/table/day=7"]
    assert await old(site, plan) == ["/table/day=1/hour=1/old", "/table/day=1/old"]


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS])
async def test_directories_by_name(site: Site, mode: Mode) -> None:
    """What is named is replaced in any mode, also a part of a partition."""
    site.place(TABLE)
    _, plan = await planned(
        site, mode, "/table/day=2/new", overwrite=("/table/day=1/hour=1", "/table/day=8")
    )
    partitions = ["/table/day=2"] if mode is Mode.REPLACE_PARTITIONS else []

    assert replaced(site, plan) == ["/table/day=1/hour=1", *partitions]
    assert units(site, plan) == partitions


async def test_places_outside(site: Site) -> None:
    """A place elsewhere is replaced whole, whatever its name."""
    site.place(TABLE | {"/elsewhere/p/old": "o", "/elsewhere/_q/old": "o"})
    files = ("/elsewhere/p/new", "/elsewhere/_q/deep/new")
    _, plan = await planned(site, Mode.REPLACE_TABLE, *files, overwrite=("/elsewhere/_q",))

    assert "/elsewhere/_q" in replaced(site, plan)
    assert units(site, plan) == ["/elsewhere/_q"]


async def test_a_store_that_cannot_rename_directories() -> None:
    """It can be appended to; nothing can be replaced there."""
    account = AdlsAccount("flat", now=lambda: EPOCH, new_id=lambda: "id", hns=False)
    account.create_filesystem("data")
    store = SimStore(Address("abfs", "data@x", "/"), {"account": account})
    run = CommitContext.new(
        Environment(store, HOST, store), Layout(Address("abfs", "data@x", DEST), "job"), Options()
    )
    plan = Plan(LoadedManifests(run.options, run.store.traits))
    await plan_replacement(run, plan)
    with pytest.raises(UnsupportedError, match="can neither rename directories nor"):
        plan.targets = find_targets(run, plan.loaded, (), Mode.REPLACE_TABLE)
        await plan_replacement(run, plan)


# --- refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, output",
    [
        ("part-0", True),
        ("day=1", True),
        ("_SUCCESS", True),
        ("_part=1", True),
        ("_temporary", False),
        ("_spark_metadata", False),
        (".hidden", False),
        ("_notes", False),
    ],
)
def test_what_makes_a_table_full(path: str, output: bool) -> None:
    """A marker is output as well: a job that wrote nothing has written the table."""
    layout = Layout(Address("file", "", "/t"), "job")

    assert is_output(layout, Info(f"/t/{path}", Kind.FILE)) is output


async def test_a_mode_costs_little(site: Site) -> None:
    """Appending asks for the log of a streaming query, and nothing else."""
    faults = Faults()
    await refuse_mode(run_of(site.job(faults)), Mode.APPEND, ())

    assert [op.name for op in faults.seen] == ["head"]


async def test_the_first_of_what_is_there(site: Site) -> None:
    """A full table names what is in it, always the same."""
    site.place(TABLE)
    with pytest.raises(ExistsError) as refused:
        await refuse_mode(run_of(site.job()), Mode.FAIL, ())

    assert site.bare(refused.value.path) == "/table"
    assert refused.value.detail.endswith("it has _SUCCESS")


# --- what others are told ---------------------------------------------------------------------


async def test_the_places_of_a_commit(site: Site) -> None:
    """The outermost of what files go to and what is replaced, relative to the table."""
    site.place(TABLE | {"/elsewhere/p/old": "o"})
    run, plan = await planned(
        site,
        Mode.APPEND,
        "/table/day=1/hour=1/new",
        "/table/day=1/new",
        "/elsewhere/p/new",
        overwrite=("/table/day=2",),
    )

    assert set(json.loads(places_of(run, plan))) == {site.path("/elsewhere/p"), "day=1", "day=2"}


async def test_the_places_of_a_commit_to_the_table(site: Site) -> None:
    """Files at the table's own level touch all of it."""
    run, plan = await planned(site, Mode.APPEND, "/table/new", "/table/day=1/new")

    assert json.loads(places_of(run, plan)) == ["."]


async def test_places_with_names_that_are_no_unicode(site: Site) -> None:
    """What cannot be written is said as the whole table."""
    run, plan = await planned(site, Mode.APPEND, "/table/\udcff/new")

    assert json.loads(places_of(run, plan)) == ["."]


def other(site: Site, state: JobState, places: str) -> OtherCommit:
    """Return another job's commit, which touches ``places``."""
    layout = Layout(site.world.address("/table"), "other")
    return OtherCommit(JobStatus("other", 0, state), layout, resolve_places(layout, places))


@pytest.mark.parametrize(
    "places, refused",
    [
        ('["day=1"]', True),
        ('["day=1/hour=1"]', True),
        ('["."]', True),
        ('["day=10"]', False),
        ('["day=2"]', False),
        ("[]", False),
        ('["/elsewhere/p"]', False),
        ("not JSON", True),
        ("", True),
        ('{"a": 1}', True),
        ("7", True),
        ("[1, null]", False),
    ],
)
async def test_what_another_commit_covers(site: Site, places: str, refused: bool) -> None:
    """What it writes to, what is below that and above; one that does not say covers all."""
    run = run_of(site.job())
    loaded = LoadedManifests(run.options, run.store.traits)
    plan = Plan(loaded, targets=[site.path("/table/day=1")])
    others = [other(site, JobState.STOPPED, places)]
    if refused:
        with pytest.raises(PreconditionError, match=r"job other writes there and has not finished"):
            refuse_others(run, plan, others, Mode.APPEND)
    else:
        refuse_others(run, plan, others, Mode.APPEND)


@pytest.mark.parametrize("state", list(JobState))
async def test_which_commits_are_in_the_way(site: Site, state: JobState) -> None:
    """Those that may still change something, or be undone."""
    run = run_of(site.job())
    loaded = LoadedManifests(run.options, run.store.traits)
    plan = Plan(loaded, targets=[site.path("/table/day=1")])
    others = [other(site, state, '["day=1"]')]
    if state in (JobState.COMMITTED, JobState.ENDED, *NOT_BEGUN):
        refuse_others(run, plan, others, Mode.APPEND)
    else:
        with pytest.raises(PreconditionError):
            refuse_others(run, plan, others, Mode.APPEND)


async def test_who_wants_an_empty_table_wants_all_of_it(site: Site) -> None:
    """A commit anywhere in the table is in the way of a job that must find none."""
    run = run_of(site.job())
    others = [other(site, JobState.COMMITTING, '["day=7"]')]
    refuse_others(run, Plan(LoadedManifests(run.options, run.store.traits)), others, Mode.APPEND)
    with pytest.raises(PreconditionError):
        refuse_others(run, Plan(LoadedManifests(run.options, run.store.traits)), others, Mode.FAIL)
