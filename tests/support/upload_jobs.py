"""Jobs of uploads whose driver dies: what they are, where they run, and what must be true."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple

from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.job.messages import digest
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.layouts.uploads import MagicLayout, StagingLayout, UploadLayout
from asynccommit.formats.commit_record import ABORTED
from asynccommit.formats.pending import TOKEN as PENDING_TOKEN
from asynccommit.formats.pending import PendingCommit, encode_pending
from asynccommit.formats.pending_set import PendingSet, encode_pending_set
from asynccommit.formats.upload_record import IntendedUpload, UploadIntent, encode_upload_intent
from asynccommit.options.job import Mode, Options
from asynccommit.results import JobReport
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.parts import Part
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import Crash, MortalS3Store, Process, Suspension
from asynccommit.testing.models.s3.client import TOKEN, SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket, S3Object, UploadRules
from asynccommit.testing.models.s3.refusals import S3
from tests.support.crashes import EPOCH, DyingJob, MemoryWorld, clock, is_data
from tests.support.strikes import CountedProcess

BUCKET = "data"
DEST = Address("s3", BUCKET, "/out/t")
ROOT = DEST.path
JOB = "0123abcd-0000-4000-8000-000000000001"
OTHER = "0123abcd-0000-4000-8000-000000000002"
BESIDE = f"{ROOT}/_temporary/staging/alice"
"""Where staging jobs have their own files if options say nothing."""
SMALLEST = 4
"""Bytes of a part at least."""


# --- what a job is ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario(DyingJob):
    """A job of uploads.

    Attributes:
        committer: how its tasks have written.
        tokens: whether its uploads bear them; Hadoop's tasks give none.
        killed: what a killed task attempt has begun to write, and an intent names.
        hadoop: the same of Hadoop's, which ``.pending`` files name.
        tmp: where a staging job has its own files, with the user's name.
    """

    committer: str = "magic"
    tokens: bool = True
    killed: Mapping[str, str] = field(default_factory=dict)
    hadoop: Mapping[str, str] = field(default_factory=dict)
    tmp: str = "/tmp/alice"

    @property
    def files(self) -> dict[str, str]:
        """Every file that the job commits: absolute path -> content."""
        return {f"{ROOT}/{name}": text for task in self.tasks for name, text in task.items()}

    @property
    def kept(self) -> dict[str, str]:
        """What is there before and after, by the rules of the modes and no commit's."""
        gone = {*self.files}
        if self.marks:
            gone.add(f"{ROOT}/_SUCCESS")
        leaves = {path.rpartition("/")[0] for path in self.files} - {ROOT}
        for path in self.before:
            if path.startswith(f"{ROOT}/") and is_data(path, ROOT):
                replaced = self.mode is Mode.REPLACE_TABLE or (
                    self.mode is Mode.REPLACE_PARTITIONS
                    and any(path.startswith(f"{leaf}/") for leaf in leaves)
                )
                gone |= {path} if replaced else set()
        return {path: text for path, text in self.before.items() if path not in gone}

    def layout(self, job_id: str = JOB) -> UploadLayout:
        """Return where the job is."""
        if self.committer == "magic":
            return MagicLayout(DEST, job_id)
        tmp = Address("s3", BUCKET, self.tmp)
        return StagingLayout(DEST, job_id, committer=self.committer, tmp=tmp)


# --- where it is ------------------------------------------------------------------------------


class State(NamedTuple):
    """What a bucket holds: path -> content, and the open uploads by path and id."""

    files: Mapping[str, bytes]
    uploads: frozenset[tuple[str, str]]


@dataclass
class Watch:
    """Looks after every change whether the marker of the job implies all of its files."""

    wanted: Mapping[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def look(self, bucket: S3Bucket) -> None:
        """Check the marker, if it is the job's."""
        objects = bucket.objects
        marker = objects.get(f"{ROOT}/_SUCCESS"[1:])
        if marker is None or f'"{JOB}"'.encode() not in marker.data:
            return
        for path, data in self.wanted.items():
            found = objects.get(path[1:])
            if found is None or found.data != data:
                self.problems.append(f"_SUCCESS is there, and {path} is not")


class WatchedBucket(S3Bucket):
    """A bucket that is looked at after every change."""

    watch: Watch | None = None

    def copy(self) -> WatchedBucket:
        """See ``S3Bucket.copy``."""
        made = super().copy()
        assert isinstance(made, WatchedBucket)
        made.watch = self.watch
        return made

    def _place(self, *args: Any, **options: Any) -> S3Object:
        made = super()._place(*args, **options)
        self._look()
        return made

    def delete(self, key: str, *, if_match: str = "") -> None:
        """See ``S3Bucket.delete``."""
        super().delete(key, if_match=if_match)
        self._look()

    def _look(self) -> None:
        if self.watch is not None:
            self.watch.look(self)


class Ids:
    """Makes ids; a copy goes on as this one would, so that equal runs have equal files."""

    def __init__(self, start: int = 0) -> None:
        self._numbers = count(start)

    def __call__(self) -> str:
        """Return the next one."""
        return f"upload-{next(self._numbers)}"


class World(MemoryWorld):
    """A bucket with what is in it, and the processes that ever reached it."""

    dialect = S3

    def __init__(self, bucket: WatchedBucket, seed: int = 0) -> None:
        super().__init__(seed)
        self.bucket = bucket
        self.tokens = True
        self.known = True

    @classmethod
    def new(cls, seed: int = 0, *, known: bool = True, **rules: Any) -> World:
        """Return an empty one, on the running loop's clock.

        ``known`` is false where drivers do not know what its service can do.
        """
        chosen = UploadRules(**{"smallest_part": SMALLEST, **rules})
        bucket = WatchedBucket(BUCKET, now=clock, new_id=Ids(), rules=chosen)
        bucket.watch = Watch()
        made = cls(bucket, seed)
        made.known = known
        return made

    @property
    def watch(self) -> Watch:
        """What looks after every change."""
        assert self.bucket.watch is not None
        return self.bucket.watch

    def copy(self) -> World:
        """Return one with the same content, whose processes are the same."""
        made = self.shared_with(World(self.bucket.copy(), self.seed))
        made.tokens = self.tokens
        made.known = self.known
        return made

    def state(self) -> State:
        """Return what is there; directories' own objects are left out."""
        files = {f"/{o.key}": o.data for o in self.bucket.objects.values() if o.key[-1] != "/"}
        uploads = [(f"/{u.key}", u.upload_id) for u in self.bucket.uploads.open.values()]
        return State(files, frozenset(uploads))

    def place(self, path: str, text: str) -> None:
        """Put a file without any request."""
        self.bucket.put(path[1:], text.encode())

    def upload(self, path: str, text: str, token: str = "") -> tuple[str, tuple[Part, ...]]:
        """Begin an upload, with all its parts; return its id and them."""
        data, key = text.encode(), path[1:]
        metadata = {TOKEN: token} if token else {}
        upload_id = self.bucket.create_upload(key, metadata=metadata)
        pieces = [data[at : at + SMALLEST] for at in range(0, len(data), SMALLEST)] or [b""]
        sent = [
            self.bucket.upload_part(key, upload_id, number, piece)
            for number, piece in enumerate(pieces, 1)
        ]
        return upload_id, tuple(Part(f'"{part.etag}"') for part in sent)

    def store(self, process: Process, *, known: bool, host: Host) -> Store:
        """Return what the process reaches it by."""
        told = {"bucket": self.bucket, "weather": self.weather, "patience": 0.5, "known": known}
        return MortalS3Store(Address("s3", BUCKET, "/"), told, process)


# --- its tasks --------------------------------------------------------------------------------


def pending_of(
    world: World, layout: UploadLayout, name: str, text: str, attempt_id: str = ""
) -> PendingCommit:
    """Upload a file of a task, and return what completing it takes."""
    path = f"{ROOT}/{name}"
    token = sha256(f"{layout.uuid} {attempt_id} {name}".encode()).hexdigest()[:32]
    token = token if world.tokens else ""
    upload_id, parts = world.upload(path, text, token)
    return PendingCommit(
        bucket=BUCKET,
        key=path[1:],
        upload_id=upload_id,
        parts=parts,
        length=len(text.encode()),
        uri=DEST.at(path).encode(),
        job_id=layout.uuid,
        task_id=attempt_id,
        extra={PENDING_TOKEN: token} if token else {},
    )


def commit_task(
    world: World, layout: UploadLayout, task: int, files: Mapping[str, str], attempt: int = 0
) -> TaskCommit:
    """Do what a task does, up to its commit."""
    task_id, attempt_id = layout.ids(task, attempt)
    commits = tuple(pending_of(world, layout, *item, attempt_id) for item in files.items())
    return save_set(world, layout, task_id, attempt_id, commits)


def save_set(
    world: World,
    layout: UploadLayout,
    task_id: str,
    attempt_id: str,
    commits: tuple[PendingCommit, ...],
) -> TaskCommit:
    """Write a pending set, and return the task's commit message."""
    data = encode_pending_set(PendingSet(layout.uuid, commits))
    path = layout.pending_set(task_id)
    world.bucket.put(path[1:], data)
    size = sum(commit.length for commit in commits)
    url = layout.pending_url(path)
    return TaskCommit(task_id, attempt_id, url, digest(data), len(commits), size)


def intend(
    world: World, layout: UploadLayout, attempt_id: str, begun: Sequence[PendingCommit]
) -> None:
    """Write down which uploads a task attempt has begun."""
    named = tuple(IntendedUpload(commit.key, commit.upload_id) for commit in begun)
    data = encode_upload_intent(UploadIntent(layout.uuid, attempt_id, named, 1))
    world.bucket.put(layout.intent(attempt_id, 0)[1:], data)


def run_tasks(world: World, scenario: Scenario, job_id: str = JOB) -> list[TaskCommit]:
    """Set the job up, and run its tasks and its killed attempts, without any request."""
    layout = scenario.layout(job_id)
    world.tokens = scenario.tokens
    world.bucket.put(f"{layout.sets_dir[1:]}/", b"")
    world.bucket.put(layout.living[1:], b"")
    found = [commit_task(world, layout, at, files) for at, files in enumerate(scenario.tasks)]
    _, killed = layout.ids(0, 7)
    begun = [pending_of(world, layout, *item) for item in scenario.killed.items()]
    if begun:
        intend(world, layout, killed, begun)
    for name, text in scenario.hadoop.items():
        assert isinstance(layout, MagicLayout)
        place = f"{layout.task_base(killed)}/{name}"
        world.bucket.put(place[1:], b"")
        data = encode_pending(pending_of(world, layout, name, text, killed))
        world.bucket.put(f"{place[1:]}.pending", data)
    return found


# --- who commits it ---------------------------------------------------------------------------


@dataclass
class Driver:
    """One process with its own stack, about to act on a job."""

    process: Process
    job: UploadCommitter


def driver(
    world: World,
    scenario: Scenario,
    name: str,
    *,
    crash: Crash | None = None,
    stop: Suspension | None = None,
    job_id: str = JOB,
    options: Mapping[str, Any] | None = None,
    known: bool | None = None,
) -> Driver:
    """Return a fresh process of that name, which must be new."""
    process = CountedProcess(f"{name}@driver-0", crash, stop)
    assert process.name not in world.processes
    world.processes[process.name] = process
    rng = random.Random(f"{world.seed}/{process.name}")
    known = world.known if known is None else known

    def is_running(other: str) -> bool | None:
        found = world.processes.get(other)
        return None if found is None else not found.dead

    host = Host(
        now=lambda: EPOCH + process.clock(),
        new_id=lambda: f"{rng.getrandbits(128):032x}",
        rng=rng,
        name="driver-0",
        user="alice",
        clock=process.clock,
        process=process.name,
        is_running=is_running,
    )
    store = wrap(world.store(process, known=known, host=host), StoreSettings(rng, attempts=20))
    chosen = Options(workers=3, **{**scenario.options, **(options or {})})
    return Driver(process, UploadCommitter(store, scenario.layout(job_id), chosen, host))


async def commit(scenario: Scenario, who: Driver, tasks: list[TaskCommit]) -> JobReport:
    """Commit the job as the scenario says."""
    return await who.job.commit_job(tasks if scenario.messages else None, mode=scenario.mode)


# --- what must be true ------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A job whose tasks have committed.

    Attributes:
        scenario: what it is.
        tasks: the commit messages.
        before: what was there before the job, other jobs' uploads too.
    """

    scenario: Scenario
    tasks: list[TaskCommit]
    before: State

    def committed(self, state: State, *, late: bool = False) -> list[str]:
        """Return how a bucket differs from that of a committed job; ``late`` allows rubbish."""
        scenario = self.scenario
        wanted = {path: text.encode() for path, text in {**scenario.kept, **scenario.files}.items()}
        found = dict(self.swept(state.files) if late else state.files)
        marker = found.pop(f"{ROOT}/_SUCCESS", None)
        problems = _differences(wanted, found)
        if scenario.options.get("mark_success", True):
            problems += self._bad_marker(marker)
        return problems + self._uploads(state)

    def _bad_marker(self, marker: bytes | None) -> list[str]:
        if marker is None:
            return ["there is no _SUCCESS"]
        said = json.loads(marker)
        if said["jobId"] != JOB or said["committer"] != self.scenario.committer:
            return [f"_SUCCESS is of {said['jobId']}"]
        names = sorted(said["filenames"])
        return [] if names == sorted(self.scenario.files) else [f"_SUCCESS names {names}"]

    def undone(self, state: State, *, late: bool = False) -> list[str]:
        """Return how a bucket differs from that before the job; ``late`` allows rubbish."""
        found = dict(self.swept(state.files) if late else state.files)
        marker = f"{ROOT}/_SUCCESS"
        if marker in found:  # a marker that is put back has a line break more
            found[marker] = found[marker].removesuffix(b"\n")
        return _differences(self.before.files, found) + self._uploads(state)

    def begun(self, state: State) -> bool:
        """Whether there is a commit record."""
        return state.files.get(self.scenario.layout().record, ABORTED) != ABORTED

    def swept(self, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Leave out what late requests of dead drivers may leave in the job's own directories."""
        layout = self.scenario.layout()
        own = (f"{layout.job_dir}/", f"{layout.scratch}/")
        return {path: data for path, data in files.items() if not path.startswith(own)}

    def _uploads(self, state: State) -> list[str]:
        problems = [
            f"the upload of {path} remains" for path, _ in state.uploads - self.before.uploads
        ]
        lost = self.before.uploads - state.uploads
        return problems + [f"the upload of {path}, of another, is gone" for path, _ in lost]


def _differences(wanted: Mapping[str, bytes], found: Mapping[str, bytes]) -> list[str]:
    problems = [f"{path} is missing" for path in wanted.keys() - found.keys()]
    problems += [f"{path} is there, and should not be" for path in found.keys() - wanted.keys()]
    both = wanted.keys() & found.keys()
    return sorted(problems + [f"{path} is another" for path in both if wanted[path] != found[path]])


def ready(
    scenario: Scenario, seed: int = 0, of: type[World] = World, **rules: Any
) -> tuple[Job, World]:
    """Return a job whose tasks have committed, beside another job that is at work."""
    world = of.new(seed, **rules)
    for path, text in scenario.before.items():
        world.place(path, text)
    other = MagicLayout(DEST, OTHER)
    commit_task(world, other, 0, {"p=1/other": "of another job", "other": "another"})
    world.place(f"{ROOT}/_temporary/0/_temporary/attempt_9/part-0", "of Hadoop's other job")
    world.upload("/out/tt/sibling", "of a sibling")
    before = world.state()
    everything = {path: data.decode() for path, data in before.files.items()}
    scenario = replace(scenario, before=everything)
    tasks = run_tasks(world, scenario)
    world.watch.wanted = {path: text.encode() for path, text in scenario.files.items()}
    return Job(scenario, tasks, before), world


# --- one committer in fair weather ------------------------------------------------------------


def committer(
    world: World,
    scenario: Scenario,
    *policies: Policy,
    job_id: str = JOB,
    pending: Store | None = None,
    known: bool = True,
    **options: Any,
) -> UploadCommitter:
    """Return a committer of the job, whose requests go through ``policies``."""
    inner = SimS3Store(Address("s3", BUCKET, "/"), {"bucket": world.bucket, "known": known})
    store = Wrapped(inner, *policies)
    rng = random.Random(world.seed)
    host = Host(
        now=clock,
        new_id=lambda: f"{rng.getrandbits(128):032x}",
        rng=rng,
        name="driver-0",
        user="alice",
    )
    chosen = Options(**{**scenario.options, **options})
    return UploadCommitter(store, scenario.layout(job_id), chosen, host, pending=pending)


def alone(scenario: Scenario, **rules: Any) -> tuple[World, list[TaskCommit]]:
    """Return a job whose tasks have committed, with nobody else about."""
    world = World.new(**rules)
    for path, text in scenario.before.items():
        world.place(path, text)
    return world, run_tasks(world, scenario)
