"""Job commit, third step: record the begin, before any change.

From now on only a commit or a rollback of this job may touch its directory: Spark's abort, which
comes whenever the driver's commit fails or Python dies, looks for the record and stops. The plan is
saved before, and the record contains its digest, so any process that finds the record can finish or
undo the commit, whatever tasks write afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, cast

from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.driver.claims import setup_id
from asynccommit.commit.driver.drafts import discard, draft, put_drafted
from asynccommit.commit.driver.durable import make_durable
from asynccommit.commit.driver.owners import owner_of
from asynccommit.commit.hints import command
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.job.places import TARGETS, places_text
from asynccommit.commit.orders import GRANT
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.flat_namespace import find_record, remove_bare
from asynccommit.commit.ownership.lease import Lease, lease_of
from asynccommit.commit.ownership.shared_directories import is_aborted, refuse_replaced
from asynccommit.commit.ownership.status import PLAN_VERSION
from asynccommit.commit.ownership.takeover import set_aside
from asynccommit.commit.paths import ancestors, leaves, outermost
from asynccommit.commit.planning.conflicts import places_of
from asynccommit.commit.planning.plan import Plan, aside_path, staged_path
from asynccommit.commit.planning.plan_check import REPLACES
from asynccommit.commit.planning.plan_file import PlanWriter, drop_plan
from asynccommit.commit.planning.quotas import about_names, is_about_names, refuse_without_names
from asynccommit.commit.planning.whole_directories import carries
from asynccommit.commit.steps.cleanup import begun_attempts, clean_up_aborted
from asynccommit.commit.steps.identity import content_print, source_print, sources_there
from asynccommit.commit.steps.make_directories import make_early, remove_early
from asynccommit.commit.steps.success_marker import reserve_success
from asynccommit.commit.trees import make_all
from asynccommit.errors import (
    CommitError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    OwnedError,
    PreconditionError,
    PreflightError,
    RejectedError,
)
from asynccommit.formats.commit_record import (
    MAX_RECORD_BYTES,
    CommitRecord,
    Owner,
    digest_of,
    encode_record,
    is_blank,
)
from asynccommit.options.job import Options
from asynccommit.runtime.concurrency import both, together
from asynccommit.stores.base import Info, OwnedStore
from asynccommit.stores.tree import is_there, list_all, list_if_there, remove_files

KEPT: dict[str, type] = {
    "mark_success": bool,
    "validate": bool,
    "validate_sample": int,
    "diagnostics_directory": str,
    "job_id_source": str,
}
"""Options that change the result of the commit: a resume uses those of the record."""
_MEETINGS = 3  # aborts that may take the directory of a commit that begins, and put it back


async def begin(run: CommitContext, plan: Plan, *, made_destination: bool) -> Lease:
    """Save the plan, write the record, and become the first owner.

    Args:
        run: the commit under way.
        plan: the planned changes.
        made_destination: whether the destination was not there before this job.

    Raises ``OwnedError`` if a commit of this job attempt has begun already.
    """
    with run.meter.timed("job_stage_save_commit_record"):
        return await _begin(run, plan, made_destination=made_destination)


async def _begin(run: CommitContext, plan: Plan, *, made_destination: bool) -> Lease:
    if run.layout.shared:  # the job attempt may have no directory yet
        await _make_place(run, plan)
    saving = PlanWriter(run, run.host.new_id(), indexed=run.slicer is not None)
    await saving.begin(plan)
    if run.slicer is not None:
        run.slicer.planned(saving.plan_id, saving.digests, _outside(run, plan))
    owner = owner_of(run)
    run = replace(run, identity=replace(run.identity, owner_id=owner.id))
    lease = Lease(run)  # before the look: a driver that stood still since then sends no record
    beginning = _Beginning(lease.run.acts(), plan, saving, owner, made_destination)
    try:
        lease.run = await _become_owner(beginning, await beginning.prepare())
    except BaseException as error:
        lease.forget()
        if isinstance(error, Exception):
            await _forget_plan(beginning, error)
        raise
    return lease


async def _forget_plan(beginning: _Beginning, error: Exception) -> None:
    """Delete the plan, unless its record may have been written."""
    run, saving = beginning.run.now, beginning.saving
    await discard(run.store, beginning.ahead)
    refused = isinstance(error, OwnedError | PreflightError)
    if refused or (run.phase is Phase.PLANNING and not run.store.traits.fences):
        await drop_plan(run, saving)
        if not run.store.traits.fences:
            await remove_bare(run)  # the plan has brought them along, if the job was aborted


@dataclass(slots=True)
class _Beginning:
    """The preparation of a commit record.

    Attributes:
        run: the commit.
        plan: the planned changes.
        saving: writes the plan.
        owner: this process.
        made_destination: whether the destination was not there before this job.
        ahead: the draft of the record.
    """

    run: CommitContext
    plan: Plan
    saving: PlanWriter
    owner: Owner
    made_destination: bool
    ahead: Info | None = None
    _drafted: bytes = b""

    async def prepare(self) -> bytes:
        """Save the plan, look at the job once more, and return the record.

        Where the record is put in place by a rename, which needs the job's own directory, and where
        checks after the record tell more, that is done at once.

        Raises ``PreflightError``, ``OwnedError`` or ``CommitError`` if the job is not the one that
        was read.
        """
        run, traits = self.run, self.run.store.traits
        at_once = traits.drafts or not traits.fences

        async def make_place() -> None:
            if not run.layout.shared:
                await _make_place(run, self.plan)
            if at_once:  # afterwards: an abort may have moved away what that has made again
                await _look_again(run, self.plan)

        async def look_for_names() -> None:
            await refuse_without_names(run, self.plan)

        steps = [self.saving.finish]
        steps += [look_for_names] if traits.nested_zones else []
        steps += [make_place]
        steps += [self._write_ahead] if traits.drafts else []
        try:
            await together(*steps)
        except NotFoundError as missing:
            if traits.fences:
                await self._refuse_taken(missing)
            raise
        except RejectedError as error:
            if is_about_names(error):
                raise about_names(run, self.plan, error) from error
            raise
        if not at_once:
            await _look_again(run, self.plan)
        return self._drafted or encode_record(_record(self))

    async def _refuse_taken(self, missing: NotFoundError) -> None:
        """Refuse to begin if an abort has taken the directory of the plan away."""
        run = self.run
        try:
            await _look_again(run, self.plan)
        except (OwnedError, PreflightError):
            raise
        except CommitError as error:
            text = f"{error.summary}. Nothing under {run.layout.dest} was changed"
            job_id, stage = run.layout.job_id, run.meter.stage
            raise PreflightError(job_id, stage, (missing,), text) from missing

    async def _write_ahead(self) -> None:
        self._drafted = encode_record(_record(self))
        self.ahead = await draft(self.run.store, self.run.layout, self._drafted)


async def _look_again(run: CommitContext, plan: Plan) -> None:
    await _refuse_another_run(run, plan)
    await _require_driver(run)


async def _become_owner(beginning: _Beginning, record: bytes) -> CommitContext:
    run, plan = beginning.run, beginning.plan
    await make_durable(run, run.layout.attempt_dir)
    run = run.for_commit(sha256(record).hexdigest()).acts()
    info = await _write(run, record, beginning.ahead)
    manifests = digest_of(plan.loaded.tasks, plan.loaded.digests)
    run = replace(run, identity=replace(run.identity, epoch=1, manifests=manifests)).acts()
    whole, others = await _enter(run, plan)
    if not whole:
        if await _withdraw(run, info):
            run = run.now
            await remove_early(run, plan)
            run = replace(run, identity=replace(run.identity, commit_id="")).acts()
            await clean_up_aborted(run)
        raise _aborted(run)
    if run.layout.shared:
        await _refuse_replaced(run, plan, info)
    if others:
        await _withdraw(run, info)
        refuse_other_attempts(run, others)
    return run


async def _enter(run: CommitContext, plan: Plan) -> tuple[bool, list[str]]:
    """Take the manifests, and return whether the job is whole.

    Its other attempts are returned, too. An abort that looked before the record was there may have
    the directory for a moment.
    """
    for _ in range(_MEETINGS):
        taken, others = await _take_manifests(run, plan)
        if taken and await _is_whole(run, plan):
            return True, others
        if not await directory_of(run).is_given_back(run):
            break
    return False, others


async def _take_manifests(run: CommitContext, plan: Plan) -> tuple[bool, list[str]]:
    """Keep late manifests out, look for other attempts, make directories.

    Returns whether the manifests were there, and the other attempts that have begun. Where
    something is moved first, to make room or with its directory, directories are made later.
    """
    early = run.store.traits.account and run.store.traits.fences and not run.layout.shared
    moves = plan.aside or plan.replaced or plan.units or carries(run, plan)

    async def make() -> None:
        if early and not moves:
            await make_early(run, plan)

    found, _ = await both(
        lambda: both(
            lambda: directory_of(run).take_manifests(run), lambda: begun_attempts(run, others=True)
        ),
        make,
    )
    return found


async def _make_place(run: CommitContext, plan: Plan) -> None:
    """Create every directory that this commit moves files to.

    Before the record, and never again: who takes the commit over renames them all, and what an
    earlier owner still moves then finds none. Stores where files create their directories need
    none.
    """
    asides = [aside_path(run.layout, 1, a.path) for a in (*plan.aside, *plan.replaced)]
    places = {path.rpartition("/")[0] for path in asides}
    places.update(staged_path(run.layout, 1, path) for path in plan.unit_directories())
    places.add(run.layout.epoch_dir(1))
    if not run.store.traits.directories:
        return
    missing = leaves(ancestors(run.layout.attempt_dir, places))
    if run.store.traits.user is not None:  # first: a directory in it would make it for everybody
        await cast(OwnedStore, run.store).mkdir(run.layout.epoch_dir(1), private=True)
        missing = [path for path in missing if path != run.layout.epoch_dir(1)]
    own = missing == [run.layout.epoch_dir(1)]

    async def reserve() -> None:  # which makes the owner's directory
        plan.reserved = await reserve_success(run)

    await together(
        reserve, lambda: make_all(run, [] if own and run.store.traits.drafts else missing)
    )
    if plan.reserved is None and own and run.store.traits.drafts:
        await make_all(run, missing)


async def _is_whole(run: CommitContext, plan: Plan) -> bool:
    """Return whether no abort has deleted sources of the plan.

    This applies to stores where nothing is moved out of an abort's way.

    An abort deletes all manifests before it gives the record's place back. If they are those that
    were read, there was none; else nothing has been moved yet, and every file must be there. Where
    jobs share a directory, an abort moves each task away before it ends.
    """
    if run.layout.shared:
        return not await is_aborted(run, plan.loaded.sources)
    if run.store.traits.fences:
        return True
    read = plan.loaded.manifests
    if not read:  # the sources of an empty plan are always there
        return plan.loaded.setup_id == await setup_id(run.store, run.layout.job_owner)
    there = {
        info.path: info.etag for info in await list_if_there(run.store, run.layout.manifests_dir)
    }
    if read.items() <= there.items():
        return True
    present = await sources_there(run, plan, contents=True)
    async for entry in plan.loaded.spill.each():
        prints = source_print(entry.source, entry.etag), content_print(run, entry)
        if present.isdisjoint(prints):
            return False
    return True


async def _refuse_replaced(run: CommitContext, plan: Plan, record: Info) -> None:
    try:
        await refuse_replaced(run, plan.loaded.manifests)
    except PreconditionError as error:
        await _withdraw(run, record)
        text = f"{error}. Nothing under {run.layout.dest} was changed"
        raise PreflightError(run.layout.job_id, run.meter.stage, (error,), text) from error


async def _refuse_another_run(run: CommitContext, plan: Plan) -> None:
    """Refuse to begin if the job was aborted or set up again.

    Where nothing keeps an abort out, and where jobs share a directory, the checks after the record
    tell more.
    """
    fenced = run.store.traits.fences and not run.layout.shared
    try:
        if not fenced:
            await run.store.head(run.layout.committed_dir)
        elif not await _is_same_run(run, plan):
            raise _another_run(run)
    except NotFoundError:
        if await clean_up_aborted(run) is CleanupResult.KEPT:
            raise _owned(run) from None
        raise _aborted(run) from None


async def _is_same_run(run: CommitContext, plan: Plan) -> bool:
    """Return whether the job is still the one whose manifests were read.

    Another run of its id has no manifest of this one, and another setup. A late task attempt may
    have replaced a manifest, even each of them.
    """
    listing = await list_all(run.store, run.layout.committed_dir)
    there = {info.path: info.etag for info in listing}
    read = plan.loaded.manifests
    if not read.keys() <= there.keys():
        return False
    if read.items() & there.items():
        return True
    known = plan.loaded.setup_id
    if known is None:
        return not read
    return known == await setup_id(run.store, run.layout.job_owner)


def _another_run(run: CommitContext) -> PreflightError:
    text = (
        "the manifests of its tasks are not those that were read: the job was aborted and set up "
        f"again. Nothing under {run.layout.dest} was changed"
    )
    return PreflightError(run.layout.job_id, run.meter.stage, (), text)


async def _require_driver(run: CommitContext) -> None:
    """Refuse to begin if the driver is gone.

    Another driver may be running the job again.
    """
    if run.environment.driver_lives is not None and not await asyncio.to_thread(
        run.environment.driver_lives
    ):
        text = (
            "the process that ran its tasks has ended, and the job may be running again "
            f"elsewhere. Nothing under {run.layout.dest} was changed"
        )
        raise PreflightError(run.layout.job_id, run.meter.stage, (), text)


async def _withdraw(run: CommitContext, record: Info) -> bool:
    """Delete the record, unless another process took the commit over.

    Returns whether it is not there any more.
    """
    if await is_there(run.store, run.layout.owner(2)):
        return False
    if run.store.traits.bulk_delete:
        await remove_files(run.store, [record])
    else:
        with suppress(NotFoundError):
            await run.store.delete(run.layout.record)
    run.numbered(0).acts().reach(Phase.PLANNING)
    return True


def _owned(run: CommitContext) -> OwnedError:
    text = "another process began to commit it a moment ago. Nothing was done"
    return OwnedError(run.layout.job_id, run.meter.stage, (), text)


def _aborted(run: CommitContext) -> CommitError:
    text = "the job was aborted, or another owner took the commit over, as the commit began"
    return CommitError(run.layout.job_id, run.meter.stage, (), text)


def _record(beginning: _Beginning) -> CommitRecord:
    run, plan, saved = beginning.run, beginning.plan, beginning.saving.saved
    loaded, options = plan.loaded, run.options
    return CommitRecord(
        job_id=run.layout.job_id,
        attempt=run.layout.attempt,
        started_ms=int(run.host.now() * 1000),
        owner=beginning.owner,
        lease=lease_of(run),
        files=loaded.files,
        bytes=loaded.bytes,
        manifests=digest_of(loaded.tasks, loaded.digests),
        tasks=loaded.tasks,
        mode=plan.mode.value,
        key=options.job_key,
        options={
            **{name: getattr(options, name) for name in KEPT},
            "vouched": loaded.vouched,
            "places": places_of(run, plan),
            REPLACES: any(aside.path != run.layout.success for aside in plan.aside),
            **({TARGETS: places_text(run, plan.targets)} if plan.targets else {}),
            **run.layout.facts,
            **({PLAN_VERSION: saved.version} if run.store.traits.content_etags else {}),
        },
        made_destination=beginning.made_destination,
        plan_id=beginning.saving.plan_id,
        plan=saved.digests,
        chunk=saved.chunk,
        outside=_outside(run, plan),
        index=saved.indexed,
        grant=GRANT if saved.indexed else 0.0,
    )


def _outside(run: CommitContext, plan: Plan) -> tuple[str, ...]:
    inside = run.layout.root + "/"
    touched = plan.loaded.parents | {aside.path for aside in plan.replaced}
    dest = {run.layout.root, run.layout.dest.path}
    return tuple(outermost([p for p in touched - dest if not p.startswith(inside)]))


async def _write(run: CommitContext, data: bytes, ahead: Info | None) -> Info:
    try:
        with run.promise.changing():
            info = await _put(run, data, ahead)
    except ExistsError as error:
        raise _owned(run) from error
    except OutcomeUnknownError:
        found = await _in_place(run, data)
        if found is None:
            raise
        info = found
    await make_durable(run, run.layout.record, run.layout.attempt_dir)
    return info


async def _put(run: CommitContext, data: bytes, ahead: Info | None) -> Info:
    """Write the record if it does not exist, or is damaged."""
    path = run.layout.record
    try:
        return await put_drafted(run.store, run.layout, path, data, ahead)
    except ExistsError:
        if not run.store.traits.fences:
            await _make_way(run)
        elif is_blank(await run.store.get(path, MAX_RECORD_BYTES)):
            await set_aside(run, path, is_blank)
        else:
            raise
    return await run.store.put(path, data, overwrite=False)


async def _make_way(run: CommitContext) -> None:
    """Delete a late record of a commit that has ended.

    Raises ``CommitError`` if an abort has taken the place, ``ExistsError`` if a commit has begun.
    """
    found = await find_record(run)
    if found is None or found.blank:
        raise _aborted(run) from None
    if found.stands:
        raise ExistsError("put", run.layout.record, "a commit has begun")
    await remove_files(run.store, [found.info])


async def _in_place(run: CommitContext, data: bytes) -> Info | None:
    """Return the record if a write with a lost response has succeeded."""
    await directory_of(run).restore_begun(run)
    try:
        info = await run.store.head(run.layout.record)
        there = await run.store.get(run.layout.record, MAX_RECORD_BYTES)
    except NotFoundError:
        return None
    return info if there == data else None


def recorded_options(run: CommitContext, record: CommitRecord) -> Options:
    """Overlay the options stored in the record; ignore invalid ones.

    A diagnostics directory is a place outside of the destination like any other.
    """
    options = run.options
    known = {
        name: value
        for name, value in record.options.items()
        if name in KEPT and type(value) in (type(None), KEPT[name])
    }
    place = known.pop("diagnostics_directory", None)
    if place is not None and place != options.diagnostics_directory:
        if options.allow_outside_destination:
            known["diagnostics_directory"] = place
        else:
            run.warn(
                "the manifests are kept in the diagnostics directory of the record only if "
                "asynccommit.resume.outside is set"
            )
    return replace(options, job_key=record.key, **cast(Mapping[str, Any], known))


def refuse_other_attempts(run: CommitContext, others: list[str]) -> None:
    """Raise ``CommitError`` if another attempt's commit has begun."""
    if others:
        text = (
            f"another attempt of this job began its commit in {others[0]}: only one attempt may "
            f"be committed. See {command('status', run.layout.dest)}"
        )
        error = PreconditionError("put", run.layout.record, "another attempt has one")
        raise CommitError(run.layout.job_id, run.meter.stage, (error,), text)
