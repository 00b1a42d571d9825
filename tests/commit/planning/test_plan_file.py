"""The plan on the store: read as it was written, and refused if it leads elsewhere."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.record import _Beginning
from asynccommit.commit.by_rename.record import _record as record_of
from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.owners import owner_of
from asynccommit.commit.planning import load_manifests as load
from asynccommit.commit.planning import plan_file
from asynccommit.commit.planning.load_manifests import LoadedManifests, load_manifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.plan_file import PlanWriter, digest, load_plan
from asynccommit.commit.planning.preflight import preflight
from asynccommit.commit.spill import Entry, Spill
from asynccommit.errors import (
    CommitError,
    DeniedError,
    ManifestError,
    OwnedError,
    PreconditionError,
    PreflightError,
    RejectedError,
)
from asynccommit.formats.commit_record import CommitRecord, decode_record, encode_record
from asynccommit.options.job import Mode, Options
from asynccommit.stores.base import Traits
from tests.support.commits import At, Dies, Site, changes, open_site, run_of
from tests.support.faults import Fault, Faults

FILES = {"day=1/a": "1", "day=2/hour=1/b": "22", "c": "333", "empty/deeper/": ""}
OLD = {"/table/day=1/old": "o", "/table/loose": "l", "/table/_SUCCESS": ""}

Row = list[Any]
Chunk = dict[str, Any]


@pytest.fixture
def plan_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save plans in files of their own on every store."""
    monkeypatch.setattr(plan_file, "MAX_INLINE_ROWS", 0)


IN_FILES = pytest.mark.usefixtures("plan_in_files")


async def planned(
    site: Site, mode: Mode = Mode.APPEND, **options: Any
) -> tuple[CommitContext, Plan]:
    """Return the plan of a job whose tasks have committed."""
    run = run_of(await site.ready(FILES, **options))
    loaded = LoadedManifests(run.options, run.store.traits)
    await load_manifests(run, loaded, None)
    plan = Plan(loaded, mode)
    await preflight(run, plan)
    return run, plan


def said(plan: Plan) -> dict[str, Any]:
    """Return everything of a plan that a later owner needs."""
    return {
        "files": sorted(plan.loaded.spill.entries()),  # type: ignore[arg-type]
        "old": sorted(plan.old.entries(), key=str),  # type: ignore[arg-type]
        "aside": plan.aside,
        "replaced": plan.replaced,
        "units": plan.units,
        "unit_directories": plan.unit_directories(),
        "make": sorted(plan.make),
        "missing": sorted(plan.missing),
        "parents": plan.loaded.parents,
        "bytes": plan.loaded.bytes,
        "etags": plan.loaded.etags,
    }


async def reread(run: CommitContext, plan: Plan) -> Plan:
    """Save a plan, and return what is then read."""
    record = _record(run, plan, await save_plan(run, plan))
    return await load_plan(run, record, LoadedManifests(run.options, run.store.traits))


async def save_plan(run: CommitContext, plan: Plan) -> PlanWriter:
    """Save a plan whole."""
    writer = PlanWriter(run, "plan")
    await writer.begin(plan)
    await writer.finish()
    return writer


def _record(run: CommitContext, plan: Plan, writer: PlanWriter) -> CommitRecord:
    return record_of(_Beginning(run, plan, writer, owner_of(run), False))


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
async def test_what_is_read_is_what_was_written(site: Site, mode: Mode) -> None:
    """Whoever resumes has the plan of who began, to the last directory."""
    site.place(OLD)
    run, plan = await planned(site, mode)

    assert said(await reread(run, plan)) == said(plan)


async def test_a_plan_in_many_chunks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many chunks there are, each table is read whole."""
    monkeypatch.setattr(plan_file, "CHUNK_ROWS", 2)
    site.place({f"/table/day={n}/old{m}": "o" for n in range(5) for m in range(3)})
    run, plan = await planned(site, Mode.REPLACE_TABLE)
    saved = await save_plan(run, plan)

    assert len(saved.digests) > 5
    record = _record(run, plan, saved)
    assert said(
        await load_plan(run, record, LoadedManifests(run.options, run.store.traits))
    ) == said(plan)


async def test_a_plan_that_does_not_fit_into_memory(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries that wait in a file are written and read like any others."""
    monkeypatch.setattr(plan_file, "CHUNK_ROWS", 2)
    run, plan = await planned(site)
    plan.loaded.spill._limit = 1
    await plan.loaded.spill.append([])
    again = await reread(run, plan)
    entries = [entry async for entry in plan.loaded.spill.each()]

    assert not isinstance(plan.loaded.spill.entries(), list)
    assert sorted(entries) == sorted([entry async for entry in again.loaded.spill.each()])
    plan.loaded.spill.close()


async def test_old_files_that_do_not_fit_into_memory(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are the old ones; and the files in which they wait are closed when all is done."""
    monkeypatch.setattr(load, "Spill", partial(Spill, in_memory=1))
    site.place(OLD | {f"/table/day=1/old{n}": "o" for n in range(5)})
    before = site.tree()
    job = await site.ready(FILES, Faults(Fault("put", DeniedError, "00/commit-outcome", times=1)))
    with pytest.raises(CommitError):
        await job.commit_job(mode=Mode.REPLACE_TABLE)
    await site.job().rollback_job()
    assert site.tree() == before
    job = await site.ready(FILES)
    await job.commit_job(mode=Mode.REPLACE_TABLE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.collect()

    assert site.files() == {name: text for name, text in FILES.items() if text}


@IN_FILES
async def test_a_small_plan_is_one_chunk(site: Site) -> None:
    """Tables of few rows share a chunk, which is one file to write and to read."""
    site.place(OLD)
    run, plan = await planned(site, Mode.REPLACE_TABLE)

    assert plan.replaced
    assert plan.missing
    assert len((await save_plan(run, plan)).digests) == 1


@pytest.mark.parametrize("rows, chunks", [(1_000, 0), (4, 1)])
async def test_a_small_plan_is_in_the_record(
    site: Site, monkeypatch: pytest.MonkeyPatch, rows: int, chunks: int
) -> None:
    """It takes no file where each costs several requests, and is the same when it is read."""
    monkeypatch.setattr(plan_file, "MAX_INLINE_ROWS", rows)
    site.place(OLD)
    run, plan = await planned(site, Mode.REPLACE_TABLE)
    saved = await save_plan(run, plan)
    record = decode_record(encode_record(_record(run, plan, saved)), "record")
    loaded = LoadedManifests(run.options, run.store.traits)

    assert len(record.plan) == (chunks if run.store.traits.drafts else 1)
    assert (record.chunk is None) is bool(record.plan)
    assert said(await load_plan(run, record, loaded)) == said(plan)


async def test_an_empty_plan(site: Site) -> None:
    """A job without files has a plan without chunks."""
    run = run_of(await site.ready({}))
    loaded = LoadedManifests(run.options, run.store.traits)
    await load_manifests(run, loaded, None)
    plan = Plan(loaded)
    await preflight(run, plan)

    assert said(await reread(run, plan)) == said(plan)


async def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    """Old files whose names are no UTF-8 are moved aside, and are there again after a rollback."""
    site = await open_site("local", tmp_path / "root")
    site.place({"/table/loose\udcfe": "old", "/table/day=1/\udcff\udc80 %25": "old"})
    before = site.tree()
    at = Dies("put", "commit-outcome")
    await site.cut({"day=1/a": "x"}, at, mode=Mode.REPLACE_TABLE)
    assert site.files() == {"day=1/a": "x"}
    await site.job().rollback_job()

    assert site.tree() == before
    await site.close()


async def test_a_table_that_is_the_root() -> None:
    """Where the table is the root of the store its files are inside, and nothing is outside."""
    loaded = LoadedManifests(Options(), Traits("any"))
    await loaded.add([Entry("/_temporary/j/00/tasks/t/a", "/a", 1, "e")], ["/d"])

    assert loaded.parents == {""}


# --- what is not trusted ----------------------------------------------------------------------


async def dead(site: Site, **options: Any) -> ManifestCommitter:
    """Leave a commit behind whose process died before its first file."""
    site.place(OLD)
    return await site.cut(FILES, Dies("rename", "tasks/"), mode=Mode.REPLACE_TABLE, **options)


async def dying(act: Awaitable[object]) -> None:
    """Await what a process does that dies on the way."""
    with suppress(BaseException):
        await act


async def forge(
    job: ManifestCommitter,
    change: Callable[[Chunk], None],
    *,
    record: Callable[[CommitRecord], CommitRecord] = lambda record: record,
) -> None:
    """Change the last chunk of a plan, which has the files, and let the record name it so."""
    store, layout = job.store, job.layout
    text = await store.get(layout.record, 1 << 20)
    known = decode_record(text, "record")
    if known.chunk is not None:
        value = json.loads(encode_record(record(known)))
        change(value["chunk"])
        await store.put(layout.record, json.dumps(value).encode())
        return
    path = layout.plan(known.plan_id, len(known.plan) - 1)
    chunk = json.loads(await store.get(path, 1 << 20))
    change(chunk)
    data = json.dumps(chunk).encode()
    await store.put(path, data)
    known = record(replace(known, plan=(*known.plan[:-1], digest(data))))
    await store.put(layout.record, encode_record(known))


async def refused(site: Site, text: str, **options: Any) -> BaseException:
    """Return why a resume is refused, which must leave the table as it is."""
    before = site.files()
    for act in (site.job(**options).resume_job, site.job(**options).rollback_job):
        with pytest.raises(CommitError, match=text) as failed:
            await act()
    assert site.files() == before
    assert site.tree().get("/victim", "safe") == "safe"
    return failed.value.failures[0]


@IN_FILES
@pytest.mark.parametrize(
    "damage",
    [lambda data: data + b" ", lambda data: data[:-1], lambda data: b"", lambda data: None],
    ids=["longer", "shorter", "empty", "missing"],
)
async def test_a_chunk_that_is_not_the_one(
    site: Site, damage: Callable[[bytes], bytes | None]
) -> None:
    """A chunk must be byte for byte the one that the record names."""
    job = await dead(site)
    store, layout = site.job().store, job.layout
    record = decode_record(await store.get(layout.record, 1 << 20), "record")
    path = layout.plan(record.plan_id, 0)
    data = damage(await store.get(path, 1 << 20))
    await store.delete(path)
    if data is not None:
        await store.put(path, data)
    error = await refused(site, "is not the plan that the commit record names")

    assert isinstance(error, ManifestError)


async def test_a_chunk_of_another_place_in_the_plan(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks cannot change places, though their digests would be right."""
    monkeypatch.setattr(plan_file, "CHUNK_ROWS", 2)
    job = await dead(site)
    store, layout = site.job().store, job.layout
    record = decode_record(await store.get(layout.record, 1 << 20), "record")
    paths = [layout.plan(record.plan_id, index) for index in (0, 1)]
    data = [await store.get(path, 1 << 20) for path in paths]
    for path, other in zip(paths, reversed(data), strict=True):
        await store.put(path, other)
    plan = (record.plan[1], record.plan[0], *record.plan[2:])
    await store.put(layout.record, encode_record(replace(record, plan=plan)))
    await refused(site, "index is 1, not 0")


@pytest.mark.parametrize(
    "row, text",
    [
        (["tasks/../../../../victim", "x", 1, None], "files"),
        (["tasks/a", "../victim", 1, None], "files"),
        (["tasks/a", "day=1/../../victim", 1, None], "files"),
        (["tasks/a", "", 1, None], "files"),
        (["/victim", "x", 1, None], "files"),
        (["manifests/a", "x", 1, None], "not a directory of a task"),
        (["commit-epoch-000001/aside/in/loose", "x", 1, None], "not a directory of a task"),
        (["tasks/a", "_temporary/other/00/tasks/x", 1, None], "tasks may not write"),
        (["tasks/a", "_temporary", 1, None], "tasks may not write"),
        (["tasks/a", "_SUCCESS", 1, None], "tasks may not write"),
        (["tasks/a", "x", -1, None], "files"),
        (["tasks/a", "x", True, None], "files"),
        (["tasks/a", "x\0", 1, None], "files"),
    ],
)
async def test_rows_that_lead_elsewhere(site: Site, row: Row, text: str) -> None:
    """A source outside of the tasks' directories, or a place that is no task's, is refused."""
    site.place({"/victim": "safe"})
    job = await dead(site)

    def change(chunk: Chunk) -> None:
        chunk["files"][0] = row

    await forge(site.job(), change)
    await refused(site, text)
    assert site.tree()[f"/table/_temporary/{job.layout.job_id}/00/commit-record.json"]


@pytest.mark.parametrize("table", ["directories", "units", "aside", "replaced", "old", "files"])
async def test_places_outside_that_are_not_named(site: Site, table: str) -> None:
    """No table of a plan leads to a place outside that the record does not name."""
    site.place({"/victim": "safe"})
    await dead(site)
    rows: Mapping[str, object] = {
        "directories": "/victim",
        "units": "/victim",
        "aside": ["/victim", "file", None],
        "replaced": ["/victim", "file", None],
        "old": ["/victim", 4, None],
        "files": ["tasks/a", "/victim", 4, None],
    }

    def change(chunk: Chunk) -> None:
        chunk[table] = [*chunk[table], rows[table]]

    await forge(site.job(), change)
    await refused(site, "/victim is outside the destination", allow_outside_destination=True)


async def test_a_directory_above_a_named_place_vouches_for_nothing(site: Site) -> None:
    """What is made on the way to a place outside says nothing of the files beside it."""
    site.place({"/victim": "safe"})
    await dead(site)

    def change(chunk: Chunk) -> None:
        chunk["directories"] = [site.path("/near")]
        chunk["files"][0][1] = site.path("/victim")

    named = (site.path("/near/named"),)
    await forge(site.job(), change, record=lambda record: replace(record, outside=named))
    await refused(site, "/victim is outside the destination", allow_outside_destination=True)


async def test_a_place_in_the_table_by_its_absolute_name(site: Site) -> None:
    """Nor is a place in the table named from the root, past the record."""
    await dead(site)

    def change(chunk: Chunk) -> None:
        chunk["files"][0][1] = site.path("/table/_temporary/other/x")

    await forge(site.job(), change)
    await refused(site, "tasks may not write")


@pytest.mark.parametrize("allowed", [False, True])
async def test_places_outside_need_an_option(site: Site, allowed: bool) -> None:
    """A plan that leads outside, as its record says, is carried out only by who allows it."""
    site.place({"/elsewhere/p/old": "o"})
    job = site.job(Dies("rename", "tasks/"))
    await job.setup_job()
    task = await site.task(job, 0, {"day=1/a": "1"}, {"/elsewhere/p/new": "n"})
    await dying(job.commit_job([task], mode=Mode.REPLACE_PARTITIONS))
    resumed = site.job(allow_outside_destination=allowed)
    if allowed:
        await resumed.resume_job()
        assert site.tree()["/elsewhere/p/new"] == "n"
        return
    for act in (resumed.resume_job, resumed.rollback_job):
        with pytest.raises(CommitError, match=r"asynccommit\.resume\.outside") as failed:
            await act()
        assert isinstance(failed.value.failures[0], PreconditionError)


async def test_the_tasks_messages_vouch_for_places_outside(site: Site) -> None:
    """Who commits again with the same messages needs no option: they name the places."""
    job = site.job(Dies("rename", "tasks/"))
    await job.setup_job()
    task = await site.task(job, 0, FILES, {"/elsewhere/p/new": "n"})
    await dying(job.commit_job([task]))
    report = await site.job().commit_job([task])

    assert report.resumed
    assert site.tree()["/elsewhere/p/new"] == "n"


async def test_messages_of_other_places_do_not_vouch(site: Site) -> None:
    """Messages that name other places outside do not open those of the record."""
    job = site.job(Dies("rename", "tasks/"))
    await job.setup_job()
    task = await site.task(job, 0, FILES, {"/elsewhere/p/new": "n"})
    await dying(job.commit_job([task]))
    other = {uri: dest.replace("elsewhere", "otherwise") for uri, dest in task.absolute.items()}
    with pytest.raises(CommitError, match=r"resume\.outside"):
        await site.job().commit_job([replace(task, absolute=other)])


async def test_other_messages_are_refused(site: Site) -> None:
    """A commit that began with other task attempts is not resumed with these."""
    job = site.job(Dies("rename", "tasks/"))
    await job.setup_job()
    task = await site.task(job, 0, FILES)
    await dying(job.commit_job([task]))
    before = site.tree()
    for messages in ([], [replace(task, attempt_id=f"{task.attempt_id}1")]):
        with pytest.raises(CommitError, match="began with task attempts other"):
            await site.job().commit_job(messages)
    assert site.tree() == before
    await site.job().commit_job([task])

    assert site.files() == {name: text for name, text in FILES.items() if text}


async def test_a_plan_that_counts_otherwise(site: Site) -> None:
    """Plan and record must agree on how much there is."""
    await dead(site)
    await forge(site.job(), lambda chunk: chunk["files"].pop())
    await refused(site, "but the commit record has")


async def test_a_late_plan_of_another_try_is_ignored(site: Site) -> None:
    """Chunks that the record does not name count for nothing."""
    job = await dead(site)
    await site.job().store.put(job.layout.plan("other", 0), b"{}")
    await site.job().resume_job()

    assert site.files() == {name: text for name, text in FILES.items() if text}


# --- what comes first -------------------------------------------------------------------------


@IN_FILES
async def test_the_plan_comes_before_the_record_and_the_record_before_any_change(
    site: Site,
) -> None:
    """Nothing changes under the table before plan and record are there."""
    site.place(OLD)
    faults = Faults()
    job = await site.ready(FILES, faults)
    faults.seen.clear()
    await job.commit_job(mode=Mode.REPLACE_TABLE)
    writes = [op for op in faults.seen if op.writes and op.name not in ("sync", "draft")]
    sent = changes(writes)
    record = sent.index(("put", job.layout.record))

    made = [path for name, path in sent[:record] if name == "mkdir"]
    saved = [path for name, path in sent[:record] if name == "put"]
    assert len(made) + len(saved) == record
    assert all(path.startswith(job.layout.epoch_dir(1)) for path in made)
    assert all(path.startswith(f"{job.layout.attempt_dir}/commit-plan-") for path in saved)
    replacing = ("overwrite", "replace")
    assert not any(op.options.get(name) for op in writes[: record + 1] for name in replacing)


async def test_what_must_outlive_a_power_cut(tmp_path: Path) -> None:
    """On a disk plan, their directory and record are synced, in this order, before any change."""
    site = await open_site("local", tmp_path / "root")
    faults = Faults()
    job = await site.ready({"a": "1"}, faults)
    faults.seen.clear()
    await job.commit_job()
    attempt = job.layout.attempt_dir
    writes = [(op.name, op.path) for op in faults.seen if op.writes]
    plan = next(path for name, path in writes if name == "put" and "/commit-plan-" in path)

    place = ("mkdir", job.layout.epoch_dir(1))
    assert place in writes[:4]
    writes.remove(place)  # at the same time as the plan
    assert writes[:6] == [
        ("put", plan),
        ("sync", plan),
        ("sync", attempt),
        ("put", job.layout.record),
        ("sync", job.layout.record),
        ("sync", attempt),
    ]
    temp = job.layout.success_temp(1)
    marker = writes.index(("rename", temp))
    assert set(writes[marker - 5 : marker]) == {  # at the same time
        ("put", temp),
        ("put", job.layout.outcome),
        ("sync", attempt),
        ("sync", temp),
        ("sync", job.layout.outcome),
    }
    assert writes[marker + 1] == ("sync", job.layout.dest.path)
    await site.close()


async def test_a_claim_outlives_a_power_cut(tmp_path: Path) -> None:
    """A claim is synced before anything is done as its owner."""
    site = await open_site("local", tmp_path / "root")
    await site.cut({"a": "1"}, Dies("rename", "tasks/"))
    faults = Faults()
    job = site.job(faults)
    await job.resume_job()
    writes = [(op.name, op.path) for op in faults.seen if op.writes]
    claim = writes.index(("put", job.layout.owner(2)))

    assert writes[claim + 1 : claim + 3] == [
        ("sync", job.layout.owner(2)),
        ("sync", job.layout.attempt_dir),
    ]
    await site.close()


async def test_a_manifest_outlives_a_power_cut(tmp_path: Path) -> None:
    """So is what a task has committed."""
    site = await open_site("local", tmp_path / "root")
    faults = Faults()
    job = await site.ready({"a": "1"}, faults)
    task_id, attempt_id = job.layout.ids(0)
    temp, final = job.layout.manifest_temp(attempt_id), job.layout.manifest(task_id)
    writes = [(op.name, op.args[1] if op.name == "rename" else op.path) for op in faults.seen]
    put = writes.index(("put", temp))

    assert writes[put : put + 4] == [
        ("put", temp),
        ("sync", temp),
        ("rename", final),
        ("sync", job.layout.manifests_dir),
    ]
    await site.close()


async def test_a_store_that_is_durable_is_not_asked(tmp_path: Path) -> None:
    """Where what is acknowledged is safe nothing is synced."""
    site = await open_site("sim", tmp_path)
    faults = Faults()
    job = await site.ready(FILES, faults)
    await job.commit_job()

    assert faults.count("sync") == 0


async def test_a_disk_that_fails_to_sync_the_record(tmp_path: Path) -> None:
    """A record that may be lost is no licence to change anything."""
    site = await open_site("local", tmp_path / "root")
    job = await site.ready(FILES, Faults(Fault("sync", RejectedError, "commit-record")))
    with pytest.raises(CommitError):
        await job.commit_job()
    assert site.files() == {}
    await site.job().rollback_job()

    assert site.left() == []
    await site.close()


@IN_FILES
async def test_a_plan_that_cannot_be_written(site: Site) -> None:
    """A job whose plan cannot be saved is refused, and can be committed again."""
    site.place(OLD)
    job = await site.ready(FILES, Faults(Fault("put", RejectedError, "commit-plan")))
    before = site.files()
    with pytest.raises(PreflightError):
        await job.commit_job()
    assert site.files() == before
    await site.job().commit_job()

    assert site.left() == []


async def test_two_begin_at_once(site: Site) -> None:
    """Of two who begin the same commit one gets it; the other has done nothing."""
    await site.ready(FILES)

    async def other() -> None:
        await site.job(process="2.two").commit_job()

    job = site.job(At("put", "commit-record", other))
    with pytest.raises(CommitError) as failed:
        await job.commit_job()

    assert isinstance(failed.value, OwnedError | PreflightError)
    assert site.files() == {name: text for name, text in FILES.items() if text}
