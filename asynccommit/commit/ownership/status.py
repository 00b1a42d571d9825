"""The known state of a begun commit, read from its owners' files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256

from asynccommit.commit.context import of_commit
from asynccommit.commit.driver.record_owner import foreign_owner, is_of_commit
from asynccommit.commit.layouts.layout import ALIVE, EPOCH, OUTCOME, OWNER, STOPPED, Layout
from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.formats.commit_owner import (
    MAX_OWNER_BYTES,
    Claim,
    Decision,
    Outcome,
    OwnerStop,
    decode_claim,
    decode_decision,
    decode_stop,
    is_stand_in,
)
from asynccommit.formats.commit_record import (
    MAX_RECORD_BYTES,
    CommitRecord,
    Owner,
    decode_record,
    is_blank,
)
from asynccommit.formats.plan_index import MAX_INDEX_BYTES, decode_index
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.tree import list_if_there, read_if_there

PLAN_VERSION = "planVersion"
"""Option of the record: the etag of the first chunk of its plan, where etags are versions."""


@dataclass(slots=True)
class CommitState:
    """The known state of a commit that has begun.

    Attributes:
        record: what its first owner wrote.
        commit_id: names the commit.
        claim: of the present owner.
        seen: the store's time of the owner's last heartbeat.
        stop: what the owner said when it stopped.
        decision: how the commit ends.
        epochs: the numbers of the places where owners have worked.
        foreign: another user to whom a part of the commit belongs, for people, or ``""``.
        mixed: whether its parts belong to several users.
    """

    record: CommitRecord
    commit_id: str
    claim: Claim
    seen: float = 0.0
    stop: OwnerStop | None = None
    decision: Decision | None = None
    epochs: list[int] = field(default_factory=list)
    foreign: str = ""
    mixed: bool = False

    @property
    def is_committed(self) -> bool:
        """Return whether its outcome is that the job is committed."""
        return self.decision is not None and self.decision.outcome is Outcome.COMMITTED

    @property
    def epoch(self) -> int:
        """Return the number of owners that the commit has had."""
        return self.claim.epoch


async def read_state(store: Store, layout: Layout) -> CommitState | None:
    """Return the state of a commit, or ``None`` if it has not begun.

    Raises ``ManifestError`` for a foreign or damaged file.
    """
    found = {info.path: info for info in await list_if_there(store, layout.attempt_dir)}
    if layout.record not in found and store.traits.consistent_listing:
        return None
    try:
        record = await read_if_there(store, layout.record, MAX_RECORD_BYTES)
        if record is None or is_blank(record):
            return None
        named = of_commit(store, layout, sha256(record).hexdigest())
        standing = await _standing(store, named, record, found)
        void = is_void(store, named, standing.record, found)
        if void:  # a page of the listing may be older than the record, and than its plan
            found = {info.path: info for info in await list_if_there(store, layout.attempt_dir)}
            void = is_void(store, named, standing.record, found)
        if standing.record.index and not void:
            standing.record = await _with_index(store, layout, standing)
        return None if void else standing
    except NotFoundError:
        return None  # it ended while it was looked at


async def _standing(
    store: Store, layout: Layout, record: bytes, found: Mapping[str, Info]
) -> CommitState:
    names = [path.rpartition("/")[2] for path in found]
    epoch = max([1, *(number_in(name, OWNER + layout.tag, ".json") for name in names)])
    first = decode_record(record, layout.url(layout.record))
    if (first.job_id, first.attempt) != (layout.job_id, layout.attempt):
        raise ManifestError(layout.url(layout.record), f"belongs to another job, {first.job_id!r}")
    standing = CommitState(
        first,
        sha256(record).hexdigest(),
        await _claim(store, layout, first, epoch),
        seen=_seen(layout, found, epoch),
        epochs=_epochs(layout, found),
        foreign=foreign_owner(store, found.values()),
        mixed=len({info.owner for path, info in found.items() if is_of_commit(path)}) > 1,
    )
    if layout.stopped(epoch) in found:
        standing.stop = await _stop(store, layout, standing.claim)
    if layout.outcome in found:
        data = await read_if_there(store, layout.outcome, MAX_OWNER_BYTES)
        if data is not None and not is_blank(data):
            standing.decision = read_decision(data, layout, standing.commit_id)
    if standing.decision is None and not store.traits.fences:
        standing.decision = await read_end(store, layout, found, standing.commit_id)
    return standing


async def _with_index(store: Store, layout: Layout, standing: CommitState) -> CommitRecord:
    """Return the record with the tasks and the digests that its index has.

    A clean-up may have deleted the index of a decided commit. Raises ``ManifestError`` for another
    index than the record's, ``NotFoundError`` if the record is gone by now as well.
    """
    record = standing.record
    path = layout.plan_index(record.plan_id)
    data = await read_if_there(store, path, MAX_INDEX_BYTES)
    if data is None:
        await store.head(layout.record)
        if standing.decision is not None:
            return record
        raise ManifestError(layout.url(path), "is missing, though the commit record names it")
    if f"sha256:{sha256(data).hexdigest()}" != record.index:
        raise ManifestError(layout.url(path), "is not the index that the commit record names")
    index = decode_index(data, layout.url(path), record.plan_id)
    return replace(record, tasks=index.tasks, plan=index.chunks)


def is_void(store: Store, layout: Layout, record: CommitRecord, found: Mapping[str, Info]) -> bool:
    """Return whether a record is stale: no plan and no outcome exist.

    It was written late, to a job that had ended.

    Elsewhere it would have had no directory to come to. A plan that came late as well is another
    version of it, and a version never comes again.
    """
    if store.traits.fences:
        return False
    plan = found.get(layout.plan(record.plan_id, 0))
    if plan is not None:
        version = record.options.get(PLAN_VERSION, plan.etag)
        if store.traits.same(plan.etag, str(version) if version else None):
            return False
    return not _ends(layout, found)


def is_control(layout: Layout, path: str) -> bool:
    """Return whether ``path`` is a file that tells the state of a commit.

    These are record, claims, heartbeats, outcome and end.
    """
    parent, _, name = path.rpartition("/")
    if parent != layout.attempt_dir:
        return False
    prefixes = (OWNER, ALIVE, STOPPED)
    known = path == layout.record or name.startswith((OUTCOME, *prefixes))
    return known or is_end(layout, path)


def is_end(layout: Layout, path: str) -> bool:
    """Return whether ``path`` tells that a commit is done except for cleanup.

    The commit may be any commit.
    """
    parent, _, name = path.rpartition("/")
    last = name.rpartition("-")[2]
    mine = parent == layout.attempt_dir and name.startswith(EPOCH)
    return mine and number_in(last, "", ".done") > 0


def _ends(layout: Layout, paths: Collection[str]) -> list[str]:
    """Return the end markers of ``layout`` in ``paths``."""
    names = [path for path in paths if path.rpartition("/")[0] == layout.attempt_dir]
    prefix = EPOCH + layout.tag
    return [path for path in names if number_in(path.rpartition("/")[2], prefix, ".done") > 0]


async def read_end(
    store: Store, layout: Layout, paths: Collection[str], commit_id: str
) -> Decision | None:
    """Return the outcome in the end marker in ``paths``, or ``None``.

    It outlives the outcome, which the clean-up deletes before.
    """
    for path in _ends(layout, paths):
        data = await read_if_there(store, path, MAX_OWNER_BYTES)
        with suppress(ManifestError):
            decision = decode_decision(data or b"", path)
            if decision.commit == commit_id:
                return decision
    return None


def _directories(found: Mapping[str, Info]) -> list[str]:
    return [path for path, info in found.items() if info.is_dir]


def _epochs(layout: Layout, found: Mapping[str, Info]) -> list[int]:
    """Return the numbers of the owners' directories. Raises ``ManifestError`` for links."""
    refuse_links(layout, found.values())
    return sorted(n for n in map(epoch_of, _directories(found)) if n)


def refuse_links(layout: Layout, found: Iterable[Info]) -> None:
    """Raise ``ManifestError`` for a link in the place of an owner's directory.

    What the commit has moved aside, and would seem not to have moved, is wherever that directory
    was taken.
    """
    for info in found:
        if epoch_of(info.path) and info.kind is Kind.OTHER:
            text = "is a link in the place of a directory of the commit: put the directory back"
            raise ManifestError(layout.url(info.path), text)


async def _stop(store: Store, layout: Layout, claim: Claim) -> OwnerStop | None:
    """Return the owner's reason for stopping; the file itself counts."""
    path = layout.stopped(claim.epoch)
    data = await store.get(path, MAX_OWNER_BYTES)
    if is_stand_in(data):
        return OwnerStop(claim.epoch, claim.owner.id, 0, "", "the reason could not be written")
    try:
        stop = decode_stop(data, layout.url(path))
    except ManifestError as error:
        return OwnerStop(claim.epoch, claim.owner.id, 0, "", str(error))
    return stop if stop.owner_id == claim.owner.id else None


def read_decision(data: bytes, layout: Layout, commit_id: str) -> Decision | None:
    """Return the decision; ``None`` if it belongs to another commit.

    A driver of an earlier run of the job id may have sent it, and says nothing of this commit.
    Raises ``ManifestError`` for anything else.
    """
    decision = decode_decision(data, layout.url(layout.outcome))
    return decision if decision.commit == commit_id else None


async def _claim(store: Store, layout: Layout, record: CommitRecord, epoch: int) -> Claim:
    if epoch == 1:
        return Claim(1, record.owner, record.lease, record.started_ms, "")
    path = layout.owner(epoch)
    data = await store.get(path, MAX_OWNER_BYTES)
    if is_blank(data):
        return Claim(epoch, Owner("unknown", "unknown", "unknown"), record.lease, 0, "")
    claim = decode_claim(data, layout.url(path))
    if claim.epoch != epoch:
        raise ManifestError(layout.url(path), f"is the claim of epoch {claim.epoch}")
    return claim


def _seen(layout: Layout, found: Mapping[str, Info], epoch: int) -> float:
    beats = layout.alive(epoch, 0).rpartition("-")[0] + "-"
    times = [info.modified for path, info in found.items() if path.startswith(beats)]
    return max([found[layout.owner(epoch)].modified, *times])


def number_in(name: str, prefix: str, suffix: str) -> int:
    """Parse the epoch out of a name; 0 if it has none."""
    text = name.removeprefix(prefix).removesuffix(suffix)
    right = name == f"{prefix}{text}{suffix}" and text.isascii() and text.isdigit()
    return int(text) if right and len(text) == 6 else 0


def is_over(standing: CommitState) -> bool:
    """Return whether a committed job is all done but was not deleted."""
    stop = standing.stop
    return standing.is_committed and stop is not None and not stop.error


def epoch_of(path: str) -> int:
    """Parse the epoch out of an owner's path; 0 if it has none."""
    return number_in(path.rpartition("/")[2], EPOCH, "")
