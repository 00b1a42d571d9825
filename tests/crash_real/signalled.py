"""Drivers that are stopped, continued and killed at drawn moments, and what is left of their jobs.

A run draws from one seed which jobs there are, who commits, resumes and undoes them, and when a
signal is sent. The moments are real, so a seed need not do the same twice. In the end all go on,
and a new process brings every job to its end.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asynccommit.options.job import Mode
from tests.crash_real.forked import Forked, Forks
from tests.crash_real.outcomes import Run, claim, problems
from tests.crash_real.places import OLD, PARTITIONS, Place, digest
from tests.crash_real.processes import wait_until

TASKS, FILES = 3, 14
AT_ONCE, IN_ALL = 3, 7
SHORT_LEASE = "1"
_PAUSE_OVER_LEASE = 1.3
_STEPS = {"start": 3, "stop": 4, "kill": 1, "wait": 1}
_BESIDE_A_SLEEPER = {"start": 5, "stop": 1, "continue": 2, "kill": 1, "wait": 3}
_MODES = (Mode.APPEND, Mode.APPEND, Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE)
_VERBS: Mapping[tuple[str, ...], int] = {
    ("resume",): 3,
    ("abort", "--rollback"): 3,
    ("takeover",): 2,
    ("takeover", "--rollback"): 3,
    ("abort",): 1,
}
_ENDS = (("resume",), ("abort", "--rollback"))
DELETE = "mapreduce.manifest.committer.delete.target.files"
LEASE, RATE = "asynccommit.lease", "asynccommit.rate"
ON_FAILURE = "asynccommit.on.failure"


@dataclass
class Chaos:
    """What happens in one run.

    Attributes:
        place: where the table is.
        forks: starts the drivers.
        rng: draws what happens.
        runs: the jobs, with each run of them.
        log: what has happened, to be read when something is found.
        counts: of what happened, how often.
    """

    place: Place
    forks: Forks
    rng: random.Random
    runs: list[Run] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _doing: dict[int, str] = field(default_factory=dict)
    _unbegun: list[Run] = field(default_factory=list)
    _prepared: list[Run] = field(default_factory=list)
    _shared: bool = False
    _deletes: bool = False

    def happen(self) -> list[str]:
        """Let it happen; return what is wrong in the end."""
        self.place.fill(OLD)
        self._set_up()
        if self.rng.random() < 0.4:
            self._sleep_into_the_next_run()
        for _ in range(self.rng.randint(5, 10)):
            self._pause()
            self._step()
        self._go_on()
        for one in self.forks.all:
            self._hear(one)
        self._end()
        return self._judge()

    # --- who does what

    def _set_up(self) -> None:
        ids = [f"job{n}" for n in range(self.rng.choice([1, 1, 2, 3]))]
        self._shared = self.rng.random() < 0.3
        self._deletes = self.rng.random() < 0.7
        self.runs = [self._draw_run(job_id, 0, self.rng.choice(_MODES)) for job_id in ids]
        self._unbegun = list(self.runs)
        self._prepared = [run for run in self.runs if self.rng.random() < 0.7]
        jobs = [{"job_id": run.job_id, "tasks": run.tasks} for run in self._prepared]
        started = self.forks.start("prepare", "prepare", jobs=jobs, **self._where)
        self.forks.wait(started)
        assert started.code == 0, started.out.read_text()

    @property
    def _where(self) -> dict[str, Any]:
        return {"url": self.place.url, "storage_options": self.place.storage}

    def _draw_run(self, job_id: str, number: int, mode: Mode) -> Run:
        part = "part" if self._shared else job_id
        partitions = self.rng.sample(range(PARTITIONS + 1), self.rng.randint(1, PARTITIONS))
        tasks = [
            {
                name: f"{name} of {job_id}, run {number}"
                for n in range(FILES)
                for name in [f"p={self.rng.choice(partitions)}/{part}-{task}-{n}"]
            }
            for task in range(TASKS)
        ]
        return Run(job_id, number, mode, tasks)

    def _start(self) -> Forked:
        if self._unbegun and self.rng.random() < 0.8:
            run = self._unbegun.pop(0)
            return self._commit(run) if run in self._prepared else self._run(run)
        job_id = self.rng.choice(self.runs).job_id
        if self.rng.random() < 0.25:
            return self._run(self._again(job_id))
        (verb,) = self.rng.choices(list(_VERBS), list(_VERBS.values()))
        return self._command(job_id, *verb)

    def _again(self, job_id: str) -> Run:
        """Add a run; in one mode, since a driver of an earlier run may come to commit this one."""
        earlier = [run for run in self.runs if run.job_id == job_id]
        self.runs.append(self._draw_run(job_id, len(earlier), earlier[0].mode))
        return self.runs[-1]

    def _commit(self, run: Run) -> Forked:
        mode = ("--mode", run.mode.value)
        return self._command(run.job_id, "commit", "--tasks", str(TASKS), *mode)

    def _command(self, job_id: str, *words: str) -> Forked:
        options = self._options() if words[0] == "commit" else self._pace()
        line = self._words(job_id, *words, **options)
        self._doing[len(self.forks.all)] = job_id
        return self._note(self.forks.start("command", " ".join(line), words=line), "starts")

    def _words(self, job_id: str, verb: str, *words: str, **options: str) -> tuple[str, ...]:
        named = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return (verb, self.place.url, "--job-id", job_id, *words, *self.place.arguments, *named)

    def _run(self, run: Run) -> Forked:
        spec = {"job_id": run.job_id, "mode": run.mode.value, "tasks": run.tasks}
        self._doing[len(self.forks.all)] = f"{run}"
        options = self._options()
        started = self.forks.start(
            "job", f"run {run} {options}", options=options, **spec, **self._where
        )
        return self._note(started, "starts")

    def _pace(self) -> dict[str, str]:
        lease = self.rng.choice([SHORT_LEASE, SHORT_LEASE, SHORT_LEASE, "60"])
        return {LEASE: lease, RATE: str(self.rng.choice([100, 400, 4000]))}

    def _options(self) -> dict[str, str]:
        failing = self.rng.choice(["keep", "keep", "rollback"])
        return {**self._pace(), DELETE: str(self._deletes).lower(), ON_FAILURE: failing}

    # --- what becomes of them

    def _pause(self) -> None:
        draw = self.rng.random()
        if draw < 0.5:
            time.sleep(self.rng.uniform(0, 0.3))
        elif draw < 0.9:
            self._see_more(self.rng.randint(1, TASKS * FILES))
        else:
            time.sleep(_PAUSE_OVER_LEASE)

    def _see_more(self, count: int) -> None:
        """Wait until so many more files have moved, or all have ended that do not stand still."""
        wanted = self._moved() + count
        wait_until(lambda: self._moved() >= wanted or not self._running())

    def _moved(self) -> int:
        return sum("/tasks/" not in path and "/p=" in f"/{path}" for path in self.place.names())

    def _running(self) -> list[Forked]:
        return [one for one in self.forks.living() if not one.stopped]

    def _step(self) -> None:
        """Take one of the steps that can be taken now."""
        living = self.forks.living()
        running = [one for one in living if not one.stopped]
        stopped = [one for one in living if one.stopped]
        weights = dict(_BESIDE_A_SLEEPER if stopped else _STEPS)
        if len(living) >= AT_ONCE or len(self.forks.all) > IN_ALL:
            del weights["start"]
        for step, needed in (("stop", running), ("wait", running), ("kill", living)):
            weights[step] *= bool(needed)
        if any(weights.values()):
            (step,) = self.rng.choices(list(weights), list(weights.values()))
            self._take(step, running, stopped)

    def _take(self, step: str, running: list[Forked], stopped: list[Forked]) -> None:
        if step == "start":
            self._start()
        elif step == "stop":
            self._send(self.rng.choice(running), signal.SIGSTOP)
        elif step == "continue":
            self._send(self.rng.choice(stopped), signal.SIGCONT)
        elif step == "kill":
            self._send(self.rng.choice(running + stopped), signal.SIGKILL)
        else:
            self.forks.wait(self.rng.choice(running))

    def _sleep_into_the_next_run(self) -> None:
        """Stop a commit, undo it elsewhere, run its job again up to any moment, and wake it."""
        run = self._unbegun.pop(0)
        first = self._commit(run) if run in self._prepared else self._run(run)
        self._see_more(self.rng.randint(1, TASKS * FILES // 2))
        self._send_living(first, signal.SIGSTOP)
        self.forks.wait(self._command(run.job_id, "takeover", "--rollback"))
        following = self._run(self._again(run.job_id))
        self._pause()
        self._send_living(following, self.rng.choice([signal.SIGSTOP, signal.SIGKILL]))
        self._send_living(first, signal.SIGCONT)
        self._pause()

    def _send_living(self, one: Forked, number: signal.Signals) -> None:
        if one in self.forks.living():
            self._send(one, number)

    def _send(self, one: Forked, number: signal.Signals) -> None:
        one.send(number)
        self._note(one, number.name)

    def _note(self, one: Forked, what: str) -> Forked:
        self.counts[what] += 1
        self.log.append(f"{time.monotonic():.3f} {what} {one.pid}: {one.what}")
        return one

    def _go_on(self) -> None:
        for one in self.forks.living():
            if one.stopped:
                self._send(one, signal.SIGCONT)
        self.forks.wait(*self.forks.all)

    # --- how it ends

    def _hear(self, one: Forked) -> None:
        """Take down what a driver said of the end of its job."""
        out = one.out.read_text() if one.out.exists() else ""
        self.log.append(f"{one.pid} ended with {one.code}: {out}")
        doing = self._doing.get(self.forks.all.index(one), "")
        for said in one.said():
            self._take_down(said.get("job_id") or doing, doing, claim(said))

    def _take_down(self, job_id: str, doing: str, claimed: str) -> None:
        """A command does not say which run of its job it ended; with one run it is clear."""
        its = [run for run in self.runs if f"{run}" == doing]
        its = its or [run for run in self.runs if run.job_id == job_id]
        self.counts[claimed] += bool(claimed)
        if claimed and len(its) == 1:
            its[0].said.add(claimed)

    def _end(self) -> None:
        """Bring every job to an end."""
        ends: dict[str, list[tuple[str, ...]]] = {}
        for run in self.runs:
            ends[run.job_id] = [self._words(run.job_id, *verb) for verb in _ENDS]
        last = self.forks.start("end", "the last", seed=self.rng.random(), jobs=ends)
        self.forks.wait(last)
        self._note(last, f"ended with {last.code}")
        self.log += dict.fromkeys(last.out.read_text().splitlines())
        self.log += sorted(path for path in self.place.tree() if path[0] == "_")
        assert last.code == 0, "a job does not come to an end"
        for said in last.said():
            self._take_down(said["job_id"], "", claim(said))

    def _judge(self) -> list[str]:
        tree = self.place.tree()
        tree.pop("_SUCCESS", None)
        after = {path: said for path, said in tree.items() if said != "/" or path[0] == "_"}
        before = {path: digest(data) for path, data in OLD.items() if path != "_SUCCESS"}
        return problems(before, self.runs, after, self.place.marker())
