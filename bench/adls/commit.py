"""Job commit on the emulator: ours against Hadoop's ABFS client with its manifest committer.

Twice: the first commit of a new process, as a job has it that runs once, and later ones, when
Java's compiler has done its work.
"""

from __future__ import annotations

import gc
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from asynccommit.demo.adls import client_conf, client_jar
from bench import trees
from bench.adls import account
from bench.child import Child
from bench.meter import cpu_of
from tests.support import abfs
from tests.support.hadoop import HadoopJob, jars

FULL = trees.Shape(tasks=200, files=100, partitions=10)
QUICK = trees.Shape(tasks=50, files=40, partitions=10)
THREADS = 64
TARGET = 3.0

_AT_ITS_BEST = {
    "mapreduce.manifest.committer.io.threads": str(THREADS),
    "fs.azure.io.rate.limit": "0",
}
_Row = dict[str, float]


@dataclass(frozen=True, slots=True)
class Contender:
    """A committer on the account; ``commit`` returns its seconds and its CPU seconds."""

    name: str
    commit: Callable[[], _Row]


def run(service: Child, *, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure turn by turn; returns medians, all rounds, and ratios to ours, or why there are none.

    Ours is compared with Hadoop's in the same state: new processes with each other, and processes
    that have committed such jobs before.
    """
    shape, rounds, warm = (QUICK, 2, 1) if quick else (FULL, 5, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's, about pandas
        why = abfs.why_not()
    bench = Bench(service, shape, say, alone=why is not None)
    first, later = bench.first(rounds - rounds // 2), bench.later(warm, rounds)
    states = {"first": first, "later": later}
    medians = {state: medians_of(rows) for state, rows in states.items()}
    return {
        **asdict(shape),
        "threads": THREADS,
        "rounds": states,
        "median": medians,
        "ratios": {state: _ratios(medians[state]) for state in states},
        "target": TARGET,
        "skipped": why,
    }


class Bench:
    """Commits the same job again and again, by each contender in turn."""

    def __init__(
        self, service: Child, shape: trees.Shape, say: Callable[[str], None], *, alone: bool
    ) -> None:
        self._service = service
        self._host: str = service.ask("host")
        self._shape = asdict(shape)
        self._say = say
        self._alone = alone
        self.climate: dict[str, Any] = {}

    def first(self, rounds: int) -> dict[str, list[_Row]]:
        """Commit once in new processes, ``rounds`` times."""
        rows: dict[str, list[_Row]] = {}
        for number in range(rounds):
            with self._contenders() as contenders:
                self._round(contenders[:2], number, rows)
            self._say(f"first commit of a process, {number + 1} of {rounds}")
        return rows

    def later(self, warm: int, rounds: int) -> dict[str, list[_Row]]:
        """Commit ``rounds`` times after ``warm`` times that do not count."""
        rows: dict[str, list[_Row]] = {}
        with self._contenders() as contenders:
            for number in range(warm):
                self._round(contenders[:2], number, {})
            for number in range(rounds):
                self._round(contenders[:2], number, rows)
                self._say(f"later commit, {number + 1} of {rounds}")
            self._round(contenders[2:], 0, rows)
        return rows

    def _round(self, contenders: list[Contender], number: int, rows: dict[str, list[_Row]]) -> None:
        turn = number % max(len(contenders), 1)
        for one in contenders[turn:] + contenders[:turn]:
            rows.setdefault(one.name, []).append(self._once(one))

    def _once(self, contender: Contender) -> _Row:
        """Put the job in, time its commit, check what is there."""
        service = self._service
        service.ask("reset")
        service.ask("arrange", **self._shape)
        service.ask("weather", climate=self.climate)
        gc.collect()
        before = service.ask("stats")
        row = contender.commit()
        after = service.ask("stats")
        service.ask("check", **self._shape)
        requests = sum(after["requests"].values()) - sum(before["requests"].values())
        return {**row, "requests": requests, "server_cpu": after["cpu"] - before["cpu"]}

    @contextmanager
    def _contenders(self) -> Iterator[list[Contender]]:
        """Start new processes; the third contender is Hadoop as it comes."""
        with Child("bench.adls.client") as client:
            ours = Contender("ours", lambda: dict(client.ask("commit", host=self._host)))
            if self._alone:
                yield [ours]
                return
            with _hadoop(self._host) as hadoop:
                best = Contender("hadoop", lambda: _commit(hadoop, _AT_ITS_BEST))
                plain = Contender("hadoop, defaults", lambda: _commit(hadoop, {}))
                yield [ours, best, plain]


def medians_of(rows: Mapping[str, list[_Row]]) -> dict[str, _Row]:
    """Return the median of each figure, by contender."""
    return {
        name: {key: median(row[key] for row in own) for key in own[0]} for name, own in rows.items()
    }


def _ratios(medians: Mapping[str, _Row]) -> dict[str, _Row]:
    ours = medians["ours"]
    return {
        name: {key: one[key] / ours[key] for key in ("seconds", "cpu")}
        for name, one in medians.items()
    }


@contextmanager
def _hadoop(host: str) -> Iterator[abfs.Abfs]:
    path = f"{jars()}{os.pathsep}{client_jar()}"
    # Java keeps five idle connections to a host unless told otherwise.
    options = ("-cp", path, "-Xms1g", "-Xmx2g", f"-Dhttp.maxConnections={THREADS}")
    with abfs.Abfs.start(*options) as hadoop:
        assert isinstance(hadoop, abfs.Abfs)
        hadoop.account, hadoop.filesystem_name = account.ACCOUNT, account.FILESYSTEM
        hadoop.conf = {
            **client_conf(account.ACCOUNT, account.KEY, host),
            "mapreduce.outputcommitter.factory.scheme.abfs": abfs.FACTORY,
            "fs.azure.account.hns.enabled": "true",
            # Its clients are cached otherwise, and with them their settings.
            "fs.abfs.impl.disable.cache": "true",
        }
        yield hadoop


def _commit(hadoop: abfs.Abfs, conf: Mapping[str, str]) -> _Row:
    job: HadoopJob = hadoop.job_of(account.DEST, trees.JOB_ID, conf)
    committer, context = job.committer, job.context()
    pid = _child_named("java")
    cpu, begin = cpu_of(pid), time.perf_counter()
    committer.commitJob(context)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "cpu": cpu_of(pid) - cpu, "returned": seconds}


def _child_named(name: str) -> int:
    """Return the one process of that name that this process started."""
    me = os.getpid()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, command, *rest = stat.read_text().replace("(", "").replace(")", "").split()
        except OSError:
            continue
        if command == name and int(rest[1]) == me:
            return int(pid)
    return 0
