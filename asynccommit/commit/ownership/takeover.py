"""The ownership of a commit: its owner's liveness, and takeovers.

The commit record is the claim of the first owner; every later one adds a claim with the next
number, which only one can write. Then it renames the directory of the earlier owner, so that late
moves of that owner fail without a destination.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.driver.durable import make_durable
from asynccommit.commit.driver.owners import clock_file, describe, owner_of, time_of
from asynccommit.commit.errors import lease_lost
from asynccommit.commit.hints import job_command
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.flat_namespace import is_closed
from asynccommit.commit.ownership.lease import MARGIN, Lease, is_under_way, lease_of
from asynccommit.commit.ownership.status import CommitState, epoch_of, read_state, refuse_links
from asynccommit.commit.trees import merge
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    OwnedError,
    UnsupportedError,
)
from asynccommit.formats.commit_owner import MAX_EPOCH, MAX_OWNER_BYTES, Claim, encode_claim
from asynccommit.formats.commit_record import MAX_RECORD_BYTES
from asynccommit.runtime.host import Host
from asynccommit.stores.tree import list_if_there, read_if_there

_TRIES = 5
_STRAY = "stray-"
_UNDONE_AFTER = MARGIN + 0.5
"""Number of leases after which no request of a silent owner is executed any more."""
_GRANTS = 4.0
"""Number of grants that a lease lasts at least where workers have gone on."""
_CLOCK_SKEW_SECONDS = 2.0
"""Maximum rounding error of the store's times in seconds."""


async def set_aside(run: CommitContext, path: str, is_void: Callable[[bytes], bool]) -> None:
    """Move a void file away, so that it can be written again.

    Any other file is put back.

    Args:
        run: the commit under way.
        path: the file.
        is_void: says of the content whether it means nothing.

    Raises ``ExistsError`` for anything else.
    """
    place = f"{run.layout.epoch_dir(run.identity.epoch or 1)}/void-{run.host.new_id()}"
    await run.store.rename(path, place)
    if not is_void(await run.store.get(place, MAX_RECORD_BYTES)):
        await run.store.rename(place, path)
        raise ExistsError("put", path, "exists already")


# --- is the owner alive? ---------------------------------------------------------------------


async def is_alive(host: Host, standing: CommitState) -> bool | None:
    """Return whether the owner is alive; ``None`` if only its lease tells."""
    owner = standing.claim.owner
    if standing.stop is not None:
        return False
    if is_under_way(owner.id):
        return True
    if owner.host != host.name or not owner.process:
        return None
    if owner.process == host.process:
        return False  # this very process, and it is not at work on it
    return await asyncio.to_thread(host.is_running, owner.process)


def is_silent(host: Host, standing: CommitState, leases: float = 1.0) -> bool:
    """Return whether the lease has expired by this machine's clock.

    ``leases`` is the number of leases to wait for.
    """
    return host.now() - standing.seen > _silence_of(standing, leases)


def _silence_of(standing: CommitState, leases: float) -> float:
    return standing.claim.lease * leases + _CLOCK_SKEW_SECONDS


async def is_expired(
    run: CommitContext, layout: Layout, standing: CommitState, leases: float = 1.0
) -> bool:
    """Return whether the lease has expired by the store's own time.

    The modification time of a new file tells the store's time. See ``is_silent`` for ``leases``.
    """
    if not is_silent(run.host, standing, leases):
        return False
    try:
        now = await time_of(run.store, clock_file(run, layout.attempt_dir))
        since = await read_state(run.store, layout)  # the owner may have said so meanwhile
    except NotFoundError:
        return False
    if since is None or since.epoch != standing.epoch:
        return False
    return now - since.seen > _silence_of(since, leases)


async def refuse_in_flight(run: CommitContext, standing: CommitState) -> None:
    """Refuse to bring files back that a request under way may move again.

    The sources of a job are moved away first, so that a late request finds none. Those of a move of
    existing files come back to their paths. So its undoing waits until no request of an earlier
    owner can be executed any more. An owner sends none after ``MARGIN`` of its lease, which is more
    than twice as long as a request may take.

    Raises ``OwnedError``.
    """
    remote = bool(run.store.traits.account)
    if (
        not (run.layout.outside and remote)
        or standing.decision is not None
        or run.promise.withdrawn
    ):
        return
    if await is_expired(run, run.layout, standing, _UNDONE_AFTER):
        return
    age = max(0.0, run.host.now() - standing.seen)
    wait = max(1.0, _silence_of(standing, _UNDONE_AFTER) - age)
    text = (
        f"{describe(standing.claim.owner)} may have sent requests that {run.store.traits.name} has "
        f"yet to execute, and that would move files again. Nothing was done. Undo the move in "
        f"{wait:,.0f} s, or finish it now: {job_command('resume', run.layout)}"
    )
    raise OwnedError(run.layout.job_id, run.meter.stage, (), text)


async def _why_free(run: CommitContext, standing: CommitState, force: bool) -> str:
    """Return why the commit may be taken over.

    Raises ``OwnedError`` if it may not.
    """
    alive = await is_alive(run.host, standing)
    if standing.stop is not None:
        return "its owner stopped"
    if alive is False:
        return "the process of its owner died"
    if force:
        return "it was taken over"
    if await is_expired(run, run.layout, standing):
        return "its owner sent no heartbeat"
    age = max(0.0, run.host.now() - standing.seen)
    raise OwnedError(
        run.layout.job_id,
        run.meter.stage,
        (),
        f"{describe(standing.claim.owner)} is committing it; its last heartbeat was {age:,.0f} s "
        f"ago (its lease is {standing.claim.lease:,.0f} s). Nothing was done. If that process is "
        f"dead, take the commit over: {_takeover(run)}",
    )


def _takeover(run: CommitContext) -> str:
    flags = ["--rollback"] if run.meter.stage == "job_stage_abort" else []
    return job_command("takeover", run.layout, *flags)


# --- taking it over --------------------------------------------------------------------------


async def take_over(run: CommitContext, standing: CommitState, *, force: bool = False) -> Lease:
    """Become the owner of an abandoned commit; return its lease.

    The lease has the context to go on with.

    Raises ``OwnedError`` if somebody does, or was quicker.
    """
    traits = run.store.traits
    if not (traits.fences or traits.content_etags):
        raise UnsupportedError(
            f"{traits.name} cannot identify files that were moved here, which a takeover needs: "
            "finish or undo the commit by hand, or wait for its owner"
        )
    why = await _why_free(run, standing, force)
    epoch = standing.epoch + 1
    if epoch > MAX_EPOCH:
        raise ManifestError(run.layout.url(run.layout.record), "it has had too many owners")
    if standing.record.grant:  # it is waited for under the lease
        shortest = _GRANTS * standing.record.grant
        run = replace(run, options=replace(run.options, lease=max(lease_of(run), shortest)))
    owner = owner_of(run)
    known = replace(run.identity, manifests=standing.record.manifests, owner_id=owner.id)
    lease = Lease(replace(run, identity=known).for_commit(standing.commit_id))
    run = lease.run.acts()
    try:
        await _write_claim(run, Claim(epoch, owner, lease_of(run), int(run.host.now() * 1000), why))
        run = lease.run = run.numbered(epoch).acts()
        run.reach(Phase.CHANGING)
        if standing.stop is None:
            await asyncio.sleep(standing.record.grant)  # its workers may outlive it
        if traits.fences:
            await _take_place(run, lease)
            await directory_of(run).take_manifests(run)
        else:
            await _confirm(run, lease)
    except BaseException:
        lease.forget()
        raise
    return lease


async def _write_claim(run: CommitContext, claim: Claim) -> None:
    path, data = run.layout.owner(claim.epoch), encode_claim(claim)
    try:
        await run.store.put(path, data, overwrite=False)
    except (ExistsError, OutcomeUnknownError) as error:
        there = await read_if_there(run.store, path, MAX_OWNER_BYTES)
        if there == data:
            return
        if there is None:
            raise
        text = "another process took it over a moment ago. Nothing was done"
        raise OwnedError(run.layout.job_id, run.meter.stage, (), text) from error
    except NotFoundError as error:
        text = "another process ended it a moment ago. Nothing was done"
        raise OwnedError(run.layout.job_id, run.meter.stage, (), text) from error
    await make_durable(run, path, run.layout.attempt_dir)


async def _take_place(run: CommitContext, lease: Lease) -> None:
    """Take over the last owner's files, and fence all earlier owners.

    A file is put in the place of their directories: it blocks renames and new directories.

    Raises ``LeaseLostError`` if a later owner was quicker, and ``ManifestError`` for a link in the
    place of a directory.
    """
    listing = await list_if_there(run.store, run.layout.attempt_dir)
    if run.layout.owner(run.identity.epoch) not in {info.path for info in listing}:
        raise lease_lost(run, "another process ended it a moment ago")
    refuse_links(run.layout, listing)
    places = [info for info in listing if epoch_of(info.path)]
    last = max((epoch_of(info.path) for info in places if info.is_dir), default=0)
    if max((epoch_of(info.path) for info in places), default=0) > run.identity.epoch:
        raise lease_lost(run)
    run.check_lease()
    closed = any(info.path.endswith(".done") for info in listing)
    if last and last != run.identity.epoch and not closed:
        try:
            await run.store.rename(run.layout.epoch_dir(last), run.epoch_dir)
        except (NotFoundError, ExistsError):
            raise lease_lost(run) from None
    lease.closed, lease.bare = closed, not last and not closed
    if closed or lease.bare:
        return
    await _merge_strays(run)
    for epoch in range(1, run.identity.epoch):
        await _bar(run, epoch)


async def _confirm(run: CommitContext, lease: Lease) -> None:
    """Check that there is a commit to continue.

    This matters where only a claim keeps earlier owners out.

    An owner that ends looks for a claim after it has said so, and this looks for an end after its
    claim: so at least one of both sees the other.
    """
    closed = await is_closed(run)
    if closed is None:
        await directory_of(run).take_back(run, run.layout.owner(run.identity.epoch))
        text = "another process ended it a moment ago. Nothing was done"
        raise OwnedError(run.layout.job_id, run.meter.stage, (), text)
    lease.closed = closed


async def _merge_strays(run: CommitContext) -> None:
    """Take what an owner had moved aside, and not yet taken, when it died."""
    for info in await list_if_there(run.store, run.epoch_dir):
        if info.is_dir and info.path.rpartition("/")[2].startswith(_STRAY):
            await merge(run, info.path, run.epoch_dir)


async def _bar(run: CommitContext, epoch: int) -> None:
    """Block the directory of the owner of ``epoch``; take its files."""
    place = run.layout.epoch_dir(epoch)
    for number in range(_TRIES):
        try:
            await run.store.put(place, b"", overwrite=False)
            return
        except ExistsError:
            if not (await run.store.head(place)).is_dir:
                return
            with suppress(NotFoundError):
                name = f"{_STRAY}{epoch:06d}-{run.identity.epoch:06d}-{number}"
                stray = f"{run.epoch_dir}/{name}"
                await run.store.rename(place, stray)
                await merge(run, stray, run.epoch_dir)
    raise lease_lost(run)
