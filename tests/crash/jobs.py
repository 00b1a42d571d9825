"""Jobs whose driver dies: what they are, and who commits them."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.options.job import Mode, Options
from asynccommit.results import JobReport
from asynccommit.runtime.host import Host
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.testing.models.crashes import Crash, Process, Suspension
from asynccommit.testing.models.invariants import Item, Tree, within
from tests.support.crashes import DEST, EPOCH, DyingJob, World, is_data
from tests.support.strikes import CountedProcess

JOB = "job_202601010000_0001"
OTHER = "job_202601010000_0002"
JOB_DIR = f"{DEST}/_temporary/{JOB}"
REPORTS = "/reports"
DIAGNOSTICS = "/diagnostics"


# --- what a job is ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario(DyingJob):
    """A job that is committed by renames.

    A name that ends in ``/`` is a directory, and paths of directories in options stand for URLs.

    Attributes:
        overwrite: directories whose content is replaced, as Spark names them.
        absolute: task -> name of a staged file -> the absolute path it goes to.
        etags: whether the manifests have etags.
        committer: the name of the committer.
    """

    overwrite: tuple[str, ...] = ()
    absolute: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    etags: bool = True
    committer: str = "manifest"

    @property
    def files(self) -> dict[str, str]:
        """Every file that the job commits: absolute path -> content."""
        found = {
            f"{DEST}/{name}": text
            for task in self.tasks
            for name, text in task.items()
            if not name.endswith("/")
        }
        for staged in self.absolute.values():
            found |= {dest: f"absolute {name}" for name, dest in staged.items()}
        return found

    @property
    def replaced(self) -> set[str]:
        """What the job replaces of what was there, by the rules of the modes and no commit's."""
        targets = {f"{DEST}/{path}" for path in self._parents()}
        if self.mode is Mode.REPLACE_TABLE:
            targets = {DEST}
        elif self.mode is not Mode.REPLACE_PARTITIONS:
            targets = set(self.overwrite)
        found = {path for path in self.before if is_data(path, DEST) and within(path, targets)}
        if self.options.get("delete_target_files") or self.committer == "file_v1":
            found |= {
                path for path in self.before if any(within(new, [path]) for new in self.files)
            }
        if self.marks:
            found.add(f"{DEST}/_SUCCESS")
        return found

    def _parents(self) -> set[str]:
        return {name.rpartition("/")[0] for task in self.tasks for name in task}

    @property
    def kept(self) -> set[str]:
        """The files that are there before and after."""
        return {path for path in self.before if path[-1] != "/"} - self.replaced


# --- who commits it ---------------------------------------------------------------------------


@dataclass
class Driver:
    """One process with its own stack, about to act on a job."""

    process: Process
    job: ManifestCommitter
    store: Wrapped


def driver(
    world: World,
    scenario: Scenario,
    name: str,
    *,
    crash: Crash | None = None,
    stop: Suspension | None = None,
    job_id: str = JOB,
    machine: str = "driver-0",
    skew: float = 0.0,
    options: Mapping[str, Any] | None = None,
) -> Driver:
    """Return a fresh process of that name, which must be new.

    Args:
        world: where it acts.
        scenario: the job.
        name: of the process.
        crash: where it dies.
        stop: where it stands still.
        job_id: the job that it is of.
        machine: where it runs.
        skew: seconds that the machine's clock is ahead.
        options: more than the scenario says.
    """
    process = CountedProcess(f"{name}@{machine}", crash, stop)
    assert process.name not in world.processes
    world.processes[process.name] = process
    rng = random.Random(f"{world.seed}/{process.name}")
    store = wrap(world.store(process), StoreSettings(rng, attempts=20))
    made = FileV1Committer if scenario.committer == "file_v1" else ManifestCommitter
    layout = (FileLayout if made is FileV1Committer else Layout)(world.address(DEST), job_id)
    chosen = _options(world, {**scenario.options, **(options or {})})
    host = host_of(world, process, machine, rng, skew)
    return Driver(process, made(store, layout, chosen, host), store)


def _options(world: World, wanted: Mapping[str, Any]) -> Options:
    """Return options in which directories are named by their URLs."""
    found = dict(wanted)
    for key in ("report_directory", "diagnostics_directory"):
        if key in found:
            found[key] = str(world.address(found[key]))
    return Options(workers=3, **found)


def host_of(world: World, process: Process, machine: str, rng: random.Random, skew: float) -> Host:
    """Return the host of a process, on a machine whose clock is ahead by ``skew`` seconds."""

    def is_running(other: str) -> bool | None:
        found = world.processes.get(other)
        return None if found is None or not world.telling else not found.dead

    return Host(
        now=lambda: EPOCH + process.clock() + skew,
        new_id=lambda: f"{rng.getrandbits(128):032x}",
        rng=rng,
        name=machine,
        user="alice",
        clock=process.clock,
        process=process.name,
        is_running=is_running,
    )


# --- what it does -----------------------------------------------------------------------------


async def run_tasks(
    world: World, scenario: Scenario, name: str = "setup", job_id: str = JOB
) -> list[TaskCommit]:
    """Set the job up, and run its tasks, up to their commits."""
    first = driver(world, scenario, name, job_id=job_id)
    await first.job.setup_job()
    commits = [await run_task(world, scenario, first, task) for task in range(len(scenario.tasks))]
    first.process.kill()
    return commits


async def run_task(world: World, scenario: Scenario, first: Driver, task: int) -> TaskCommit:
    """Set up, write and commit one task attempt, by way of ``first``."""
    layout = first.job.layout
    task_id, attempt_id = layout.ids(task)
    base = _bare(world, await first.job.setup_task(attempt_id))
    for name, text in scenario.tasks[task].items():
        world.place(f"{base}/{name}", text)
    commit = await first.job.commit_task(task_id, attempt_id)
    if not scenario.etags:
        commit = await _strip(first, commit)
    absolute = {}
    for name, dest in scenario.absolute.get(task, {}).items():
        staged = f"{layout.absolute_dir}/{attempt_id}/{name}"
        world.place(_bare(world, staged), f"absolute {name}")
        absolute[layout.url(staged)] = world.address(dest).encode()
    return replace(commit, absolute=absolute)


def _bare(world: World, path: str) -> str:
    return path.removeprefix(world.address("/").path.rstrip("/"))


async def _strip(first: Driver, commit: TaskCommit) -> TaskCommit:
    """Take the etags out of a manifest, as a store without any would have written it."""
    path = first.job.layout.manifest(commit.task_id)
    manifest = json.loads(await first.store.get(path, 1 << 20))
    for entry in manifest["files"]:
        entry.pop("e", None)
    data = json.dumps(manifest).encode()
    await first.store.put(path, data)
    return replace(commit, digest=f"sha256:{hashlib.sha256(data).hexdigest()}")


async def commit(scenario: Scenario, who: Driver, tasks: list[TaskCommit]) -> JobReport:
    """Commit the job as the scenario says."""
    root = who.job.layout.dest.path.removesuffix(DEST)
    fresh = not any(f"{path}/".startswith(f"{DEST}/") for path in scenario.before)
    return await who.job.commit_job(
        tasks if scenario.messages else None,
        mode=scenario.mode,
        overwrite=[f"{root}{path}" for path in scenario.overwrite],
        made_destination=fresh,
    )


def expected(tree: Tree, scenario: Scenario, job_id: str = JOB) -> dict[str, Item]:
    """Return the files that the job commits, with the etags that they have before it does."""
    place = f"{DEST}/_temporary/{job_id}/00/"
    if scenario.committer == "file_v1":
        place = f"{DEST}/_temporary/0/task_{job_id.removeprefix('job_')}_"
    found = {}
    for path, text in scenario.files.items():
        data = text.encode()
        etags = [
            item.etag
            for source, item in tree.items()
            if source.startswith(place) and item.data == data and _ends_alike(source, path)
        ]
        assert len(etags) == 1, (path, etags)
        found[path] = Item(data, etags[0])
    return found


def _ends_alike(source: str, path: str) -> bool:
    return source.rpartition("/")[2] == path.rpartition("/")[2] or "/absolute/" in source
