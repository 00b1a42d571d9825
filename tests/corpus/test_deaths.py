"""Work left by a process of an earlier version that died ends as in that version."""

from __future__ import annotations

import random
from typing import Any

import pytest

from asynccommit.commit.context import CommitContext
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.steps import runner
from asynccommit.commit.steps.rename_files import RenameFiles
from asynccommit.commit.steps.restored import verify
from asynccommit.commit.steps.step import RollbackResult
from asynccommit.commit.steps.undo_renames import take_back
from asynccommit.formats import commit_record
from asynccommit.formats.success import MAX_FILENAMES
from tests.corpus.deaths import Death, End, cases, end, load, subject
from tests.support.selection import amount, day

STATES = amount("ASYNCCOMMIT_CORPUS", quick=6, full=1_000)
"""The number of states that are tried of each kind of work."""
IN_MEMORY = [case for case in cases() if case[0] != "disk"]
ON_DISK = [name for store, name in cases() if store == "disk"]


def differences(store: str, name: str, states: int) -> list[str]:
    """End recorded work in each way; return how this differs from how it ended then."""
    deaths = load(store, name)
    drawn = random.Random(f"{day()} {store} {name}").sample(deaths, min(len(deaths), states))
    return [
        f"{store} {name}, died after write {death.writes}, {death.last}; {act}: {text}"
        for death in drawn
        for act, recorded in death.ends.items()
        for text in _differs(recorded, _end(store, name, death, act))
    ]


def _end(store: str, name: str, death: Death, act: str) -> End:
    try:
        return end(store, subject(store, name), death, act)
    except Exception as error:
        return End(f"{type(error).__name__}: {error}", {})


def _differs(recorded: End, found: End) -> list[str]:
    if recorded.answer != found.answer:
        return [f"the answer was {recorded.answer}, and is {found.answer}"]
    return [
        f"{path} was {recorded.tree.get(path, 'missing')}, is {found.tree.get(path, 'missing')}"
        for path in sorted({*recorded.tree, *found.tree})
        if _settled(recorded.tree.get(path)) != _settled(found.tree.get(path))
    ]


def _settled(content: Any) -> Any:
    """Return what every run writes alike.

    A marker that names only some of the files names those of the manifests that came first.
    """
    match content:
        case [[job_id, success, [*names]], known] if len(names) == MAX_FILENAMES:
            return [[job_id, success, len(names)], known]
    return content


@pytest.mark.more
@pytest.mark.every(4)
@pytest.mark.sample(8)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("store, name", IN_MEMORY)
def test_dead_work_ends_as_it_did(store: str, name: str) -> None:
    """Resumed, rolled back or committed again, it leaves the tree that was recorded."""
    assert differences(store, name, STATES) == []


@pytest.mark.more
@pytest.mark.every(4)
@pytest.mark.sample(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ON_DISK)
def test_dead_work_on_a_disk_ends_as_it_did(name: str) -> None:
    """The same with files that have other numbers here."""
    assert differences("disk", name, STATES) == []


# --- the corpus bites ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "store, constant", [("adls", "WITH_PLAN"), ("adls-format-2", "TYPE"), ("hdfs", "TYPE")]
)
def test_another_format_of_the_record_is_found(
    store: str, constant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that reads its own records only cannot end the work of an earlier one."""
    monkeypatch.setattr(commit_record, constant, "asynccommit.CommitRecord/9")

    assert any(
        "; resume: the answer was done" in text for text in differences(store, "append", 1_000)
    )


@pytest.mark.parametrize("store", ["adls", "flat"])
def test_another_order_of_undo_is_found(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback that restores what was replaced before it takes the new files out is found."""

    async def nothing(*args: object) -> None:
        """Leave the new files where they are."""

    async def late(run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        await take_back(run, plan, undone)
        await verify(run, plan, undone)

    monkeypatch.setattr(RenameFiles, "undo", nothing)
    monkeypatch.setattr(runner, "verify", late)

    assert any("; rollback: " in text for text in differences(store, "in_the_way", 1_000))
