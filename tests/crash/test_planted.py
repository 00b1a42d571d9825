"""The harness bites: a committer with one bug in it is caught, whichever of these the bug is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from asynccommit.commit.by_rename import publisher, record, recovery
from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver import drafts
from asynccommit.commit.fingerprints import fingerprint
from asynccommit.commit.ownership import lease
from asynccommit.commit.ownership import takeover as ownership
from asynccommit.commit.planning import whole_directories
from asynccommit.commit.planning.load_manifests import identity
from asynccommit.commit.planning.plan import Aside, Plan
from asynccommit.commit.planning.plan_file import PlanWriter, Saved
from asynccommit.commit.steps import (
    cleanup,
    move_aside,
    rename_files,
    runner,
    success_marker,
    swap,
    undo_renames,
)
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.make_directories import MakeDirectories
from asynccommit.commit.steps.rename_files import RenameFiles
from asynccommit.commit.steps.step import RollbackResult
from asynccommit.commit.steps.success_marker import write_success
from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.formats.commit_owner import Decision, encode_decision
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.policies.funnel import Op, Wrapped
from asynccommit.stores.policies.lost_replies import Recover
from tests.crash.checks import Check, company, encounters, points, seeds
from tests.crash.scenarios import APPEND, IN_THE_WAY, REPLACE_PARTITIONS, SMALLEST

Plant = Callable[[pytest.MonkeyPatch], None]


# --- the bugs ---------------------------------------------------------------------------------


def success_first(patch: pytest.MonkeyPatch) -> None:
    """Write the marker before the files are there."""

    make = MakeDirectories.do

    async def hasty(
        self: MakeDirectories, run: CommitContext, plan: Plan, settled: Settled
    ) -> None:
        await write_success(run, plan)
        await make(self, run, plan, settled)

    patch.setattr(MakeDirectories, "do", hasty)


def record_late(patch: pytest.MonkeyPatch) -> None:
    """Begin to change the destination before the record is written."""

    async def early(run: CommitContext, plan: Plan, *args: Any, **kwargs: Any) -> Any:
        for step in MakeDirectories(), RenameFiles():
            await step.do(run, plan, Settled(run, plan))
        return await record.begin(run, plan, *args, **kwargs)

    patch.setattr(publisher, "begin", early)


def no_fences(patch: pytest.MonkeyPatch) -> None:
    """Leave what a dispossessed owner needs where it is, and let it never look at its lease."""

    async def beside(run: CommitContext, held: object) -> None:
        await run.store.mkdir(run.epoch_dir)

    async def nothing(self: object, run: CommitContext, plan: Plan, undone: object) -> None:
        """Move nothing away."""

    patch.setattr(ownership, "_take_place", beside)
    patch.setattr(RenameFiles, "fence", nothing)
    patch.setattr(lease.Lease, "check", lambda self: None)


def clean_shared(patch: pytest.MonkeyPatch) -> None:
    """Delete the directory of all jobs."""

    async def delete(run: CommitContext) -> None:
        with suppress(NotFoundError):
            await run.store.delete_tree(run.layout.temporary)

    patch.setattr(cleanup, "_delete_job_dir", delete)


def no_recovery(patch: pytest.MonkeyPatch) -> None:
    """Believe every answer, and every silence."""
    patch.setattr(Recover, "around", lambda self, call: call)


def renames_again(patch: pytest.MonkeyPatch) -> None:
    """Send a rename again when it was not answered, and believe what is said then."""

    async def renamed(
        self: Wrapped, source: str, dest: str, *, replace: bool = False, **options: Any
    ) -> None:
        await self._call(Op("rename", (source, dest), True, True, {"replace": replace, **options}))

    patch.setattr(Wrapped, "rename", renamed)


def rollback_deletes(patch: pytest.MonkeyPatch) -> None:
    """Undo by deleting whatever is at the destinations."""

    async def delete(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        async def one(entry: Any) -> None:
            with suppress(NotFoundError):
                await run.store.delete(entry.dest)

        await for_each(plan.loaded.spill.entries(), one, workers=1)

    patch.setattr(undo_renames, "take_files", delete)


def resume_renames_all(patch: pytest.MonkeyPatch) -> None:
    """Resume as if nothing had been moved, and ask for no identity."""

    async def all_of_them(
        self: RenameFiles, run: CommitContext, plan: Plan, settled: Settled
    ) -> None:
        async for entry in plan.loaded.spill.each():
            await run.store.rename(entry.source, entry.dest)

    patch.setattr(RenameFiles, "do", all_of_them)


def resume_trusts_names(patch: pytest.MonkeyPatch) -> None:
    """Take what is at a destination for the file that belongs there, whatever it is."""

    async def by_name(run: CommitContext, plan: Plan) -> Settled:
        there = set()
        async for entry in plan.loaded.spill.each():
            with suppress(NotFoundError):
                await run.store.head(entry.dest)
                there.add(fingerprint(identity(entry)))
        return Settled(run, plan, there)

    patch.setattr(rename_files, "reconcile", by_name)


def anybody_may(patch: pytest.MonkeyPatch) -> None:
    """Take a commit from an owner that lives, and go on beside it."""

    async def free(*_: Any) -> str:
        return "nobody asked"

    patch.setattr(ownership, "_why_free", free)
    patch.setattr(lease.Lease, "check", lambda self: None)


def two_outcomes(patch: pytest.MonkeyPatch) -> None:
    """Decide whatever was decided before."""

    async def decide(
        run: CommitContext, ending: Any, *, after: Any = None, reserved: Any = None
    ) -> None:
        if after is not None:
            await after()
        decision = Decision(
            ending, run.identity.epoch, run.identity.owner_id, 0, run.identity.commit_id
        )
        await run.store.put(run.layout.outcome, encode_decision(decision))

    patch.setattr(runner, "decide", decide)
    patch.setattr(recovery, "decide", decide)
    no_leases(patch)


def no_leases(patch: pytest.MonkeyPatch) -> None:
    """Let an owner go on that has lost its commit."""
    patch.setattr(lease.Lease, "check", lambda self: None)


def nothing_restored(patch: pytest.MonkeyPatch) -> None:
    """Forget what was moved aside."""

    async def nothing(*_: Any) -> None:
        raise NotFoundError("rename", "", "not checked")

    patch.setattr(move_aside, "_bring_back", nothing)


def deleted_at_once(patch: pytest.MonkeyPatch) -> None:
    """Delete what is replaced, where it should be moved aside."""

    async def delete(run: CommitContext, aside: Aside) -> None:
        with suppress(NotFoundError):
            await run.store.delete_tree(aside.path)

    patch.setattr(move_aside, "move_one_aside", delete)
    patch.setattr(swap, "move_one_aside", delete)


def strangers_lost(patch: pytest.MonkeyPatch) -> None:
    """Delete with an old partition what is not to be replaced."""

    async def nothing(*_: Any) -> None:
        """Put nothing back."""

    patch.setattr(swap, "_put_back", nothing)


def drafts_once(patch: pytest.MonkeyPatch) -> None:
    """Put drafts in place under the etag of their first append, or fail."""

    async def no_longer(*_: Any) -> Info:
        raise PreconditionError("rename", "", "it was changed meanwhile")

    patch.setattr(drafts, "found_again", no_longer)


def marker_by_name(patch: pytest.MonkeyPatch) -> None:
    """Move whatever is at the marker's temporary name into its place."""

    async def move(run: CommitContext, temp: Info) -> None:
        await run.store.rename(temp.path, run.layout.success, replace=True)

    patch.setattr(success_marker, "_move_marker", move)


def plan_not_saved(patch: pytest.MonkeyPatch) -> None:
    """Write a record that names no part of the plan, so that a resume has none."""

    def unsaved(writer: PlanWriter) -> Saved:
        return Saved((), writer.version)

    patch.setattr(PlanWriter, "saved", property(unsaved))


def folders_by_name(patch: pytest.MonkeyPatch) -> None:
    """Move whole folders where a rename of one names no version, and nothing fences it."""

    def can(run: CommitContext, plan: Plan) -> bool:
        return run.identity.epoch <= 1 and plan.loaded.etags is not None

    patch.setattr(whole_directories, "_can", can)


PLANTED: dict[str, tuple[Plant, Check]] = {
    "success written early": (success_first, seeds()),
    "record written late": (record_late, points(APPEND, "rollback")),
    "no fencing": (no_fences, encounters(IN_THE_WAY)),
    "cleanup of the shared directory": (clean_shared, points(APPEND, "resume")),
    "recover off": (no_recovery, seeds()),
    "retry of a call that is not repeatable": (renames_again, seeds()),
    "rollback that deletes by name": (rollback_deletes, points(IN_THE_WAY, "rollback")),
    "resume that renames again": (resume_renames_all, points(SMALLEST, "resume")),
    "resume that trusts names": (resume_trusts_names, points(IN_THE_WAY, "resume")),
    "takeover of a living owner": (anybody_may, company),
    "outcome not exclusive": (
        two_outcomes,
        encounters(SMALLEST, which=lambda way: way.second == "rollback"),
    ),
    "nothing restored": (nothing_restored, points(IN_THE_WAY, "rollback")),
    "deleted, not moved aside": (deleted_at_once, points(IN_THE_WAY, "rollback")),
    "strangers lost": (strangers_lost, points(REPLACE_PARTITIONS, "resume")),
    "doubled append": (drafts_once, seeds(start=4_400)),
    "marker moved by name": (marker_by_name, seeds(start=21_040)),
    "plan not saved": (plan_not_saved, points(SMALLEST, "resume")),
    "folders moved by name": (folders_by_name, seeds("hns", start=3)),
}


def bites(plant: Plant, check: Check, patch: pytest.MonkeyPatch) -> None:
    """Assert that a bug is caught, and that it is the bug, and no mistake in how it was planted."""
    plant(patch)

    found = check()

    assert found != []
    assert not [text for text in found if "TypeError" in text or "AttributeError" in text]


@pytest.mark.sample(2)
@pytest.mark.timeout(180)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some run ends in a way in which it must not."""
    plant, check = PLANTED[bug]

    bites(plant, check, monkeypatch)
