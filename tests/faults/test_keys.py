"""Objects that a key of the caller's encrypts: listings show no checksum of them, jobs end."""

from __future__ import annotations

import base64
import json
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.errors import CommitError, PreflightError
from asynccommit.options.job import Mode
from asynccommit.stores.base import Store
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.wire import GcsResponse
from asynccommit.testing.models.crashes import Process
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Scenario, commit, driver, run_tasks
from tests.crash.recovery import Hand, Job, places, ready, until_death
from tests.crash.scenarios import IN_THE_WAY, REPLACE_PARTITIONS
from tests.support.crashes import DEST
from tests.support.gcs_crashes import GcsWorld, MortalTransport

KEY = base64.b64encode(b"k" * 32).decode()
SETTINGS = {
    "endpoint_url": "https://gcs.test",
    "token": "anon",
    "max_concurrency": 6,
    "encryption_key": KEY,
}
APPEND = Scenario(
    "append",
    ({"day=1/part-0": "one", "day=2/part-0": "two"}, {"day=1/part-1": "three"}),
    {f"{DEST}/day=1/part-old": "one"},
)


class Hiding(GcsApp):
    """The service, where all objects are encrypted with a key of the caller's."""

    def perform(self, call: GcsCall) -> GcsResponse:
        """See ``GcsApp.perform``."""
        answer = super().perform(call)
        if call.route.op != "list" or answer.status != 200:
            return answer
        found = json.loads(answer.body)
        for item in found.get("items", ()):
            item.pop("crc32c", None)
        return answer._replace(body=json.dumps(found).encode())


class KeyedWorld(GcsWorld):
    """A bucket whose every client gives that key."""

    def copy(self) -> KeyedWorld:
        """See ``GcsWorld.copy``."""
        found = super().copy()
        made = KeyedWorld(found.service, found.kind, found.seed)
        made.processes, made.telling = found.processes, found.telling
        return made

    def store(self, process: Process) -> Store:
        """See ``World.store``."""
        transport = MortalTransport(Hiding(self.service), self.weather, process)
        return GcsStore(self.address("/"), SETTINGS, environ={}, transport=transport)


class BareWorld(GcsWorld):
    """A bucket of a store whose etags say nothing that outlives a rename."""

    def store(self, process: Process) -> Store:
        """See ``World.store``."""
        made = super().store(process)
        assert isinstance(made, GcsStore)
        made.traits = replace(made.traits, content_etags=False)
        return made


async def keyed(scenario: Scenario, kind: str) -> tuple[Job, KeyedWorld]:
    """Return a job whose tasks have committed, in such a bucket."""
    job, _ = await ready(scenario, kind)
    world = KeyedWorld.new(kind)
    assert isinstance(world, KeyedWorld)
    for path, text in scenario.before.items():
        world.place(path, text)
    tasks = await run_tasks(world, scenario)
    return Job(scenario, tasks, job.files, job.before, job.wanted, job.words), world


async def ends(scenario: Scenario, kind: str, act: str) -> list[str]:
    """Let a commit die at its writes, and the next one end it; return what is wrong then."""
    job, world = await keyed(scenario, kind)
    whole = driver(world.copy(), scenario, "whole")
    await commit(scenario, whole, job.tasks)
    problems = []
    for crash in places(len(whole.process.writes), once=True)[::5]:
        there = world.copy()
        first = driver(there, scenario, "first", crash=crash)
        await until_death(first, commit(scenario, first, job.tasks))
        problems += [f"{crash}: {text}" for text in await Hand(job, there, "second").end(act)]
    return problems


def run(test: Coroutine[Any, Any, list[str]]) -> list[str]:
    """Run in time that passes by itself."""
    return run_virtual(test)


@pytest.mark.sample(3)
@pytest.mark.parametrize("act", ["resume", "rollback", "commit"])
@pytest.mark.parametrize("kind", ["flat", "steps"])
@pytest.mark.parametrize("scenario", [APPEND, IN_THE_WAY, REPLACE_PARTITIONS], ids=str)
def test_a_commit_that_is_cut_short_ends(scenario: Scenario, kind: str, act: str) -> None:
    """It is finished or undone like any other: what listings leave out is asked for by name."""
    assert run(ends(scenario, kind, act)) == []


def test_manifests_have_whole_etags() -> None:
    """A task says of each file what lasts, so that it can be told where it was moved to."""

    async def etags() -> list[str]:
        world = KeyedWorld.new()
        scenario = Scenario("one", ({"part-0": "x"},), mode=Mode.APPEND)
        await run_tasks(world, scenario)
        manifest = next(i.data for path, i in world.tree().items() if "manifest.json" in path)
        return [entry["e"] for entry in json.loads(manifest or b"")["files"]]

    assert ["-" in etag for etag in run(etags())] == [True]


def test_what_cannot_be_taken_over_says_what_is_so() -> None:
    """Where nothing tells a moved file, a resume does not say that nothing was changed."""

    async def refusal() -> list[str]:
        job, world = await ready(APPEND, "flat")
        whole = driver(world.copy(), APPEND, "whole")
        await commit(APPEND, whole, job.tasks)
        assert isinstance(world, GcsWorld)
        first = driver(
            world, APPEND, "first", crash=places(len(whole.process.writes), once=True)[9]
        )
        await until_death(first, commit(APPEND, first, job.tasks))
        second = driver(BareWorld(world.service, "flat"), APPEND, "second")
        with pytest.raises(CommitError, match="Completed changes remain") as caught:
            await second.job.resume_job()
        assert not isinstance(caught.value, PreflightError)
        return [str(caught.value)]

    assert ["Nothing under" in said for said in run(refusal())] == [False]
