"""A job step by step: section 6.2 of the reference's catalogue, by its numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.commit.job.messages import digest
from asynccommit.commit.planning.load_manifests import LoadedManifests, load_manifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.steps.validate import validate_output
from asynccommit.errors import CommitError, ExistsError, NotFoundError, ValidationError
from asynccommit.formats.manifest import decode_manifest
from asynccommit.formats.success import COMMITTER, decode_success
from tests.support.faults import Faults
from tests.support.jobs import HOST, JOB, committer, ids, run_task, visible, write

NARROW = {"a/b/f0": "0", "a/b/f1": "1", "a/f2": "2"}
WIDE = {f"w{i}/v{j}/f{i}{j}": f"{i}{j}" for i in range(3) for j in range(3)}


async def test_0100_to_0120_setting_up_the_job(tmp_path: Path) -> None:
    """A job attempt is set up once; the next attempt has a directory of its own."""
    dest = tmp_path / "with space"
    job = committer(dest)
    await job.setup_job()
    with pytest.raises(CommitError) as failed:
        await committer(dest).setup_job()

    assert isinstance(failed.value.failures[0], ExistsError)
    assert Path(job.layout.attempt_dir).is_dir()

    second = committer(dest, attempt=2)
    await second.setup_job()

    assert second.layout.attempt_dir != job.layout.attempt_dir
    assert second.layout.attempt_dir.endswith("/02")


async def test_0200_to_0230_setting_up_tasks(tmp_path: Path) -> None:
    """A task attempt is set up once."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    for attempt_id in (ids(0, 0)[1], ids(0, 1)[1], ids(1, 0)[1]):
        assert Path(await job.setup_task(attempt_id)).is_dir()
    with pytest.raises(CommitError) as failed:
        await job.setup_task(ids(0, 0)[1])

    assert isinstance(failed.value.failures[0], ExistsError)


async def test_0240_an_aborted_attempt_cannot_commit(tmp_path: Path) -> None:
    """Committing after an abort fails and leaves no manifest."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    task_id, attempt_id = ids(1, 1)
    await job.setup_task(attempt_id)
    await job.abort_task(task_id, attempt_id)
    with pytest.raises(CommitError) as failed:
        await job.commit_task(task_id, attempt_id)

    assert isinstance(failed.value.failures[0], NotFoundError)
    assert list(Path(job.layout.manifests_dir).iterdir()) == []


async def test_0300_to_0340_manifests_of_attempts(tmp_path: Path) -> None:
    """A manifest lists exactly the attempt's files; a later attempt's takes its place."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, NARROW, attempt=0)
    first = decode_manifest(Path(job.layout.manifest(ids(0)[0])).read_bytes(), "m")

    assert sorted(entry.dest.rpartition("/out/")[2] for entry in first.files) == sorted(NARROW)

    await run_task(job, 0, NARROW, attempt=1)
    await run_task(job, 1, WIDE, attempt=0)
    write(await job.setup_task(ids(1, 1)[1]), WIDE)
    await job.abort_task(*ids(1, 1))
    with pytest.raises(CommitError):
        await job.commit_task(*ids(1, 1))

    kept = [
        decode_manifest(Path(job.layout.manifest(ids(task)[0])).read_bytes(), "m").task_attempt_id
        for task in (0, 1)
    ]
    assert kept == [ids(0, 1)[1], ids(1, 0)[1]]


async def test_0400_to_0450_committing_and_validating(tmp_path: Path) -> None:
    """The committed job lists what is there; take one file away and validation says so."""
    dest = tmp_path / "out"
    job = committer(dest, cleanup_skipped=True)
    await job.setup_job()
    commits = [await run_task(job, 0, NARROW, attempt=1), await run_task(job, 1, WIDE)]
    run = job._run()
    with LoadedManifests(job.options, job.store.traits) as loaded:
        await load_manifests(run, loaded, commits)
        report = await job.commit_job(commits)

        assert report.tasks == {ids(0)[0]: ids(0, 1)[1], ids(1)[0]: ids(1, 0)[1]}
        assert visible(dest) == {**NARROW, **WIDE}
        assert sorted(report.filenames) == sorted(str(dest / name) for name in {**NARROW, **WIDE})
        assert report.bytes == sum(map(len, {**NARROW, **WIDE}.values()))

        await validate_output(run, Plan(loaded))
        (dest / "a/f2").rename(tmp_path / "aside")
        with pytest.raises(NotFoundError, match="a/f2 is not there"):
            await validate_output(run, Plan(loaded))


async def test_0430_the_marker_says_who_and_what(tmp_path: Path) -> None:
    """The marker names host, committer, job, where its id is from, and the user."""
    job = committer(tmp_path / "out", job_id_source="spark.sql.sources.writeJobUUID")
    await job.setup_job()
    await run_task(job, 0, NARROW)
    await job.commit_job()
    said = decode_success((tmp_path / "out/_SUCCESS").read_bytes(), "_SUCCESS")

    assert (said.hostname, said.committer, said.job_id) == (HOST.name, COMMITTER, JOB)
    assert said.job_id_source == "spark.sql.sources.writeJobUUID"
    assert said.diagnostics["principal"] == "alice"
    assert said.success


async def test_0450_a_vanished_file_means_no_marker(tmp_path: Path) -> None:
    """Where the reference fails with ``_SUCCESS`` in place, ours fails without."""
    dest = tmp_path / "out"
    job = committer(dest)
    await job.setup_job()
    commit = await run_task(job, 0, NARROW)
    manifest = Path(job.layout.manifest(ids(0)[0]))
    manifest.write_bytes(manifest.read_bytes().replace(b'"z": 1', b'"z": 7'))
    vouched = replace(commit, digest=digest(manifest.read_bytes()))  # then no source is looked at
    with pytest.raises(ValidationError, match="has 1 bytes, but its manifest has 7"):
        await job.commit_job([vouched])

    assert commit.files == 3
    assert not (dest / "_SUCCESS").exists()


async def test_0900_cleanup_and_again(tmp_path: Path) -> None:
    """Cleanup deletes each task attempt, the job, and ``_temporary``; then there is nothing."""
    seen = Faults()
    job = committer(tmp_path / "out", seen)
    await job.setup_job()
    for task in range(5):
        await run_task(job, task, {f"f{task}": "x"})

    assert "in parallel" in await job.cleanup()
    assert seen.count("delete_tree") == 5 + 1
    assert await job.cleanup() == "nothing to clean up"
    assert not (tmp_path / "out/_temporary").exists()
