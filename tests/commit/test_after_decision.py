"""Once a job is committed, whatever fails is a warning or an error that says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from asynccommit import sync
from asynccommit.api import open_job
from asynccommit.commit.meter import Progress
from asynccommit.errors import (
    DeniedError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    UnavailableError,
)
from asynccommit.options.job import Mode, Options
from asynccommit.results import JobReport
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.commits import JOB, Site, open_site, paths_of
from tests.support.faults import method_of
from tests.support.gcs_crashes import GcsWorld
from tests.support.upload_jobs import ROOT, Scenario, alone, committer

FILES = {"day=1/a": "1", "day=2/b": "2"}
SCENARIO = Scenario("after", ({"day=1/a": "1"}, {"day=2/b": "2"}), before={f"{ROOT}/old": "0"})

KINDS: dict[str, Callable[[str, str], BaseException]] = {
    "refused": lambda name, path: UnavailableError(name, path, "not now"),
    "denied": lambda name, path: DeniedError(name, path, "no"),
    "full": lambda name, path: RejectedError(name, path, "No space left on device"),
    "unknown": lambda name, path: OutcomeUnknownError(name, path, "no answer"),
    "missing": lambda name, path: NotFoundError(name, path),
    "changed": lambda name, path: PreconditionError(name, path, "is another"),
    "unreadable": lambda name, path: ManifestError(path, "is damaged"),
    "bug": lambda name, path: TypeError("expected string, got PosixPath"),
    "system": lambda name, path: OSError(28, "No space left on device"),
    "cancelled": lambda name, path: asyncio.CancelledError(),
}


class AfterDecision:
    """A policy that fails one request after the decision, or none and counts them."""

    def __init__(self, at: int = 0, error: Callable[[str, str], BaseException] | None = None):
        self.count = 0
        self.at = at
        self._error = error
        self._decided = False

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def failing(op: Op) -> Any:
            if self._decided:
                self.count += 1
                if self.count == self.at and self._error is not None:
                    raise self._error(op.name, op.path)
            answer = await call(op)
            if method_of(op) == "put" and "commit-outcome" in paths_of(op):
                self._decided = True
            return answer

        return failing


async def ends_well(commit: Awaitable[JobReport]) -> None:
    """See that a commit ends with a report, or with an error that says what it has to."""
    try:
        await commit
    except BaseException as error:
        said = "\n".join((str(error), *getattr(error, "__notes__", ()))).lower()
        assert "is committed" in said, said
        assert "do not run it again" in said, said


async def place(kind: str, root: Path) -> Site:
    """Return an empty site of a kind."""
    if kind == "gcs":
        return Site(GcsWorld.new())  # type: ignore[arg-type]
    return await open_site(kind, root)


async def fail_once(site: Site, policy: AfterDecision, **options: Any) -> None:
    """Commit a job that replaces a table, with a failure somewhere after the decision."""
    site.place({"/table/old": "0"})
    at = site.world.address
    options.setdefault("report_directory", at("/reports").encode())
    options.setdefault("diagnostics_directory", at("/kept").encode())
    job = await site.ready(FILES, policy, workers=1, **options)
    await ends_well(job.commit_job(mode=Mode.REPLACE_TABLE))

    assert site.files() == FILES


# Where nothing else fences an owner, an answer that its files are gone is how it learns that
# another has ended the commit: then that is so, and no failure.
UNFENCED = [error for error in KINDS if error != "missing"]
PLACES = [
    *[("local", error) for error in KINDS],
    *[("sim", error) for error in ("refused", "missing", "bug", "cancelled")],
    *[("gcs", error) for error in ("refused", "unknown", "bug", "cancelled")],
]


@pytest.mark.every(3)
@pytest.mark.sample(3)
@pytest.mark.parametrize("kind, error", PLACES)
async def test_every_request_after_the_decision(kind: str, error: str, tmp_path: Path) -> None:
    """Whichever fails, and however: the job is committed, and whoever asks is told so."""
    clean = AfterDecision()
    site = await place(kind, tmp_path / "clean")
    await fail_once(site, clean)
    await site.close()
    assert clean.count > 5

    for at in range(1, clean.count + 1):
        site = await place(kind, tmp_path / str(at))
        await fail_once(site, AfterDecision(at, KINDS[error]))
        with_it = site.job(process="2.two")
        site.alive["1.one"] = False
        await ends_well(with_it.commit_job(mode=Mode.REPLACE_TABLE))
        assert site.files() == FILES, at
        await site.close()


@pytest.mark.sample(5)
@pytest.mark.parametrize("error", UNFENCED)
async def test_every_request_of_uploads_after_the_decision(error: str) -> None:
    """The same where uploads are completed."""
    clean = AfterDecision()
    world, tasks = alone(SCENARIO)
    await committer(world, SCENARIO, clean).commit_job(tasks, mode=Mode.REPLACE_TABLE)
    assert clean.count > 3

    for at in range(1, clean.count + 1):
        world, tasks = alone(SCENARIO)
        policy = AfterDecision(at, KINDS[error])
        await ends_well(
            committer(world, SCENARIO, policy).commit_job(tasks, mode=Mode.REPLACE_TABLE)
        )
        await ends_well(committer(world, SCENARIO).commit_job(tasks, mode=Mode.REPLACE_TABLE))
        assert set(world.state().files) >= set(SCENARIO.files), at


@pytest.mark.parametrize("field", ["report_directory", "diagnostics_directory"])
@pytest.mark.parametrize("text", ["relative", "nowhere://x/y", "", "file://host/x", "/dev/null/x"])
async def test_a_directory_that_cannot_be_written_to(site: Site, field: str, text: str) -> None:
    """What is only for diagnostics fails no commit: it is a warning."""
    job = await site.ready(FILES, **{field: text})
    report = await job.commit_job()

    assert site.files() == FILES
    assert len(report.warnings) == 1, report.warnings


async def test_the_report_says_that_it_was_not_saved(site: Site) -> None:
    """A warning of the very last step is in the report that is returned."""
    job = await site.ready(FILES, report_directory="relative")
    report = await job.commit_job()

    assert report.report is None
    assert "no report was saved" in report.warnings[0]


class SpeechlessError(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error", [SpeechlessError(), ValueError("x"), StopIteration(), TypeError()]
)
async def test_progress_that_raises(site: Site, error: Exception) -> None:
    """Whatever a callback raises, the commit goes on, and a warning says so."""

    def tell(progress: Progress) -> None:
        raise error

    job = await site.ready(FILES)
    report = await job.commit_job(on_progress=tell)

    assert "progress reporting stopped" in report.warnings[0]
    assert site.files() == FILES


async def test_statistics_that_cannot_be_had(tmp_path: Path) -> None:
    """What fails when the report is made says that the job is committed."""
    site = await open_site("local", tmp_path / "root")
    job = await site.ready(FILES)

    traffic, asked = job._traffic, count(1)

    def broken() -> Any:
        if next(asked) > 2:  # the first two are asked at the beginning
            raise RuntimeError("no statistics")
        return traffic()

    job._traffic = broken
    await ends_well(job.commit_job())

    assert site.files() == FILES
    await site.close()


async def test_a_store_that_cannot_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A committed job is not told as failed for a connection that does not close."""

    async def broken(store: LocalStore) -> None:
        raise OSError("the pool is gone")

    monkeypatch.setattr(LocalStore, "aclose", broken)
    async with open_job(tmp_path / "out") as job, job.task(0) as task:
        await task.put("part-0", b"x")

    assert job.report is not None
    assert (tmp_path / "out/part-0").exists()


def test_an_interrupt_after_the_decision(tmp_path: Path) -> None:
    """Ctrl-C of a program that blocks: the interrupt itself says that the job is committed."""
    told: list[str] = []

    def tell(progress: Progress) -> None:
        told.append(progress.stage)
        if progress.stage == "job_stage_save_success_marker":
            raise KeyboardInterrupt

    opened = sync.open_job(tmp_path / "out", job_id=JOB, on_progress=tell)
    with pytest.raises(KeyboardInterrupt) as stopped, opened as job, job.task(0) as task:
        task.put("part-0", b"x")

    assert "do not run it again" in "\n".join(getattr(stopped.value, "__notes__", ()))


def test_an_interrupt_half_way(tmp_path: Path) -> None:
    """Ctrl-C in the midst of the renames: the interrupt names the stage and the commands."""

    def tell(progress: Progress) -> None:
        if progress.stage == "job_stage_rename_files":
            raise KeyboardInterrupt

    opened = sync.open_job(tmp_path / "out", job_id=JOB, on_progress=tell)
    with pytest.raises(KeyboardInterrupt) as stopped, opened as job, job.task(0) as task:
        task.put("part-0", b"x")

    told = "\n".join(getattr(stopped.value, "__notes__", ()))
    assert "its commit was interrupted at job_stage_rename_files" in told
    assert f"asynccommit resume file:{tmp_path}/out" in told


def test_paths_as_directories_of_reports(tmp_path: Path) -> None:
    """A path object is as good as its text: the report is there."""
    options = Options(report_directory=tmp_path / "reports")  # type: ignore[arg-type]
    with sync.open_job(tmp_path / "out", options=options) as job, job.task(0) as task:
        task.put("part-0", b"x")

    assert job.report is not None
    assert job.report.report is not None
    assert len(list((tmp_path / "reports").iterdir())) == 1
