"""Servers that make other names of those that they are given: no job reports success there."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.listed_names import is_odd, unlisted
from asynccommit.commit.tasks.output import StoreWork
from asynccommit.errors import PreconditionError, ValidationError
from asynccommit.options.job import Options
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from tests.support.gcs_store import Direct, new_service, new_store
from tests.support.storms import host
from tests.support.upload_jobs import ROOT, Scenario, alone, committer

ODD = ("day=1/a\\b", "a\\b/c", "end.", "dots./c", "space /c")


class Folds:
    """A policy that has a server make slashes of backslashes, and drop dots and spaces at ends."""

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        def folding(op: Op) -> Awaitable[Any]:
            args = tuple(map(_folded, op.args))
            return call(Op(op.name, args, op.writes, op.repeatable, op.options))

        return folding


def _folded(arg: Any) -> Any:
    if isinstance(arg, list):  # of files to delete
        return [info._replace(path=fold(info.path)) for info in arg]
    return fold(arg) if isinstance(arg, str) else arg


def fold(path: str) -> str:
    """Return the name that such a server makes."""
    if not path.startswith("/") or "/_temporary/" in path:
        return path  # the id of an upload, or a source
    return "/".join(name.rstrip(". ") for name in path.replace("\\", "/").split("/"))


@pytest.mark.parametrize("name", ODD)
async def test_uploads_are_completed_under_another_name(name: str) -> None:
    """The job fails before it says that it is committed, and a rollback takes the file back."""
    scenario = Scenario("odd", ({name: "x", "plain": "y"},))
    world, tasks = alone(scenario)
    for upload in world.bucket.uploads.open.values():
        upload.key = fold(f"/{upload.key}")[1:]
    with pytest.raises(ValidationError, match="changes the name"):
        await committer(world, scenario, Folds()).commit_job(tasks)
    assert f"{ROOT}/_SUCCESS" not in world.state().files

    await committer(world, scenario, Folds()).rollback_job()
    assert not world.state().files


@pytest.mark.parametrize("name", ODD)
async def test_a_name_that_is_kept(name: str) -> None:
    """Where the server keeps such a name the job is committed, and readers find it."""
    scenario = Scenario("odd", ({name: "x"},))
    world, tasks = alone(scenario)
    await committer(world, scenario).commit_job(tasks)

    assert world.state().files[f"{ROOT}/{name}"] == b"x"


@pytest.mark.parametrize("sample", [None, 1])
async def test_renames_go_to_another_name(sample: int | None) -> None:
    """What a job of manifests has renamed is looked for under its own name, too."""
    inner = new_store(Direct(GcsApp(new_service())))
    layout = Layout(parse_url("gs://data/t"), "job")
    options = Options(validate_sample=sample)
    job = ManifestCommitter(Wrapped(inner, Folds()), layout, options, host(0))
    await job.setup_job()
    task_id, attempt_id = layout.ids(0)
    base = await job.setup_task(attempt_id)
    await inner.put(f"{base}/a\\b", b"data")
    commit = await job.commit_task(task_id, attempt_id)

    with pytest.raises(ValidationError, match="changes the name"):
        await job.commit_job([commit])


@pytest.mark.parametrize("name", ODD)
async def test_a_task_is_refused_such_a_name(name: str) -> None:
    """A task learns at once that its file has another name, which its manifest would list."""
    inner = new_store(Direct(GcsApp(new_service())))
    dest = parse_url("gs://data/t")
    work = StoreWork(Wrapped(inner, Folds()), dest, "/t/task")
    with pytest.raises(PreconditionError, match="changes the name"):
        await work.put(name, b"data")

    await StoreWork(Wrapped(inner), dest, "/t/task").put(name, b"data")


async def test_names_that_are_listed(tmp_path: Path) -> None:
    """A file that is listed is known by just its name; one that is not there is named."""
    (tmp_path / "a\\b").write_bytes(b"")
    paths = [f"{tmp_path}/a\\b", f"{tmp_path}/none", f"{tmp_path}/no/directory"]

    assert await unlisted(LocalStore(), paths) == sorted(paths[1:])


def test_odd_names() -> None:
    """Letters of any language and inner dots are nothing odd."""
    assert all(is_odd(name) for name in ODD)
    assert not any(is_odd(name) for name in ("a.b/c", "é日本/ü x", "p=50%/k=v", ".hidden"))
