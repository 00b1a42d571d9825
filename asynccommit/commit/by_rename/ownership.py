"""The ownership of a commit: whether its owner is alive, and how another takes it over.

The commit record is the claim of the first owner; every later one adds a claim with the next
number, which only one can write. Then it renames the place where the earlier one worked, so that
whatever that one still moves there fails for want of a directory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from asynccommit.commit.by_rename.flat_namespace import is_closed, take_back_word
from asynccommit.commit.by_rename.lease import Lease, is_under_way, lease_lost, lease_of
from asynccommit.commit.by_rename.status import CommitState, epoch_of, read_if_there, read_state
from asynccommit.commit.by_rename.swap import merge
from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.durable import make_durable
from asynccommit.commit.hints import job_command
from asynccommit.commit.layout import Layout
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    OwnedError,
    StoreError,
    UnsupportedError,
)
from asynccommit.formats.commit_owner import MAX_EPOCH, MAX_OWNER_BYTES, Claim, encode_claim
from asynccommit.formats.commit_record import MAX_RECORD_BYTES, Owner
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.tree import is_there, list_if_there, remove_file

_TRIES = 5
_CLOCK_SKEW_SECONDS = 2.0
"""Seconds by which times of a store may be rounded."""


async def set_aside(run: CommitContext, path: str, is_void: Callable[[bytes], bool]) -> None:
    """Move a file away that means nothing, so that it can be written; anything else is put back.

    Args:
        run: the commit under way.
        path: the file.
        is_void: says of the content whether it means nothing.

    Raises ``ExistsError`` for anything else.
    """
    place = f"{run.layout.epoch_dir(run.epoch or 1)}/void-{run.host.new_id()}"
    await run.store.rename(path, place)
    if not is_void(await run.store.get(place, MAX_RECORD_BYTES)):
        await run.store.rename(place, path)
        raise ExistsError("put", path, "is there already")


# --- is the owner alive? ---------------------------------------------------------------------


def owner_of(run: CommitContext) -> Owner:
    """Return this process as the owner of a commit."""
    return Owner(run.host.new_id(), run.host.name, run.host.user, run.host.process)


def describe(owner: Owner) -> str:
    """Return an owner as people know it."""
    process = owner.process.partition(".")[0]
    return f"{owner.user}@{owner.host}" + (f", process {process}" if process else "")


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


def is_silent(host: Host, standing: CommitState) -> bool:
    """Return whether the lease has expired by this machine's clock."""
    return host.now() - standing.seen > standing.claim.lease + _CLOCK_SKEW_SECONDS


async def is_expired(run: CommitContext, layout: Layout, standing: CommitState) -> bool:
    """Return whether the lease has expired by the store's own time.

    The modification time of a new file tells the store's time.
    """
    if not is_silent(run.host, standing):
        return False
    try:
        now = await time_of(run.store, f"{layout.attempt_dir}/commit-clock-{run.host.new_id()}")
        since = await read_state(run.store, layout)  # the owner may have said so meanwhile
    except NotFoundError:
        return False
    if since is None or since.epoch != standing.epoch:
        return False
    return now - since.seen > since.claim.lease + _CLOCK_SKEW_SECONDS


async def time_of(store: Store, probe: str) -> float:
    """Return a store's own time, told by a file written for it. Raises ``StoreError``."""
    try:
        await store.put(probe, b"", overwrite=False)
        return (await store.head(probe)).modified
    finally:
        with suppress(StoreError):
            await remove_file(store, probe)


async def _why_free(run: CommitContext, standing: CommitState, force: bool) -> str:
    """Return why another may go on with the commit. Raises ``OwnedError`` if none may."""
    alive = await is_alive(run.host, standing)
    if standing.stop is not None:
        return "its owner had stopped"
    if alive is False:
        return "its owner's process had died"
    if force:
        return "it was taken over"
    if await is_expired(run, run.layout, standing):
        return "its owner gave no sign of life"
    age = max(0.0, run.host.now() - standing.seen)
    raise OwnedError(
        run.layout.job_id,
        run.stage,
        (),
        f"{describe(standing.claim.owner)} is committing it, and gave its last sign of life "
        f"{age:,.0f} s ago (its lease is {standing.claim.lease:,.0f} s). Nothing was done. If that "
        f"process is known to be dead, take the commit over: {_takeover(run)}",
    )


def _takeover(run: CommitContext) -> str:
    flags = ["--rollback"] if run.stage == "job_stage_abort" else []
    return job_command("takeover", run.layout, *flags)


# --- taking it over --------------------------------------------------------------------------


async def take_over(run: CommitContext, standing: CommitState, *, force: bool = False) -> Lease:
    """Make this run the owner of a commit that nobody goes on with; return its lease.

    Raises ``OwnedError`` if somebody does, or was quicker.
    """
    traits = run.store.traits
    if not (traits.fences or traits.content_etags):
        raise UnsupportedError(
            f"{traits.name} shows nothing here by which a file that was moved can be told, which a "
            "takeover needs: finish or undo it by hand, or wait for its owner"
        )
    why = await _why_free(run, standing, force)
    epoch = standing.epoch + 1
    if epoch > MAX_EPOCH:
        raise ManifestError(run.layout.url(run.layout.record), "has had too many owners")
    owner = owner_of(run)
    run.owner_id = owner.id
    run.act_for(standing.commit_id)
    run.manifests = standing.record.manifests
    lease = Lease(run)
    try:
        await _write_claim(run, Claim(epoch, owner, lease_of(run), int(run.host.now() * 1000), why))
        run.epoch, run.phase = epoch, Phase.CHANGING
        if traits.fences:
            await _take_place(run, lease)
            await take_manifests(run)
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
        text = "another took it over a moment ago. Nothing was done"
        raise OwnedError(run.layout.job_id, run.stage, (), text) from error
    except NotFoundError as error:
        text = "another ended it a moment ago. Nothing was done"
        raise OwnedError(run.layout.job_id, run.stage, (), text) from error
    await make_durable(run, path, run.layout.attempt_dir)


async def take_manifests(run: CommitContext) -> bool:
    """Move the manifests away, so that a straggler's late one has no place to go to.

    Returns whether they were there. Where that keeps nothing out, and where other jobs have theirs
    in the same place, they stay.
    """
    if run.layout.shared or not run.store.traits.fences:
        return await is_there(run.store, run.layout.committed_dir)
    try:
        await run.store.rename(run.layout.manifests_dir, f"{run.epoch_dir}/manifests")
    except ExistsError:
        return True  # moved before, and made again by a straggler
    except NotFoundError:
        return False
    return True


async def _take_place(run: CommitContext, lease: Lease) -> None:
    """Take what the last owner had moved aside or put together, and keep all earlier ones out.

    Where they worked a file is put: neither a rename nor a new directory can get past it. Raises
    ``LeaseLostError`` if a later owner was quicker.
    """
    listing = await list_if_there(run.store, run.layout.attempt_dir)
    places = [info for info in listing if epoch_of(info.path)]
    last = max((epoch_of(info.path) for info in places if info.is_dir), default=0)
    if max((epoch_of(info.path) for info in places), default=0) > run.epoch:
        raise lease_lost(run)
    run.check_lease()
    closed = any(info.path.endswith(".done") for info in listing)
    if last and last != run.epoch and not closed:
        try:
            await run.store.rename(run.layout.epoch_dir(last), run.epoch_dir)
        except (NotFoundError, ExistsError):
            raise lease_lost(run) from None
    lease.closed, lease.bare = closed, not last and not closed
    if closed or lease.bare:
        return
    for epoch in range(1, run.epoch):
        await _bar(run, epoch)


async def _confirm(run: CommitContext, lease: Lease) -> None:
    """See that there is a commit to go on with, where a claim alone keeps earlier owners out.

    An owner that ends looks for a claim after it has said so, and this looks for an end after its
    claim: so at least one of both sees the other.
    """
    closed = await is_closed(run)
    if closed is None:
        await take_back_word(run, run.layout.owner(run.epoch))
        text = "another ended it a moment ago. Nothing was done"
        raise OwnedError(run.layout.job_id, run.stage, (), text)
    lease.closed = closed


async def _bar(run: CommitContext, epoch: int) -> None:
    """Put a file where the owner of ``epoch`` worked; take what it has made there since."""
    place = run.layout.epoch_dir(epoch)
    for number in range(_TRIES):
        try:
            await run.store.put(place, b"", overwrite=False)
            return
        except ExistsError:
            if not (await run.store.head(place)).is_dir:
                return
            with suppress(NotFoundError):
                stray = f"{run.epoch_dir}/stray-{epoch:06d}-{number}"
                await run.store.rename(place, stray)
                await merge(run, stray, run.epoch_dir)
    raise lease_lost(run)
