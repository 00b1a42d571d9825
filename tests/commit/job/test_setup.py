"""Before a job begins: what others left undone, and whether its work is done already."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.ownership.outcome import decide
from asynccommit.commit.ownership.status import read_state
from asynccommit.commit.ownership.takeover import take_over
from asynccommit.errors import (
    CommitError,
    CommittedError,
    DeniedError,
    OwnedError,
    PreflightError,
    UnfinishedError,
)
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.success import MAX_SUCCESS_BYTES
from asynccommit.options.job import Mode, OnUnfinished
from tests.support.commits import DEST, OTHER, At, Dies, Site, changes, in_virtual_time, run_of
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, run_task

THEIRS = {"day=1/theirs": "t", "day=2/theirs": "u"}
OURS = {"day=1/ours": "o"}


async def cut_short(site: Site, job_id: str = OTHER, **options: Any) -> None:
    """Leave a commit of another job behind whose owner has said that it stopped."""
    fault = Fault("rename", DeniedError, "day=2/")
    other = await site.ready(THEIRS, Faults(fault), job_id=job_id, workers=1, **options)
    with pytest.raises(CommitError):
        await other.commit_job()


async def run_all(site: Site, **options: Any) -> None:
    """Set a job up, run its task and commit it."""
    job = await site.ready(OURS, **options)
    await job.commit_job()


# --- others' commits --------------------------------------------------------------------------


async def test_a_refusal_tells_what_was_done_before(site: Site) -> None:
    """A job that is refused once another's commit was undone does not say that nothing happened."""
    site.place({"/table/old": "o"})
    await cut_short(site)
    job = site.job(on_unfinished=OnUnfinished.ROLLBACK)
    with pytest.raises(PreflightError) as refused:
        await job.setup_job(mode=Mode.FAIL)

    assert "Nothing was written" not in str(refused.value)
    assert f"job {OTHER} had been interrupted and was settled first" in str(refused.value)
    assert site.files() == {"old": "o"}


async def test_an_unfinished_commit_is_refused(site: Site) -> None:
    """By default nothing is written where a commit was cut short; remedies are named."""
    await cut_short(site)
    before = site.tree()
    with pytest.raises(UnfinishedError) as refused:
        await site.job().setup_job()
    text = str(refused.value)

    assert refused.value.jobs == (OTHER,)
    assert f"job {OTHER} (stopped), begun 2026-" in text
    assert "asynccommit resume" in text
    assert "asynccommit abort" in text
    assert "--rollback" in text
    assert site.tree() == before


async def test_an_unfinished_commit_is_resumed(site: Site) -> None:
    """With the option it is finished first, and then the job begins, as it is other work."""
    await cut_short(site, job_key="theirs")
    await run_all(site, on_unfinished=OnUnfinished.RESUME, job_key="ours")

    assert site.files() == THEIRS | OURS
    assert site.left() == []


@pytest.mark.parametrize("key", [None, "nightly"])
async def test_what_was_finished_now_may_be_the_same_work(site: Site, key: str | None) -> None:
    """Unless two keys say that it is not, nothing is added to what was just finished."""
    await cut_short(site, job_key=key)
    job = site.job(on_unfinished=OnUnfinished.RESUME)
    with pytest.raises(
        CommittedError, match=f"job {OTHER} had been interrupted and is now finished"
    ):
        await job.setup_job()
    assert site.files() == THEIRS
    assert not [path for path in site.left() if job.layout.job_id in path]
    await run_all(site, on_unfinished=OnUnfinished.RESUME)

    assert site.files() == THEIRS | OURS


async def test_what_was_finished_now_is_replaced(site: Site) -> None:
    """Work that replaces the table may follow, whatever it is."""
    await cut_short(site)
    job = site.job(on_unfinished=OnUnfinished.RESUME)
    await job.setup_job(mode=Mode.REPLACE_TABLE)
    await site.task(job, 0, OURS)
    await job.commit_job(mode=Mode.REPLACE_TABLE)

    assert site.files() == OURS


async def test_an_unfinished_commit_is_rolled_back(site: Site) -> None:
    """Or it is undone."""
    await cut_short(site)
    await run_all(site, on_unfinished=OnUnfinished.ROLLBACK)

    assert site.files() == OURS
    assert site.left() == []


@pytest.mark.parametrize("how", list(OnUnfinished))
@pytest.mark.parametrize("outcome", list(Outcome))
async def test_what_is_decided_is_done(site: Site, outcome: Outcome, how: OnUnfinished) -> None:
    """A commit whose end is decided ends so, whatever the option says."""
    await cut_short(site, job_key="theirs")
    other = site.job(job_id=OTHER)
    standing = await read_state(other.store, other.layout)
    assert standing is not None
    async with await take_over(run_of(other), standing) as lease:
        if outcome is Outcome.COMMITTED:
            source = next(path for path in site.left() if path.endswith("day=2/theirs"))
            await other.store.rename(site.path(source), site.path("/table/day=2/theirs"))
        await decide(lease.run, outcome)
    site.alive["1.one"] = False
    if how is OnUnfinished.REFUSE:
        with pytest.raises(UnfinishedError) as refused:
            await run_all(site, process="2.two")
        assert "--rollback" not in str(refused.value)
        return
    await run_all(site, process="2.two", on_unfinished=how, job_key="ours")

    assert site.files() == (THEIRS if outcome is Outcome.COMMITTED else {}) | OURS


async def test_several_commits(site: Site) -> None:
    """All of them are named, a few with their remedies."""
    for number in range(7):
        other = site.job(Faults(Fault("rename", DeniedError, "/tasks/")), job_id=f"job{number}")
        await other.store.mkdir(other.layout.manifests_dir)
        await site.task(other, 0, {f"f{number}": "x"})
        with pytest.raises(CommitError):
            await other.commit_job()
    with pytest.raises(UnfinishedError) as refused:
        await site.job().setup_job()

    assert set(refused.value.jobs) == {f"job{number}" for number in range(7)}
    assert "7 commits were" in str(refused.value)
    assert "and 2 more: asynccommit status" in str(refused.value)
    assert str(refused.value).count("asynccommit resume") == 5


async def test_a_job_that_has_not_begun_to_commit_is_no_matter(site: Site) -> None:
    """Jobs whose tasks are at work, or that were left, are nobody's business."""
    await site.ready(THEIRS, job_id=OTHER)
    await run_all(site)

    assert site.files() == OURS


async def test_a_living_commit_is_no_matter(site: Site) -> None:
    """A commit that is under way ends by itself."""
    await site.cut(THEIRS, Dies("rename", "/tasks/"), job_id=OTHER)
    site.alive["1.one"] = True
    await run_all(site, process="2.two", on_unfinished=OnUnfinished.ROLLBACK)

    assert site.files() == OURS
    assert site.left() != []


@in_virtual_time
async def test_a_silent_commit_elsewhere(site: Site) -> None:
    """One of another machine is waited for as long as its lease says."""
    at = Dies("rename", "/tasks/")
    await site.cut(THEIRS, at, job_id=OTHER, lease=100.0, job_key="theirs")
    there = site.job(
        process="2.two", machine="b", on_unfinished=OnUnfinished.RESUME, job_key="ours"
    )
    await there.check_job()
    assert site.files() == {}
    await asyncio.sleep(103)
    await there.setup_job()
    await site.task(there, 0, OURS)
    await there.commit_job()

    assert site.files() == THEIRS | OURS


@in_virtual_time
async def test_a_living_commit_and_a_clock_that_is_ahead(site: Site) -> None:
    """A machine whose clock is an hour ahead does not take living commits for silent ones."""
    await site.cut(THEIRS, Dies("rename", "/tasks/"), job_id=OTHER, lease=100.0)
    site.skew = 3600.0
    await run_all(site, process="2.two", machine="b")

    assert site.files() == OURS


async def test_a_job_that_was_kept_has_ended(site: Site) -> None:
    """A committed job whose directory is kept is no unfinished one."""
    other = await site.ready(THEIRS, job_id=OTHER, cleanup_skipped=True)
    await other.commit_job()
    await run_all(site, process="2.two")

    assert site.files() == THEIRS | OURS


@pytest.mark.parametrize("how", list(OnUnfinished))
@pytest.mark.parametrize("marked", [True, False])
async def test_a_clean_up_whose_process_died(site: Site, how: OnUnfinished, marked: bool) -> None:
    """A job that is committed never makes the next one refuse; what is left of it is deleted."""
    await site.cut(THEIRS, Dies("rename", ".done"), job_id=OTHER, mark_success=marked)
    site.alive["1.one"] = False
    await run_all(site, process="2.two", on_unfinished=how, mark_success=marked)

    assert site.files() == THEIRS | OURS
    assert site.left() == []


async def test_a_clean_up_that_fails_again(site: Site) -> None:
    """Nor does one that cannot be cleaned up now: the warning names the command."""
    await site.cut(THEIRS, Dies("rename", ".done"), job_id=OTHER)
    site.alive["1.one"] = False
    job = site.job(Faults(Fault("put", DeniedError, "commit-owner")), process="2.two")
    await job.setup_job()
    await site.task(job, 0, OURS)
    await job.commit_job()

    assert site.files() == THEIRS | OURS
    assert any(OTHER in path for path in site.left())


async def test_a_look_cleans_nothing_up(site: Site) -> None:
    """A dry run leaves a committed job's directory to others."""
    await site.cut(THEIRS, Dies("rename", ".done"), job_id=OTHER)
    site.alive["1.one"] = False
    before = site.tree()
    await site.job(process="2.two").check_job(looking=True)

    assert site.tree() == before


async def test_a_commit_that_cannot_be_finished(site: Site) -> None:
    """When another's commit cannot be finished the job does not begin."""
    await cut_short(site)
    faults = Faults(Fault("rename", DeniedError, "day=2/"))
    job = site.job(faults, on_unfinished=OnUnfinished.RESUME)
    with pytest.raises(CommitError, match="day=2"):
        await job.setup_job()

    assert not job.set_up
    assert not [path for path in site.left() if job.layout.job_id in path]


async def test_a_commit_that_somebody_else_takes(site: Site) -> None:
    """Who finds another finishing it does not begin beside."""
    await site.cut(THEIRS, Dies("rename", "/tasks/"), job_id=OTHER)
    site.alive["1.one"] = False
    other = site.job(job_id=OTHER, process="3.three")
    standing = await read_state(other.store, other.layout)
    assert standing is not None
    site.alive["3.three"] = True

    late = At("put", "commit-owner", lambda: take_over(run_of(other), standing))
    job = site.job(late, process="2.two", on_unfinished=OnUnfinished.RESUME)
    with pytest.raises(OwnedError):
        await job.setup_job()


async def test_nothing_is_asked_of_a_fresh_table(site: Site) -> None:
    """Where there are no other jobs the look costs a listing, and one of the table beside it."""
    faults = Faults()
    await site.job(faults).check_job()

    assert faults.count("list") <= 2
    assert changes(faults.seen) == []


async def test_a_check_makes_nothing(site: Site) -> None:
    """What a job would be refused for is told before anything of it is there."""
    site.place({"/table/part-0": "x"})
    before = site.tree()
    with pytest.raises(PreflightError, match="the mode is fail"):
        await site.job().check_job(mode=Mode.FAIL)
    await site.job().check_job(mode=Mode.REPLACE_TABLE)
    await site.job().check_job(overwrite=[site.path(DEST)])

    assert site.tree() == before


async def test_overwriting_a_streaming_table_by_name(site: Site) -> None:
    """To name the table itself among what is replaced is to replace the table."""
    site.place({"/table/_spark_metadata/0": "v1"})
    await site.job().check_job(overwrite=[site.path(DEST)])
    with pytest.raises(PreflightError, match="streaming"):
        await site.job().check_job(overwrite=[site.path("/table/day=1")])


# --- job keys ---------------------------------------------------------------------------------


async def test_a_key_that_is_done(site: Site) -> None:
    """A rerun of what is committed is told so, and writes nothing."""
    await run_all(site, job_id="first", job_key="nightly 2026-01-01")
    before = site.tree()
    with pytest.raises(CommittedError, match=r"'nightly 2026-01-01' was done .*job first"):
        await site.job(job_key="nightly 2026-01-01").setup_job()

    assert site.tree() == before


@pytest.mark.parametrize(
    "key",
    ["load sig=2024-01-01", "password: monthly", "bearer abcdefghijklmnop", "s3://u:p@b/x", "é\n"],
)
async def test_a_key_that_reads_like_a_credential(site: Site, key: str) -> None:
    """A key is kept as it is, whatever it reads like, so that a rerun is recognised."""
    await run_all(site, job_id="first", job_key=key)
    with pytest.raises(CommittedError, match="was done"):
        await site.job(job_key=key).setup_job()
    await run_all(site, job_id="second", job_key="other", delete_target_files=True)
    with pytest.raises(CommittedError, match="was done"):
        await site.job(job_key=key).setup_job()


async def test_a_key_that_others_have_written_after(site: Site) -> None:
    """A rerun is recognised also when other work was committed to the table since."""
    await run_all(site, job_id="first", job_key="monday")
    job = site.job(job_key="tuesday")
    await job.setup_job()
    await site.task(job, 0, {"more": "m"})
    await job.commit_job()
    for key in ("monday", "tuesday"):
        with pytest.raises(CommittedError):
            await site.job(job_id="again", job_key=key).setup_job()


@pytest.mark.parametrize("key", ["nightly 2026-01-02", None, "nightly"])
async def test_another_key(site: Site, key: str | None) -> None:
    """Another key, or none, is other work."""
    await run_all(site, job_id="first", job_key="nightly 2026-01-01")
    job = site.job(job_key=key)
    await job.setup_job()
    await site.task(job, 0, {"more": "m"})
    await job.commit_job()

    assert site.files() == OURS | {"more": "m"}


async def test_a_key_without_a_marker_is_refused(site: Site) -> None:
    """A second run could not know that the first is done, so the two are not set together."""
    before = site.tree()
    with pytest.raises(PreflightError, match=r"job\.key is 'nightly', but .*marksuccessfuljobs"):
        await site.job(job_key="nightly", mark_success=False).setup_job()
    assert site.tree() == before

    await site.job(job_key="nightly", mark_success=False, readers_use_sink_log=True).setup_job()


@pytest.mark.parametrize("marker", ["", "not JSON", '{"name": "x"}'])
async def test_a_marker_that_says_nothing(site: Site, marker: str) -> None:
    """A marker of others says nothing of keys."""
    site.place({"/table/_SUCCESS": marker})
    await run_all(site, job_key="nightly")

    assert site.files() == OURS


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
async def test_a_marker_that_is_longer_than_any(tmp_path: Path, mode: Mode) -> None:
    """It is another's and says nothing of a key: it is replaced, and no job ends with it."""
    marker = tmp_path / "_SUCCESS"
    with marker.open("wb") as file:
        file.truncate(MAX_SUCCESS_BYTES + 1)
    job = committer(tmp_path, job_key="k")
    await job.setup_job()
    report = await job.commit_job([await run_task(job, 0, OURS)], mode=mode)
    await job.store.aclose()

    assert report.files == 1
    assert '"k"' in marker.read_text()
    with pytest.raises(CommittedError, match="'k' was done before"):
        await committer(tmp_path, job_id=OTHER, job_key="k").setup_job()


async def test_a_marker_that_cannot_be_read(site: Site) -> None:
    """The error says in what stage the job has ended."""
    site.place({"/table/_SUCCESS": "{}"})
    job = site.job(Faults(Fault("get", DeniedError, "_SUCCESS")), job_key="k")
    with pytest.raises(CommitError, match="job_stage_setup: get "):
        await job.setup_job()


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_directory_in_the_place_of_the_marker(site: Site, key: str | None) -> None:
    """The message names the marker; it may be moved aside as anything else in the way."""
    site.place({"/table/_SUCCESS/x": "x"})
    job = await site.ready(OURS, job_key=key)
    with pytest.raises(PreflightError, match="_SUCCESS: a directory is in the place of the job's"):
        await job.commit_job()
    await job.abort_job()

    await run_all(site, job_key=key, delete_target_files=True)

    assert site.files() == OURS


async def test_a_key_of_a_commit_that_was_cut_short(site: Site) -> None:
    """Kill, and run the unchanged script again: each row comes exactly once."""
    await cut_short(site, job_key="nightly")
    with pytest.raises(UnfinishedError):
        await site.job(job_key="nightly").setup_job()
    with pytest.raises(CommittedError, match=f"job {OTHER} .* is now finished"):
        await site.job(job_key="nightly", on_unfinished=OnUnfinished.RESUME).setup_job()
    assert site.files() == THEIRS
    with pytest.raises(CommittedError):
        await site.job(job_key="nightly").setup_job()

    assert site.files() == THEIRS


async def test_a_key_of_a_commit_that_was_rolled_back(site: Site) -> None:
    """What was undone is to be done again."""
    await cut_short(site, job_key="nightly")
    await run_all(site, job_key="nightly", on_unfinished=OnUnfinished.ROLLBACK)

    assert site.files() == OURS


# --- dry runs ---------------------------------------------------------------------------------


@in_virtual_time
async def test_a_dry_run_leaves_a_silent_commit_alone(site: Site) -> None:
    """To say what would be replaced nothing is written, not even to ask for the store's time."""
    await site.cut(THEIRS, Dies("rename", "/tasks/"), job_id=OTHER, lease=10.0)
    await asyncio.sleep(100)
    site.place({"/table/day=1/old": "o"})
    faults = Faults()
    job = site.job(faults, process="2.two", machine="b")
    await job.store.mkdir(job.layout.manifests_dir)
    await site.task(job, 0, OURS)
    faults.seen.clear()
    with pytest.raises(PreflightError, match=f"job {OTHER}"):
        await job.plan_job(mode=Mode.REPLACE_PARTITIONS)
    await job.job_statuses()

    assert changes(faults.seen) == []


async def test_a_dry_run_puts_nothing_back(site: Site) -> None:
    """Nor is a commit put back that an abort has in its hands."""
    await site.cut(THEIRS, Dies("rename", "/tasks/"), job_id=OTHER)
    other = site.job(job_id=OTHER)
    await other.store.rename(other.layout.attempt_dir, other.layout.ended("aborted"))
    site.place({"/table/day=1/old": "o"})
    faults = Faults()
    job = await site.ready(OURS, faults, on_unfinished=OnUnfinished.ROLLBACK)
    faults.seen.clear()
    await job.plan_job(mode=Mode.REPLACE_PARTITIONS)
    await job.job_statuses()

    assert changes(faults.seen) == []
