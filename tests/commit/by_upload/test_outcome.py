"""Whether a commit is still there: asked before every change that its end must forbid."""

from __future__ import annotations

from collections import Counter

from asynccommit.stores.policies.funnel import Call, Op
from tests.crash.test_uploads_others import cut_short, seen
from tests.support.upload_jobs import ROOT, Scenario, World, committer


class _Asked:
    """A policy that counts what is asked about the commit record."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> object:
            if op.path.endswith("commit-record.json"):
                self.counts[op.name] += 1
            return await call(op)

        return around


async def test_a_record_is_read_once() -> None:
    """A rollback looks for it before each file that it puts back, and does not read it each time:
    it names every task, and grows with them."""
    names = [f"f{number:02}" for number in range(30)]
    files = tuple({name: "new"} for name in names)
    scenario = Scenario("many", files, options={"delete_target_files": True})
    world, asked = World.new(), _Asked()
    for name in names:
        world.place(f"{ROOT}/{name}", "old")
    await cut_short(world, scenario, f"complete_upload {ROOT}/{names[-1]}")
    report = await committer(world, scenario, asked).rollback_job()

    assert set(seen(world).values()) == {b"old"}
    assert report.restored > 20
    assert asked.counts["head"] > report.restored
    assert asked.counts["get"] == 2
