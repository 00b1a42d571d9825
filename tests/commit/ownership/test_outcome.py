"""How a commit ends: decided once, and nobody can decide otherwise."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.ownership.outcome import decide, find_decision
from asynccommit.errors import (
    CommitError,
    CommittedError,
    DeniedError,
    LeaseLostError,
    ManifestError,
    OutcomeUnknownError,
)
from asynccommit.formats.commit_owner import Decision, Outcome, encode_decision
from asynccommit.options.job import OnFailure
from tests.support.commits import DEST, OTHER, At, Dies, Lost, Site, own, request_of, run_of
from tests.support.faults import Fault, Faults

FILES = {"day=1/a": "1", "day=2/b": "2"}
OTHERWISE = {Outcome.COMMITTED: Outcome.ROLLBACK, Outcome.ROLLBACK: Outcome.COMMITTED}


async def owner(site: Site, *policies: Faults | At, process: str = "1.one") -> CommitContext:
    """Return the run of a new owner of the commit that is there."""
    return await own(site.job(*policies, process=process))


async def dead(site: Site) -> None:
    """Leave a commit behind whose process died before the decision."""
    await site.cut(FILES, Dies("put", "commit-outcome"))


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_the_first_decision_stands(site: Site, outcome: Outcome) -> None:
    """Deciding the same again is fine; deciding otherwise is refused, by whoever it is."""
    await dead(site)
    first = await owner(site)
    assert await find_decision(first) is None
    await decide(first, outcome)
    second = await owner(site)
    await decide(second, outcome)
    with pytest.raises(CommitError) as failed:
        await decide(second, OTHERWISE[outcome])
    found = await find_decision(second)

    assert found is not None
    assert (found.outcome, found.epoch, found.owner_id) == (outcome, 2, first.identity.owner_id)
    assert found.commit == first.identity.commit_id
    assert isinstance(failed.value, CommittedError) is (outcome is Outcome.COMMITTED)


async def test_two_decide_at_once(site: Site) -> None:
    """Of two who decide otherwise at the same moment one fails."""
    await dead(site)
    one, two = await owner(site), await owner(site)
    ends = await asyncio.gather(
        decide(one, Outcome.COMMITTED), decide(two, Outcome.ROLLBACK), return_exceptions=True
    )

    assert sorted(isinstance(end, CommitError) for end in ends) == [False, True]


async def test_from_the_decision_on_a_job_is_committed(site: Site) -> None:
    """The decision, and not its marker, is what makes a job committed."""
    await dead(site)
    run = await owner(site)
    phases = [run.phase]
    await decide(run, Outcome.COMMITTED)
    assert [*phases, run.phase] == [Phase.CHANGING, Phase.COMMITTED]
    with pytest.raises(CommittedError, match="is committed and cannot be rolled back"):
        await site.job().rollback_job()
    await site.job().resume_job()

    assert site.files() == FILES
    assert json.loads(site.tree()["/table/_SUCCESS"] or "")["success"] is True


async def test_a_refused_rollback_writes_nothing(site: Site) -> None:
    """A rollback of what is committed leaves no claim behind."""
    await dead(site)
    await decide(await owner(site), Outcome.COMMITTED)
    before = site.tree()
    with pytest.raises(CommittedError):
        await site.job().rollback_job()

    assert site.tree() == before


async def test_a_decided_rollback_is_finished_by_a_resume(site: Site) -> None:
    """Who resumes what is being undone undoes it, and says so."""
    await dead(site)
    await decide(await owner(site), Outcome.ROLLBACK)
    report = await site.job().resume_job()

    assert report.rolled_back
    assert report.success is None
    assert site.files() == {}
    assert site.left() == []


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_a_decision_whose_answer_was_lost(site: Site, outcome: Outcome) -> None:
    """What is there tells whether it was written."""
    await dead(site)
    lost = Fault("put", OutcomeUnknownError, "commit-outcome", after=True, times=1)
    await decide(await owner(site, Faults(lost)), outcome)
    never = Fault("put", OutcomeUnknownError, "commit-outcome", times=1)
    run = await owner(site, Faults(never))
    await decide(run, outcome)

    assert lost.struck == never.struck == 1


async def test_a_decision_that_was_not_written(site: Site) -> None:
    """A decision that is not there when its answer is lost is written once more."""
    await dead(site)
    run = await owner(site, Faults(Fault("put", OutcomeUnknownError, "commit-outcome", times=1)))
    await decide(run, Outcome.COMMITTED)

    assert run.phase is Phase.COMMITTED
    assert await find_decision(run) is not None


async def test_a_decision_that_cannot_be_written(site: Site) -> None:
    """One that is not there in the end was not made."""
    await dead(site)
    run = await owner(site, Faults(Fault("put", OutcomeUnknownError, "commit-outcome")))
    with pytest.raises(OutcomeUnknownError):
        await decide(run, Outcome.COMMITTED)

    assert run.phase is Phase.CHANGING
    assert await find_decision(run) is None


async def test_a_decision_that_comes_late(site: Site) -> None:
    """One that is there after all, before it is written once more, is the decision."""
    await dead(site)
    run = await owner(site)
    real = run.store.put
    sent: list[bytes] = []

    async def late(path: str, data: bytes, **options: Any) -> Any:
        if path != run.layout.outcome:
            return await real(path, data, **options)
        sent.append(data)
        if len(sent) == 1:
            raise OutcomeUnknownError("put", path)
        await real(path, sent[0], **options)
        return await real(path, data, **options)

    run.store.put = late  # type: ignore[method-assign]
    await decide(run, Outcome.COMMITTED)

    assert run.phase is Phase.COMMITTED


async def test_a_blank_decision_is_replaced(site: Site) -> None:
    """A decision of which a power cut has left the name alone does not keep another away."""
    await dead(site)
    run = await owner(site)
    await run.store.put(run.layout.outcome, b"")
    await decide(run, Outcome.ROLLBACK)
    found = await find_decision(run)

    assert found is not None
    assert found.outcome is Outcome.ROLLBACK


async def test_nobody_decides_without_the_right(site: Site) -> None:
    """An owner whose lease is over does not send a decision."""
    await dead(site)
    faults = Faults()
    run = await owner(site, faults)
    run = replace(run, lease=Lost())
    faults.seen.clear()
    with pytest.raises(LeaseLostError):
        await decide(run, Outcome.COMMITTED)

    assert faults.seen == []


async def test_nobody_decides_after_another_has_claimed(site: Site) -> None:
    """An owner that does not know yet that it was taken over finds out before it decides."""
    await dead(site)
    first = await owner(site)
    await own(site.job(process="2.two"), force=True)
    with pytest.raises(LeaseLostError):
        await decide(first, Outcome.COMMITTED)

    assert await find_decision(first) is None


async def test_a_damaged_decision(site: Site) -> None:
    """A decision that cannot be read is not guessed at."""
    await dead(site)
    run = await owner(site)
    await run.store.put(run.layout.outcome, b'{"type": "asynccommit.CommitOutcome/1"}')
    with pytest.raises(ManifestError, match="outcome"):
        await find_decision(run)


async def test_the_decision_comes_between_validation_and_marker(site: Site) -> None:
    """Validated, decided, marked, cleaned: in this order."""
    faults = Faults()
    job = await site.ready(FILES, faults)
    faults.seen.clear()
    await job.commit_job()
    seen = [" ".join(request_of(op)) for op in faults.seen]
    validated = max(i for i, text in enumerate(seen) if text.startswith("list") and "day=" in text)
    decided = next(
        i for i, text in enumerate(seen) if "put" in text and "00/commit-outcome" in text
    )
    marked = next(
        i
        for i, text in enumerate(seen)
        if text.startswith("rename") and text.endswith(f" {job.layout.success}")
    )
    cleaned = next(
        i for i, text in enumerate(seen) if text.startswith("rename") and "00.committed" in text
    )

    assert validated < decided < marked < cleaned


# --- what is decided when a commit fails ------------------------------------------------------


async def test_a_failed_commit_decides_nothing(site: Site) -> None:
    """What failed half-way may be finished or undone."""
    job = await site.ready(FILES, Faults(Fault("rename", DeniedError, "day=2")), workers=1)
    with pytest.raises(CommitError, match="asynccommit resume"):
        await job.commit_job()
    assert await find_decision(run_of(job)) is None
    report = await site.job().resume_job()

    assert report.resumed
    assert site.files() == FILES


async def test_a_policy_to_roll_back(site: Site) -> None:
    """With the policy a failed commit is undone at once; the error says why, and that."""
    site.place({"/table/day=1/old": "o", "/table/_SUCCESS": "old"})
    before = site.tree()
    job = await site.ready(
        FILES,
        Faults(Fault("rename", DeniedError, "day=2", times=1)),
        on_failure=OnFailure.ROLLBACK,
    )
    with pytest.raises(CommitError, match=r"day=2.*it was rolled back") as failed:
        await job.commit_job()

    assert "asynccommit resume" not in str(failed.value)
    assert site.tree() == before


async def test_a_policy_to_roll_back_when_cancelled(site: Site) -> None:
    """A commit that is cancelled is undone as well, before the cancellation goes on."""
    site.place({"/table/day=1/old": "o"})
    before = site.tree()
    hangs = asyncio.Event()

    async def hang() -> None:
        hangs.set()
        await asyncio.sleep(3600)

    job = await site.ready(FILES, At("rename", "day=2", hang), on_failure=OnFailure.ROLLBACK)
    commit = asyncio.create_task(job.commit_job())
    await hangs.wait()
    commit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await commit

    assert site.tree() == before


async def test_a_policy_to_roll_back_that_fails_itself(site: Site) -> None:
    """When the rollback fails too, both are told, and what is decided can be finished."""
    faults = Faults(Fault("rename", DeniedError, "day=2"), Fault("rename", DeniedError, "undone"))
    job = await site.ready(FILES, faults, workers=1, on_failure=OnFailure.ROLLBACK)
    with pytest.raises(CommitError) as failed:
        await job.commit_job()
    assert "could not be rolled back" in "\n".join(failed.value.__notes__)
    await site.job().rollback_job()

    assert site.files() == {}
    assert site.left() == []


@pytest.mark.parametrize("verb", ["commit", "resume"])
async def test_a_policy_to_roll_back_before_anything_has_begun(site: Site, verb: str) -> None:
    """A commit that is refused before it begins has nothing to undo."""
    site.place({"/table/day=1/a": "in the way"})
    job = await site.ready(FILES, on_failure=OnFailure.ROLLBACK)
    before = site.tree()
    with pytest.raises(CommitError):
        await (job.commit_job() if verb == "commit" else job.resume_job())

    assert site.tree() == before


async def test_a_policy_to_roll_back_after_the_decision(site: Site) -> None:
    """A committed job whose marker or clean-up fails is not undone."""
    job = await site.ready(
        FILES, Faults(Fault("rename", DeniedError, "_SUCCESS")), on_failure=OnFailure.ROLLBACK
    )
    with pytest.raises(CommitError, match="the job is committed, but"):
        await job.commit_job()
    assert site.files() == FILES
    await site.job().resume_job()

    assert "/table/_SUCCESS" in site.tree()


async def test_a_commit_after_a_failed_policy(site: Site) -> None:
    """Who commits a job again that is being rolled back is not told that it is committed."""
    faults = Faults(Fault("rename", DeniedError, "day=2"), Fault("rename", DeniedError, "undone"))
    job = await site.ready(FILES, faults, workers=1, on_failure=OnFailure.ROLLBACK)
    with pytest.raises(CommitError):
        await job.commit_job()
    with pytest.raises(CommitError, match="is now finished: run it again") as ended:
        await site.job().commit_job()

    assert site.files() == {}
    assert "could not be recorded" not in str(ended.value)  # the job and its stop are gone


async def test_others_are_not_touched_by_a_rollback(site: Site) -> None:
    """What another job is writing under the same destination stays."""
    other = await site.ready({"theirs": "t"}, job_id=OTHER)
    await dead(site)
    await site.job().rollback_job()
    await other.commit_job()

    assert site.files() == {"theirs": "t"}
    assert DEST in site.tree()


@pytest.mark.parametrize("act", ["resume_job", "rollback_job"])
async def test_an_outcome_of_an_earlier_run_of_the_job_says_nothing(site: Site, act: str) -> None:
    """A late decision of another commit is set aside, and the job comes to its end."""
    await site.cut({"a": "1"}, Dies("put", "commit-outcome"))
    site.alive["1.one"] = False
    job = site.job(process="2.two")
    said = Decision(Outcome.COMMITTED, 1, "of an earlier run", 1, "0" * 64)
    await site.intrude({site.bare(job.layout.outcome): encode_decision(said).decode()})
    await getattr(job, act)()

    assert site.files() == ({"a": "1"} if act == "resume_job" else {})
    assert site.left() == []
