"""Completing, validating and deleting: what others did meanwhile is told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asynccommit.errors import (
    CommitError,
    CommitUnknownError,
    DeniedError,
    PreflightError,
    ValidationError,
)
from asynccommit.options.job import Mode
from asynccommit.stores.parts import Part
from asynccommit.testing.models.s3.objects import CompletedPart
from tests.support.faults import Before, Fault, Faults
from tests.support.upload_jobs import ROOT, Scenario, World, alone, commit_task, committer

PLAIN = Scenario("plain", ({"a": "a", "p=1/b": "hello"},))


async def test_the_same_bytes_of_another() -> None:
    """A file of equal content that another wrote is not ours while our upload is open."""
    world, tasks = alone(PLAIN)

    async def another() -> None:
        other, parts = world.upload(f"{ROOT}/a", "a")
        world.bucket.complete("out/t/a", other, [CompletedPart(1, parts[0].etag)])

    faults = Before("complete_upload", f"{ROOT}/a", another)
    with pytest.raises(CommitError, match="another writer created it"):
        await committer(world, PLAIN, faults).commit_job(tasks)
    await committer(world, PLAIN).rollback_job()

    assert list(world.state().files) == [f"{ROOT}/a"]


async def test_a_file_that_was_to_be_overwritten_changes() -> None:
    """What another has written since the plan was made stays, and the copy of the old one, too."""
    scenario = replace(PLAIN, before={f"{ROOT}/a": "old"}, options={"delete_target_files": True})
    world, tasks = alone(scenario)

    async def another() -> None:
        world.place(f"{ROOT}/a", "newer, of another")

    faults = Before("complete_upload", f"{ROOT}/a", another)
    with pytest.raises(CommitError, match="another writer has changed it since"):
        await committer(world, scenario, faults).commit_job(tasks)
    report = await committer(world, scenario).rollback_job()

    assert "another writer has changed it since" in report.warnings[0]
    assert report.not_restored == (f"{ROOT}/a",)
    copies = {path: data for path, data in world.state().files.items() if "/aside-" in path}
    assert sorted(copies.values()) == [b"", b"old"]  # and what says that they are kept
    assert world.state().files == {f"{ROOT}/a": b"newer, of another", **copies}


@pytest.mark.parametrize("sample", [None, 5])
async def test_a_file_that_is_replaced_before_the_end(sample: int | None) -> None:
    """Validation finds a file that is not what was completed; then there is no marker."""
    world, tasks = alone(PLAIN)

    async def another() -> None:
        world.place(f"{ROOT}/a", "b")

    meanwhile = Before("complete_upload", f"{ROOT}/p=1/b", another)
    with pytest.raises(ValidationError, match="has etag"):
        job = committer(world, PLAIN, meanwhile, workers=1, validate_sample=sample)
        await job.commit_job(tasks)

    assert f"{ROOT}/_SUCCESS" not in world.state().files


async def test_validation_is_switched_off() -> None:
    """Without validation nobody looks."""
    world, tasks = alone(PLAIN)
    faults = Faults()
    await committer(world, PLAIN, faults, validate=False).commit_job(tasks)

    assert "job_stage_optional_validate_output" not in {op.name for op in faults.seen}


async def test_nobody_can_tell() -> None:
    """Where etags say nothing of the parts, an upload that is gone stops the commit."""
    world, tasks = alone(replace(PLAIN, tokens=False), sse_kms=True)
    gone = next(iter(world.bucket.uploads.open.values()))
    world.bucket.abort(gone.key, gone.upload_id)
    other, parts = world.upload(f"/{gone.key}", "x")
    world.bucket.complete(gone.key, other, [CompletedPart(1, parts[0].etag)])
    unseen = Faults(Fault("list_uploads", DeniedError))
    with pytest.raises(CommitUnknownError):
        await committer(world, PLAIN, unseen, delete_target_files=True).commit_job(tasks)


async def test_parts_that_were_never_sent() -> None:
    """A set with an etag of no part of the upload stops the commit, and can be rolled back."""
    world, _ = alone(PLAIN)
    upload = next(iter(world.bucket.uploads.open.values()))
    upload.parts[1] = upload.parts[1]._replace(etag=Part("0" * 32).etag)
    with pytest.raises(CommitError):
        await committer(world, PLAIN).commit_job()
    await committer(world, PLAIN).rollback_job()

    assert world.state() == ({}, frozenset())


async def test_replaced_files_of_another_etag_stay() -> None:
    """What is to be replaced and has changed since the plan was made is not deleted."""
    scenario = replace(PLAIN, before={f"{ROOT}/old": "old", f"{ROOT}/old2": "old"})
    for conditional in (True, False):
        world, tasks = alone(scenario, conditional_deletes=conditional)

        async def another(world: World = world) -> None:
            world.place(f"{ROOT}/old", "newer, of another")

        faults = Before("complete_upload", f"{ROOT}/a", another)
        job = committer(world, scenario, faults)
        await job.commit_job(tasks, mode=Mode.REPLACE_TABLE)
        left = {path for path in world.state().files if "_SUCCESS" not in path}

        assert left == {*scenario.files, f"{ROOT}/old"}


async def test_names_that_no_path_has() -> None:
    """An object to be replaced whose key has an empty segment is refused before anything."""
    world, tasks = alone(PLAIN)
    world.bucket.put("out/t//odd", b"odd")
    with pytest.raises(PreflightError, match="an invalid name"):
        await committer(world, PLAIN).commit_job(tasks, mode=Mode.REPLACE_TABLE)


@pytest.mark.parametrize(
    "there, reason",
    [
        ("p=1", "a file is in the place of a directory"),
        ("a/x", "a directory is in the place of a file"),
        ("a", "it exists already"),
    ],
)
async def test_what_is_in_the_way(there: str, reason: str) -> None:
    """Files and directories in the way are refused before anything changed, with the remedy."""
    world, tasks = alone(replace(PLAIN, before={f"{ROOT}/{there}": "there"}))
    before = world.state()
    with pytest.raises(PreflightError, match=reason):
        await committer(world, PLAIN).commit_job(tasks)

    assert world.state() == before


async def test_a_file_and_a_directory_of_two_tasks() -> None:
    """A file of one task that is a directory of another's is refused."""
    world, tasks = alone(PLAIN)
    tasks.append(commit_task(world, PLAIN.layout(), 1, {"a/x": "x"}))
    with pytest.raises(PreflightError, match="a directory of another"):
        await committer(world, PLAIN).commit_job(tasks)


@pytest.mark.parametrize("size, reason", [(200, "too long"), (0, "too large to be kept aside")])
async def test_what_cannot_be_kept_aside(size: int, reason: str) -> None:
    """A file that could not be put back is not overwritten: its name or itself is too large."""
    name = "n" * 910 if size else "a"
    scenario = Scenario("aside", ({name: "new"},), {f"{ROOT}/{name}": "old old"})
    rules = {} if size else {"largest_part": 5}
    world, tasks = alone(scenario, **rules)
    with pytest.raises(PreflightError, match=reason):
        await committer(world, scenario, delete_target_files=True).commit_job(tasks)


@pytest.mark.parametrize("path", ["/out/other", "/out/t/../x", "/out/t/_temporary", "/"])
async def test_directories_that_cannot_be_replaced(path: str) -> None:
    """What a job may replace is below its destination, and not the committers' own."""
    world, tasks = alone(PLAIN)
    with pytest.raises(PreflightError, match="cannot be replaced"):
        await committer(world, PLAIN).commit_job(tasks, overwrite=[path])
