"""The commit record: the commit has begun from its moment on, for one owner."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.record import KEPT, recorded_options
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.ownership.status import read_state
from asynccommit.errors import (
    CommitError,
    CommitUnknownError,
    DeniedError,
    OutcomeUnknownError,
    PreflightError,
)
from asynccommit.formats.commit_record import CommitRecord, decode_record
from asynccommit.options.job import Mode, OnUnfinished, Options
from asynccommit.runtime.host import this_host
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.modes import UMASK
from asynccommit.stores.policies.funnel import Call, Op, Policy, Wrapped
from asynccommit.stores.tree import is_there
from asynccommit.stores.urls import parse_url
from tests.support.commits import JOB, OTHER, At, Dies, Site, changes, own, run_of
from tests.support.faults import Fault, Faults, apart
from tests.support.jobs import run_task

FILES = {"day=1/a": "1", "day=2/b": "2"}
OLD = {"/table/day=1/old": "o", "/table/loose": "l", "/table/_SUCCESS": ""}


async def record_of(site: Site, **options: Any) -> CommitRecord:
    """Return the record that a commit has written."""
    job = await site.cut(FILES, Dies("rename", "/tasks/"), **options)
    return decode_record(await site.job().store.get(job.layout.record, 1 << 20), "record")


async def test_the_directory_of_a_commit_is_private(tmp_path: Path) -> None:
    """Nobody else enters it, whatever permissions other directories get."""
    table, dies = tmp_path / "t", Dies("rename", "/tasks/")
    store = LocalStore(None, {UMASK: "000"})
    layout = Layout(parse_url(str(table)), JOB)
    job = ManifestCommitter(Wrapped(store, *apart([dies])), layout, Options(), this_host())
    await job.setup_job()
    await run_task(job, 0, {"day=1/a": "1"})
    with suppress(BaseException):
        await job.commit_job()
    await store.aclose()
    made = table / "_temporary" / JOB / "00"

    assert dies.dead
    assert made.stat().st_mode & 0o777 == 0o777
    assert [path.stat().st_mode & 0o777 for path in made.glob("commit-epoch-*")] == [0o700]


async def test_what_the_record_says(site: Site) -> None:
    """Whose commit it is, of what, and how it is to be gone on with."""
    site.place(OLD)
    record = await record_of(
        site, mode=Mode.REPLACE_TABLE, job_key="nightly", lease=42.0, validate_sample=7
    )

    assert (record.job_id, record.attempt, record.mode) == (
        site.job().layout.job_id,
        0,
        "replace_table",
    )
    assert (record.files, record.bytes, len(record.tasks)) == (2, 2, 1)
    assert (record.key, record.lease, record.made_destination) == ("nightly", 42.0, False)
    assert (record.owner.host, record.owner.user) == ("driver-0", "alice")
    assert record.owner.process == "1.one"
    assert record.options["validate_sample"] == 7
    assert record.options["places"] == '["day=1","day=2","loose"]'
    assert record.outside == ()


async def test_whether_the_job_made_the_table(site: Site) -> None:
    """It is told whether the destination was there before, so that a rollback may remove it."""
    assert (await record_of(site)).made_destination


async def test_places_outside(site: Site) -> None:
    """Directories elsewhere are named, the outermost of each."""
    site.place({"/elsewhere/p/old": "o"})
    job = site.job(Dies("rename", "absolute/"))
    await job.setup_job()
    wanted = {"/elsewhere/p/new": "n", "/elsewhere/p/q/new": "m", "/other/new": "x"}
    task = await site.task(job, 0, {}, wanted)
    with pytest.raises(BaseException):  # noqa: B017, PT011  # it died
        await job.commit_job([task])
    record = decode_record(await site.job().store.get(job.layout.record, 1 << 20), "record")

    assert [site.bare(path) for path in record.outside] == ["/elsewhere/p", "/other"]


# --- one owner --------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("match", ["commit-plan", "commit-record"])
@pytest.mark.parametrize("fate", ["dies", "fails", "ends", "lives"])
async def test_another_begins_in_between(site: Site, match: str, fate: str) -> None:
    """Of two who commit a job the second does nothing, and deletes nothing of the first."""
    site.place(OLD)
    await site.ready(FILES)
    found: dict[str, Any] = {}

    async def other() -> None:
        policies: dict[str, Policy] = {
            "dies": Dies("rename", "day=2/b"),
            "lives": Dies("rename", "day=2/b"),
            "fails": Faults(Fault("rename", DeniedError, "day=2/b")),
            "ends": Faults(),
        }
        first = site.job(policies[fate], process="2.two", workers=1)
        try:
            await first.commit_job(mode=Mode.REPLACE_TABLE)
        except BaseException as error:  # it died
            found["error"] = error
        site.alive["2.two"] = fate == "lives"
        found["left"] = set(await site.left_now())

    when = site.saves_plan if match == "commit-plan" else ("put", match)
    second = site.job(At(*when, other), process="3.three")
    with pytest.raises(CommitError):
        await second.commit_job(mode=Mode.REPLACE_TABLE)
    if fate == "ends":
        assert site.files() == FILES
        return
    job = site.job()
    plan_id = decode_record(await job.store.get(job.layout.record, 1 << 20), "record").plan_id
    theirs = {path for path in found["left"] if "/commit-plan-" not in path or plan_id in path}
    theirs = {path for path in theirs if "/.asynccommit-" not in path}  # drafts of the second
    assert theirs <= set(site.left())
    await site.job(process="4.four").rollback_job(force=fate == "lives")

    assert site.files() == {"day=1/old": "o", "loose": "l"}
    assert site.tree()["/table/_SUCCESS"] == ""


async def run_again(site: Site, files: Mapping[str, str]) -> None:
    """Abort the job, set its id up again, and run one task."""
    await site.job(process="2.two").rollback_job(force=True)
    again = site.job(process="4.four")
    await again.setup_job()
    await site.task(again, 0, files)


async def test_a_driver_that_wakes_begins_no_commit_of_a_later_run(site: Site) -> None:
    """A job that was aborted and set up again is left to its new run: nothing has changed."""
    site.place(OLD)
    again = {name: f"{text} again" for name, text in FILES.items()}

    async def other() -> None:
        await asyncio.create_task(run_again(site, again), context=Context())

    await site.ready(FILES)
    with pytest.raises(PreflightError, match="was changed"):
        await site.job(At(*site.saves_plan, other)).commit_job(mode=Mode.REPLACE_TABLE)
    assert site.files() == {"day=1/old": "o", "loose": "l"}

    await site.job(process="4.four").commit_job(mode=Mode.REPLACE_TABLE)
    assert site.files() == again


async def test_a_driver_of_a_job_without_files_that_wakes(site: Site) -> None:
    """A job without files replaces nothing for a later run of its id."""
    site.place(OLD)

    async def other() -> None:
        await asyncio.create_task(run_again(site, FILES), context=Context())

    await site.job().setup_job()
    with pytest.raises(PreflightError, match="was changed"):
        await site.job(At(*site.saves_plan, other)).commit_job(mode=Mode.REPLACE_TABLE)
    assert site.files() == {"day=1/old": "o", "loose": "l"}


async def test_a_late_attempt_replaces_the_only_manifest(site: Site) -> None:
    """A manifest that is replaced after it was read does not stop the commit of what was read."""

    async def other() -> None:
        late = site.job(process="4.four")
        await asyncio.create_task(site.task(late, 0, {"late": "l"}, attempt=1), context=Context())

    await site.ready({"f": "x"})
    await site.job(At(*site.saves_plan, other)).commit_job()
    assert site.files() == {"f": "x"}


async def test_a_record_whose_answer_was_lost(site: Site) -> None:
    """What is there tells that the commit has begun."""
    lost = Fault("put", OutcomeUnknownError, "commit-record", after=True, times=1)
    report = await (await site.ready(FILES, Faults(lost))).commit_job()

    assert (report.epoch, report.files) == (1, 2)


async def test_a_record_that_may_come_late(site: Site) -> None:
    """Where it cannot be told whether the commit has begun nothing is changed, or cleaned up."""
    site.place(OLD)
    lost = Fault("put", OutcomeUnknownError, "commit-record", times=1)
    job = await site.ready(FILES, Faults(lost))
    files = site.files()
    with pytest.raises(CommitUnknownError):
        await job.commit_job()

    assert site.files() == files
    await site.job().commit_job()
    assert site.files() == files | FILES


async def test_a_record_that_comes_late(site: Site) -> None:
    """One that comes when nobody waits for it any more is a commit that was cut short."""
    site.place(OLD)
    before = site.tree()
    sent: list[bytes] = []

    class Late:
        """A policy that loses the record on its way."""

        def around(self, call: Call) -> Call:
            """See ``Policy.around``."""

            async def late(op: Op) -> Any:
                if op.name == "put" and op.path == job.layout.record:
                    sent.append(op.args[1])
                    raise OutcomeUnknownError("put", op.path)
                if op.name == "rename" and op.args[1] == job.layout.record:
                    sent.append(await call(Op("get", (op.path, 1 << 20), False, True)))
                    raise OutcomeUnknownError("rename", op.path)
                return await call(op)

            return late

    job = await site.ready(FILES)
    slow = site.job(Late())
    with pytest.raises(CommitUnknownError):
        await slow.commit_job()
    await job.store.put(job.layout.record, sent[0], overwrite=False)
    standing = await read_state(job.store, job.layout)
    assert standing is not None
    await site.job().rollback_job()

    assert site.tree() == before


async def test_a_record_that_is_refused(site: Site) -> None:
    """A commit that could not begin has changed nothing, and may begin again."""
    site.place(OLD)
    job = await site.ready(FILES, Faults(Fault("put", DeniedError, "commit-record", times=1)))
    files = site.files()
    with pytest.raises(PreflightError):
        await job.commit_job()
    assert site.files() == files
    assert (await job.commit_job()).epoch == 1


async def test_the_manifests_go_with_the_record(site: Site) -> None:
    """From the record on a straggling task finds no place for its manifest."""
    job = await site.cut(FILES, Dies("rename", "/tasks/"))
    task_id, attempt_id = job.layout.ids(9)
    straggler = site.job()
    site.place({f"{site.bare(job.layout.task_attempt_dir(attempt_id))}/late": "x"})
    with pytest.raises(CommitError):
        await straggler.commit_task(task_id, attempt_id)
    with pytest.raises(CommitError):
        await straggler.setup_task(job.layout.ids(10)[1])
    await site.job().resume_job()

    assert site.files() == FILES


async def test_every_directory_is_made_before_the_record(site: Site) -> None:
    """After the record nobody makes a directory in which an owner works: it could be another's."""
    site.place(OLD)
    faults = Faults()
    job = await site.ready(FILES | {"loose": "new"}, faults)
    faults.seen.clear()
    await job.commit_job(mode=Mode.REPLACE_TABLE)
    sent = changes(faults.seen)
    record = sent.index(("put", job.layout.record))

    assert not [path for name, path in sent[record:] if name == "mkdir" and "commit-epoch" in path]


# --- options of the record --------------------------------------------------------------------


@pytest.mark.parametrize(
    "said, taken",
    [
        ({"mark_success": False}, {"mark_success": False}),
        ({"mark_success": "yes"}, {"mark_success": True}),
        ({"validate": None}, {"validate": None}),
        ({"validate_sample": True}, {"validate_sample": 3}),
        ({"validate_sample": 9}, {"validate_sample": 9}),
        (
            {"workers": 10_000, "allow_outside_destination": True},
            {"workers": None, "allow_outside_destination": False},
        ),
        ({"job_id_source": "JobID"}, {"job_id_source": "JobID"}),
        ({"on_failure": "rollback"}, {"on_failure": "keep"}),
    ],
)
async def test_options_of_a_record_are_not_trusted(
    site: Site, said: Mapping[str, Any], taken: Mapping[str, Any]
) -> None:
    """Only those that change what the commit comes to count, and only if they are such."""
    record = replace(await record_of(site), options=said)
    run = run_of(site.job(validate_sample=3))
    found = recorded_options(run, record)

    assert {name: getattr(found, name) for name in taken} == taken


async def test_the_key_is_the_records(site: Site) -> None:
    """Whoever resumes does the work of who began."""
    record = await record_of(site, job_key="nightly")

    assert recorded_options(run_of(site.job(job_key="mine")), record).job_key == "nightly"


@pytest.mark.parametrize("verb", ["resume", "setup"])
async def test_a_record_cannot_send_manifests_elsewhere(site: Site, verb: str) -> None:
    """A diagnostics directory outside, which only the record names, is not written to."""
    place = site.world.address("/victim").encode()
    await site.cut(FILES, Dies("rename", "/tasks/"), job_id=OTHER, diagnostics_directory=place)
    if verb == "resume":
        await site.job(job_id=OTHER).resume_job()
    else:
        await site.job(on_unfinished=OnUnfinished.RESUME).check_job(mode=Mode.REPLACE_TABLE)

    assert "/victim" not in site.tree()
    assert site.files() == FILES


async def test_manifests_are_kept_where_who_resumes_says_so(site: Site) -> None:
    """The same directory among the own options, or the permission to go outside, is enough."""
    place = site.world.address("/kept").encode()
    await site.cut(FILES, Dies("rename", "/tasks/"), diagnostics_directory=place)
    await site.job(allow_outside_destination=True).resume_job()

    assert [path for path in site.tree() if path.startswith("/kept/") and path.endswith(".json")]


async def test_an_owner_names_its_epoch_in_the_marker(site: Site) -> None:
    """The marker says which commit it is of, and how many had it."""
    await site.cut(FILES, Dies("rename", "/tasks/"), job_key="nightly")
    run = await own(site.job())
    site.alive["1.one"] = False
    await site.job(process="2.two").resume_job()
    said = json.loads(site.tree()["/table/_SUCCESS"] or "")["diagnostics"]

    assert said["asynccommit.commit"] == run.identity.commit_id
    assert said["asynccommit.epoch"] == "3"
    assert said["asynccommit.job.key"] == "nightly"


def test_the_options_that_a_record_keeps_are_options() -> None:
    """What is kept by name is the name of an option."""
    assert set(KEPT) <= set(Options.__dataclass_fields__)


@pytest.mark.parametrize("lives", [True, False])
async def test_a_driver_that_is_gone(site: Site, lives: bool) -> None:
    """No commit begins for a process that has ended since its tasks committed."""
    job = await site.ready(FILES)
    job.driver_lives = lambda: lives
    if lives:
        await job.commit_job()
        assert site.files() == FILES
        return
    with pytest.raises(PreflightError, match="has ended"):
        await job.commit_job()

    assert site.files() == {}
    assert not await is_there(job.store, job.layout.record)
