"""Loading manifests: section 6.7 of the reference's catalogue, messages, and hostile input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.job.messages import digest
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.planning.load_manifests import LoadedManifests, load_manifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.preflight import preflight
from asynccommit.errors import ExistsError, ManifestError, NotFoundError, PreflightError
from tests.support.jobs import committer, ids, left, run_task, visible, write


async def test_many_manifests(tmp_path: Path) -> None:
    """Counts, sizes, tasks and directories of two hundred manifests add up."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    for task in range(200):
        await run_task(job, task, {f"d{task % 20}/f{task}-{i}": "xyz" for i in range(5)})
    run = job._run()
    with LoadedManifests(job.options, job.store.traits) as loaded:
        await load_manifests(run, loaded, None)
        plan = Plan(loaded)
        await preflight(run, plan)

        assert (loaded.files, loaded.bytes) == (1000, 3000)
        assert loaded.tasks == {ids(task)[0]: ids(task)[1] for task in range(200)}
        assert len(plan.make) == 20


async def one_task(tmp_path: Path) -> tuple[ManifestCommitter, TaskCommit, Path]:
    """Return a job with one committed task of two files, its message and its manifest."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    commit = await run_task(job, 0, {"p=1/f": "one", "g": "two"})
    return job, commit, Path(job.layout.manifest(ids(0)[0]))


async def refused(job: ManifestCommitter, tasks: list[TaskCommit] | None = None) -> PreflightError:
    """Return the error of a commit that must be refused with nothing changed."""
    dest = Path(job.layout.dest.path)
    before, kept = visible(dest), left(dest)
    with pytest.raises(PreflightError) as failed:
        await job.commit_job(tasks)

    assert visible(dest) == before
    assert left(dest) == kept
    assert not (dest / "_SUCCESS").exists()
    assert "Nothing under" in str(failed.value)
    return failed.value


async def test_a_zombies_manifest_is_not_obeyed(tmp_path: Path) -> None:
    """A late loser overwrote the winner's manifest: the winner's directory is read instead."""
    job, commit, _ = await one_task(tmp_path)
    await run_task(job, 0, {"p=1/f": "ZOMBIE", "h": "ZOMBIE"}, attempt=1)
    report = await job.commit_job([commit])

    assert visible(tmp_path / "out") == {"p=1/f": "one", "g": "two"}
    assert report.tasks == {ids(0)[0]: ids(0, 0)[1]}
    assert "is not the committed one" in report.warnings[0]


async def test_a_manifest_that_nobody_names_is_ignored(tmp_path: Path) -> None:
    """Another task's manifest is ignored and reported; it does not fail a good job."""
    job, commit, _ = await one_task(tmp_path)
    await run_task(job, 7, {"stray": "s"})
    report = await job.commit_job([commit])

    assert "stray" not in visible(tmp_path / "out")
    assert [url.rpartition("/")[2] for url in report.ignored] == [f"{ids(7)[0]}-manifest.json"]


async def test_a_lost_manifest_is_made_up_for(tmp_path: Path) -> None:
    """A manifest that is gone is replaced by a look at the task attempt's directory."""
    job, commit, path = await one_task(tmp_path)
    path.unlink()
    report = await job.commit_job([commit])

    assert visible(tmp_path / "out") == {"p=1/f": "one", "g": "two"}
    assert "is missing" in report.warnings[0]


async def test_lost_output_fails_the_job(tmp_path: Path) -> None:
    """Without manifest and directory of an authorised attempt there is no commit."""
    job, commit, path = await one_task(tmp_path)
    path.unlink()
    Path(job.layout.task_attempt_dir(commit.attempt_id)).rename(tmp_path / "gone")

    assert "is gone: run the job again" in str(await refused(job, [commit]))


async def test_a_rescanned_attempt_must_be_complete(tmp_path: Path) -> None:
    """Read again, the directory must hold what the task had committed."""
    job, commit, path = await one_task(tmp_path)
    path.unlink()
    (Path(job.layout.task_attempt_dir(commit.attempt_id)) / "g").unlink()

    assert "holds 1 files of 3 bytes, but 2 of 6" in str(await refused(job, [commit]))


async def test_two_attempts_claim_one_task(tmp_path: Path) -> None:
    """Two different commit messages for one task are refused."""
    job, commit, _ = await one_task(tmp_path)
    other = replace(commit, attempt_id=ids(0, 1)[1])

    assert "two attempts claim" in str(await refused(job, [commit, other]))


async def test_files_with_absolute_destinations(tmp_path: Path) -> None:
    """Files that a commit message sends elsewhere arrive there; a manifest may not do that."""
    job, commit, _ = await one_task(tmp_path)
    staged = Path(job.layout.absolute_dir) / commit.attempt_id / "x-part"
    write(staged.parent, {"x-part": "abs"})
    final = tmp_path / "custom location/part"
    absolute = {job.layout.url(str(staged)): job.layout.url(str(final))}
    report = await job.commit_job([replace(commit, absolute=absolute)])

    assert final.read_text() == "abs"
    assert report.files == 3
    assert left(tmp_path / "out") == []


@pytest.mark.parametrize(
    "source, dest, says",
    [
        ("file:/etc/passwd", None, "not below"),
        (None, "s3a://bucket/x", "not on the store"),
        (None, "file:{dest}/_SUCCESS", "not a place that tasks may write to"),
        (None, "file:{dest}/a/../../b", "not a place that tasks may write to"),
    ],
)
async def test_absolute_files_are_contained(
    tmp_path: Path, source: str | None, dest: str | None, says: str
) -> None:
    """A staged file comes from its attempt's own directory and stays on the store."""
    job, commit, _ = await one_task(tmp_path)
    inside = job.layout.url(f"{job.layout.absolute_dir}/{commit.attempt_id}/x")
    absolute = {source or inside: (dest or "file:/tmp/x").format(dest=tmp_path / "out")}

    assert says in str(await refused(job, [replace(commit, absolute=absolute)]))


Edit = Callable[[dict[str, Any]], object]


def set_field(name: str, value: object) -> Edit:
    """Return an edit of one field of a manifest."""
    return lambda manifest: manifest.update({name: value})


def set_file(name: str, change: Callable[[str], object]) -> Edit:
    """Return an edit of one field of a manifest's first file."""
    return lambda manifest: manifest["files"][0].update(
        {name: change(manifest["files"][0].get(name, ""))}
    )


HOSTILE: dict[str, tuple[Edit, str]] = {
    "version 2": (set_field("version", 2), "version"),
    "foreign job": (set_field("jobId", "job_other"), "belongs to another job"),
    "foreign job attempt": (set_field("jobAttemptNumber", 3), "another job attempt"),
    "foreign task": (set_field("taskID", "task_x"), "belongs to task"),
    "foreign attempt directory": (set_field("taskAttemptDir", "file:/etc"), "taskAttemptDir"),
    "attempt id leads out": (set_field("taskAttemptID", "../.."), "taskAttemptID"),
    "wrong type": (set_field("files", {"a": 1}), "files"),
    "size is text": (set_file("z", lambda _: "many"), "z"),
    "negative size": (set_file("z", lambda _: -1), "z"),
    "no destination": (set_file("d", lambda _: ""), "d"),
    "dots": (set_file("d", lambda d: d.replace("/out/", "/out/../")), "'..'"),
    "encoded dots": (set_file("d", lambda d: d.replace("/out/", "/out/%2e%2e/")), "'..'"),
    "encoded slash": (set_file("d", lambda d: d.replace("/out/", "/out/..%2f")), "%2f"),
    "other scheme": (set_file("d", lambda d: d.replace("file:", "abfs:")), "not in the same store"),
    "other bucket": (set_file("d", lambda _: "abfs://b@a/out/f"), "not in the same store"),
    "absolute escape": (set_file("d", lambda _: "file:/etc/cron.d/f"), "not below"),
    "source escapes": (set_file("s", lambda _: "file:/etc/passwd"), "not below"),
    "source has dots": (
        set_file("s", lambda s: s.replace("/tasks/", "/tasks/../tasks/")),
        "not below",
    ),
    "other task's file": (set_file("s", lambda s: s.replace("_0/", "_1/")), "not below"),
    "bad escape": (set_file("d", lambda d: d + "%ZZ"), "%ZZ"),
    "into _temporary": (set_file("d", lambda d: d.replace("/out/", "/out/_temporary/x/")), "_temp"),
    "the marker": (set_file("d", lambda d: d.rpartition("/out/")[0] + "/out/_SUCCESS"), "_SUCCESS"),
    "NUL": (set_file("d", lambda d: d + "%00"), "%00"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_manifest_is_refused(tmp_path: Path, name: str) -> None:
    """Whatever a manifest says, it cannot reach beyond its task and its destination."""
    edit, says = HOSTILE[name]
    job, _, path = await one_task(tmp_path)
    manifest = json.loads(path.read_bytes())
    edit(manifest)
    path.write_text(json.dumps(manifest))
    failure = await refused(job)

    assert isinstance(failure.failures[0], ManifestError)
    assert path.name in failure.failures[0].path
    assert says in failure.failures[0].reason


BROKEN = {
    "empty": (b"", "is empty"),
    "truncated": (b'{"type": "org.apa', "JSON"),
    "not an object": (b"[1, 2]", "object"),
    "deeply nested": (b'{"extraData":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "JSON"),
    "binary": (bytes(range(256)), "JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_manifest_is_refused(tmp_path: Path, name: str) -> None:
    """A manifest that is no manifest fails the job and is named."""
    data, says = BROKEN[name]
    job, _, path = await one_task(tmp_path)
    path.write_bytes(data)
    failure = await refused(job)

    assert isinstance(failure.failures[0], ManifestError)
    assert says in str(failure)


async def test_an_oversized_manifest_is_refused(tmp_path: Path) -> None:
    """A manifest above the limit is not read, and the option is named."""
    _, _, path = await one_task(tmp_path)
    small = committer(tmp_path / "out", max_manifest_bytes=100)

    assert path.stat().st_size > 100
    assert "asynccommit.max.manifest.bytes" in str(await refused(small))


async def test_a_directory_as_manifest_is_refused(tmp_path: Path) -> None:
    """A directory with a manifest's name fails the job, as with the reference."""
    job, _, path = await one_task(tmp_path)
    (path.parent / "task_9-manifest.json").mkdir()

    assert "is a directory" in str(await refused(job))


async def test_unfinished_manifests_are_passed_over(tmp_path: Path) -> None:
    """A temporary manifest that a dead task left is not read."""
    job, _, path = await one_task(tmp_path)
    write(path.parent, {"attempt_x-manifest.json.tmp": "{"})

    assert (await job.commit_job()).files == 2


async def test_two_tasks_with_one_destination(tmp_path: Path) -> None:
    """Where the reference overwrites silently, the job is refused and both sources named."""
    job, _, _ = await one_task(tmp_path)
    await run_task(job, 1, {"p=1/f": "other"})
    failure = await refused(job)

    assert isinstance(failure.failures[0], ExistsError)
    assert ids(0)[1] in str(failure)
    assert ids(1)[1] in str(failure)


async def test_a_file_of_one_task_is_a_directory_of_another(tmp_path: Path) -> None:
    """Two tasks that disagree what a path is are refused."""
    job, _, _ = await one_task(tmp_path)
    await run_task(job, 1, {"g/h": "x"})

    assert "a file of one task and a directory of another" in str(await refused(job))


async def test_a_link_in_the_destination_is_not_followed(tmp_path: Path) -> None:
    """A partition that is a symbolic link to elsewhere is refused."""
    job, _, _ = await one_task(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out/p=1").symlink_to(tmp_path / "elsewhere")

    assert "a file or link is in the place of a directory" in str(await refused(job))
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_no_manifests_directory(tmp_path: Path) -> None:
    """A job that was never set up cannot be committed, and the error says what is missing."""
    (tmp_path / "out").mkdir()
    failure = await refused(committer(tmp_path / "out"))

    assert isinstance(failure.failures[0], NotFoundError)
    assert "manifests" in str(failure)


async def test_committing_twice_is_a_normal_answer(tmp_path: Path) -> None:
    """A job that is committed and cleaned says so when it is asked again."""
    job, commit, _ = await one_task(tmp_path)
    await job.commit_job([commit])
    again = await job.commit_job([commit])

    assert again.already_committed
    assert (await job.abort_job()).kept == ""
    assert visible(tmp_path / "out") == {"p=1/f": "one", "g": "two"}


async def test_the_layout_of_older_hadoop_is_read(tmp_path: Path) -> None:
    """Before 3.4.1 the job's directory was ``manifest_<job id>``: it is read, never written."""
    job, commit, path = await one_task(tmp_path)
    temporary = tmp_path / "out/_temporary"
    name = job.layout.job_id
    text = path.read_text().replace(f"_temporary/{name}", f"_temporary/manifest_{name}")
    path.write_text(text)
    (temporary / name).rename(temporary / f"manifest_{name}")
    report = await job.commit_job()

    assert commit.files == report.files == 2
    assert left(tmp_path / "out") == []


def test_digest_is_of_the_bytes() -> None:
    """The digest of commit messages is SHA-256 of the manifest as it stands."""
    assert digest(b"") == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


@pytest.mark.parametrize("data", [b"", b"{"])
async def test_a_spoiled_manifest_with_a_message(tmp_path: Path, data: bytes) -> None:
    """With the message of its task an empty or cut manifest is made up for by its directory."""
    job, commit, path = await one_task(tmp_path)
    path.write_bytes(data)
    await job.commit_job([commit])

    assert visible(tmp_path / "out") == {"p=1/f": "one", "g": "two"}


async def test_implied_directories_count(tmp_path: Path) -> None:
    """A file where another file needs a directory is refused, whether or not that is listed."""
    job, _, _ = await one_task(tmp_path)
    await run_task(job, 1, {"g/h/i": "x"})
    path = Path(job.layout.manifest(ids(1)[0]))
    manifest = json.loads(path.read_bytes())
    manifest["directories"] = []
    path.write_text(json.dumps(manifest))

    assert "a file of one task and a directory of another" in str(await refused(job))


async def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    """A destination with a longer name than its source has is refused before any rename."""
    job, _, path = await one_task(tmp_path)
    manifest = json.loads(path.read_bytes())
    set_file("d", lambda d: d + "x" * 300)(manifest)
    path.write_text(json.dumps(manifest))

    assert "a name longer than 255 bytes" in str(await refused(job))


async def test_staged_files_without_messages(tmp_path: Path) -> None:
    """Files for places elsewhere are not thrown away by a commit that does not know these."""
    job, commit, _ = await one_task(tmp_path)
    write(Path(job.layout.absolute_dir) / commit.attempt_id, {"x": "abs"})

    assert "run the job again" in str(await refused(job))
