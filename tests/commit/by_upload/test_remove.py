"""Deleting what was planned: each file only while it is as it was listed and the commit goes on."""

from __future__ import annotations

import asyncio

import pytest

from asynccommit.commit.by_upload import remove as remove_module
from asynccommit.commit.by_upload.remove import remove_listed
from asynccommit.commit.spill import Entry, Spill
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.upload_jobs import ROOT, Scenario, World, committer

PLAIN = Scenario("plain", ())


class Ended:
    """Lets another end the commit between two looks at its record; the first is answered last."""

    def __init__(self, world: World, record: str) -> None:
        self._world, self._record = world, record
        self._looks = 0
        self._second = asyncio.Event()

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> object:
            if (op.name, op.path) != ("head", self._record):
                return await call(op)
            self._looks += 1
            if self._looks == 1:
                found = await call(op)
                await self._second.wait()
                return found
            self._world.bucket.delete(self._record[1:])
            try:
                return await call(op)
            finally:
                asyncio.get_running_loop().call_soon(self._second.set)

        return around


async def test_an_end_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look that says that the commit has ended counts, whatever an earlier one says after."""
    monkeypatch.setattr(remove_module, "BATCH", 1)
    world, record = World.new(), PLAIN.layout().record
    world.place(record, "the record")
    known = await committer(world, PLAIN).store.head(record)
    run = committer(world, PLAIN, Ended(world, record))._run()
    run.known.etag = known.etag
    rows = Spill()
    for name in ("a", "b"):
        world.place(f"{ROOT}/{name}", "old")
        info = await run.store.head(f"{ROOT}/{name}")
        await rows.append([Entry("", info.path, info.size, info.etag)])

    assert not await remove_listed(run, rows)
    assert {f"{ROOT}/a", f"{ROOT}/b"} <= world.state().files.keys()
