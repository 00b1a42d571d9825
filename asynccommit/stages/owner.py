"""Whose a commit is: what is known of it, and how somebody else goes on with it.

The commit record is the claim of the first owner; every later one adds a claim with the next
number, which only one can write. Then it renames the place where the earlier one worked, so that
whatever that one still moves there fails for want of a directory.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256

from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    OwnedError,
    StoreError,
)
from asynccommit.formats.commit_owner import (
    MAX_EPOCH,
    MAX_OWNER_BYTES,
    Claim,
    Decision,
    Stop,
    decode_claim,
    decode_decision,
    decode_stop,
    encode_claim,
)
from asynccommit.formats.commit_record import (
    MAX_RECORD_BYTES,
    CommitRecord,
    Owner,
    decode_record,
)
from asynccommit.host import Host
from asynccommit.job import EPOCH, OWNER, Layout
from asynccommit.parallel import list_all
from asynccommit.stages.durable import make_durable
from asynccommit.stages.lease import Lease, is_under_way, lease_of
from asynccommit.stages.run import Phase, Run
from asynccommit.store import Info, Store

_SLACK = 2.0
"""Seconds by which times of a store may be rounded."""


@dataclass(slots=True)
class Standing:
    """What is known of a commit that has begun.

    Attributes:
        record: what its first owner wrote.
        commit_id: names the commit.
        claim: of the present owner.
        seen: the store's time of the owner's last sign of life.
        stop: what the owner said when it stopped.
        decision: how the commit ends.
        epochs: the numbers of the places where owners have worked.
    """

    record: CommitRecord
    commit_id: str
    claim: Claim
    seen: float = 0.0
    stop: Stop | None = None
    decision: Decision | None = None
    epochs: list[int] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """How many have owned the commit."""
        return self.claim.epoch


async def look(store: Store, layout: Layout) -> Standing | None:
    """Return what is known of the commit of a job attempt, ``None`` if it has not begun.

    Raises ``ManifestError`` for a file that is none of ours or damaged.
    """
    record = await _read(store, layout.record, MAX_RECORD_BYTES)
    if record is None:
        return None
    found = {info.path: info for info in await _files(store, layout.attempt_dir)}
    names = [path.rpartition("/")[2] for path in found]
    epoch = max([1, *(_number(name, OWNER, ".json") for name in names)])
    first = decode_record(record, layout.url(layout.record))
    if (first.job_id, first.attempt) != (layout.job_id, layout.attempt):
        raise ManifestError(layout.url(layout.record), f"is of another job, {first.job_id!r}")
    standing = Standing(
        first,
        sha256(record).hexdigest(),
        await _claim(store, layout, first, epoch),
        seen=_seen(layout, found, epoch),
        epochs=sorted(filter(None, (_number(name, EPOCH, "") for name in names))),
    )
    for path, take in ((layout.stopped(epoch), _take_stop), (layout.outcome, _take_decision)):
        data = await _read(store, path, MAX_OWNER_BYTES) if path in found else None
        if data is not None:
            take(standing, data, layout.url(path))
    return standing


def _take_stop(standing: Standing, data: bytes, url: str) -> None:
    standing.stop = decode_stop(data, url)


def _take_decision(standing: Standing, data: bytes, url: str) -> None:
    standing.decision = decode_decision(data, url)


async def _files(store: Store, path: str) -> list[Info]:
    try:
        return await list_all(store, path)
    except NotFoundError:
        return []


async def _read(store: Store, path: str, limit: int) -> bytes | None:
    try:
        return await store.get(path, limit)
    except NotFoundError:
        return None


async def _claim(store: Store, layout: Layout, record: CommitRecord, epoch: int) -> Claim:
    if epoch == 1:
        return Claim(1, record.owner, record.lease, record.started_ms, "")
    path = layout.owner(epoch)
    data = await store.get(path, MAX_OWNER_BYTES)
    claim = decode_claim(data, layout.url(path))
    if claim.epoch != epoch:
        raise ManifestError(layout.url(path), f"says that it is the claim of epoch {claim.epoch}")
    return claim


def _seen(layout: Layout, found: dict[str, Info], epoch: int) -> float:
    signs = (layout.owner(epoch), layout.alive(epoch))
    return max([found[path].modified for path in signs if path in found], default=0.0)


def _number(name: str, prefix: str, suffix: str) -> int:
    """Return the epoch that a name says, 0 if it is none."""
    text = name.removeprefix(prefix).removesuffix(suffix)
    right = name == f"{prefix}{text}{suffix}" and text.isascii() and text.isdigit()
    return int(text) if right and len(text) == 6 else 0


# --- is the owner alive? ---------------------------------------------------------------------


def owner_of(run: Run) -> Owner:
    """Return this process as the owner of a commit."""
    return Owner(run.host.new_id(), run.host.name, run.host.user, run.host.process)


def describe(owner: Owner) -> str:
    """Return an owner as people know it."""
    process = owner.process.partition(".")[0]
    return f"{owner.user}@{owner.host}" + (f", process {process}" if process else "")


async def is_alive(host: Host, standing: Standing) -> bool | None:
    """Whether the owner lives; ``None`` if only its lease tells."""
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


def is_silent(host: Host, standing: Standing) -> bool:
    """Whether the lease is over, as far as this machine's clock can tell."""
    return host.now() - standing.seen > standing.claim.lease + _SLACK


async def _is_expired(run: Run, standing: Standing) -> bool:
    """Whether the lease is over by the store's own time, which a new file tells."""
    if not is_silent(run.host, standing):
        return False
    probe = f"{run.layout.attempt_dir}/commit-clock-{run.host.new_id()}"
    try:
        await run.store.put(probe, b"", overwrite=False)
        now = (await run.store.head(probe)).modified
    finally:
        with suppress(StoreError):
            await run.store.delete(probe)
    return now - standing.seen > standing.claim.lease + _SLACK


async def _why_free(run: Run, standing: Standing, force: bool) -> str:
    """Return why another may go on with the commit. Raises ``OwnedError`` if none may."""
    alive = await is_alive(run.host, standing)
    if standing.stop is not None:
        return "its owner had stopped"
    if alive is False:
        return "its owner's process had died"
    if force:
        return "it was taken over"
    if await _is_expired(run, standing):
        return "its owner gave no sign of life"
    age = max(0.0, run.host.now() - standing.seen)
    raise OwnedError(
        run.layout.job_id,
        run.stage,
        (),
        f"{describe(standing.claim.owner)} is committing it, and gave its last sign of life "
        f"{age:,.0f} s ago (its lease is {standing.claim.lease:,.0f} s). Nothing was done. If that "
        "process is known to be dead, take the commit over: asynccommit takeover "
        f"{run.layout.dest} --job-id {run.layout.job_id}",
    )


# --- taking it over --------------------------------------------------------------------------


async def take_over(run: Run, standing: Standing, *, force: bool = False) -> Lease:
    """Make this run the owner of a commit that nobody goes on with; return its lease.

    Raises ``OwnedError`` if somebody does, or was quicker.
    """
    why = await _why_free(run, standing, force)
    epoch = standing.epoch + 1
    if epoch > MAX_EPOCH:
        raise ManifestError(run.layout.url(run.layout.record), "has had too many owners")
    owner, since = owner_of(run), run.host.clock()
    claim = Claim(epoch, owner, lease_of(run), int(run.host.now() * 1000), why)
    await _write_claim(run, claim)
    run.epoch, run.owner_id, run.commit_id = epoch, owner.id, standing.commit_id
    run.phase = Phase.CHANGING
    await _take_place(run)
    await take_manifests(run)
    return Lease(run, since)


async def _write_claim(run: Run, claim: Claim) -> None:
    path, data = run.layout.owner(claim.epoch), encode_claim(claim)
    try:
        await run.store.put(path, data, overwrite=False)
    except (ExistsError, OutcomeUnknownError) as error:
        there = await _read(run.store, path, MAX_OWNER_BYTES)
        if there == data:
            return
        if there is None:
            raise
        text = "another took it over a moment ago. Nothing was done"
        raise OwnedError(run.layout.job_id, run.stage, (), text) from error
    await make_durable(run, path, run.layout.attempt_dir)


async def take_manifests(run: Run) -> None:
    """Move the manifests away, so that a straggler's late one has no place to go to."""
    with suppress(NotFoundError, ExistsError):  # moved before
        await run.store.rename(run.layout.manifests_dir, f"{run.epoch_dir}/manifests")


async def _take_place(run: Run) -> None:
    """Take what the last owner had moved aside or put together, and keep the owner out of it."""
    found = [info.path for info in await _files(run.store, run.layout.attempt_dir) if info.is_dir]
    epochs = [_number(path.rpartition("/")[2], EPOCH, "") for path in found]
    last = max(epochs, default=0)
    if last and last != run.epoch:
        with suppress(NotFoundError):
            await run.store.rename(run.layout.epoch_dir(last), run.epoch_dir)
            return
    await run.store.mkdir(run.epoch_dir)
