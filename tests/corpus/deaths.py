"""States that dead processes have left, each with the ways in which this work ended then.

They were recorded once, by the version of the commit in which they are, and other versions must end
them alike: ``python -m tests.corpus --record`` writes them again.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import os
import tempfile
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from asynccommit.commit.planning import plan_file
from asynccommit.errors import ManifestError
from asynccommit.formats.success import decode_success
from asynccommit.testing.models.crashes import Crash, Process
from asynccommit.testing.models.invariants import Item, within
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.corpus.images import Image, bring, items, take
from tests.corpus.subjects import SUBJECTS, Messages, Subject
from tests.crash.recovery import places
from tests.crash.worlds import new_world
from tests.support.crashes import LocalWorld
from tests.support.upload_jobs import World as UploadWorld

T = TypeVar("T")
FILES = Path(__file__).parent / "files"
OURS = ("_temporary", "__magic", "journals", "tmp", "diagnostics")
"""Names of directories whose files are ours: only their names are compared."""
Tree = dict[str, Any]


class End(NamedTuple):
    """An end of dead work: the answer, and what there is afterwards as ``told`` tells it."""

    answer: str
    tree: Tree


class Death(NamedTuple):
    """A state that a process has left.

    Attributes:
        writes: how many it had sent.
        last: the last one.
        image: what it left.
        messages: the commit messages of its tasks.
        ends: act -> end.
    """

    writes: int
    last: str
    image: Image
    messages: Messages
    ends: Mapping[str, End]


def cases() -> list[tuple[str, str]]:
    """Return store and name of all work."""
    return [(store, one.name) for store, subjects in SUBJECTS.items() for one in subjects]


def subject(store: str, name: str) -> Subject:
    """Return work by its name."""
    return next(one for one in SUBJECTS[store] if one.name == name)


# --- one run ------------------------------------------------------------------------------------


@contextmanager
def _setting(store: str) -> Iterator[Path | None]:
    """Have a version write as the store's name says; give the directory of a disk."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as top:
        if store == "adls-format-2":
            patch.setattr(plan_file, "MAX_INLINE_ROWS", 0)
        patch.setattr(os, "fsync", lambda fd: None)  # nobody pulls a plug here
        yield Path(top) / "root" if store == "disk" else None


def _run(store: str, main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(main) if store == "disk" else run_virtual(main)


def _kind(store: str) -> str:
    return store.partition("-")[0]


async def _close(world: Any) -> None:
    if isinstance(world, LocalWorld):
        await world.aclose()


def end(store: str, work: Subject, death: Death, act: str) -> End:
    """End dead work, and return how it ended."""

    async def run(root: Path | None) -> End:
        world, renamed = await bring(_kind(store), death.image, root)
        messages = json.loads(renamed(json.dumps(death.messages)))
        for name in ("setup", "first"):
            for machine in ("driver-0", "mover"):
                process = Process(f"{name}@{machine}")
                process.kill()
                world.processes[process.name] = process
        before = items(world)
        answer = await work.end(world, messages, act)
        found = End(answer, told(before, items(world), str(root), work.apart))
        await _close(world)
        return found

    with _setting(store) as root:
        return _run(store, run(root))


def told(
    before: Mapping[str, Item],
    after: Mapping[str, Item],
    root: str,
    apart: tuple[str, ...] = (),
) -> Tree:
    """Return what is there in words that another run has as well.

    What is as it was is ``same``; a directory is ``directory``; a file has its content, and whether
    it is a file that was there, perhaps at another path.
    """
    known = {item.etag for item in before.values()}
    found: Tree = {}
    for path, item in sorted(after.items()):
        if within(path, apart):
            continue
        if before.get(path, Item(b"", "none"))[:2] == item[:2]:
            found[path] = "same"
        elif item.data is None:
            found[path] = "directory"
        else:
            found[path] = [_content(path, item.data, root), item.etag in known]
    return found


def _content(path: str, data: bytes, root: str) -> Any:
    if any(name in OURS for name in path.split("/")):
        return "ours"
    try:
        marker = decode_success(data, path)
    except ManifestError:
        return data.decode()
    names = [name.replace(root, "") for name in marker.filenames]
    return [marker.job_id, marker.success, sorted(names)]


# --- all deaths of one kind of work -------------------------------------------------------------


def record(store: str, work: Subject) -> list[Death]:
    """Let a process die after each write, and end what it has left in each way."""
    found: list[Death] = []
    with _setting(store) as root:
        for crash in places(_run(store, _die(store, work, root, None)).writes, once=True):
            death = _run(store, _die(store, work, root, crash))
            if all(death.image.rows != one.image.rows for one in found):
                found.append(death)
    return [
        death._replace(ends={act: end(store, work, death, act) for act in work.acts})
        for death in found
    ]


def writes(store: str, work: Subject) -> int:
    """Return how many writes work takes if nobody dies."""
    with _setting(store) as root:
        return _run(store, _die(store, work, root, None)).writes


async def _die(store: str, work: Subject, root: Path | None, crash: Crash | None) -> Death:
    """Return the state that a death leaves."""
    world, messages = await _prepared(store, work, root)
    process = await work.begin(world, messages, crash)
    last = process.writes[-1].replace(str(root), "") if process.writes else ""
    death = Death(len(process.writes), last, take(world), messages, {})
    await _close(world)
    return death


async def _prepared(store: str, work: Subject, root: Path | None) -> tuple[Any, Messages]:
    """Return a world with work that has not begun; on a disk its files are the same ones always."""
    if root is None:
        world = UploadWorld.new() if store == "s3" else new_world(_kind(store))
        return world, await work.prepare(world)
    disk, kept = LocalWorld(root), root.with_name("root.kept")
    told = root.with_name("messages.json")
    if not kept.exists():
        root.mkdir()
        told.write_text(json.dumps(await work.prepare(disk)))
        disk.keep()
    disk.start(kept)
    return disk, json.loads(told.read_text())


# --- the files ----------------------------------------------------------------------------------


def save(store: str, known: Mapping[str, list[Death]]) -> int:
    """Write the deaths on a store, by the name of the work; return the size of the file."""
    lines = [json.dumps([name, *_packed(deaths)]) for name, deaths in known.items()]
    data = lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    FILES.mkdir(exist_ok=True)
    return (FILES / f"{store}.xz").write_bytes(data)


def _packed(deaths: list[Death]) -> tuple[list[Tree], list[Any]]:
    """Return the trees at the ends, each once, and deaths that name them by number."""
    trees: list[Tree] = []
    rows = []
    for one in deaths:
        ends = {}
        for act, (answer, tree) in one.ends.items():
            if tree not in trees:
                trees.append(tree)
            ends[act] = [answer, trees.index(tree)]
        rows.append([one.writes, one.last, list(one.image), one.messages, ends])
    return trees, rows


def load(store: str, name: str) -> list[Death]:
    """Return the deaths of some work that were recorded."""
    line = _lines(store)[name]
    _, trees, rows = json.loads(line)
    found = []
    for writes, last, image, messages, ends in rows:
        ended = {act: End(answer, trees[number]) for act, (answer, number) in ends.items()}
        found.append(Death(writes, last, Image(*image), messages, ended))
    return found


@cache
def _lines(store: str) -> Mapping[str, str]:
    data = lzma.decompress((FILES / f"{store}.xz").read_bytes()).decode()
    return {line.split('"', 2)[1]: line for line in data.splitlines()}
