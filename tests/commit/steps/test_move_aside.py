"""Several owners of a commit move files aside, one after another."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from asynccommit.commit.context import CommitContext
from asynccommit.commit.planning.plan import Aside
from asynccommit.commit.steps.move_aside import move_aside
from asynccommit.commit.trees import make_all
from asynccommit.errors import (
    CommitError,
    LeaseLostError,
    PreconditionError,
)
from asynccommit.options.job import Mode
from tests.support.commits import At, Dies, Lost, Site, changes, own
from tests.support.faults import Faults


async def owner(site: Site, *policies: Faults) -> CommitContext:
    """Return the run of the second owner of a commit without files."""
    await site.cut({}, Dies("put", "commit-outcome"))
    run = await own(site.job(*policies))
    await run.store.mkdir(f"{run.epoch_dir}/aside/in")
    return run


async def aside_of(run: CommitContext, path: str) -> Aside:
    """Return what is there as a thing to move aside."""
    return Aside.of(await run.store.head(path))


async def test_what_was_moved_before_is_not_moved_again(site: Site) -> None:
    """A file that was written there since stays, whoever wrote it."""
    run = await owner(site)
    site.place({"/table/f": "old"})
    aside = await aside_of(run, site.path("/table/f"))
    await move_aside(run, [aside])
    site.place({"/table/f": "new"})
    await move_aside(run, [aside])

    assert site.files() == {"f": "new"}
    assert [path for path in site.left() if path.endswith("aside/in/f")]


async def test_another_file_than_the_one_of_the_plan(site: Site) -> None:
    """A file that was written anew before the crash is not moved aside, nor is a file of it."""
    run = await owner(site)
    site.place({"/table/f": "old"})
    aside = await aside_of(run, site.path("/table/f"))
    await site.intrude({"/table/f": "other"}, "/table/f")
    with pytest.raises(PreconditionError):
        await move_aside(run, [aside])

    assert site.files() == {"f": "other"}


async def test_what_is_gone_is_a_warning(site: Site) -> None:
    """There is nothing to move where another has removed it; a marker is not worth a word."""
    run = await owner(site)
    site.place({"/table/f": "old", "/table/_SUCCESS": "old"})
    asides = [await aside_of(run, site.path(f"/table/{name}")) for name in ("f", "_SUCCESS")]
    for aside in asides:
        await run.store.delete(aside.path)
    await move_aside(run, asides)

    assert [text.endswith("/f should be replaced, but is gone") for text in run.warnings] == [True]


async def test_a_marker_that_another_job_has_written(site: Site) -> None:
    """It stays: ours takes its place at the end."""
    run = await owner(site)
    site.place({"/table/_SUCCESS": "old"})
    aside = await aside_of(run, site.path("/table/_SUCCESS"))
    await site.intrude({"/table/_SUCCESS": "of another"}, "/table/_SUCCESS")
    await move_aside(run, [aside])

    assert site.tree()["/table/_SUCCESS"] == "of another"


async def test_nothing_is_moved_aside_without_the_right(site: Site) -> None:
    """Who has lost the commit sends neither a rename nor a new directory."""
    faults = Faults()
    run = await owner(site, faults)
    site.place({"/table/f": "old"})
    aside = await aside_of(run, site.path("/table/f"))
    run = replace(run, lease=Lost())
    faults.seen.clear()
    with pytest.raises(LeaseLostError):
        await move_aside(run, [aside])
    with pytest.raises(LeaseLostError):
        await make_all(run, [site.path("/table/day=1")])

    assert changes(faults.seen) == []


async def test_nothing_to_move_costs_nothing(site: Site) -> None:
    """Without anything in the way no request is sent."""
    faults = Faults()
    run = await owner(site, faults)
    faults.seen.clear()
    await move_aside(run, [])

    assert faults.seen == []


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
async def test_a_crash_between_the_move_and_the_look(site: Site, mode: Mode) -> None:
    """A file of another that was moved aside in the place of ours is not lost to a crash."""
    site.place({"/table/f": "old"})

    async def write_anew() -> None:
        await site.intrude({"/table/f": "anew"}, "/table/f")

    act = At("put", "commit-record", write_anew)
    at = Dies("rename", "aside/in/f", after=True)
    await site.ready({"f": "new"})
    with suppress(BaseException):
        await site.job(act, at, delete_target_files=True).commit_job(mode=mode)
    for verb in (site.job().resume_job, site.job().rollback_job):
        with suppress(CommitError):
            await verb()

    assert site.files()["f"] == "anew"


async def test_a_third_file_before_the_second_is_put_back(site: Site) -> None:
    """Where two others write in turn the one that was moved by mistake is kept as well."""
    site.place({"/table/f": "old"})

    async def write_anew() -> None:
        await site.intrude({"/table/f": "second"}, "/table/f")

    async def write_once_more() -> None:
        await site.intrude({"/table/f": "third"})

    first = At("put", "commit-record", write_anew)
    second = At("rename", "aside/in/f", write_once_more, after=True)
    await site.ready({"f": "new"})
    job = site.job(first, second, delete_target_files=True)
    with pytest.raises(CommitError):
        await job.commit_job()

    texts = [
        text for path, text in site.tree().items() if path.endswith("/f") and "tasks" not in path
    ]
    assert "second" in texts
