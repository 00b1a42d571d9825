"""``resume``, ``takeover`` and ``abort --rollback``: a commit that was cut short is ended."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.cli import main
from asynccommit.cli.output import Exit
from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import CommitError, DeniedError
from asynccommit.options.job import Mode, Options
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator, running_gcs_emulator
from asynccommit.testing.models.gcs.model import BucketOptions
from tests.cli.support import TASKS, Command, cut, cut_short, failing_disk, let_live, prepare
from tests.support.faults import Fault, Faults
from tests.support.jobs import HOST, JOB, committer, ids, left, run_task, visible, write

WHOLE = {**TASKS[0], **TASKS[1]}


def typed(message: str, verb: str) -> list[str]:
    """Return the command of that verb that a message names, as a shell reads it."""
    line = next(line for line in message.splitlines() if f"asynccommit {verb}" in line)
    return shlex.split(line[line.index(f"asynccommit {verb}") :])[1:]


# --- resume ------------------------------------------------------------------------------------


def test_resume_finishes(command: Command, tmp_path: Path) -> None:
    """The one commit that was cut short is found and finished; nothing is left of it."""
    prepare(tmp_path, job_id="other")
    cut_short(tmp_path)

    assert command("resume", tmp_path) == 0
    assert visible(tmp_path) == WHOLE
    assert f"found job {JOB}: its commit has begun" in command.err
    assert "committed 3 files, 11 B, of 2 tasks, resumed," in command.out
    assert [name for name in left(tmp_path) if name.count("/") == 1] == ["_temporary/other"]


def test_resume_json_is_the_report(command: Command, tmp_path: Path) -> None:
    """With --json standard output is the report of the resumed commit."""
    cut_short(tmp_path)

    report = command.json("resume", tmp_path)

    assert (report["code"], report["resumed"], report["epoch"]) == (0, True, 2)
    assert (report["files"], report["job_id"]) == (3, JOB)


def test_resume_twice_is_done(command: Command, tmp_path: Path) -> None:
    """A job that was finished is done, if it is named; one that never was is not found."""
    cut_short(tmp_path)
    assert command("resume", tmp_path) == 0
    before = visible(tmp_path)

    assert command.json("resume", tmp_path, "--job-id", JOB)["already"] is True
    assert command("resume", tmp_path) == Exit.NOT_FOUND
    assert command("resume", tmp_path, "--job-id", "other") == Exit.NOT_FOUND
    assert visible(tmp_path) == before


def test_resume_of_what_has_not_begun(command: Command, tmp_path: Path) -> None:
    """A job whose commit has not begun has nothing to resume; how to commit it is said."""
    prepare(tmp_path)

    assert command("resume", tmp_path) == Exit.REFUSED
    words = typed(command.err, "commit")
    assert words == ["commit", f"file:{tmp_path}", "--job-id", JOB, "--tasks", "2"]
    assert main(words) == 0
    assert visible(tmp_path) == WHOLE


def test_resume_of_several_needs_a_name(command: Command, tmp_path: Path) -> None:
    """With several commits that were cut short the one has to be named; they are listed."""
    for job_id in "abc":
        prepare(tmp_path, ({f"{job_id}/part": "x"},), job_id=job_id)
    for job_id in "bc":
        cut(tmp_path, f"{job_id}/part", job_id=job_id)

    error = command.json("resume", tmp_path)

    assert (error["code"], error["error"]) == (Exit.USAGE, "usage")
    assert [job["job_id"] for job in error["jobs"]] == ["b", "c"]


def test_resume_is_refused_while_the_owner_may_live(command: Command, tmp_path: Path) -> None:
    """Nothing is written; the owner, its last heartbeat and the takeover are named."""
    let_live(cut_short(tmp_path))
    before = left(tmp_path), visible(tmp_path)

    error = command.json("resume", tmp_path)

    assert (error["code"], error["error"]) == (Exit.REFUSED, "refused")
    assert "alice@driver-0" in error["message"]
    assert typed(error["message"], "takeover") == ["takeover", f"file:{tmp_path}", "--job-id", JOB]
    assert (left(tmp_path), visible(tmp_path)) == before


def test_resume_adopts_a_commit_of_hadoops(command: Command, tmp_path: Path) -> None:
    """A half-done commit without a record is finished with --adopt, and only then."""
    attempt = prepare(tmp_path)
    (tmp_path / "day=2").mkdir()
    next(attempt.glob("tasks/*/day=2/part-0")).rename(tmp_path / "day=2/part-0")

    assert command("resume", tmp_path) == Exit.REFUSED
    assert command("resume", tmp_path, "--adopt") == 0
    assert visible(tmp_path) == WHOLE
    assert left(tmp_path) == []


def test_resume_obeys_options(command: Command, tmp_path: Path) -> None:
    """Options are read as for a commit: a report is saved, a bad value is a usage error."""
    cut_short(tmp_path / "t")
    reports = "mapreduce.manifest.committer.summary.report.directory"

    assert command("resume", tmp_path / "t", "-o", "asynccommit.lease=soon") == Exit.USAGE
    assert command("resume", tmp_path / "t", "-o", f"{reports}={tmp_path}/r") == 0
    assert (tmp_path / "r" / f"summary-{JOB}.json").is_file()


# --- takeover ----------------------------------------------------------------------------------


def test_takeover_finishes(command: Command, tmp_path: Path) -> None:
    """A commit whose owner seems to live is finished by force."""
    let_live(cut_short(tmp_path))

    assert command("takeover", tmp_path) == 0
    assert visible(tmp_path) == WHOLE
    assert left(tmp_path) == []


def test_takeover_rolls_back(command: Command, tmp_path: Path) -> None:
    """The same, undone."""
    write(tmp_path, {"day=2/old": "old"})
    let_live(cut_short(tmp_path))

    assert command("abort", tmp_path, "--rollback") == Exit.REFUSED
    assert typed(command.err, "takeover")[-1] == "--rollback"
    assert main(typed(command.err, "takeover")) == 0
    assert visible(tmp_path) == {"day=2/old": "old"}
    assert left(tmp_path) == []


@pytest.mark.parametrize("flags", [(), ("--rollback",)])
def test_takeover_of_what_has_not_begun(
    command: Command, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """There is nothing to take over before a commit has begun."""
    prepare(tmp_path)
    before = left(tmp_path)

    assert command("takeover", tmp_path, *flags) == Exit.REFUSED
    assert left(tmp_path) == before


# --- abort --rollback --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
def test_rollback_is_as_before(command: Command, tmp_path: Path, mode: Mode) -> None:
    """What was moved is taken back, what was moved aside is put back; again changes nothing."""
    old = {"day=2/old": "old", "day=9/old": "older"}
    write(tmp_path, old)
    (tmp_path / "_SUCCESS").write_text("old")
    at = "day=1/part-1" if mode is Mode.APPEND else "00/tasks/attempt_202601010000_0001_m_000001"
    cut_short(tmp_path, at, mode=mode)

    report = command.json("abort", tmp_path, "--rollback")

    assert (report["code"], report["rolled_back"]) == (0, True)
    assert visible(tmp_path) == old
    assert (tmp_path / "_SUCCESS").read_text() == "old"
    assert not (tmp_path / "_temporary").exists()
    assert command("abort", tmp_path, "--rollback", "--job-id", JOB) == 0
    assert visible(tmp_path) == old


def test_rollback_says_what_it_did(command: Command, tmp_path: Path) -> None:
    """How many files were taken back is told."""
    cut_short(tmp_path)

    assert command("abort", tmp_path, "--rollback") == 0
    assert f"job {JOB}: rolled back: 1 file undone" in command.out


def test_rollback_of_what_has_not_begun_is_an_abort(command: Command, tmp_path: Path) -> None:
    """Before the record an abort is all there is to do."""
    prepare(tmp_path)

    assert command.json("abort", tmp_path, "--rollback", "--force")["rolled_back"] is False
    assert left(tmp_path) == []


def test_rollback_of_a_committed_job_is_refused(command: Command, tmp_path: Path) -> None:
    """Once it is committed a job stays; nothing is changed."""
    prepare(tmp_path)
    assert command("commit", tmp_path, "--tasks", "2") == 0

    error = command.json("abort", tmp_path, "--rollback", "--job-id", JOB)

    assert (error["code"], error["error"]) == (Exit.REFUSED, "refused")
    assert "committed" in error["message"]
    assert visible(tmp_path) == WHOLE


@pytest.mark.parametrize(
    "hns, kept, state", [(True, "/tasks/", "has begun"), (False, ".done", "has ended")]
)
def test_a_committed_job_whose_clean_up_was_cut_short(
    command: Command, hns: bool, kept: str, state: str
) -> None:
    """On a bucket its record goes before the rest: it is said to be committed all the same."""
    with running_gcs_emulator(buckets={"data": BucketOptions(hns=hns)}) as emulator:
        storage = {"endpoint_url": emulator.endpoint, "token": "anon"}
        asyncio.run(half_deleted(storage, kept))
        words = ("gs://data/table", *(f"-s{key}={value}" for key, value in storage.items()))

        error = command.json("abort", *words, "--rollback")

        assert (error["code"], error["error"]) == (Exit.REFUSED, "refused")
        assert "it is committed and cannot be rolled back" in error["message"]
        assert command("resume", *words) == 0
        assert f"found job {JOB}: its commit {state}" in command.err
        assert "was committed before" in command.out
        left = [f"{path.rpartition('/')[2]}" for path in emulator.do(objects)]
        assert left == ["_SUCCESS", "part-0"]


def objects(emulator: GcsEmulator) -> list[str]:
    """Return the names of all objects and folders but the table's own."""
    bucket = emulator.service.storage_layout("data")
    folders = [name for name in bucket.folders if name not in ("table/", "table/day=1/")]
    return sorted([*bucket.objects, *folders])


async def half_deleted(storage: dict[str, str], kept: str) -> None:
    """Commit a job, and let its clean-up be refused one path, after the record."""
    refusal = Fault("delete_many", lambda op, path: DeniedError(op, path, "not today"), kept)
    store = Wrapped(GcsStore(Address("gs", "data", "/"), storage), Faults(refusal))
    job = ManifestCommitter(store, Layout(Address("gs", "data", "/table"), JOB), Options(), HOST)
    await job.setup_job()
    task_id, attempt_id = ids(0)
    await store.put(f"{await job.setup_task(attempt_id)}/day=1/part-0", b"x")
    report = await job.commit_job([await job.commit_task(task_id, attempt_id)])
    assert "not today" in report.warnings[0]
    await store.aclose()


def test_rollback_of_nothing(command: Command, tmp_path: Path) -> None:
    """Where no job is there is nothing to undo."""
    assert command("abort", tmp_path, "--rollback") == Exit.NOT_FOUND


# --- places outside of the destination ---------------------------------------------------------


def cut_outside(dest: Path, elsewhere: Path) -> None:
    """Leave a commit of a file for elsewhere that was refused its last request."""

    async def commit() -> None:
        refusal = Fault("rename", lambda op, path: DeniedError(op, path, "not today"), "_SUCCESS")
        job = committer(dest, Faults(refusal))
        await job.setup_job()
        done = await run_task(job, 0, {"day=1/part": "x"})
        staged = f"{job.layout.absolute_dir}/{done.attempt_id}/0-part"
        write(Path(staged).parent, {"0-part": "y"})
        absolute = {job.layout.url(staged): job.layout.url(str(elsewhere / "part"))}
        with pytest.raises(CommitError, match="not today"):
            await job.commit_job([replace(done, absolute=absolute)])
        await job.store.aclose()

    (dest / "_SUCCESS").parent.mkdir(parents=True, exist_ok=True)
    (dest / "_SUCCESS").write_text("old")
    asyncio.run(commit())


@pytest.mark.parametrize("words", [("resume",), ("abort", "--rollback")])
def test_a_plan_that_leads_outside(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Without the tasks' messages it is refused, with what to type; and then done."""
    dest, elsewhere = tmp_path / "table", tmp_path / "elsewhere"
    cut_outside(dest, elsewhere)

    assert command(words[0], dest, *words[1:]) != 0
    assert not elsewhere.exists()
    said = command.err[: command.err.rindex("--outside") + len("--outside")]
    assert main(typed(said[said.rindex(f"asynccommit {words[0]}") :], words[0])) == 0
    assert (elsewhere / "part").exists() is (words == ("resume",))
    assert bool(visible(dest)) is (words == ("resume",))


# --- what messages tell to type ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "it's a $TABLE; rm -rf"])
def test_a_failed_commit_names_commands_that_work(
    command: Command, tmp_path: Path, name: str
) -> None:
    """The error of a commit that fails half-way holds commands that a shell can run as they are."""
    dest = tmp_path / name
    named = [f"file:{dest}", "--job-id", JOB]
    prepare(dest)
    with failing_disk("day=2/part-0"):
        assert command("commit", dest, "--tasks", "2") == Exit.FAILED
    assert typed(command.err, "resume")[: len(named) + 1] == ["resume", *named]
    assert main(typed(command.err, "abort")) == 0
    assert visible(dest) == {}
