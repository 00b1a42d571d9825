"""Whose a file without a token is, when a commit is undone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from asynccommit.results import AbortReport
from asynccommit.stores.base import Traits
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.s3.client import TOKEN, SimS3Store
from asynccommit.testing.models.s3.model import CompletedPart
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_others import seen
from tests.crash.test_uploads_points import until_death
from tests.support.upload_jobs import (
    BUCKET,
    OTHER,
    ROOT,
    Driver,
    Scenario,
    World,
    commit,
    driver,
    run_tasks,
)

HADOOP = Scenario("hadoop", ({"p=1/a": "hello world", "b": "x"},), tokens=False)


class _Elsewhere(SimS3Store):
    """A store of pending sets that is another one than the destination's, with another clock."""

    @property
    def traits(self) -> Traits:
        """See ``Store.traits``."""
        return replace(super().traits, account="elsewhere")


def _off(who: Driver, seconds: float, *, elsewhere: bool = False) -> Driver:
    """Set the clock of a driver's machine wrong."""
    now = who.job.host.now
    who.job.host = replace(who.job.host, now=lambda: now() + seconds)
    if elsewhere:
        store = cast(SimS3Store, cast(Wrapped, who.job.store).store)
        who.job.pending = _Elsewhere(Address("s3", BUCKET, "/"), {"bucket": store.bucket})
    return who


@pytest.mark.parametrize("name", ["magic", "directory", "elsewhere"])
@pytest.mark.parametrize("first, second", [(600, 0), (0, -600), (600, 600)])
def test_clocks_that_are_wrong(name: str, first: float, second: float) -> None:
    """A later job's files of the same bytes stay, whatever the clocks of the two machines say."""
    elsewhere = name == "elsewhere"
    scenario = replace(HADOOP, committer="directory" if elsewhere else name)

    async def run() -> tuple[set[str], set[str]]:
        world = World.new()
        tasks = run_tasks(world, scenario)
        probe = driver(world.copy(), scenario, "probe")
        await commit(scenario, probe, tasks)
        write = next(at for at, w in enumerate(probe.process.writes, 1) if "commit-start" in w)
        dies = _off(driver(world, scenario, "dies", crash=Crash(write, When.AFTER)), first)
        await until_death(dies, commit(scenario, dies, tasks))
        await asyncio.sleep(5)
        for upload in list(world.bucket.uploads.open.values()):
            world.bucket.abort(upload.key, upload.upload_id)
        again = run_tasks(world, scenario, OTHER)
        await asyncio.sleep(5)
        await commit(scenario, _off(driver(world, scenario, "two", job_id=OTHER), second), again)
        before = set(seen(world))
        await _off(driver(world, scenario, "back"), 0, elsewhere=elsewhere).job.rollback_job()
        return before, set(seen(world))

    before, after = run_virtual(run())
    assert after == before


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("before", [{}, {f"{ROOT}/p=1/a": "an old one"}])
def test_a_file_that_comes_late_is_said(tokens: bool, before: dict[str, str]) -> None:
    """A completion that takes effect after its file was looked for is found by the last listing."""
    options = {"delete_target_files": True}
    tasks = ({"p=1/a": "hello world", "b": "x"},)
    scenario = Scenario("late", tasks, before, options=options, tokens=tokens)

    async def run() -> AbortReport:
        world = World.new()
        for path, text in before.items():
            world.place(path, text)
        tasks = run_tasks(world, scenario)
        probe = driver(world.copy(), scenario, "probe")
        await commit(scenario, probe, tasks)
        write = next(at for at, w in enumerate(probe.process.writes, 1) if "commit-start" in w)
        dies = driver(world, scenario, "dies", crash=Crash(write, When.AFTER))
        await until_death(dies, commit(scenario, dies, tasks))
        upload = next(u for u in world.bucket.uploads.open.values() if u.key == f"{ROOT}/b"[1:])
        back = driver(world, scenario, "back")

        class Late:
            """Something else completes an upload right after it was aborted."""

            def around(self, call: Call) -> Call:
                async def late(op: Op) -> Any:
                    answer = await call(op)
                    if op.name == "abort_upload" and op.args[1] == upload.upload_id:
                        token = upload.metadata.get(TOKEN, "")
                        again, parts = world.upload(f"{ROOT}/b", "x", token)
                        part = CompletedPart(1, parts[0].etag.strip('"'))
                        world.bucket.complete(upload.key, again, [part])
                    return answer

                return late

        back.job.store = Wrapped(back.job.store, Late())
        return await back.job.rollback_job(force=True)

    report = run_virtual(run())
    assert report.not_restored == (f"{ROOT}/b",)
    assert any(f"{ROOT}/b remains: it seems to be" in said for said in report.warnings)
