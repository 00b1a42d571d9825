"""Let the workers of a runner do a part of a commit, slice by slice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from asynccommit.commit.context import CommitContext
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.orders import (
    GRANT,
    REQUEST,
    Order,
    Runner,
    Slice,
    Tally,
    WorkerLostError,
)
from asynccommit.commit.ownership.lease import lease_of
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.plan_file import has_chunks
from asynccommit.commit.slices.grants import Granting
from asynccommit.commit.slices.worker import TOLD
from asynccommit.commit.steps.validate import validates
from asynccommit.errors import AsyncCommitError, CommitError, LeaseLostError, OptionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Traits
from asynccommit.version import __version__

TRIES = 4
"""Maximum number of times that a slice is handed out."""
_LEASE = 2 * (GRANT + REQUEST)
"""The shortest lease, in seconds, with which an owner uses workers."""


@asynccontextmanager
async def with_workers(run: CommitContext, plan: Plan) -> AsyncIterator[CommitContext]:
    """Let the workers of the runner, if any, help with a commit that begins.

    Yields the context that has them. They are started and tried before anything changes, if there
    are several slices. If they cannot do the work a warning says why, and this process does it
    alone. Raises ``OptionError`` if nothing would check their work.
    """
    runner = run.environment.runner
    files = plan.loaded.files
    if runner is None or files < runner.least or not has_chunks(files):
        yield run
        return
    checked = validates(run) and run.options.validate_sample is None
    if not checked and runner.least:  # nobody has asked for workers
        yield run
        return
    if not checked:
        raise OptionError(
            "workers move files only if all of them are validated afterwards: leave out "
            "asynccommit.workers, or validate=False and validate_sample"
        )
    try:
        why = why_alone(run, plan)
        if not why:
            storage = run.environment.storage
            order = Order(run.layout, __version__, storage, _told(run))
            why = await _opened(runner, order)
        if why:
            run.warn(f"asynccommit.workers={runner.name}: {why}; this process moves all files")
        else:
            run = replace(run, slicer=Slicing(plan, runner, order))
        yield run
    finally:
        await runner.aclose()


def why_alone(run: CommitContext, plan: Plan) -> str:
    """Return why the owner must move the files of a plan itself, or ``""``."""
    traits = run.store.traits
    if not _names_files(traits):
        return f"requests to {traits.name} do not name the file that they move"
    if type(run.layout) is not Layout:
        return "the files of this committer are not in the directory of the job"
    if plan.units or plan.replaced:
        return "the job replaces directories"
    if plan.loaded.etags is not True:
        return "some manifests have no etags"
    if lease_of(run) < _LEASE:
        return f"asynccommit.lease is below {_LEASE:,.0f} seconds"
    return ""


def _names_files(traits: Traits) -> bool:
    """Return whether a rename that comes late or twice moves nothing else."""
    whole = traits.conditional_rename and traits.conditions_proven
    return bool(traits.account) and whole and (traits.tokens or traits.content_etags)


async def _opened(runner: Runner, order: Order) -> str:
    try:
        await runner.open(order)
    except (AsyncCommitError, OSError, WorkerLostError) as error:
        return str(error)
    return ""


def _told(run: CommitContext) -> dict[str, object]:
    return {name: getattr(run.options, name) for name in TOLD}


@dataclass(slots=True)
class Slicing:
    """The ``Slicer`` of a commit.

    Attributes:
        plan: the plan of the commit.
        runner: has the workers.
        order: as it was tried.
        digests: of the chunks of the plan, once they are written.
        plan_id: names the plan.
        outside: places outside of the destination that the commit changes.
    """

    plan: Plan
    runner: Runner
    order: Order
    digests: Sequence[str] = ()
    plan_id: str = ""
    outside: tuple[str, ...] = ()

    def planned(self, plan_id: str, digests: Sequence[str], outside: tuple[str, ...]) -> None:
        """See ``Slicer.planned``."""
        self.plan_id, self.digests, self.outside = plan_id, digests, outside

    async def move(self, run: CommitContext, carried: Collection[str]) -> None:
        """See ``Slicer.move``."""
        identity = run.identity
        slices = [Slice(number, digest) for number, digest in enumerate(self.digests)]
        order = replace(
            self.order,
            layout=run.layout,
            parts=max(1, min(self.runner.workers, len(slices))),
            commit_id=identity.commit_id,
            epoch=identity.epoch,
            plan_id=self.plan_id,
            outside=self.outside,
            carried=frozenset(carried),
        )
        await hand_out(run, self.runner, order, slices, partial(self._took, run))

    def _took(self, run: CommitContext, tally: Tally) -> None:
        most = self.plan.loaded.files - run.promise.renamed
        run.count_renamed(min(tally.done, most), tally.rows)
        run.warnings.extend(tally.warnings)
        known = self.plan.workers.get(tally.worker, {})
        work = {
            "slices": 1,
            "files": tally.rows,
            "seconds": tally.seconds,
            "refused": tally.refused,
        }
        self.plan.workers[tally.worker] = {
            name: known.get(name, 0) + count for name, count in work.items()
        }


async def hand_out(
    run: CommitContext,
    runner: Runner,
    order: Order,
    slices: Sequence[Slice],
    took: Callable[[Tally], object],
) -> None:
    """Have every slice done. The first error of a slice stops new ones.

    Raises ``CommitError`` if no worker has lived through a slice, ``LeaseLostError``, and the error
    of a slice.
    """
    async with Granting(run, order.parts) as granting:

        async def one(piece: Slice) -> None:
            for attempt in range(TRIES):
                run.check_lease()
                try:
                    took(await _submit(runner, order, replace(piece, attempt=attempt), granting))
                    return
                except WorkerLostError as error:
                    lost = error
            text = f"{TRIES} workers were lost at part {piece.chunk} of the plan: {lost}"
            raise CommitError(run.layout.job_id, run.meter.stage, (), text) from lost

        await for_each(slices, one, workers=order.parts)


async def _submit(runner: Runner, order: Order, piece: Slice, granting: Granting) -> Tally:
    """Submit a slice, and note if its worker may go on."""
    answered = False
    try:
        tally = await runner.submit(order, piece)
        answered = True
        return tally
    except WorkerLostError:
        raise
    except LeaseLostError as error:  # it has not heard of its owner for too long
        answered = True
        raise WorkerLostError(str(error)) from error
    except Exception:  # the worker's own
        answered = True
        raise
    finally:
        granting.unsure = granting.unsure or not (answered or runner.kills)
