"""The job side of the committers of uploads: scenarios of the S3A catalogue, by their numbers.

Which tests have the others is in ``tests/support/test_scenarios.py``.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.commit.by_upload.outcome import decide
from asynccommit.commit.by_upload.status import acting_for, read_state
from asynccommit.commit.hints import job_command
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.commit.meter import Progress
from asynccommit.errors import (
    CommitError,
    CommittedError,
    DeniedError,
    NotFoundError,
    PreflightError,
    UnavailableError,
    UnfinishedError,
    UnsupportedError,
    ValidationError,
)
from asynccommit.formats.commit_owner import Outcome
from asynccommit.options.job import Mode, OnFailure, OnUnfinished
from asynccommit.options.uploads import UploadOptions
from asynccommit.results import JobState
from asynccommit.stores.local.store import LocalStore
from asynccommit.testing.models.s3.objects import CompletedPart
from tests.support.faults import Before, Fault, Faults
from tests.support.upload_jobs import (
    BESIDE,
    JOB,
    OTHER,
    ROOT,
    Scenario,
    World,
    alone,
    commit_task,
    committer,
    intend,
    pending_of,
    ready,
    run_tasks,
    save_set,
)

FILES = ({"p=1/a": "hello world", "b": "x"}, {"p=2/c": "", "p=2/d": "four"})
PLAIN = Scenario("plain", FILES)
MARKER = f"{ROOT}/_SUCCESS"
MANY = Scenario("many", tuple({f"part-{task}-{n}": "data" for n in range(3)} for task in range(4)))


def files(world: World) -> dict[str, bytes]:
    """Return all files but the marker."""
    return {path: data for path, data in world.state().files.items() if path != MARKER}


def said(world: World) -> dict[str, Any]:
    """Return the marker."""
    found: dict[str, Any] = json.loads(world.state().files[MARKER])
    return found


@pytest.mark.parametrize("name", ["magic", "directory", "partitioned"])
async def test_a_job(name: str) -> None:
    """Scenarios 1, 13 and 28: every file is there with its bytes, and the marker; nothing else."""
    scenario = replace(PLAIN, committer=name)
    world, tasks = alone(scenario)
    report = await committer(world, scenario).commit_job(tasks, strict=True)

    assert {p: d.decode() for p, d in files(world).items()} == scenario.files
    assert not world.state().uploads
    assert said(world)["committer"] == name
    assert said(world)["jobId"] == JOB
    assert sorted(said(world)["filenames"]) == sorted(scenario.files)
    assert (report.files, report.bytes, len(report.tasks)) == (4, 16, 2)
    assert report.success == "s3://data/out/t/_SUCCESS"


async def test_another_attempt_of_the_job(tmp_path: object) -> None:
    """Scenario 2: attempts are apart, and aborting the second leaves no uploads of either."""
    world, _ = alone(PLAIN)
    second = PLAIN.layout().of_attempt(1)
    commit_task(world, second, 0, {"again": "once more"})
    job = committer(world, PLAIN)
    job.layout = second
    report = await job.abort_job()

    assert report.uploads == 5
    assert world.state() == ({}, frozenset())


async def test_committing_again() -> None:
    """Scenarios 3 and 5: a job that is committed stays so, and says that it was."""
    world, tasks = alone(PLAIN)
    await committer(world, PLAIN).commit_job(tasks)
    before = world.state()
    report = await committer(world, PLAIN).commit_job(tasks)

    assert report.already_committed
    assert world.state() == before
    with pytest.raises(CommittedError):
        await committer(world, PLAIN).rollback_job()


async def test_two_attempts_of_a_task() -> None:
    """Scenario 4: of two attempts the one counts whose set is there; the other's are aborted."""
    world, layout = World.new(), PLAIN.layout()
    task_id, first = layout.ids(0)
    begun = pending_of(world, layout, "first", "of the first", first)
    intend(world, layout, first, [begun])
    save_set(world, layout, task_id, first, (begun,))
    second = commit_task(world, layout, 0, {"second": "of the second"}, attempt=1)
    await committer(world, PLAIN).commit_job([second])

    assert said(world)["filenames"] == [f"{ROOT}/second"]
    assert files(world) == {f"{ROOT}/second": b"of the second"}
    assert not world.state().uploads


async def test_a_failed_commit_is_committed_again() -> None:
    """Scenario 5: the first commit fails half-way, the second ends it, the third has no work."""
    world, tasks = alone(PLAIN)
    faults = Faults(Fault("complete_upload", UnavailableError, "p=2/c", times=1))
    with pytest.raises(CommitError, match="Finish it"):
        await committer(world, PLAIN, faults, workers=1).commit_job(tasks)
    second = await committer(world, PLAIN).commit_job(tasks)
    third = await committer(world, PLAIN).commit_job(tasks)

    assert (second.resumed, second.already_committed) == (True, False)
    assert (third.resumed, third.already_committed) == (False, True)
    assert {p: d.decode() for p, d in files(world).items()} == PLAIN.files


async def test_no_output() -> None:
    """Scenario 6: a job without files succeeds, and its marker names none."""
    scenario = Scenario("none", ({},))
    world, tasks = alone(scenario)
    await committer(world, scenario).commit_job(tasks)

    assert said(world)["filenames"] == []
    assert not files(world)


async def test_a_tree_is_kept() -> None:
    """Scenario 7: directories of a task's output are those of the destination."""
    scenario = Scenario("map", ({"part-0/data": "d", "part-0/index": "i"},))
    world, tasks = alone(scenario)
    await committer(world, scenario).commit_job(tasks)

    assert set(files(world)) == set(scenario.files)


async def test_aborting_nothing() -> None:
    """Scenarios 8 and 41: aborting a job that is not there, or has done nothing, is fine."""
    world = World.new()
    job = committer(world, PLAIN)
    assert (await job.abort_job()).outcome == "nothing to clean up"
    await job.setup_job()
    await job.abort_job()
    assert world.state() == ({}, frozenset())
    assert not world.bucket.objects


@pytest.mark.parametrize("kind", ["killed", "hadoop"])
async def test_uploads_of_killed_tasks(kind: str) -> None:
    """Scenario 9: what a killed attempt has uploaded is aborted by the commit, never seen."""
    dead: dict[str, str] = {"p=1/dead": "dead", "worse": "dead too"}
    killed, hadoop = (dead, {}) if kind == "killed" else ({}, dead)
    scenario = replace(PLAIN, killed=killed, hadoop=hadoop)
    world, tasks = alone(scenario)
    await committer(world, scenario).commit_job(tasks)

    assert not world.state().uploads
    assert set(files(world)) == set(PLAIN.files)


async def test_uploads_that_are_to_be_left_alone() -> None:
    """Scenario 9: where options say that none are aborted, not even the job's own are."""
    scenario = replace(PLAIN, killed={"dead": "dead"})
    world, tasks = alone(scenario)
    options = UploadOptions(abort_pending=False)
    await committer(world, scenario, uploads=options).commit_job(tasks)

    assert len(world.state().uploads) == 1


@pytest.mark.parametrize("name", ["magic", "directory"])
async def test_an_abort_takes_everything(name: str) -> None:
    """Scenarios 10, 12 and 30: no upload is left and no directory, of whichever task."""
    scenario = replace(PLAIN, committer=name, killed={"dead": "dead"})
    world, _ = alone(scenario)
    report = await committer(world, scenario).abort_job("no reason")

    assert report.uploads == 5
    assert world.state() == ({}, frozenset())
    assert not [key for key in world.bucket.objects if JOB in key]


async def test_an_abort_that_fails() -> None:
    """Scenario 11: an abort that the store refuses is an error, and nothing becomes visible."""
    world, _ = alone(PLAIN)
    with pytest.raises(CommitError):
        await committer(world, PLAIN, Faults(Fault("abort_upload", DeniedError))).abort_job()

    assert not [path for path in files(world) if "__magic" not in path]


async def test_jobs_in_sibling_directories() -> None:
    """Scenarios 16 and 17: uploads and files of other jobs, beside this one and in it, stay."""
    job, world = ready(replace(PLAIN, killed={"dead": "dead"}))
    await committer(world, job.scenario).commit_job(job.tasks)

    assert job.committed(world.state()) == []


async def test_two_jobs_of_one_destination() -> None:
    """Scenario 17: both commit, and both jobs' files are there."""
    world, tasks = alone(PLAIN)
    other = Scenario("other", ({"p=1/other": "other"},))
    others = run_tasks(world, other, OTHER)
    await committer(world, PLAIN).commit_job(tasks)
    await committer(world, other, job_id=OTHER).commit_job(others)

    assert set(files(world)) == {*PLAIN.files, *other.files}
    assert said(world)["jobId"] == OTHER


@pytest.mark.parametrize("workers", [1, 2, 64])
async def test_workers(workers: int) -> None:
    """Scenario 20: however many requests are in flight, the result is the same."""
    world, tasks = alone(MANY)
    await committer(world, MANY, workers=workers).commit_job(tasks)

    assert set(files(world)) == set(MANY.files)


@pytest.mark.parametrize("name", ["magic", "directory"])
async def test_a_completion_fails(name: str) -> None:
    """Scenario 29: rolled back, what was completed is deleted, and all the rest is aborted."""
    scenario = replace(MANY, committer=name)
    world, tasks = alone(scenario)
    faults = Faults(Fault("complete_upload", DeniedError, skip=5, times=1))
    job = committer(world, scenario, faults, workers=1, on_failure=OnFailure.ROLLBACK)
    with pytest.raises(CommitError, match="it was rolled back"):
        await job.commit_job(tasks)

    assert world.state() == ({}, frozenset())
    assert not [key for key in world.bucket.objects if JOB in key]
    made = [upload.made is not None for upload in world.bucket.uploads.ended.values()]
    assert (made.count(True), made.count(False)) == (5, 7)


async def test_a_completion_fails_and_all_is_kept() -> None:
    """Scenario 29: by default everything is kept, and the error says what to type."""
    world, tasks = alone(MANY)
    faults = Faults(Fault("complete_upload", DeniedError, skip=5, times=1))
    with pytest.raises(CommitError, match=r"5 files are at their destinations.*resume s3://data"):
        await committer(world, MANY, faults, workers=1).commit_job(tasks)
    status = await committer(world, MANY).job_status()

    assert status is not None
    assert (status.done, status.files) == (5, 12)
    assert (await committer(world, MANY).resume_job()).resumed


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE])
async def test_what_a_mode_replaces(mode: Mode) -> None:
    """Scenarios 32 and 34: append deletes nothing, partitions their leaves, table all data."""
    before = {f"{ROOT}/{name}": name for name in ("p=1/old", "p=3/old", "root", "p=1/_hidden/x")}
    scenario = replace(PLAIN, before=before, mode=mode)
    world, tasks = alone(scenario)
    report = await committer(world, scenario).commit_job(tasks, mode=mode)

    assert set(files(world)) == {*scenario.files, *scenario.kept}
    assert report.replaced_files == {"append": 0, "replace_partitions": 1, "replace_table": 3}[mode]


async def test_replaced_files_go_last() -> None:
    """Scenarios 32 and 34: nothing is deleted before every file is there and that is decided."""
    before = {f"{ROOT}/p=1/old": "old"}
    scenario = replace(PLAIN, before=before, mode=Mode.REPLACE_TABLE)
    world, tasks = alone(scenario)
    faults = Faults()
    await committer(world, scenario, faults).commit_job(tasks, mode=scenario.mode)
    names = [op.name for op in faults.seen if op.writes]
    last = len(names) - 1 - names[::-1].index("complete_upload")

    assert "delete_many" not in names[:last]


async def test_replaced_files_cannot_be_deleted() -> None:
    """Scenario 34: the job is committed then, and the error says that only this is left to do."""
    scenario = replace(PLAIN, before={f"{ROOT}/p=1/old": "old"}, mode=Mode.REPLACE_TABLE)
    world, tasks = alone(scenario)
    faults = Faults(Fault("delete_many", DeniedError, "p=1/old"))
    with pytest.raises(CommitError, match="the job is committed"):
        await committer(world, scenario, faults).commit_job(tasks, mode=scenario.mode)
    assert MARKER not in world.state().files
    await committer(world, scenario).resume_job()

    assert set(files(world)) == set(scenario.files)


async def test_a_file_where_the_destination_is_to_be() -> None:
    """Scenario 32: a destination that is a file is refused at setup and commit, in every mode."""
    world, tasks = alone(PLAIN)
    world.place(ROOT, "a file")
    for mode in (Mode.APPEND, Mode.FAIL, Mode.REPLACE_TABLE):
        with pytest.raises(PreflightError, match="a file"):
            await committer(world, PLAIN).commit_job(tasks, mode=mode)
        with pytest.raises(PreflightError, match="a file"):
            await committer(world, PLAIN).setup_job(mode=mode)


async def test_fail_is_checked_twice() -> None:
    """Scenario 32: what came to the destination after setup fails the commit beforehand."""
    scenario = replace(PLAIN, mode=Mode.FAIL)
    world = World.new()
    await committer(world, scenario).setup_job(mode=Mode.FAIL)
    tasks = run_tasks(world, scenario)
    world.place(f"{ROOT}/p=9/other", "of somebody else")
    with pytest.raises(PreflightError, match="not empty"):
        await committer(world, scenario).commit_job(tasks, mode=Mode.FAIL)

    assert len(world.state().uploads) == 4


async def test_partitioned_fail_wants_only_its_partitions_free() -> None:
    """Scenarios 33 and 34: other partitions may hold files; one that the job writes to may not."""
    scenario = Scenario("leaf", ({"p=1/a": "a"},), mode=Mode.FAIL, committer="partitioned")
    world, tasks = alone(replace(scenario, before={f"{ROOT}/p=2/old": "old"}))
    await committer(world, scenario).commit_job(tasks, mode=Mode.FAIL)
    world, tasks = alone(replace(scenario, before={f"{ROOT}/p=1/old": "old"}))
    with pytest.raises(PreflightError, match="partition is not empty"):
        await committer(world, scenario).commit_job(tasks, mode=Mode.FAIL)


async def test_a_root_file_makes_no_partition() -> None:
    """Scenario 34: a file in the table itself replaces nothing; Hadoop would delete the table."""
    scenario = Scenario(
        "root", ({"a": "a"},), {f"{ROOT}/p=1/old": "old", f"{ROOT}/b": "b"}, Mode.REPLACE_PARTITIONS
    )
    world, tasks = alone(scenario)
    await committer(world, scenario).commit_job(tasks, mode=scenario.mode)

    assert set(files(world)) == {*scenario.before, f"{ROOT}/a"}


async def test_the_marker_names_a_hundred() -> None:
    """Scenario 37: of many files the marker names a hundred, and all are there."""
    tasks = tuple({f"part-{task}-{n:03}": "" for n in range(150)} for task in range(4))
    scenario = Scenario("scale", tasks)
    world, commits = alone(scenario)
    report = await committer(world, scenario).commit_job(commits)

    assert len(said(world)["filenames"]) == 100
    assert len(files(world)) == report.files == 600


@pytest.mark.parametrize("act", ["commit_job", "abort_job"])
async def test_requests_grow_with_the_tasks(act: str) -> None:
    """Scenario 37: four times the tasks take four times the requests at most, however many."""
    counts = []
    for number in (250, 1_000):
        scenario = Scenario("tasks", tuple({f"part-{n}": ""} for n in range(number)))
        world, _ = alone(scenario)
        faults = Faults()
        await getattr(committer(world, scenario, faults), act)()
        counts.append(len(faults.seen))

    assert counts[0] > 250
    assert counts[1] <= 4 * counts[0]


async def test_a_corrupt_pending_file_is_said() -> None:
    """Scenario 41: an abort says which file could not be read, and aborts the other uploads."""
    scenario = replace(PLAIN, hadoop={"dead": "dead"})
    world, _ = alone(scenario)
    bad = next(key for key in world.bucket.objects if key.endswith(".pending"))
    world.bucket.put(bad, b"{not json")
    report = await committer(world, scenario).abort_job()

    assert report.uploads == 4
    assert bad in " ".join(report.warnings)
    assert [path for path, _ in world.state().uploads] == [f"{ROOT}/dead"]


async def test_a_rollback_of_what_is_gone() -> None:
    """Scenario 41: taking back a file that somebody has deleted already is no error."""
    world, tasks = alone(PLAIN)
    faults = Faults(Fault("complete_upload", DeniedError, "p=2/d"))
    with pytest.raises(CommitError):
        await committer(world, PLAIN, faults, workers=1).commit_job(tasks)
    world.bucket.delete(f"{ROOT}/p=1/a"[1:])
    report = await committer(world, PLAIN).rollback_job()

    assert report.rolled_back
    assert world.state() == ({}, frozenset())


@pytest.mark.parametrize(
    "options", [{"cleanup_skipped": True}, {"uploads": UploadOptions(keep_magic=True)}]
)
async def test_clean_up_is_switched_off(options: dict[str, Any]) -> None:
    """Scenario 43: the job's files stay, killed tasks' uploads do not, and again is no more."""
    scenario = replace(PLAIN, killed={"dead": "dead"})
    world, tasks = alone(scenario)
    await committer(world, scenario, **options).commit_job(tasks)
    before = world.state()

    assert not before.uploads
    assert scenario.layout().record in before.files
    assert (await committer(world, scenario, **options).commit_job(tasks)).already_committed
    assert world.state() == before


async def test_faults_that_pass() -> None:
    """Scenario 44: an upload that was completed though nobody said so counts once."""
    world, tasks = alone(PLAIN)
    faults = Faults(Fault("complete_upload", NotFoundError, after=True))
    report = await committer(world, PLAIN, faults).commit_job(tasks)

    assert report.files == 4
    assert {p: d.decode() for p, d in files(world).items()} == PLAIN.files


async def test_one_file_twice() -> None:
    """Scenario 45: two tasks with one file are refused, before anything changed."""
    scenario = Scenario("twice", ({"a": "one"}, {"a": "two"}))
    world, tasks = alone(scenario)
    with pytest.raises(PreflightError, match="two uploads"):
        await committer(world, scenario).commit_job(tasks)

    assert len(world.state().uploads) == 2


# --- what is not in the catalogue --------------------------------------------------------------


async def test_an_upload_that_was_aborted() -> None:
    """A commit whose upload somebody has aborted stops, and can be rolled back."""
    world, tasks = alone(PLAIN)
    gone = next(iter(world.bucket.uploads.open.values()))
    world.bucket.abort(gone.key, gone.upload_id)
    with pytest.raises(CommitError, match="its upload is gone"):
        await committer(world, PLAIN, workers=1).commit_job(tasks)
    report = await committer(world, PLAIN).rollback_job()

    assert report.rolled_back
    assert world.state() == ({}, frozenset())


async def test_sources_are_looked_for() -> None:
    """With ``asynccommit.check.sources`` an aborted upload is found before anything changed."""
    world, tasks = alone(PLAIN)
    gone = next(iter(world.bucket.uploads.open.values()))
    world.bucket.abort(gone.key, gone.upload_id)
    with pytest.raises(PreflightError, match="was aborted"):
        await committer(world, PLAIN, check_sources=True).commit_job(tasks)


async def test_a_set_that_lies_about_a_length() -> None:
    """A file of another length than its set says fails the validation, and is taken back."""
    world = World.new()
    layout = PLAIN.layout()
    task_id, attempt_id = layout.ids(0)
    lie = replace(pending_of(world, layout, "a", "four", attempt_id), length=5)
    task = save_set(world, layout, task_id, attempt_id, (lie,))
    with pytest.raises(ValidationError, match="has 4 bytes"):
        await committer(world, PLAIN).commit_job([task])
    report = await committer(world, PLAIN).rollback_job()

    assert report.files == 1
    assert world.state() == ({}, frozenset())


async def test_a_file_that_came_meanwhile() -> None:
    """A file that another writes between preflight and completion is never overwritten."""
    world, tasks = alone(PLAIN)

    class Meanwhile(Faults):
        def around(self, call: Any) -> Any:
            async def around(op: Any) -> Any:
                if op.name == "complete_upload" and op.path.endswith("/b"):
                    world.place(f"{ROOT}/b", "of another")
                return await call(op)

            return around

    with pytest.raises(CommitError, match="another writer created it"):
        await committer(world, PLAIN, Meanwhile()).commit_job(tasks)
    await committer(world, PLAIN).rollback_job()

    assert files(world) == {f"{ROOT}/b": b"of another"}


async def test_a_rollback_puts_back_what_was_overwritten() -> None:
    """Files of the same name, and the marker, are there again with their bytes."""
    before = {f"{ROOT}/b": "an old b", MARKER: "", f"{ROOT}/p=1/old": "old"}
    scenario = replace(PLAIN, before=before, options={"delete_target_files": True})
    world, tasks = alone(scenario)
    faults = Faults(Fault("complete_upload", DeniedError, "p=2/d"))
    with pytest.raises(CommitError):
        await committer(world, scenario, faults, workers=1).commit_job(tasks)
    assert MARKER not in world.state().files
    report = await committer(world, scenario).rollback_job()

    assert (report.files, report.restored) == (3, 1)
    assert files(world) == {f"{ROOT}/b": b"an old b", f"{ROOT}/p=1/old": b"old"}
    assert world.state().files[MARKER].strip() == b""


async def test_a_missing_marker_is_no_error() -> None:
    """Without a marker wanted, none is written and an old one stays."""
    scenario = replace(PLAIN, before={MARKER: "old"}, options={"mark_success": False})
    world, tasks = alone(scenario)
    report = await committer(world, scenario).commit_job(tasks)

    assert report.success is None
    assert world.state().files[MARKER] == b"old"


async def test_pending_sets_elsewhere(tmp_path: Any) -> None:
    """The sets of a staging job may be on another store than its data."""
    scenario = replace(PLAIN, committer="directory")
    world, tasks = alone(scenario)
    local = LocalStore()
    job = committer(world, scenario, pending=local)
    tmp = replace(job.layout.pending, scheme="file", authority="", path=str(tmp_path))
    job.layout = replace(job.layout, tmp=tmp)  # type: ignore[call-arg]  # a staging layout
    await local.mkdir(job.layout.sets_dir)
    old = scenario.layout()
    for task in tasks:
        data = world.bucket.head(old.pending_set(task.task_id)[1:]).data
        await local.put(job.layout.pending_set(task.task_id), data)
    await job.commit_job(tasks)
    await local.aclose()

    assert set(PLAIN.files) <= set(files(world))
    assert not list(tmp_path.iterdir())


async def test_a_plan_without_a_commit() -> None:
    """What a commit would do is said, and nothing is done."""
    scenario = replace(PLAIN, before={f"{ROOT}/p=1/old": "old"}, mode=Mode.REPLACE_TABLE)
    world, tasks = alone(scenario)
    before = world.state()
    report = await committer(world, scenario).plan_job(tasks, mode=scenario.mode)

    assert (report.files, report.replaced_files, report.replacing) == (4, 1, (f"{ROOT}/p=1/old",))
    assert world.state() == before


async def test_progress_names_stages() -> None:
    """Progress is told of each stage, and statistics count what was completed."""
    world, tasks = alone(PLAIN)
    seen: list[Progress] = []
    report = await committer(world, PLAIN).commit_job(tasks, on_progress=seen.append)

    assert "job_stage_complete_uploads" in {told.stage for told in seen}
    assert "job_stage_complete_uploads" in report.stages
    assert said(world)["iostatistics"]["counters"]["committer_commits_completed"] == 4


async def test_an_abort_after_the_record() -> None:
    """Once a commit has begun an abort keeps everything, and says what to do."""
    world, tasks = alone(PLAIN)
    faults = Faults(Fault("complete_upload", DeniedError, "p=2/d"))
    with pytest.raises(CommitError):
        await committer(world, PLAIN, faults).commit_job(tasks)
    before = world.state()
    report = await committer(world, PLAIN).abort_job()

    assert "a commit has begun" in report.kept
    assert world.state() == before


async def test_a_commit_that_is_being_rolled_back() -> None:
    """Who resumes a commit that was to be rolled back finishes the rollback."""
    world, tasks = alone(PLAIN)
    with pytest.raises(CommitError):
        await committer(
            world, PLAIN, Faults(Fault("complete_upload", DeniedError, "p=2/d"))
        ).commit_job(tasks)
    job = committer(world, PLAIN)
    run = job._run()
    state = await read_state(run)
    assert state is not None
    run = acting_for(run, state)
    await decide(run, Outcome.ROLLBACK)
    status = await job.job_status()

    assert status is not None
    assert status.state is JobState.ROLLING_BACK
    assert (await job.resume_job()).rolled_back
    assert world.state() == ({}, frozenset())


async def test_adopting_what_hadoop_left() -> None:
    """A commit of Hadoop's that died half-way, which leaves no record, is finished if told so."""
    world, tasks = alone(PLAIN)
    half = next(iter(world.bucket.uploads.open.values()))
    listed = [CompletedPart(number, sent.etag) for number, sent in half.parts.items()]
    world.bucket.complete(half.key, half.upload_id, listed)
    with pytest.raises(CommitError, match="it exists already"):
        await committer(world, PLAIN).commit_job(tasks)
    await committer(world, PLAIN).resume_job(adopt=True)

    assert {p: d.decode() for p, d in files(world).items()} == PLAIN.files


async def test_a_commit_of_another_attempt() -> None:
    """Of two attempts of a job only one may be committed."""
    world, tasks = alone(PLAIN)
    with pytest.raises(CommitError):
        await committer(
            world, PLAIN, Faults(Fault("complete_upload", DeniedError, "p=2/d"))
        ).commit_job(tasks)
    job = committer(world, PLAIN)
    job.layout = job.layout.of_attempt(1)
    task = commit_task(world, job.layout, 0, {"z": "z"})

    with pytest.raises(CommitError, match="another attempt of this job"):
        await job.commit_job([task])


STAGED = replace(PLAIN, committer="directory")
BESIDE_IT = replace(STAGED, tmp=BESIDE)


@pytest.mark.parametrize(
    "cut,following",
    [
        (PLAIN, PLAIN),
        (PLAIN, STAGED),
        (STAGED, replace(STAGED, committer="partitioned")),
        (replace(STAGED, committer="partitioned"), STAGED),
        (BESIDE_IT, PLAIN),
        (BESIDE_IT, BESIDE_IT),
    ],
    ids=["magic", "magic-staging", "staging", "partitioned", "beside-magic", "beside"],
)
@pytest.mark.parametrize("settle", [OnUnfinished.RESUME, OnUnfinished.ROLLBACK, None])
async def test_the_next_job(
    settle: OnUnfinished | None, cut: Scenario, following: Scenario
) -> None:
    """A commit that was cut short, as this machine can tell, is settled by the next job's setup."""
    world, tasks = alone(cut)
    first = committer(world, cut, Faults(Fault("complete_upload", DeniedError, "p=2/d")))
    first.host = replace(first.host, process="dead", is_running=lambda _: False)
    with pytest.raises(CommitError):
        await first.commit_job(tasks)
    options: dict[str, Any] = {} if settle is None else {"on_unfinished": settle}
    job = committer(world, following, job_id=OTHER, **options)
    job.host = replace(job.host, process="alive", is_running=lambda _: False)
    assert [s.state for s in await job.job_statuses()] == [JobState.STOPPED]
    if settle is None:
        told = re.escape(job_command("resume", first.layout))
        with pytest.raises(UnfinishedError, match=f"finish it: {told}\n"):
            await job.check_job()
    elif settle is OnUnfinished.ROLLBACK:
        await job.check_job()
        assert world.state() == ({}, frozenset())
    else:
        with pytest.raises(CommittedError, match="is now finished"):
            await job.check_job()
        assert set(files(world)) == set(PLAIN.files)


async def test_stores_without_uploads(tmp_path: Any) -> None:
    """A store that takes no uploads is refused when the committer is made."""
    job = committer(World.new(), PLAIN)
    with pytest.raises(UnsupportedError, match="no multipart uploads"):
        type(job)(LocalStore(), job.layout, job.options, job.host)


@pytest.mark.parametrize("mode", [Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS, Mode.FAIL])
async def test_a_job_that_another_would_replace(mode: Mode) -> None:
    """What another job's unfinished commit touches is not replaced under its hands."""
    leaf = Scenario("leaf", ({"p=1/a": "a"},))
    world, tasks = alone(leaf)
    dies = Faults(Fault("complete_upload", DeniedError, f"{ROOT}/"))
    with pytest.raises(CommitError):
        await committer(world, leaf, dies).commit_job(tasks)
    other = Scenario("other", ({"p=1/other": "other"},))
    others = run_tasks(world, other, OTHER)
    with pytest.raises(PreflightError, match=f"job {JOB} writes there"):
        await committer(world, other, job_id=OTHER).commit_job(others, mode=mode)
    apart = Scenario("apart", ({"p=7/other": "other"},))
    world.bucket.delete(other.layout(OTHER).pending_set(others[0].task_id)[1:])
    report = await committer(world, apart, job_id=OTHER).commit_job(
        run_tasks(world, apart, OTHER), mode=Mode.REPLACE_PARTITIONS
    )

    assert report.files == 1


@pytest.mark.parametrize(
    "place, mode",
    [
        (f"{ROOT}/p=1", Mode.REPLACE_TABLE),
        ("/out", Mode.REPLACE_PARTITIONS),
        ("/out", Mode.REPLACE_TABLE),
    ],
)
async def test_a_job_whose_destination_is_above_or_below(place: str, mode: Mode) -> None:
    """What an unfinished commit with another destination has put in place is not replaced."""
    leaf = Scenario("leaf", ({"p=1/a": "a"},))
    world, tasks = alone(leaf)
    dies = Faults(Fault("complete_upload", DeniedError, f"{ROOT}/"))
    with pytest.raises(CommitError):
        await committer(world, leaf, dies).commit_job(tasks)
    job = committer(world, leaf, job_id=OTHER)
    job.layout = MagicLayout(leaf.layout().dest.at(place), OTHER)
    world.bucket.put(f"{job.layout.sets_dir[1:]}/", b"")
    others = [commit_task(world, job.layout, 0, {"p=1/b": "other"})]
    before = world.state()
    with pytest.raises(
        PreflightError, match=f"job {JOB} writes there|another job is writing below"
    ):
        await job.commit_job(others, mode=mode)

    assert world.state() == before


@pytest.mark.parametrize(
    "mine,theirs",
    [(PLAIN, PLAIN), (STAGED, STAGED), (BESIDE_IT, BESIDE_IT), (PLAIN, BESIDE_IT)],
    ids=["magic", "staging", "beside", "magic-beside"],
)
async def test_two_jobs_replace_at_once(mine: Scenario, theirs: Scenario) -> None:
    """Of two that begin to replace one place at the same time none deletes the other's files."""
    world, tasks = alone(mine)
    other = replace(theirs, name="other", tasks=({"p=1/other": "other"},))
    others = run_tasks(world, other, OTHER)
    dies = Faults(Fault("complete_upload", DeniedError, f"{ROOT}/"))

    async def begin() -> None:
        with pytest.raises(CommitError):
            job = committer(world, other, dies, job_id=OTHER)
            await job.commit_job(others, mode=Mode.REPLACE_TABLE)

    meanwhile = Before("put", mine.layout().record, begin)
    with pytest.raises(CommitError, match=f"job {OTHER} writes there"):
        await committer(world, mine, meanwhile).commit_job(tasks, mode=Mode.REPLACE_TABLE)

    assert mine.layout().record not in world.state().files
    assert (await committer(world, other, job_id=OTHER).resume_job()).files == 1
