"""Events on a cluster of machines: each strikes one slow write, and the table is exact after it."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from tests.field.machines import Yard
from tests.field.place import MissingError, StartError
from tests.field.standalone import HOME, WORKERS, Cluster, wait_for, write_settings

EXECUTOR, WORKER = "CoarseGrainedExecutorBackend", "worker.Worker"
LEASE = 5
_ROWS, _TASKS = 400, 4
_OLD = list(range(1000, 1010))
_SLOWEST = 240.0
_PROGRAM = Path(__file__).with_name("slow_writes.py")
_MODES = ("errorifexists", "append", "overwrite")
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
_FAKE = {
    "LD_PRELOAD": str(_FAKETIME),
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # with it a JVM's waits end at once, again and again
}
_SETTINGS = {
    "spark.asynccommit.lease": str(LEASE),
    "spark.hadoop.mapreduce.manifest.committer.io.threads": "1",
    "spark.hadoop.fs.azure.io.retry.max.retries": "3",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.task.maxFailures": "20",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.minTaskRuntime": "3s",
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "100",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "19",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": "file:/tmp",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


@dataclass(slots=True)
class Event:
    """One event.

    Attributes:
        kind: what has happened.
        table: the name of the table.
        mode: of the write.
        way: in which of its ways it has happened.
        problems: a line for each thing that must not be.
        files: number of files that readers see.
        late: what tasks that outlived the commit have left; a command has deleted it.
        seconds: how long it took.
    """

    kind: str
    table: str
    mode: str
    way: str = ""
    problems: list[str] = field(default_factory=list)
    files: int = 0
    late: list[str] = field(default_factory=list)
    seconds: int = 0

    @property
    def rows(self) -> list[int]:
        """Return the ids that the table must have once the job is committed."""
        return sorted([*range(_ROWS), *(_OLD if self.mode == "append" else [])])

    @property
    def before(self) -> list[int]:
        """Return the ids that the table has before the job."""
        return [] if self.mode == "errorifexists" else _OLD


IS_LATE = re.compile(r"_temporary/(([^/]+)/(\d\d/((tasks|absolute|manifests)/.*)?)?)?")
"""The paths that a task may make again if its executor is killed after its job has ended."""


class Driver:
    """The machine of a driver, and the program of the events on it."""

    def __init__(self, cluster: Cluster) -> None:
        self.machine = cluster.add("driver", cluster.of_driver)
        self._home = self.machine.root / HOME[1:]
        shutil.copy(_PROGRAM, self._home / "app.py")
        write_settings(self.machine, {**cluster.settings(), **_SETTINGS})
        self.process = cluster.submit(self.machine, "app.py")
        self._number = -1

    def write(self, **given: Any) -> None:
        """Begin a write."""
        self._number += 1
        (self._home / "given.tmp").write_text(json.dumps(given), "utf-8")
        (self._home / "given.tmp").rename(self._home / f"given-{self._number}.json")

    @property
    def place(self) -> Path:
        """Return the file that says how the last write went."""
        return self._home / f"found-{self._number}.json"

    def second_tries(self) -> int:
        """Return how often Spark's log says that a task was tried beside another attempt."""
        logs = (self.machine.root / "tmp").glob("app-*")
        return sum(log.read_text("utf-8").count('"Speculative":true') for log in logs)


class Scene:
    """A slow write that runs on a cluster, and what can happen to it."""

    def __init__(self, cluster: Cluster, driver: Driver, event: Event, draw: random.Random) -> None:
        self.cluster, self.driver, self.event, self.draw = cluster, driver, event, draw
        self.path = f"/user/root/{event.table}"
        self.job = ""
        if event.before:
            rows = io.BytesIO()
            parquet.write_table(pyarrow.table({"id": pyarrow.array(_OLD, pyarrow.int64())}), rows)
            cluster.put(f"{self.path}/old.parquet", rows.getvalue())

    def write(self, pause: int = 30) -> None:
        """Start the write, with milliseconds before each row."""
        given = {"table": self.event.table, "mode": self.event.mode, "pause": pause}
        self.driver.write(**given, rows=_ROWS, tasks=_TASKS)

    def names(self) -> list[str]:
        """Return all names below the table."""
        return self.cluster.names(self.path)

    def visible(self) -> list[str]:
        """Return the files of the job that readers see."""
        hidden = ("_", ".", "old.parquet")
        return [it for it in self.names() if not it.startswith(hidden) and not it.endswith("/")]

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something holds. Raises ``StartError`` if the program ends before."""
        process = self.driver.process
        wait_for(lambda: condition() or process.poll() is not None, _SLOWEST, what)
        if not condition():
            raise StartError(f"the program has ended before {what}")

    def until_writing(self) -> None:
        """Wait until tasks have begun some files."""
        files = self.draw.randint(2, 8)
        self.until(lambda: len(self._begun()) >= files, "the first files")
        self.job = self._begun()[0].split("/")[1]

    def _begun(self) -> list[str]:
        return [name for name in self.names() if "/tasks/" in name and ".parquet" in name]

    def until_committing(self, files: int) -> None:
        """Wait until readers see some of the files."""
        self.until(lambda: len(self.visible()) >= files, "the commit")

    def slow_renames(self, delay: float) -> None:
        """Let each rename of a file to its place take so long."""
        what = {"kind": "slow", "op": "rename", "path": f"/{self.event.table}/", "delay": delay}
        self.cluster.ask("faults", "PUT", [what])

    def until_found(self) -> dict[str, Any]:
        """Wait until the program has written, and return what it says of it."""
        self.until(self.driver.place.is_file, "its report")
        found: dict[str, Any] = json.loads(self.driver.place.read_text("utf-8"))
        return found

    def until_committed(self) -> None:
        """Wait until the job is committed, and note what is wrong with its report."""
        found = self.until_found()
        if found["error"]:
            self.event.problems.append(f"the job has failed: {found['error'][:2000]}")
        elif [files for _, files in found["reports"]] != [len(self.visible())]:
            self.event.problems.append(f"the report says {found['reports']}: {self.visible()}")

    def repeat(self, *command: str) -> None:
        """Repeat a command on another machine until the lease of the job's owner is over."""
        other = self.cluster.machines.get("other") or self.cluster.add(
            "other", self.cluster.of_driver
        )
        end = time.monotonic() + _SLOWEST
        while True:
            code, output = self.cluster.call(other, *command, self.cluster.store.root + self.path)
            if code == 0:
                return
            if code != 3 or time.monotonic() > end:
                self.event.problems.append(f"{' '.join(command)} ended with {code}: {output}")
                return

    def check(self, scratch: Path, wanted: list[int]) -> None:
        """Note rows that are missing or too many, and files that nobody should see."""
        self.cluster.fetch(self.path, scratch)
        visible = self.visible() + (["old.parquet"] if (scratch / "old.parquet").exists() else [])
        parts = [parquet.ParquetFile(scratch / name).read(["id"])["id"] for name in visible]
        found = sorted(number for part in parts for number in part.to_pylist())
        if found != wanted:
            more, fewer = sorted(set(found) - set(wanted)), sorted(set(wanted) - set(found))
            text = f"{len(found)} rows, expected {len(wanted)}: more {more}, fewer {fewer}"
            self.event.problems.append(text)
        self.event.files = len(visible)

    def end_late(self) -> None:
        """Delete what late tasks have left, as a user would; note whatever else is left."""
        wait_for(lambda: all(IS_LATE.fullmatch(name) for name in self._left()), _SLOWEST, "an end")
        self.event.late = self._left()
        for job in sorted({name.split("/")[1] for name in self.event.late} - {""}):
            self.repeat("abort", "--job-id", job, "--force")
        if left := self._left():
            self.event.problems.append(f"{left} are left after {self.event.late}")

    def write_late(self) -> None:
        """Write a file of a task that does not know that its job has ended."""
        place = f"{self.path}/_temporary/{self.job}/00/tasks/late/part.parquet"
        self.cluster.put(place, b"late")

    def _left(self) -> list[str]:
        return [name for name in self.names() if name.startswith("_temporary")]


def executors_killed(scene: Scene) -> list[int]:
    """Kill executors while their tasks write."""
    scene.write()
    scene.until_writing()
    names = WORKERS if scene.draw.random() < 0.5 else WORKERS[:1]
    scene.event.way = " and ".join(names)
    for name in names:
        if not scene.cluster[name].signal(EXECUTOR, signal.SIGKILL):
            scene.event.problems.append(f"no executor has run on {name}")
    scene.until_committed()
    return scene.event.rows


def straggler(scene: Scene) -> list[int]:
    """Stop an executor while it writes; its tasks are tried elsewhere; then let it go on."""
    before = scene.driver.second_tries()
    scene.write()
    scene.until_writing()
    worker = scene.cluster[scene.draw.choice(WORKERS)]
    worker.signal(EXECUTOR, signal.SIGSTOP)
    wait_for(lambda: scene.driver.second_tries() > before, _SLOWEST, "a second try")
    time.sleep(scene.draw.uniform(0, 4))
    worker.signal(EXECUTOR, signal.SIGCONT)
    scene.until_committed()
    scene.event.way = f"{scene.driver.second_tries() - before} records of second tries"
    return scene.event.rows


def worker_cut(scene: Scene) -> list[int]:
    """Cut a worker off while it writes, and let it back once the job is committed."""
    scene.write()
    scene.until_writing()
    zombie = scene.cluster[WORKERS[0]]
    others = scene.driver.machine, scene.cluster["master"], scene.cluster[WORKERS[1]]
    ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "from all": (zombie.unplug, zombie.plug),
        "from all but the store": (lambda: zombie.cut(*others), lambda: zombie.mend(*others)),
        "stopped": (
            lambda: zombie.signal(EXECUTOR, signal.SIGSTOP),
            lambda: zombie.signal(EXECUTOR, signal.SIGCONT),
        ),
    }
    way = scene.draw.choice(sorted(ways))
    strike, mend = ways[way]
    strike()
    if not zombie.processes(EXECUTOR):
        scene.event.problems.append("the zombie was dead")
    try:
        scene.until_committed()
        alive = len(zombie.processes(EXECUTOR))
    finally:
        mend()
    time.sleep(5)
    scene.write_late()
    scene.event.way = f"{way}, {alive} alive after the commit"
    return scene.event.rows


def clock_off(scene: Scene) -> list[int]:
    """Let a worker's clock be days off while it writes."""
    if not _FAKETIME.is_file():
        raise MissingError(f"a clock that is off needs {_FAKETIME}: install libfaketime")
    days = scene.draw.choice((-3, 2, 30))
    scene.event.way = f"{days:+d} days"
    worker = scene.cluster[WORKERS[1]]
    for name in (WORKER, EXECUTOR):
        worker.signal(name, signal.SIGKILL)
    scene.cluster.start_worker(WORKERS[1], FAKETIME=f"{days:+d}d", **_FAKE)
    scene.cluster[WORKERS[0]].signal(EXECUTOR, signal.SIGKILL)  # of its successors one comes here
    scene.until(lambda: worker.processes(EXECUTOR), "an executor whose clock is off")
    scene.write()
    scene.until_committed()
    return scene.event.rows


def store_cut(scene: Scene) -> list[int]:
    """Cut the driver off from the store in mid-commit, for longer than its lease."""
    scene.slow_renames(0.2)
    scene.write(2)
    scene.until_committing(scene.draw.randint(1, 25))
    store, driver = scene.cluster["store"], scene.driver.machine
    driver.cut(store)
    taken = scene.draw.random() < 0.5
    try:
        if taken:
            scene.repeat("resume")
        else:
            time.sleep(2 * LEASE)
    finally:
        driver.mend(store)
    failed = scene.until_found()["error"]
    if failed and not taken:
        scene.repeat("resume")
    who = "another resumed" if taken else "nobody resumed meanwhile"
    scene.event.way = f"{who}, the driver {'failed' if failed else 'committed'}"
    return scene.event.rows


def host_dead(scene: Scene) -> list[int]:
    """End the driver's machine in mid-commit, and go on from another."""
    scene.slow_renames(0.2)
    scene.write(2)
    scene.until_committing(scene.draw.randint(1, 30))
    scene.driver.machine.die()
    back = scene.draw.random() < 0.3
    scene.repeat(*(("abort", "--rollback") if back else ("resume",)))
    scene.event.way = "rolled back" if back else "resumed"
    return scene.event.before if back else scene.event.rows


KINDS: Mapping[str, Callable[[Scene], list[int]]] = {
    "executors killed": executors_killed,
    "straggler": straggler,
    "worker cut off": worker_cut,
    "worker's clock off": clock_off,
    "driver cut off from the store": store_cut,
    "driver's host dead": host_dead,
}


def main(yard: Yard, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Let one event of each kind, or of those of ``kinds``, happen on a cluster."""
    cluster = Cluster(yard, request)
    cluster.start()
    driver = Driver(cluster)
    return [asdict(event) for event in _events(cluster, driver, request)]


def _events(cluster: Cluster, driver: Driver, request: Mapping[str, Any]) -> Iterator[Event]:
    seed = request["seed"]
    for number, kind in enumerate(request.get("kinds") or KINDS):
        table = f"t{seed}-{KINDS[kind].__name__}"
        event = Event(kind, table, _MODES[(seed + number) % len(_MODES)])
        scene = Scene(cluster, driver, event, random.Random(f"{seed} {kind}"))
        _happen(scene, Path(request["folder"]))
        yield event


def _happen(scene: Scene, folder: Path) -> None:
    began, event = time.monotonic(), scene.event
    try:
        scene.check(folder / event.table, KINDS[event.kind](scene))
        scene.end_late()
    except StartError as error:
        event.problems.append(f"{error}\n{scene.cluster.log('app.py').read_text('utf-8')[-3000:]}")
    scene.cluster.ask("faults", "DELETE")
    event.seconds = round(time.monotonic() - began)
