"""Do slices of a commit, in whatever process a runner has started."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, cast

from asynccommit.commit.context import CommitContext, CommitIdentity, Environment, Phase
from asynccommit.commit.orders import Order, Slice, Tally
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.plan_file import PlanReader
from asynccommit.commit.slices.permit import Permit
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.rename_files import FileMover
from asynccommit.errors import UnsupportedError
from asynccommit.options.job import Options
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.tree import list_if_there
from asynccommit.version import __version__

TOLD = ("workers", "validate", "attempts", "retry_seconds", "rate", "spill_directory")
"""Options of a commit that its workers obey as well."""


def check_version(owner: str) -> None:
    """Check that this is the version of the owner.

    Raises ``UnsupportedError``.
    """
    if owner != __version__:
        raise UnsupportedError(f"a worker has asynccommit {__version__}, not {owner}")


async def look(order: Order, store: Store) -> None:
    """Check that this process can do the order; change nothing.

    Raises ``UnsupportedError`` for another version, and what the store raises.
    """
    check_version(order.version)
    await list_if_there(store, order.layout.attempt_dir)


class Worker:
    """A process that does slices of an order, one after the other.

    Within its context the worker watches its owner.

    Args:
        order: as the owner gives it.
        store: the store of the destination.
        host: clock and name of this process.
    """

    def __init__(self, order: Order, store: Store, host: Host) -> None:
        self._order, self._store, self._host = order, store, host
        self.permit = Permit(worker_context(order, store, host))
        self._held = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._held.enter_async_context(self.permit.held())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._held.__aexit__(kind, error, trace)

    async def do(self, piece: Slice) -> Tally:
        """Rename the files of one chunk.

        Any number of workers may do the same one. Raises ``LeaseLostError`` if the order is over,
        ``ManifestError`` for another chunk, and what the rename of a file raises.
        """
        order = self._order
        run = worker_context(order, self._store, self._host, self.permit)
        begin = run.host.clock()
        self.permit.check()
        with LoadedManifests(run.options, run.store.traits) as loaded:
            plan = Plan(loaded, carried=set(order.carried))
            reader = PlanReader(run, order.plan_id, order.outside, plan)
            await reader.read(piece.chunk, piece.digest)
            await FileMover(run, plan, Settled(run, plan)).move(loaded.spill.entries())
            took, warnings = run.host.clock() - begin, tuple(run.warnings)
            name = f"{run.host.process.partition('.')[0]}@{run.host.name}"
            return Tally(
                piece.chunk, name, loaded.files, run.promise.renamed, took, warnings=warnings
            )


def worker_context(
    order: Order, store: Store, host: Host, permit: Permit | None = None
) -> CommitContext:
    """Return the context in which a worker acts for the owner of an order."""
    told = cast(dict[str, Any], {name: order.options[name] for name in order.options})
    options = Options(**told, allow_outside_destination=True)  # the owner has read the whole plan
    run = CommitContext.new(Environment(store, host, store), order.layout, options)
    run.reach(Phase.CHANGING)
    identity = CommitIdentity(order.commit_id, "", order.epoch)
    return replace(run, identity=identity, lease=permit)
