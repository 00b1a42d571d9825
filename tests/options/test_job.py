"""Options: Hadoop's names have Hadoop's effect; dead and unknown ones warn."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.ownership import attempt_files
from asynccommit.errors import CommitError, DeniedError, OptionError, PreflightError
from asynccommit.options.job import (
    CLASSIC,
    KEYS,
    MANIFEST,
    OBSOLETE_KEYS,
    Mode,
    OnFailure,
    OnUnfinished,
    Options,
    OptionWarning,
)
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.faults import Fault, Faults
from tests.support.jobs import JOB, committer, run_task, visible, write


@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
def test_keys_with_and_without_sparks_prefix(prefix: str) -> None:
    """A key is read as Hadoop and as Spark users write it."""
    read = Options.from_conf(
        {
            f"{prefix}{MANIFEST}io.threads": " 7 ",
            f"{prefix}{MANIFEST}delete.target.files": "TRUE",
            f"{prefix}{CLASSIC}marksuccessfuljobs": "false",
            "spark.asynccommit.rate": "100",
            "fs.defaultFS": "file:///",
        }
    )

    assert read == Options(workers=7, delete_target_files=True, mark_success=False, rate=100.0)


def test_threads_of_zero_mean_the_default() -> None:
    """Hadoop takes a number of threads below one for its default."""
    assert Options.from_conf({MANIFEST + "io.threads": "0"}).workers is None


@pytest.mark.parametrize("key", OBSOLETE_KEYS)
def test_dead_keys_warn(key: str) -> None:
    """A key of these families that does nothing is named in a warning."""
    with pytest.warns(OptionWarning, match=key):
        Options.from_conf({key: "2"})


@pytest.mark.parametrize(
    "key, near",
    [
        (MANIFEST + "io.thread", MANIFEST + "io.threads"),
        ("spark.asynccommit.on.unfinishd", "asynccommit.on.unfinished"),
        ("spark.hadoop." + CLASSIC + "typo", "options.md"),
        ("fs.s3a.committer.nam", "fs.s3a.committer.name"),
    ],
)
def test_unknown_keys_are_refused(key: str, near: str) -> None:
    """An unknown key of these families is an error that names the key it resembles."""
    with pytest.raises(OptionError, match=rf"is not an option of this committer.*{near}"):
        Options.from_conf({key: "2"})


def test_unknown_keys_of_others_warn_where_others_read_them() -> None:
    """In a session's settings a key of Hadoop may be another program's; ours is an error."""
    with pytest.warns(OptionWarning, match=r"did you mean \S+io\.threads\?"):
        Options.from_conf({MANIFEST + "io.thread": "2"}, shared=True)
    with pytest.raises(OptionError, match=r"did you mean asynccommit\.rate\?"):
        Options.from_conf({"spark.asynccommit.rates": "2"}, shared=True)


def test_sparks_own_default_is_no_news() -> None:
    """The algorithm version that Spark always sets does not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = Options.from_conf({CLASSIC + "algorithm.version": "1"})

    assert read == Options()


@pytest.mark.parametrize(
    "key, value",
    [
        (MANIFEST + "io.threads", "many"),
        (MANIFEST + "writer.queue.capacity", "0"),
        (MANIFEST + "validate.output", "yes"),
        ("asynccommit.rate", "-1"),
        ("asynccommit.rate", "nan"),
        ("asynccommit.attempts", ""),
        ("asynccommit.on.unfinished", "ignore"),
        ("asynccommit.on.unfinished", ""),
        ("asynccommit.on.failure", "abort"),
        ("asynccommit.lease", "0"),
        ("asynccommit.lease", "0.9"),
        ("asynccommit.lease", "86401"),
        ("asynccommit.lease", "nan"),
        ("asynccommit.lease", "inf"),
        ("asynccommit.lease", "a minute"),
        ("asynccommit.resume.outside", "maybe"),
    ],
)
def test_a_value_that_cannot_be_read(key: str, value: str) -> None:
    """A bad value is refused with its key."""
    with pytest.raises(OptionError, match=key):
        Options.from_conf({key: value})


@pytest.mark.parametrize("prefix", ["", "spark.", "spark.hadoop."])
def test_keys_of_commits_that_are_cut_short(prefix: str) -> None:
    """What is done about commits that were cut short is said with these keys."""
    read = Options.from_conf(
        {
            f"{prefix}asynccommit.on.unfinished": " Resume ",
            f"{prefix}asynccommit.on.failure": "ROLLBACK",
            f"{prefix}asynccommit.lease": "90.5",
            f"{prefix}asynccommit.job.key": " nightly ",
            f"{prefix}asynccommit.resume.outside": "true",
        }
    )

    assert read == Options(
        on_unfinished=OnUnfinished.RESUME,
        on_failure=OnFailure.ROLLBACK,
        lease=90.5,
        job_key="nightly",
        allow_outside_destination=True,
    )


def test_what_is_kept_if_nothing_is_said() -> None:
    """By default nothing of another's is touched, and nothing that failed is undone."""
    options = Options()

    assert (options.on_unfinished, options.on_failure) == (OnUnfinished.REFUSE, OnFailure.KEEP)
    assert (options.lease, options.job_key, options.allow_outside_destination) == (
        None,
        None,
        False,
    )
    assert Options.from_conf({"asynccommit.job.key": " "}).job_key is None


@pytest.mark.parametrize("choices", [OnUnfinished, OnFailure])
def test_a_choice_that_is_none(choices: type[OnUnfinished] | type[OnFailure]) -> None:
    """Who says something else is told what there is to say."""
    key = "asynccommit.on." + ("unfinished" if choices is OnUnfinished else "failure")
    with pytest.raises(OptionError) as refused:
        Options.from_conf({key: "ask me"})

    assert all(choice.value in str(refused.value) for choice in choices)


@pytest.mark.parametrize("mode", list(Mode))
def test_modes_by_name(mode: Mode) -> None:
    """A mode is said by its name, or is one."""
    assert Mode.of(mode.value) is Mode.of(mode) is mode
    assert str(mode) == mode.value
    assert Mode.of(mode.value.upper()) is mode


@pytest.mark.parametrize(
    "name, mode",
    [
        ("overwrite", Mode.REPLACE_TABLE),
        ("Overwrite", Mode.REPLACE_TABLE),
        ("error", Mode.FAIL),
        ("errorIfExists", Mode.FAIL),
    ],
)
def test_modes_by_sparks_name(name: str, mode: Mode) -> None:
    """A mode has the name that Spark, delta-rs and polars have for it."""
    assert Mode.of(name) is mode


@pytest.mark.parametrize("name", ["", "overwrites", "replace-table", None, 1])
def test_names_that_are_no_modes(name: Any) -> None:
    """Anything else is refused with every name that is taken."""
    with pytest.raises(OptionError) as refused:
        Mode.of(name)

    taken = {*Mode, "overwrite", "error", "errorifexists"}
    assert {name for name in taken if name not in str(refused.value)} == set()


@pytest.mark.parametrize("name", ["ignore", "Ignore"])
def test_jobs_whose_tasks_run_anyway_refuse_ignore(name: str) -> None:
    """``ignore`` is refused with the reason where tasks run before the job can be skipped."""
    with pytest.raises(OptionError, match=r"in one call.*would run anyway"):
        Mode.of(name)


def test_every_key_has_a_field() -> None:
    """The table of keys names fields that exist."""
    assert {field for field, _ in KEYS.values()} <= set(Options.__dataclass_fields__)


async def commit(dest: Path, conf: dict[str, str], *faults: Faults) -> None:
    """Commit a job of one file with configuration keys."""
    job = committer(dest, *faults, conf=conf)
    await job.setup_job()
    await run_task(job, 0, {"p=1/f": "x"})
    await job.commit_job()


@pytest.mark.parametrize("marker", ["true", "false"])
async def test_marksuccessfuljobs(tmp_path: Path, marker: str) -> None:
    """The marker is written, or none is and an earlier job's stays."""
    write(tmp_path / "out", {"_SUCCESS": ""})
    await commit(tmp_path / "out", {CLASSIC + "marksuccessfuljobs": marker})

    assert bool((tmp_path / "out/_SUCCESS").read_text()) is (marker == "true")


async def test_cleanup_skipped(tmp_path: Path) -> None:
    """The job's directory stays, on abort as well."""
    await commit(tmp_path / "out", {CLASSIC + "cleanup.skipped": "true"})
    job = committer(tmp_path / "out", job_id="b", conf={CLASSIC + "cleanup.skipped": "true"})
    await job.setup_job()
    await job.abort_job()

    assert {path.name for path in (tmp_path / "out/_temporary").iterdir()} == {JOB, "b"}


async def test_cleanup_failures_ignored(tmp_path: Path) -> None:
    """Said to be false, a failed cleanup fails the commit as it does in Hadoop."""
    conf = {CLASSIC + "cleanup-failures.ignored": "false"}
    with pytest.raises(CommitError):
        await commit(tmp_path / "out", conf, Faults(Fault("delete_tree", DeniedError)))

    assert (tmp_path / "out/_SUCCESS").exists()


class Crowd:
    """Counts how many requests of one kind are under way at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.now = self.most = 0

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def counted(op: Op) -> Any:
            if op.name != self.name:
                return await call(op)
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                return await call(op)
            finally:
                self.now -= 1

        return counted


async def test_io_threads_bounds_what_is_in_flight(tmp_path: Path) -> None:
    """As many renames as there are threads are on the wire, and no more."""
    crowd = Crowd("rename")
    job = committer(tmp_path / "out", crowd, conf={MANIFEST + "io.threads": "3"})
    await job.setup_job()
    await run_task(job, 0, {f"f{i}": "" for i in range(30)})
    await job.commit_job()

    assert crowd.most == 3


async def test_delete_target_files(tmp_path: Path) -> None:
    """An existing destination is replaced only with the option."""
    write(tmp_path / "out", {"p=1/f": "old"})
    with pytest.raises(PreflightError):
        await commit(tmp_path / "out", {MANIFEST + "delete.target.files": "false"})
    await committer(tmp_path / "out").cleanup()
    await commit(tmp_path / "out", {MANIFEST + "delete.target.files": "true"})

    assert visible(tmp_path / "out") == {"p=1/f": "x"}


@pytest.mark.parametrize("validate, listings", [("true", 1), ("false", 0)])
async def test_validate_output(tmp_path: Path, validate: str, listings: int) -> None:
    """Validation lists each touched directory once, or is left out."""
    faults = Faults()
    await commit(tmp_path / "out", {MANIFEST + "validate.output": validate}, faults)
    after = [op.name for op in faults.seen]
    renamed = after.index("rename", after.index("rename") + 1)

    lists = [op for op in faults.seen[renamed:] if op.path == str(tmp_path / "out/p=1")]
    assert sum(op.name == "list" for op in lists) == listings


async def test_summary_report_directory(tmp_path: Path) -> None:
    """A summary is written for success, with the number of threads as Hadoop has it."""
    reports = tmp_path / "re ports"
    await commit(
        tmp_path / "out",
        {MANIFEST + "summary.report.directory": reports.as_uri().replace("%20", " ")},
    )
    said = json.loads((reports / f"summary-{JOB}.json").read_bytes())

    assert said["success"] is True
    assert said["diagnostics"]["stage"] == "committer_commit_job"
    assert "mapreduce.manifest.committer.io.threads" in said["diagnostics"]


@pytest.mark.parametrize(
    "error", [DeniedError("rename", "/x"), RuntimeError("a bug"), MemoryError("much")]
)
async def test_every_kind_of_failure_is_reported(tmp_path: Path, error: BaseException) -> None:
    """The summary says that the job failed and why, also for errors that are not the store's."""
    conf = {MANIFEST + "summary.report.directory": str(tmp_path / "reports")}
    faults = Faults(Fault("rename", lambda name, path: error, "p=1"))
    with pytest.raises(CommitError) as failed:
        await commit(tmp_path / "out", conf, faults)
    said = json.loads((tmp_path / f"reports/summary-{JOB}.json").read_bytes())

    assert said["success"] is False
    assert failed.value.__cause__ is error
    assert str(error) in str(failed.value)
    assert type(error).__name__ in said["diagnostics"]["stacktrace"]


async def test_a_cancelled_commit_is_reported(tmp_path: Path) -> None:
    """A commit that is cancelled half-way says so in its report before it ends."""
    hangs = asyncio.Event()

    class Hang:
        def around(self, call: Call) -> Call:
            """Make renames of data files wait for ever."""

            async def hanging(op: Op) -> Any:
                if op.name == "rename" and "/tasks/" in op.path:
                    hangs.set()
                    await asyncio.sleep(3600)
                return await call(op)

            return hanging

    job = committer(tmp_path / "out", Hang(), report_directory=str(tmp_path / "reports"))
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    running = asyncio.create_task(job.commit_job())
    await hangs.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    said = json.loads((tmp_path / f"reports/summary-{JOB}.json").read_bytes())

    assert said["success"] is False
    assert said["diagnostics"]["stage"] == "job_stage_rename_files"
    assert "CancelledError" in said["diagnostics"]["exception"]


async def test_diagnostics_manifest_directory(tmp_path: Path) -> None:
    """The manifests are kept under the job's id, beside those of an earlier one."""
    diagnostics = tmp_path / "diag"
    write(diagnostics / JOB, {"old": ""})
    conf = {MANIFEST + "diagnostics.manifest.directory": str(diagnostics)}
    await commit(tmp_path / "out", conf)

    assert [path.name for path in (diagnostics / f"{JOB}-2").iterdir()] == [
        "task_202601010000_0001_m_000000-manifest.json"
    ]
    assert (diagnostics / JOB / "old").exists()
    said = json.loads((tmp_path / "out/_SUCCESS").read_bytes())
    assert said["diagnostics"]["manifests"].endswith(f"/diag/{JOB}-2")


async def test_the_diagnostics_directory_cannot_hit_the_table(tmp_path: Path) -> None:
    """A diagnostics directory in which the job's id names the table itself deletes nothing."""
    table = tmp_path / JOB
    write(table, {"old": "o"})
    await commit(table, {MANIFEST + "diagnostics.manifest.directory": str(tmp_path)})

    assert visible(table) == {"old": "o", "p=1/f": "x"}


async def test_a_failing_diagnostics_directory_is_a_warning(tmp_path: Path) -> None:
    """Keeping the manifests may fail without failing the job."""
    write(tmp_path, {"file": ""})
    job = committer(tmp_path / "out", diagnostics_directory=str(tmp_path / "file/x"))
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    report = await job.commit_job()

    assert "were not kept for diagnostics" in report.warnings[0]


@pytest.mark.parametrize(
    "conf, deletes",
    [
        ({MANIFEST + "cleanup.parallel.delete": "true"}, 2),
        ({MANIFEST + "cleanup.parallel.delete": "false"}, 1),
        ({MANIFEST + "cleanup.parallel.delete.base.first": "true"}, 1),
    ],
)
async def test_parallel_delete(
    tmp_path: Path, conf: dict[str, str], deletes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleanup deletes as the options say."""
    monkeypatch.setattr(attempt_files, "FEW_TASKS", 0)
    faults = Faults()
    await commit(tmp_path / "out", conf, faults)

    assert faults.count("delete_tree") == deletes


async def test_writer_queue_capacity_bounds_loading(tmp_path: Path) -> None:
    """As many manifests as the queue takes are read at a time, and no more."""
    crowd = Crowd("get")
    job = committer(tmp_path / "out", crowd, conf={MANIFEST + "writer.queue.capacity": "2"})
    await job.setup_job()
    for task in range(9):
        await run_task(job, task, {f"f{task}": ""})
    report = await job.commit_job()

    assert report.files == 9
    assert crowd.most == 2
