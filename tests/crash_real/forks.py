"""Drivers as real processes, forked from one that has imported all: ``python forks.py``.

Each line of its standard input is one order in JSON, and is answered by one line: ``{"fork": ...}``
by the id of a new process, ``{"look": true}`` by the exit codes of those that have ended since. A
driver is a command, a whole job, or what sets jobs up for others to commit. All of its output goes
to a file. When the standard input ends, so do the drivers.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import random
import signal
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any, TypeAlias

from asynccommit import cli, sync
from asynccommit.api import Job, JobRef
from asynccommit.runtime.loop_thread import submit

Spec: TypeAlias = Mapping[str, Any]

ROUNDS = 40
_PREPARED = ("commit", "formats", "options", "runtime", "stores")


def import_all() -> None:
    """Import what commits need; a thread must not be running yet, so nothing is called."""
    for name in _PREPARED:
        package = importlib.import_module(f"asynccommit.{name}")
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if "s3" not in found.name:
                importlib.import_module(found.name)


def serve() -> Spec | None:
    """Obey orders; return what to do in a process that was forked, ``None`` at the end."""
    living: set[int] = set()
    for line in sys.stdin:
        order = json.loads(line)
        if "fork" not in order:
            answer(collect(living))
            continue
        child = os.fork()
        if not child:
            return dict(order["fork"])
        living.add(child)
        answer(child)
    for child in living:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return None


def answer(value: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def collect(living: set[int]) -> dict[int, int]:
    """Return the exit codes of those that have ended, by their ids, negative for a signal."""
    ended: dict[int, int] = {}
    for child in sorted(living):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            ended[child] = os.waitstatus_to_exitcode(status)
    living.difference_update(ended)
    return ended


def speak_to(path: str) -> None:
    """Let all output go to a file, and read from nowhere."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    there = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(nowhere, 0)
    os.dup2(there, 1)
    os.dup2(there, 2)


def tell(**said: Any) -> None:
    """Say one thing as a line of JSON, in one write."""
    os.write(1, (json.dumps(said) + "\n").encode())


def command(words: list[str]) -> dict[str, Any]:
    """Run the command; return its exit code, and what its JSON says."""
    shown = io.StringIO()
    with redirect_stdout(shown):
        code = cli.main([*words, "--json"])
    return {"code": code, **json.loads(shown.getvalue() or "{}")}


def one_command(spec: Spec) -> int:
    """Run one command."""
    said = command(spec["words"])
    tell(verb=spec["words"][0], **said)
    return int(said["code"])


def whole_job(spec: Spec) -> int:
    """Set a job up, run its tasks and commit it, as a program does."""
    named = {key: spec[key] for key in ("job_id", "mode", "options", "storage_options")}
    try:
        with sync.open_job(spec["url"], **named) as job:
            for number, files in enumerate(spec["tasks"]):
                with job.task(number) as task:
                    for name, text in files.items():
                        task.put(name, text.encode())
    except Exception as error:
        tell(verb="run", code=1, message=f"{type(error).__name__}: {error}")
        return 1
    assert job.report is not None
    tell(verb="run", code=0, **job.report.to_json())
    return 0


def prepare(spec: Spec) -> int:
    """Set jobs up and commit their tasks; others commit them, for this process ends."""
    for job in spec["jobs"]:
        submit(_prepare(spec, job))
    return 0


async def _prepare(spec: Spec, job: Spec) -> None:
    opened = JobRef(spec["url"], job["job_id"], storage_options=spec["storage_options"]).open()
    async with opened as committer:
        await committer.setup_job()
        for number, files in enumerate(job["tasks"]):
            async with Job(committer).task(number) as task:
                for name, text in files.items():
                    await task.put(name, text.encode())


def end_all(spec: Spec) -> int:
    """Bring jobs to an end, by drawn commands, until no command has anything to do."""
    rng, waiting = random.Random(spec["seed"]), dict(spec["jobs"])
    for _ in range(ROUNDS):
        job_id = rng.choice(sorted(waiting))
        said = command(rng.choice(waiting[job_id]))
        tell(**{**said, "job_id": job_id})
        if said["code"] in (0, 5):
            del waiting[job_id]
        if not waiting:
            return 0
    return 1


DEEDS = {"command": one_command, "job": whole_job, "prepare": prepare, "end": end_all}


if __name__ == "__main__":
    import_all()
    if (given := serve()) is not None:
        speak_to(given["out"])
        sys.exit(DEEDS[given["deed"]](given))
