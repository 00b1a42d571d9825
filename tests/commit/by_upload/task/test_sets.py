"""Pending sets: in place whole, and taken away by nobody but their own attempt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.pending import pending_commit
from asynccommit.commit.by_upload.task.sets import own_set, remove_set, save_set
from asynccommit.commit.job.messages import digest
from asynccommit.commit.layouts.uploads import StagingLayout
from asynccommit.errors import (
    DeniedError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from asynccommit.formats.pending import TOKEN, PendingCommit
from asynccommit.formats.pending_set import decode_pending_set
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.parts import Part
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.urls import Address
from tests.support.faults import Fault, Faults
from tests.support.uploads import ATTEMPT, DEST, JOB, TASK, magic_run, new_bucket

OTHER = ATTEMPT[:-1] + "1"


async def local_run(tmp_path: Path, *policies: Policy) -> UploadContext:
    """Return a task whose pending sets are in a local directory, which is made."""
    run = magic_run(new_bucket())
    layout = StagingLayout(DEST, JOB, tmp=Address("file", "", str(tmp_path)))
    environment = replace(run.environment, pending=Wrapped(LocalStore(), *policies))
    run = replace(run, layout=layout, environment=environment)
    await run.pending.mkdir(run.layout.sets_dir)
    return run


def commits(run: UploadContext, attempt: str = ATTEMPT, *names: str) -> list[PendingCommit]:
    """Return entries of one attempt."""
    made = [
        pending_commit(run, attempt, f"/out/t/{name}", "id", [Part("e")], 7, "t-1")
        for name in names or ("a", "b")
    ]
    return [replace(commit, extra={}) for commit in made]


async def saved(run: UploadContext) -> list[str]:
    """Return the keys of the set that is in place."""
    data = await run.pending.get(run.layout.pending_set(TASK), 1 << 20)
    return [each.key for each in decode_pending_set(data, TASK).commits]


async def test_saved_set() -> None:
    """The message names the set, its digest, and what is in it."""
    run = magic_run(new_bucket())

    commit = await save_set(run, TASK, ATTEMPT, commits(run))

    data = await run.pending.get(run.layout.pending_set(TASK), 1 << 20)
    assert (commit.manifest, commit.digest) == (
        run.layout.url(run.layout.pending_set(TASK)),
        digest(data),
    )
    assert (commit.files, commit.bytes) == (2, 14)


async def test_set_is_renamed_into_place(tmp_path: Path) -> None:
    """Where half a file could be seen, a set is written aside first, over an older one's place."""
    seen = Faults()
    run = await local_run(tmp_path, seen)
    aside = f"{run.layout.sets_dir}/_temporary/{ATTEMPT}"

    await save_set(run, TASK, ATTEMPT, commits(run, ATTEMPT, "old"), aside)
    await save_set(run, TASK, ATTEMPT, commits(run, ATTEMPT, "new"), aside)

    assert await saved(run) == ["out/t/new"]
    assert [op.args[:2] for op in seen.seen if op.name == "rename"] == [
        (aside, run.layout.pending_set(TASK))
    ] * 2


@pytest.mark.parametrize("error", [OutcomeUnknownError, UnavailableError])
async def test_answer_that_was_lost(error: type[Exception]) -> None:
    """What is in place tells whether a set was saved."""
    done = magic_run(new_bucket(), Faults(Fault("put", error, after=True)))
    await save_set(done, TASK, ATTEMPT, commits(done))
    assert await saved(done) == ["out/t/a", "out/t/b"]

    undone = magic_run(new_bucket(), Faults(Fault("put", error)))
    with pytest.raises(error):
        await save_set(undone, TASK, ATTEMPT, commits(undone))


async def test_refused_set() -> None:
    """What is refused is not looked for."""
    seen = Faults(Fault("put", DeniedError))
    run = magic_run(new_bucket(), seen)

    with pytest.raises(DeniedError):
        await save_set(run, TASK, ATTEMPT, commits(run))
    assert [op.name for op in seen.seen] == ["put"]


async def test_set_with_a_place_twice() -> None:
    """Two files of one place are not saved: one would be lost."""
    run = magic_run(new_bucket())

    with pytest.raises(ManifestError, match="as in commits"):
        await save_set(run, TASK, ATTEMPT, commits(run, ATTEMPT, "a", "a"))


async def test_whose_set_it_is() -> None:
    """A set is its attempt's; one that is empty, of another, or unreadable is nobody's."""
    run = magic_run(new_bucket())
    assert await own_set(run, TASK, ATTEMPT) is None

    await save_set(run, TASK, ATTEMPT, commits(run))
    own = await own_set(run, TASK, ATTEMPT)
    assert own is not None
    assert [each.key for each in own.commits] == ["out/t/a", "out/t/b"]
    assert await own_set(run, TASK, OTHER) is None

    await save_set(run, TASK, ATTEMPT, [])
    assert await own_set(run, TASK, ATTEMPT) is None
    await run.pending.put(run.layout.pending_set(TASK), b"rubbish")
    assert await own_set(run, TASK, ATTEMPT) is None


@pytest.mark.parametrize("where", ["bucket", "local"])
async def test_removed_set(tmp_path: Path, where: str) -> None:
    """A set is removed if it is the one that was read, and left if another attempt's is there."""
    run = magic_run(new_bucket()) if where == "bucket" else await local_run(tmp_path)
    aside = f"{run.layout.sets_dir}/_temporary/{ATTEMPT}"
    await save_set(run, TASK, ATTEMPT, commits(run), aside)
    own = await own_set(run, TASK, ATTEMPT)
    assert own is not None
    await save_set(run, TASK, OTHER, commits(run, OTHER, "theirs"), aside)

    await remove_set(run, own, ATTEMPT)
    assert await saved(run) == ["out/t/theirs"]

    theirs = await own_set(run, TASK, OTHER)
    assert theirs is not None
    await remove_set(run, theirs, OTHER)
    await remove_set(run, theirs, OTHER)
    assert await own_set(run, TASK, OTHER) is None


async def test_a_set_that_comes_after_the_end_of_the_job() -> None:
    """Where the end of the job has deleted the attempt's intents the set is deleted again."""
    run = magic_run(new_bucket())
    marked = [replace(each, extra={TOKEN: "t-1"}) for each in commits(run)]
    await run.pending.put(run.layout.intent(ATTEMPT, 0), b"{}")

    await save_set(run, TASK, ATTEMPT, marked)
    await run.pending.delete(run.layout.intent(ATTEMPT, 0))
    with pytest.raises(NotFoundError, match="has ended: the output"):
        await save_set(run, TASK, ATTEMPT, marked)

    with pytest.raises(NotFoundError):
        await run.pending.head(run.layout.pending_set(TASK))
