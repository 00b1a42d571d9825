"""Jobs on servers of S3 that lack something: the probe of a set-up tells, whatever disturbs it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asynccommit.errors import CommitError, PreflightError
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.s3.abilities import PROBE
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.s3.refusals import S3
from tests.crash.draws import draw_climate
from tests.support.crashes import clock
from tests.support.strikes import CountedWeather, strike
from tests.support.upload_jobs import (
    ROOT,
    Driver,
    Scenario,
    World,
    commit,
    committer,
    driver,
    run_tasks,
)

LACKS: dict[str, str] = {
    "conditional_writes": "PutObject",
    "conditional_completions": "CompleteMultipartUpload",
    "abort_ends": "AbortMultipartUpload",
    "matches": "",
    "abort_tells": "",
    "abort_keeps": "",
}
"""A rule of the bucket -> the request that the error of a set-up names; empty: no error."""
ACTORS = frozenset({f"server without {rule}" for rule in LACKS} | {"death"})
LATE = "exists already"
"""Of a set-up that meets a request of one before it, which came late."""
CLOSED = "the job was aborted"
"""Of a commit for which the request of an abort before the set-up came late."""
JOB = Scenario("probed", ({"p=1/a": "hello world", "b": "x"},))
RIVAL = f"{ROOT}/b"


class Meddler:
    """Acts once, right before the first completion of a file of the table is sent."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act: Callable[[], Any] | None = act

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def met(op: Op) -> Any:
            if op.name == "complete_upload" and PROBE not in op.path and self._act:
                act, self._act = self._act, None
                await act()
            return await call(op)

        return met


async def violations(seed: int) -> list[str]:
    """Return what is wrong with a job on a server that lacks what the seed says."""
    rule = [*LACKS][seed % len(LACKS)]
    rng = random.Random(seed)
    world = World.new(seed, **{rule: False})
    strike(f"server without {rule}")
    said = await _set_up(world, rng, seed)
    if said and LATE not in said and not (LACKS[rule] and LACKS[rule] in said):
        said = await _set_up_again(world)
    if LATE in said:
        return []
    if LACKS[rule]:
        if LACKS[rule] in said:
            await driver(world, JOB, "gives up").job.abort_job("refused")
            return _left(world, rule)
        return [f"{rule}: the set-up said {said!r}", *await _harm(world, rule)]
    problems = [f"{rule}: {said}"] if said else []
    return problems + await _work(world, rule) + _left(world, rule)


async def _set_up(world: World, rng: random.Random, seed: int) -> str:
    """Set the job up in a storm, after drivers that died on it; return the error."""
    world.weather = CountedWeather(rng, clock, draw_climate(rng, seed), S3)
    for number in range(rng.randint(0, 2)):
        crash = Crash(rng.randint(1, 24), rng.choice([When.BEFORE, When.AFTER]))
        who = driver(world, JOB, f"dies{number}", crash=crash, known=False)
        await _tried(who)
        who.process.kill()
    if rng.random() < 0.5:
        world.weather = None
        await asyncio.sleep(1_000)  # what is late has come
    await driver(world, JOB, "ends").job.abort_job("cut short")
    said = await _tried(driver(world, JOB, "sets up", known=False))
    world.weather = None
    await asyncio.sleep(1_000)
    return said


async def _set_up_again(world: World) -> str:
    """Set up the job that a storm let no attempt through for; return the error."""
    await driver(world, JOB, "ends again").job.abort_job("cut short")
    return await _tried(driver(world, JOB, "sets up again", known=False))


async def _tried(who: Driver) -> str:
    try:
        await who.job.setup_job()
    except CommitError as error:
        return str(error)
    except BaseException:
        if not who.process.dead:
            raise
    return ""


async def _work(world: World, rule: str) -> list[str]:
    """Commit the job; return how its result differs."""
    tasks = run_tasks(world, JOB)
    files = JOB.files
    try:
        await commit(JOB, driver(world, JOB, "commits", known=False), tasks)
    except PreflightError as error:
        if CLOSED not in str(error):
            raise
        await driver(world, JOB, "ends it").job.abort_job("it was aborted late")
        files = {}
    there = {path: data.decode() for path, data in _table(world).items()}
    return [] if there == files else [f"{rule}: {there} is there"]


async def _harm(world: World, rule: str) -> list[str]:
    """Commit the job though its set-up should have refused; return the harm."""
    tasks = run_tasks(world, JOB)

    async def meddle() -> None:
        if rule == "abort_ends":
            strike("end")
            await committer(world, JOB).rollback_job(force=True)
        else:
            strike("rival")
            world.place(RIVAL, "precious")

    job = committer(world, JOB, Meddler(meddle), workers=1)
    with suppress(CommitError):
        await job.commit_job(tasks)
    there = _table(world)
    if rule == "abort_ends":
        return [f"{rule}: {path} is there after a rollback" for path in there]
    return (
        [] if there.get(RIVAL) in (b"precious", None) else [f"{rule}: another's file was replaced"]
    )


def _table(world: World) -> dict[str, bytes]:
    files = world.state().files
    return {path: data for path, data in files.items() if not _is_own(path)}


def _is_own(path: str) -> bool:
    return any(name[:1] == "_" for name in path.split("/"))


def _left(world: World, rule: str) -> list[str]:
    """Return what is left of probes; a driver that died may leave uploads."""
    return [f"{rule}: {path} is left" for path in world.state().files if PROBE in path]
