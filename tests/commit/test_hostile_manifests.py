"""Manifests that an enemy wrote: every field with every kind of damage, committed without messages.

Whatever a manifest says, a commit is refused and changes nothing, or fails and can be undone, or
moves files of its own task attempt to places in the table, and nothing else.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path as Path_
from typing import Any

import pytest

from asynccommit.errors import CommitError, PreflightError
from asynccommit.options.job import Mode
from tests.support.commits import DEST, JOB, OTHER, Site, open_site
from tests.support.selection import amount, day

FILES = {"day=1/a": "1", "b": "22", "new/deep/c": "333"}
VICTIMS = {
    "/victim/private": "private",
    "/table/day=1/old": "old",
    "/table/_notes/n": "notes",
    "/table2/day=1/x": "another table",
    f"/table/_temporary/{OTHER}/00/tasks/attempt_x/day=1/theirs": "of another job",
    f"/table/_temporary/{OTHER}/00/manifests/": "",
}
JOB_DIR = f"{DEST}/_temporary/{JOB}"
MODES = (Mode.APPEND, Mode.APPEND, Mode.REPLACE_TABLE)
REPLACED = "/table/day=1/old"
SKIPPED = amount("ASYNCCOMMIT_DAMAGE_STEP", quick=4, full=1)
_MISSING = object()

Path = tuple[str | int, ...]


def paths_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where every value is in a JSON document, statistics aside."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, item in value.items():
            if name != "iostatistics":
                yield from paths_in(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths_in(item, (*path, index))


def damages(value: Any, places: Mapping[str, str]) -> Iterator[Any]:
    """Yield what an enemy writes in the place of ``value``."""
    yield from (_MISSING, None, True, -1, 0, 1 << 62, 1 << 70, 1.5, "", "x", [], {}, [[]], [None])
    if isinstance(value, list):
        yield value * 2
        yield value[:1]
    if isinstance(value, int):
        yield from (value + 1, str(value))
    if not isinstance(value, str):
        return
    yield from (f"{value}x", value.upper(), f" {value}", f"{value}/", f"{value}/..", value[:-1])
    yield from (f"{value}%2F..%2F..", f"{value}%00", f"{value}\0", f"{value}%", f"{value}?q#f")
    yield from (f"{value}\u202e\x1b[31m", "../" * 9 + "victim/private", value.replace(":", "", 1))
    yield from places.values()
    if "://" in value:
        scheme, _, rest = value.partition("://")
        yield from (f"http://{rest}", f"{scheme}://elsewhere{rest[rest.index('/') :]}")
        yield f"{scheme}://user:secret@{rest}"


def changed(document: Any, path: Path, value: Any) -> Any:
    """Return a copy of ``document`` with ``value`` at ``path``."""
    made = deepcopy(document)
    there = made
    for step in path[:-1]:
        there = there[step]
    if value is _MISSING:
        del there[path[-1]]
    else:
        there[path[-1]] = value
    return made


def places_of(site: Site, document: Any) -> dict[str, str]:
    """Return places that a manifest should not name: of others, of the protocol, of itself."""
    names = {
        "victim": "/victim/private",
        "beside": "/table2/day=1/x",
        "old": "/table/day=1/old",
        "marker": "/table/_SUCCESS",
        "other job": f"/table/_temporary/{OTHER}/00/tasks/attempt_x/day=1/theirs",
        "own manifests": f"{JOB_DIR}/00/manifests",
        "own job": JOB_DIR,
        "temporary": "/table/_temporary",
        "table": "/table",
        "root": "/",
        "climbs": "/table/x/../../victim/private",
    }
    found = {name: site.world.address(path).encode() for name, path in names.items()}
    first = document["files"][0]
    return {**found, "a source": first["s"], "a dest": first["d"]} | {
        "the attempt": document["taskAttemptDir"]
    }


def outside(site: Site) -> dict[str, str | None]:
    """Return everything but the own files of the job."""
    return site.tree(JOB_DIR)


async def prepared(site: Site) -> tuple[str, Any]:
    """Set up a job whose task has committed; return its manifest, and where that is."""
    site.place(VICTIMS)
    job = await site.ready(FILES)
    task_id, _ = job.layout.ids(0)
    path = site.bare(job.layout.manifest(task_id))
    return path, json.loads(site.tree()[path] or "")


async def judged(site: Site, before: Mapping[str, str | None], mode: Mode) -> str:
    """Commit the job, and return what a manifest made it do that no manifest may."""
    try:
        report = await site.job(process="2.two").commit_job(mode=mode)
    except PreflightError as error:
        return "" if outside(site) == before else f"refused, and changed: {error}"
    except CommitError as error:
        undone = await site.job(process="3.three").rollback_job()
        if outside(site) == before or undone.not_restored:
            return ""
        return f"failed, and its rollback changed: {error}"
    if mode is Mode.REPLACE_TABLE:
        before = {path: text for path, text in before.items() if path != REPLACED}
    return _stolen(site, before, report.files)


def _stolen(site: Site, before: Mapping[str, str | None], files: int) -> str:
    after = outside(site)
    came = {path: text for path, text in after.items() if path not in before and text is not None}
    came.pop(f"{DEST}/_SUCCESS", None)
    strange = {path: text for path, text in came.items() if text not in FILES.values()}
    lost = [path for path, text in before.items() if text is not None and after.get(path) != text]
    if strange or lost or not all(path.startswith(f"{DEST}/") for path in came):
        return f"committed; came {came}, lost {lost}"
    return "" if len(came) == files else f"reported {files} files, and {len(came)} came"


Case = tuple[Path, int]
"""Which value is damaged, and which of its damages it gets."""


def cases_of(document: Any, places: Mapping[str, str]) -> list[Case]:
    """Return every single damage of a manifest."""
    return [
        (path, number)
        for path in paths_in(document)
        for number, _ in enumerate(damages(at(document, path), places))
    ]


def at(document: Any, path: Path) -> Any:
    """Return the value at ``path``."""
    for step in path:
        document = document[step]
    return document


async def tried(site: Site, some: Sequence[Case], mode: Mode = Mode.APPEND) -> str:
    """Commit a job whose manifest has these damages, and say what was wrong."""
    path, document = await prepared(site)
    before, made = outside(site), document
    places = places_of(site, document)
    said = []
    for where, number in some:
        try:
            value = list(damages(at(document, where), places))[number]
            made = changed(made, where, value)
        except (LookupError, TypeError):
            continue  # an earlier damage has taken the place of it
        said.append(f"{where} = {'nothing' if value is _MISSING else repr(value)}")
    site.place({path: json.dumps(made)})
    found = await judged(site, before, mode)
    return f"{' and '.join(said)}: {found}" if found else ""


async def every_case(kind: str, root: Path_) -> list[Case]:
    """Return the cases on one kind of store."""
    site = await open_site(kind, root)
    _, document = await prepared(site)
    found = cases_of(document, places_of(site, document))
    await site.close()
    return found


async def problems_of(kind: str, root: Path_, all_: Sequence[Sequence[Case]]) -> list[str]:
    """Try each of some combinations of damages, each with a table of its own."""
    problems = []
    for number, some in enumerate(all_):
        site = await open_site(kind, root / str(number))
        mode = MODES[number % len(MODES)]
        problems += [text] if (text := await tried(site, some, mode)) else []
        await site.close()
    return problems


@pytest.mark.more
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind, step", [("sim", 2), ("local", 9)])
async def test_every_damage_of_a_field(kind: str, step: int, tmp_path: Path_) -> None:
    """No damage of a single field makes a commit touch what is not its task's."""
    cases = await every_case(kind, tmp_path / "first")
    some = [[case] for case in cases[day() % step :: step * SKIPPED]]

    assert len(cases) > 1_000
    assert await problems_of(kind, tmp_path, some) == []


@pytest.mark.more
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind, count", [("sim", 200), ("local", 50)])
async def test_several_damaged_fields(kind: str, count: int, tmp_path: Path_) -> None:
    """Nor do two to four of them at once."""
    cases = await every_case(kind, tmp_path / "first")
    rng = random.Random(0)
    some = [rng.sample(cases, rng.randint(2, 4)) for _ in range(count // SKIPPED)]

    assert await problems_of(kind, tmp_path, some) == []
