"""What a job does with what its destination holds: whole jobs, on the local store and the model."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping

import pytest

from asynccommit.errors import (
    CommitError,
    DeniedError,
    ExistsError,
    NotFoundError,
    PreconditionError,
    PreflightError,
)
from asynccommit.options.job import Mode
from tests.support.commits import DEST, OTHER, At, Site, changes, paths_of
from tests.support.faults import Fault, Faults

OLD = {
    "/table/day=1/old": "1",
    "/table/day=1/hour=1/old": "2",
    "/table/day=3/old": "3",
    "/table/loose": "4",
    "/table/_SUCCESS": "",
}
HIDDEN = {
    "/table/.hidden": "a",
    "/table/_notes/file": "b",
    "/table/day=1/.kept": "c",
    "/table/day=1/_kept/file": "d",
}
"""What no mode replaces, as it is no data to Spark."""
NEW = {"day=1/new": "n", "day=2/new": "m"}


def names(files: Mapping[str, str]) -> dict[str, str]:
    """Return files of the table by their names in it, without the marker."""
    return {
        path.removeprefix(f"{DEST}/"): text
        for path, text in files.items()
        if not path.endswith("/_SUCCESS")
    }


async def commit(
    site: Site, mode: Mode, files: Mapping[str, str] = NEW, *acts: At | Faults
) -> None:
    """Commit a job of one task."""
    job = await site.ready(files, *acts)
    await job.commit_job(mode=mode)


async def test_append_adds(site: Site) -> None:
    """Appending leaves every file that is there."""
    site.place(OLD | HIDDEN)
    await commit(site, Mode.APPEND)

    assert site.files() == names(OLD | HIDDEN) | NEW
    assert site.left() == []


async def test_replace_table(site: Site) -> None:
    """Replacing a table leaves what is hidden at its top and in its partitions, and no old data."""
    site.place(OLD | HIDDEN)
    await commit(site, Mode.REPLACE_TABLE)

    assert site.files() == NEW | names(HIDDEN)
    assert site.left() == []


async def test_replace_partitions(site: Site) -> None:
    """Only directories that the job writes to are replaced, with what is below them."""
    site.place(OLD | HIDDEN)
    await commit(site, Mode.REPLACE_PARTITIONS)

    assert site.files() == NEW | names(HIDDEN) | {"day=3/old": "3", "loose": "4"}


async def test_hidden_names_deep_in_what_is_replaced(site: Site) -> None:
    """Hidden names stay however deep they are in a directory that is replaced."""
    site.place({"/table/c=x/day=1/.kept": "k", "/table/c=x/day=1/_log/0": "l"})
    site.place({"/table/c=x/day=1/old": "o"})
    await commit(site, Mode.REPLACE_TABLE, {"c=x/day=1/new": "n"})

    assert site.files() == {
        "c=x/day=1/.kept": "k",
        "c=x/day=1/_log/0": "l",
        "c=x/day=1/new": "n",
    }


async def test_hidden_names_in_a_partition_that_has_no_new_files(site: Site) -> None:
    """A partition that only the old table has goes; what is hidden in it is put back."""
    site.place({"/table/day=3/old": "o", "/table/day=3/_kept": "k"})
    await commit(site, Mode.REPLACE_TABLE, {"day=1/new": "n"})

    assert site.files() == {"day=1/new": "n", "day=3/_kept": "k"}


async def test_summaries_of_parquet_go(site: Site) -> None:
    """The summary files of Parquet say what the replaced files held, so they go with them."""
    site.place({"/table/_metadata": "m", "/table/day=1/_common_metadata": "c"})
    site.place({"/table/day=1/_part=2/old": "o"})
    job = site.job()
    await job.setup_job(mode=Mode.REPLACE_TABLE)
    await site.task(job, 0, NEW)
    await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert site.files() == NEW


async def test_a_task_writes_the_name_of_a_hidden_file(site: Site) -> None:
    """A hidden file of a task takes the place of an old one, and the report says so."""
    site.place({"/table/day=1/_note": "old", "/table/day=1/old": "o"})
    job = await site.ready({"day=1/_note": "new"})
    report = await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert site.files() == {"day=1/_note": "new"}
    assert "_note was replaced by a task's file" in report.warnings[0]


async def test_files_at_the_root(site: Site) -> None:
    """Files at the table's own level are replaced by those of the job."""
    site.place({"/table/part-0": "old", "/table/part-9": "old"})
    await commit(site, Mode.REPLACE_TABLE, {"part-0": "new", "part-1": "new"})

    assert site.files() == {"part-0": "new", "part-1": "new"}


async def test_replacing_partitions_of_a_table_without_any(site: Site) -> None:
    """A job that writes to the table itself has no partitions to replace."""
    site.place({"/table/part-0": "old"})
    job = await site.ready({"part-1": "new"})
    with pytest.raises(PreflightError, match="in no partition: use mode replace_table"):
        await job.commit_job(mode=Mode.REPLACE_PARTITIONS)

    assert site.files() == {"part-0": "old"}


async def test_replacing_a_table_with_nothing(site: Site) -> None:
    """A job without any file empties the table."""
    site.place(OLD | HIDDEN)
    await commit(site, Mode.REPLACE_TABLE, {})

    assert site.files() == names(HIDDEN)


async def test_a_file_becomes_a_partition_and_the_other_way_round(site: Site) -> None:
    """A file may take the place of a replaced directory, and a directory that of a file."""
    site.place({"/table/a": "file", "/table/b/old": "o"})
    await commit(site, Mode.REPLACE_TABLE, {"a/new": "n", "b": "file"})

    assert site.files() == {"a/new": "n", "b": "file"}


@pytest.mark.parametrize("there", ["/table/part-0", "/table/day=1/", "/table/_SUCCESS"])
async def test_fail_wants_an_empty_table(site: Site, there: str) -> None:
    """A table with anything in it refuses the mode before the job begins."""
    site.place({there: "x"})
    with pytest.raises(CommitError, match="is not empty, and the mode is fail") as failed:
        await site.job().setup_job(mode=Mode.FAIL)

    assert isinstance(failed.value.failures[0], ExistsError)
    assert site.left() == []


async def test_fail_again_at_the_commit(site: Site) -> None:
    """What has come since the job was set up is found when it is committed."""
    job = site.job()
    await job.setup_job(mode=Mode.FAIL)
    await site.task(job, 0, NEW)
    site.place({"/table/day=9/stranger": "s"})
    with pytest.raises(PreflightError, match="day=9"):
        await job.commit_job(mode=Mode.FAIL)

    assert site.files() == {"day=9/stranger": "s"}


async def test_fail_takes_hidden_names_for_nothing(site: Site) -> None:
    """Hidden files and other jobs' work do not make a table full."""
    site.place({"/table/.hidden": "h", "/table/_notes": "n"})
    other = site.job(job_id=OTHER)
    await other.setup_job()
    job = site.job()
    await job.setup_job(mode=Mode.FAIL)
    await site.task(job, 0, NEW)
    await job.commit_job(mode=Mode.FAIL)

    assert site.files() == {".hidden": "h", "_notes": "n"} | NEW


# --- the log of a streaming query -------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS, Mode.FAIL])
async def test_a_sink_log_refuses_files_beside_it(site: Site, mode: Mode) -> None:
    """Readers of a streaming query's table see only what its log lists: nothing may be added."""
    site.place({"/table/_spark_metadata/0": "v1"})
    with pytest.raises(CommitError, match="a streaming query wrote this table") as failed:
        await site.job().setup_job(mode=mode)

    assert isinstance(failed.value.failures[0], PreconditionError)
    assert site.left() == []


MARKS = {
    "_metadata": "with a summary",
    "_delta_log/00000000000000000000.json": "a Delta table",
    ".hoodie/hoodie.properties": "a Hudi table",
    "metadata/v1.metadata.json": "an Iceberg table",
    ".zgroup": "a Zarr store",
    ".zarray": "a Zarr store",
    "zarr.json": "a Zarr store",
}


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS])
@pytest.mark.parametrize("mark", sorted(MARKS))
async def test_a_table_of_another_writer(site: Site, mark: str, mode: Mode) -> None:
    """Its readers go by its metadata, so nothing is added or replaced unless an option says so."""
    site.place({f"/table/{mark}": "v1", "/table/part-0": "old"})
    with pytest.raises(CommitError, match=MARKS[mark]) as failed:
        await site.job().setup_job(mode=mode)
    assert "asynccommit.ignore.table.metadata=true" in str(failed.value)
    assert site.left() == []

    await site.job(ignore_table_metadata=True).setup_job(mode=mode)


@pytest.mark.parametrize("mark", sorted(MARKS))
async def test_replacing_a_table_of_another_writer(site: Site, mark: str) -> None:
    """The whole table is replaced where all of its metadata is, and else refused."""
    site.place({f"/table/{mark}": "v1", "/table/part-0": "old"})
    if mark in ("_metadata", "zarr.json"):
        await site.job().setup_job(mode=Mode.REPLACE_TABLE)
        return
    with pytest.raises(CommitError, match=MARKS[mark]):
        await site.job().setup_job(mode=Mode.REPLACE_TABLE)


async def test_a_directory_that_is_called_metadata(site: Site) -> None:
    """The name alone makes no table of Iceberg, nor a schema a summary of files."""
    site.place({"/table/metadata/part-0": "old", "/table/_common_metadata": "schema"})
    await site.job().setup_job()


async def test_replacing_a_table_removes_the_sink_log(site: Site) -> None:
    """A whole new table needs no log; readers list it again."""
    site.place({"/table/_spark_metadata/0": "v1", "/table/part-0": "old"})
    job = site.job()
    await job.setup_job(mode=Mode.REPLACE_TABLE)
    await site.task(job, 0, NEW)
    await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert site.files() == NEW


async def test_a_sink_log_comes_back_with_a_rollback(site: Site) -> None:
    """A table whose replacement is undone has its log again."""
    site.place({"/table/_spark_metadata/0": "v1", "/table/part-0": "old"})
    before = site.tree()
    job = site.job(Faults(Fault("list", DeniedError, "day=1", skip=1)), validate=True)
    await job.setup_job(mode=Mode.REPLACE_TABLE)
    await site.task(job, 0, NEW)
    with pytest.raises(CommitError):
        await job.commit_job(mode=Mode.REPLACE_TABLE)
    await site.job().rollback_job()

    assert site.tree() == before


# --- the marker -------------------------------------------------------------------------------


async def test_an_old_marker_is_moved_aside_first(site: Site) -> None:
    """An earlier job's marker says nothing of this one, so it goes before the first file comes."""
    site.place({"/table/_SUCCESS": "", "/table/day=1/old": "o"})
    faults = Faults()
    await commit(site, Mode.APPEND, NEW, faults)
    renames = [paths_of(op) for op in faults.seen if op.name == "rename"]
    first = next(i for i, paths in enumerate(renames) if paths.endswith("day=1/new"))
    marker = next(i for i, p in enumerate(renames) if p.startswith(site.path("/table/_SUCCESS ")))

    assert marker < first
    assert json.loads(site.tree()["/table/_SUCCESS"] or "")["success"] is True


async def test_an_old_marker_is_moved_aside_before_any_partition_is_replaced(site: Site) -> None:
    """No reader finds the old marker beside new partitions, whatever their names are."""
    site.place({"/table/_SUCCESS": "", "/table/A=1/old": "o", "/table/B=1/old": "o"})
    faults = Faults()
    job = await site.ready({"A=1/new": "n"}, faults, workers=1)
    await job.commit_job(mode=Mode.REPLACE_TABLE)
    moved = [paths_of(op) for op in faults.seen if op.name == "rename"]
    gone = [p for p in moved if p.startswith(site.path("/table/")) and "/aside/in/" in p]
    gone = [p for p in gone if "_temporary" not in p.split(" ")[0]]

    assert gone[0].startswith(site.path("/table/_SUCCESS "))


async def test_a_marker_comes_back_with_a_rollback(site: Site) -> None:
    """When an append is undone the marker of the job before is there again."""
    site.place(OLD)
    before = site.tree()
    job = await site.ready(NEW, Faults(Fault("rename", DeniedError, "tasks/")))
    with pytest.raises(CommitError):
        await job.commit_job()
    assert "/table/_SUCCESS" not in site.tree()
    await site.job().rollback_job()

    assert site.tree() == before


async def test_a_marker_of_another_job_stays_when_a_rollback_comes(site: Site) -> None:
    """A marker that another job has written since is not replaced by the old one."""
    site.place(OLD)
    job = await site.ready(NEW, Faults(Fault("rename", DeniedError, "tasks/")))
    with pytest.raises(CommitError):
        await job.commit_job()
    site.place({"/table/_SUCCESS": "of another"})
    await site.job().rollback_job()

    assert site.tree()["/table/_SUCCESS"] == "of another"
    assert site.left() == []


async def test_without_a_marker_of_its_own_a_job_leaves_the_old_one(site: Site) -> None:
    """A job that writes no marker moves none aside."""
    site.place({"/table/_SUCCESS": "old"})
    job = await site.ready(NEW, mark_success=False)
    await job.commit_job()

    assert site.tree()["/table/_SUCCESS"] == "old"


# --- strangers --------------------------------------------------------------------------------


def stranger(site: Site, files: Mapping[str, str]) -> Callable[[], Awaitable[None]]:
    """Return an act that writes files as another job would."""

    return lambda: site.intrude(files)


@pytest.mark.parametrize("mode", [Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
async def test_strangers_between_plan_and_swap_are_put_back(site: Site, mode: Mode) -> None:
    """What others add to a partition while its new content is put together is kept."""
    site.place(OLD)
    theirs = {"/table/day=1/theirs": "s", "/table/day=1/hour=2/theirs": "t"}
    act = At("rename", "tasks/", stranger(site, theirs))
    await commit(site, mode, NEW, act)

    kept = {"day=3/old": "3", "loose": "4"} if mode is Mode.REPLACE_PARTITIONS else {}
    assert site.files() == NEW | names(theirs) | kept


async def test_strangers_in_a_partition_that_goes(site: Site) -> None:
    """What others add to a partition that the new table does not have is put back, too."""
    site.place(OLD)
    theirs = {"/table/day=3/theirs": "s"}
    await commit(site, Mode.REPLACE_TABLE, NEW, At("rename", "tasks/", stranger(site, theirs)))

    assert site.files() == NEW | names(theirs)


async def test_a_new_partition_of_a_stranger_stays(site: Site) -> None:
    """What was not there when the commit was planned is not replaced by it."""
    site.place(OLD)
    theirs = {"/table/day=7/theirs": "s", "/table/theirs": "t"}
    await commit(site, Mode.REPLACE_TABLE, NEW, At("rename", "tasks/", stranger(site, theirs)))

    assert site.files() == NEW | names(theirs)


async def test_a_stranger_makes_the_partition_anew(site: Site) -> None:
    """A directory that comes back between the two renames of a swap is filled, not replaced."""
    site.place(OLD)
    theirs = {"/table/day=1/theirs": "s"}
    act = At("rename", "aside/in/day=1", stranger(site, theirs), after=True)
    await commit(site, Mode.REPLACE_PARTITIONS, NEW, act)

    assert site.files() == NEW | names(theirs) | {"day=3/old": "3", "loose": "4"}


async def test_a_stranger_changes_an_old_file_of_a_partition(site: Site) -> None:
    """An old file that another job has written anew since the plan is that job's, and stays."""
    site.place(OLD)

    async def write_anew() -> None:
        await site.intrude({"/table/day=1/old": "anew"}, "/table/day=1/old")

    await commit(site, Mode.REPLACE_TABLE, NEW, At("rename", "tasks/", write_anew))

    assert site.files() == NEW | {"day=1/old": "anew"}


async def test_a_stranger_changes_an_old_file_at_the_root(site: Site) -> None:
    """What took the place of a file at the table's own level since the plan is not lost."""
    site.place(OLD)

    async def write_anew() -> None:
        await site.intrude({"/table/loose": "anew"}, "/table/loose")

    job = await site.ready(NEW, At("rename", "tasks/", write_anew))
    try:
        await job.commit_job(mode=Mode.REPLACE_TABLE)
    except CommitError:  # refused where the store can make identity a condition
        assert site.files()["loose"] == "anew"
    else:
        assert site.files() == NEW | {"loose": "anew"}


async def test_a_stranger_changes_a_file_in_the_way(site: Site) -> None:
    """A file in the way that is no more the one of the plan is not moved aside and deleted."""
    site.place(OLD)

    async def write_anew() -> None:
        await site.intrude({"/table/loose": "anew"}, "/table/loose")

    job = await site.ready(
        {"loose": "new"}, At("mkdir", "aside/", write_anew), delete_target_files=True
    )
    with pytest.raises(CommitError):
        await job.commit_job()

    assert site.files()["loose"] == "anew"


async def test_a_stranger_where_a_new_file_is_to_go(site: Site) -> None:
    """A file of the same name that came during the swap stops the commit; nothing is lost."""
    site.place(OLD)
    theirs = {"/table/day=1/new": "theirs"}
    act = At("rename", "aside/in/day=1", stranger(site, theirs), after=True)
    before = site.tree()
    job = await site.ready(NEW, act)
    with pytest.raises(CommitError) as failed:
        await job.commit_job(mode=Mode.REPLACE_PARTITIONS)
    await site.job().rollback_job()

    assert isinstance(failed.value.failures[0], ExistsError)
    assert site.tree() == before | {"/table/day=1/new": "theirs"}


# --- elsewhere --------------------------------------------------------------------------------


async def test_a_custom_location_outside(site: Site) -> None:
    """A partition with a place of its own is replaced there, as one; its hidden files stay."""
    site.place({"/elsewhere/p/old": "o", "/elsewhere/p/.kept": "k", "/elsewhere/q": "q"})
    site.place({"/table/day=1/old": "o"})
    job = site.job()
    await job.setup_job()
    task = await site.task(job, 0, {"day=2/new": "n"}, {"/elsewhere/p/new": "e"})
    await job.commit_job([task], mode=Mode.REPLACE_PARTITIONS)

    assert site.files() == {"day=1/old": "o", "day=2/new": "n"}
    assert site.tree(DEST) == {
        "/elsewhere": None,
        "/elsewhere/p": None,
        "/elsewhere/p/.kept": "k",
        "/elsewhere/p/new": "e",
        "/elsewhere/q": "q",
    }


async def test_a_custom_location_is_made(site: Site) -> None:
    """A place outside that is not there yet is made for the files of the job."""
    job = site.job()
    await job.setup_job()
    task = await site.task(job, 0, {}, {"/else/where/new": "e"})
    await job.commit_job([task], mode=Mode.REPLACE_PARTITIONS)

    assert site.tree()["/else/where/new"] == "e"


async def test_a_custom_location_is_rolled_back(site: Site) -> None:
    """What was replaced outside is there again, and nothing else."""
    site.place({"/elsewhere/p/old": "o", "/elsewhere/p/.kept": "k"})
    before = site.tree()
    faults = Faults(Fault("put", DeniedError, "commit-outcome", times=1))
    job = site.job(faults)
    await job.setup_job()
    task = await site.task(job, 0, {"day=2/new": "n"}, {"/elsewhere/p/new": "e"})
    with pytest.raises(CommitError):
        await job.commit_job([task], mode=Mode.REPLACE_PARTITIONS)
    assert site.tree()["/elsewhere/p/new"] == "e"
    await site.job(allow_outside_destination=True).rollback_job()

    assert {path: text for path, text in site.tree().items() if path != DEST} == before


@pytest.mark.parametrize(
    "path", ["/table/_temporary", "/table/_SUCCESS", "/", "relative", "/a/../b"]
)
async def test_places_that_cannot_be_replaced(site: Site, path: str) -> None:
    """What holds the job itself, or is no plain path, is refused before anything changes."""
    if path == "/" and "local" in type(site.world).__name__.lower():
        pytest.skip("nobody tries this with a real disk")
    job = await site.ready(NEW)
    before = site.tree()
    with pytest.raises(PreflightError):
        await job.commit_job(overwrite=[site.path(path) if path.startswith("/table") else path])

    assert site.tree() == before


# --- other jobs -------------------------------------------------------------------------------


async def cut_short(site: Site, files: Mapping[str, str], mode: Mode = Mode.APPEND) -> None:
    """Leave a commit of another job behind that failed half-way."""
    fault = Fault("put", DeniedError, "commit-outcome", times=1)
    other = await site.ready(files, Faults(fault), job_id=OTHER)
    with pytest.raises(CommitError):
        await other.commit_job(mode=mode)


async def test_other_jobs_directories_stay(site: Site) -> None:
    """Replacing a table leaves what other jobs are writing, for them to commit."""
    site.place({"/table/.spark-staging-x/part": "s", "/table/old": "o"})
    other = await site.ready({"theirs": "t"}, job_id=OTHER)
    await commit(site, Mode.REPLACE_TABLE)
    await other.commit_job()

    assert site.files() == NEW | {"theirs": "t", ".spark-staging-x/part": "s"}


@pytest.mark.parametrize("mode", [Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
async def test_an_unfinished_commit_that_covers_the_place(site: Site, mode: Mode) -> None:
    """Nothing is replaced in which another job's commit is to be finished or undone."""
    job = await site.ready(NEW)
    await cut_short(site, {"day=1/theirs": "t"})
    with pytest.raises(PreflightError, match=f"job {OTHER} writes there"):
        await job.commit_job(mode=mode)
    with pytest.raises(PreflightError, match=OTHER):
        await job.plan_job(mode=mode)

    assert site.files() == {"day=1/theirs": "t"}


async def test_an_unfinished_commit_below_the_place(site: Site) -> None:
    """A commit to a directory below what is to be replaced is in the way as well."""
    site.place({"/table/day=1/old": "o"})
    job = await site.ready(NEW)
    await cut_short(site, {"day=1/hour=1/theirs": "t"})
    with pytest.raises(PreflightError, match=OTHER):
        await job.commit_job(mode=Mode.REPLACE_PARTITIONS)


async def test_an_unfinished_commit_elsewhere_in_the_table(site: Site) -> None:
    """Another partition's unfinished commit is no reason to wait."""
    site.place({"/table/day=1/old": "o"})
    job = await site.ready(NEW)
    await cut_short(site, {"day=3/theirs": "t"})
    await job.commit_job(mode=Mode.REPLACE_PARTITIONS)

    assert site.files() == NEW | {"day=3/theirs": "t"}


async def test_an_unfinished_commit_is_no_reason_not_to_append(site: Site) -> None:
    """What is only added harms nobody."""
    job = await site.ready(NEW)
    await cut_short(site, {"day=1/theirs": "t"})
    await job.commit_job()

    assert site.files() == NEW | {"day=1/theirs": "t"}


async def test_a_commit_that_is_decided_covers_nothing(site: Site) -> None:
    """A job that is committed and not yet cleaned up has nothing more to write."""
    job = await site.ready(NEW)
    fault = Fault("rename", DeniedError, "_SUCCESS")
    other = await site.ready({"day=1/theirs": "t"}, Faults(fault), job_id=OTHER)
    with pytest.raises(CommitError, match="the job is committed, but"):
        await other.commit_job()
    await job.commit_job(mode=Mode.REPLACE_PARTITIONS)

    assert site.files() == NEW


# --- dry runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_dry_run_changes_nothing(site: Site, mode: Mode) -> None:
    """The plan of a job says what it would replace, and sends no request that changes anything."""
    site.place(OLD if mode is not Mode.FAIL else {})
    faults = Faults()
    job = await site.ready(NEW, faults)
    before = site.tree()
    faults.seen.clear()
    report = await job.plan_job(mode=mode)

    replaced = {
        Mode.REPLACE_TABLE: {"/table/day=1", "/table/day=3", "/table/loose"},
        Mode.REPLACE_PARTITIONS: {"/table/day=1"},
    }.get(mode, set())
    counted = {Mode.REPLACE_TABLE: 4, Mode.REPLACE_PARTITIONS: 2}.get(mode, 0)
    assert {site.bare(path) for path in report.replacing} == replaced
    assert (report.files, report.replaced, report.replaced_files) == (2, len(replaced), counted)
    assert changes(faults.seen) == []
    assert site.tree() == before


async def test_a_dry_run_of_what_would_be_refused(site: Site) -> None:
    """The plan is refused where the commit would be."""
    site.place(OLD)
    job = await site.ready({"loose": "new"})
    with pytest.raises(PreflightError, match="it exists already"):
        await job.plan_job()


async def test_a_dry_run_and_then_the_commit(site: Site) -> None:
    """What the plan said is what the commit does."""
    site.place(OLD)
    job = await site.ready(NEW)
    planned = await job.plan_job(mode=Mode.REPLACE_PARTITIONS)
    done = await job.commit_job(mode=Mode.REPLACE_PARTITIONS)

    assert (done.files, done.replaced, done.replacing) == (
        planned.files,
        planned.replaced,
        planned.replacing,
    )


async def test_an_overwrite_of_what_is_not_there(site: Site) -> None:
    """A directory to replace that does not exist is nothing to replace."""
    job = await site.ready(NEW)
    report = await job.commit_job(overwrite=[site.path("/table/day=9")])

    assert report.replaced == 0
    assert site.files() == NEW


async def test_a_job_without_manifests(site: Site) -> None:
    """A dry run of a job that nobody has set up says what is missing."""
    with pytest.raises(PreflightError) as failed:
        await site.job().plan_job()

    assert isinstance(failed.value.failures[0], NotFoundError)
