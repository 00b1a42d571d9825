"""The runner takes the steps of a commit in one order, and a rollback in the other."""

from __future__ import annotations

from asynccommit.commit.by_rename.steps import STEPS
from asynccommit.commit.context import CommitContext
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.runner import backward, settle
from asynccommit.commit.steps.step import CommitStep, RollbackResult
from tests.support.commits import Site, run_of


class Named(CommitStep):
    """Does nothing, and writes down what it was asked for."""

    stage = "op_rename"

    def __init__(self, name: str, asked: list[str]) -> None:
        self._name = name
        self._asked = asked

    def count(self, run: CommitContext, plan: Plan) -> int | None:
        """See ``CommitStep.count``."""
        return None

    async def settle(self, run: CommitContext, plan: Plan, settled: Settled) -> Settled:
        """See ``CommitStep.settle``."""
        self._asked.append(f"settle {self._name}")
        return settled

    async def do(self, run: CommitContext, plan: Plan, settled: Settled) -> None:
        """See ``CommitStep.do``."""
        self._asked.append(f"do {self._name}")

    async def fence(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.fence``."""
        self._asked.append(f"fence {self._name}")

    async def undo(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """See ``CommitStep.undo``."""
        self._asked.append(f"undo {self._name}")


async def test_every_step_is_fenced_before_the_last_one_is_undone(site: Site) -> None:
    """A rollback keeps late requests of all steps out, then undoes them from the last one."""
    asked: list[str] = []
    run = run_of(site.job())
    steps = Named("one", asked), Named("two", asked)
    with LoadedManifests(run.options, run.store.traits) as loaded:
        await settle(run, Plan(loaded), steps)
        await backward(run, Plan(loaded), steps)
    expected = ["settle one", "settle two", "fence one", "fence two", "undo two", "undo one"]
    assert asked == expected


async def test_an_empty_commit_needs_few_steps(site: Site) -> None:
    """Where nothing is in the way and no directory comes whole, those steps are left out."""
    run = run_of(site.job())
    with LoadedManifests(run.options, run.store.traits) as loaded:
        plan = Plan(loaded)
        taken = [type(step).__name__ for step in STEPS if step.count(run, plan) is not None]
    assert taken == ["MakeDirectories", "RenameFiles"]
