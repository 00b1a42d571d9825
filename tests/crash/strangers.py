"""A job into whose destination strangers write, whatever moment it is: from one seed.

A stranger is any program that does not know of commits: it adds, overwrites and deletes files of
the table, those of the job and those from before. What it wrote must never be lost to a commit that
did not see it, and however the job fails, one of the commands in the error must end it.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from asynccommit.commit.paths import above
from asynccommit.errors import CommitError, StoreError
from asynccommit.options.job import Mode
from asynccommit.stores.base import Store
from asynccommit.testing.models.crashes import Process
from asynccommit.testing.models.invariants import Item, Tree, complete, exclusive, within
from tests.crash.chaos import FOREVER, Story, _act, begin, finish, first_driver
from tests.crash.draws import LEASE, draw_climate
from tests.crash.jobs import Driver, commit
from tests.crash.recovery import has_begun
from tests.support.crashes import DEST, ModelWorld
from tests.support.strikes import strike

_COMMAND = re.compile(r"asynccommit (resume|abort|takeover) (\S+)((?: --?[\w-]+(?: [^-\s]\S*)?)*)")
_DISPLACED = f"{DEST}/_displaced"
_UNCHANGED = re.compile(rf"Nothing under \S+{DEST} was changed|Nothing was (done|written)").search


@dataclass
class Stranger:
    """What strangers did to a table.

    Attributes:
        store: reaches the table in fair weather.
        rng: draws what they do.
        last: path -> what they wrote there last, ``None`` for a path that they deleted.
        early: the paths that they wrote before the commit record was there.
        overwritten: the contents that they replaced or deleted.
    """

    store: Store
    rng: random.Random
    last: dict[str, bytes | None] = field(default_factory=dict)
    early: set[str] = field(default_factory=set)
    overwritten: set[bytes] = field(default_factory=set)

    async def act(self, story: Story) -> None:
        """Do some things, at any time."""
        for number in range(self.rng.randint(1, 4)):
            await asyncio.sleep(self.rng.choice([0.1, 0.5, 2.0, LEASE * 1.2]) * self.rng.random())
            tree = story.world.tree()
            path = self.rng.choice(self._choices(story, tree))
            text = f"a stranger's {number}".encode()
            data = None if path in tree and self.rng.random() < 0.3 else text
            with suppress(StoreError):  # a directory is in the way, or the file has just gone
                await self._do(story, path, data)

    def _choices(self, story: Story, tree: Tree) -> list[str]:
        """Return paths: of the job, of files from before, and new ones beside them."""
        known = [*story.files, *(path for path in story.before if within(path, (DEST,)))]
        files = [path for path in known if tree.get(path, Item(b"")).data is not None]
        files = [path for path in files if "/_" not in path]
        places = {path.rpartition("/")[0] for path in files} | {f"{DEST}/stranger=1"}
        return sorted({*files, *(f"{place}/stranger-{n}" for place in places for n in (0, 1))})

    async def _do(self, story: Story, path: str, data: bytes | None) -> None:
        before = story.world.tree()
        if data is None:
            await self.store.delete(path)
        else:
            if self.store.traits.directories:
                await self.store.mkdir(path.rpartition("/")[0])
            await self.store.put(path, data)
        self.overwritten.add(before.get(path, Item()).data or b"")
        self.last[path] = data
        strike("stranger")
        if has_begun(before):
            self.early.discard(path)
        else:
            self.early.add(path)
        story.note(f"a stranger {'deletes' if data is None else 'writes'} {path}")


# --- what errors promise ----------------------------------------------------------------------


async def tried(story: Story, world: ModelWorld, error: CommitError) -> list[str]:
    """Return what is wrong with the commands that an error names: one at least must end the job.

    Each is carried out in a copy of the world, in fair weather.
    """
    said = [str(error), *getattr(error, "__notes__", ())]
    named = [match for text in said for match in _COMMAND.finditer(text)]
    refused = []
    for match in named:
        there = world.copy()
        other = Story(
            story.seed, story.rng, there, story.scenario, story.tasks, {}, {}, story.watch
        )
        other.born = story.born + 1_000
        who = other.driver("typed")
        force = match[1] == "takeover"
        back = "--rollback" in match[3] or match[1] == "abort"
        try:
            await (who.job.rollback_job if back else who.job.resume_job)(force=force)
        except CommitError as problem:
            refused.append(f"{match[0]}: {problem}")
            continue
        return []
    return [f"no command of {said} works: {refused}"] if named else []


async def watched(story: Story, name: str, who: Driver, act: Awaitable[Any]) -> Any:
    """Let a driver act alone in fair weather, and hold its error to what it says."""
    before = _outside(story.world.tree())
    answer = await _act(story, name, who, act)
    if isinstance(answer, CommitError):
        if _UNCHANGED(str(answer)) and _outside(story.world.tree()) != before:
            story.problems.append(f"something changed in spite of: {answer}")
        story.problems += await tried(story, story.world, answer)
    return answer


def _outside(tree: Tree) -> Tree:
    """Return what is in the table, but for the own files of jobs."""
    return {
        path: item
        for path, item in tree.items()
        if within(path, (DEST,)) and "/_temporary" not in path and item.data is not None
    }


# --- the end ----------------------------------------------------------------------------------


def judge(story: Story, stranger: Stranger, tree: Tree) -> list[str]:
    """Return what is wrong in the end, what strangers did aside."""
    if len(story.said) > 1:
        return [f"the drivers said both {' and '.join(sorted(story.said))}"]
    mine = {path: item for path, item in story.files.items() if path not in stranger.last}
    had = {path: item for path, item in story.before.items() if item.data is not None}
    had.pop(f"{DEST}/_SUCCESS", None)
    committed = story.said == {"committed"}
    if not story.said:
        whole = mine or story.files  # strangers may have written over each of its files
        committed = all(tree.get(path, Item()).data == item.data for path, item in whole.items())
        gone = {path for path in had if path not in {*story.scenario.kept, *stranger.last}}
        if not mine and gone:  # then what the job replaces tells whether it is committed
            committed = committed or gone.isdisjoint(tree)
    stays = {p: had[p] for p in (story.scenario.kept if committed else had) if p in had}
    taken = {parent for path in stranger.last for parent in (path, *above(path))}
    kept = {
        path: Item(item.data)
        for path, item in stays.items()
        if path not in taken and not within(path, stranger.last)
    }
    problems = complete(tree, kept) + _lost(story, stranger, tree, committed)
    known = {*stays, *stranger.last, *taken}  # a bucket holds files below a stranger's file too
    if committed:
        problems += complete(tree, mine)
        known |= {*story.files}
    problems += exclusive(tree, DEST, known)
    return problems + _displaced(story, stranger, tree)


def _lost(story: Story, stranger: Stranger, tree: Tree, committed: bool) -> list[str]:
    """Return the files of strangers that are gone, and that no commit was to replace."""
    problems = []
    for path, data in stranger.last.items():
        there = tree.get(path, Item()).data
        if data is None or there == data:
            continue
        if committed and path in stranger.early and _is_replaceable(story, path):
            continue
        if _is_set_aside(stranger, tree, path, data):
            continue
        problems.append(f"{path} of a stranger is lost: {there!r} is there, not {data!r}")
    return problems


def _is_set_aside(stranger: Stranger, tree: Tree, path: str, data: bytes) -> bool:
    """Return whether a file is kept for its owner, as a stranger's file is where it was below."""
    name = path[len(DEST) :]
    kept = [p for p in tree if within(p, (_DISPLACED,)) and p.endswith(f"/in{name}")]
    blocked = any(stranger.last.get(parent) for parent in above(path))
    return blocked and any(tree[p].data == data for p in kept)


def _is_replaceable(story: Story, path: str) -> bool:
    scenario = story.scenario
    if scenario.mode is Mode.REPLACE_TABLE:
        return True
    in_the_way = any(within(new, (path,)) for new in story.files)
    if scenario.options.get("delete_target_files") and in_the_way:
        return True
    places = {name.rpartition("/")[0] for name in story.files}
    return scenario.mode is Mode.REPLACE_PARTITIONS and within(path, places)


def _displaced(story: Story, stranger: Stranger, tree: Tree) -> list[str]:
    """Return what is kept for its owner though no stranger has taken its place."""
    problems = []
    for path, item in tree.items():
        if item.data is None or not within(path, (_DISPLACED,)):
            continue
        kind, _, name = path[len(_DISPLACED) + 1 :].partition("/")[2].partition("/")
        place = f"{DEST}/{name}" if kind == "in" else f"/{name}"
        taken = [p for p in stranger.last if within(p, (place,)) or within(place, (p,))]
        if not taken:
            problems.append(f"{path} is kept though nobody has taken its place")
    return problems


async def tell(seed: int, kind: str = "adls") -> tuple[Story, Stranger]:
    """Let one seed happen: a driver that may die, strangers, and whoever ends the job."""
    story = await begin(seed, kind)
    story.watch.jobs.clear()  # a stranger may change a file that a marker stands for
    stranger = Stranger(story.world.store(Process("stranger")), random.Random(f"stranger {seed}"))
    if stormy := seed % 2 == 1:
        story.world.storm(random.Random(f"weather {seed}"), draw_climate(story.rng, seed))
    async with asyncio.timeout(FOREVER):
        await asyncio.gather(first_driver(story, alone=False), stranger.act(story))
        if not stormy:
            await asyncio.sleep(LEASE * 4)  # the first driver may be asleep, not dead
            await _end(story)
        await finish(story)
        await asyncio.sleep(LEASE * 5)
    story.problems += judge(story, stranger, story.world.tree())
    return story, stranger


async def _end(story: Story) -> None:
    """Do what somebody would who reads the errors: commit again, then as they say."""
    who = story.driver("again")
    await watched(story, "commit again", who, commit(story.scenario, who, story.tasks))
    if has_begun(story.world.tree()):
        who = story.driver("again")
        await watched(story, "resume", who, who.job.resume_job())


async def violations(seed: int, kind: str = "adls") -> list[str]:
    """Return what one seed finds wrong in a world, each with its seed."""
    try:
        story, _ = await tell(seed, kind)
    except Exception as error:
        return [f"seed {seed} on {kind}: {type(error).__name__}: {error}"]
    return [f"seed {seed} on {kind}: {text}" for text in story.problems]
