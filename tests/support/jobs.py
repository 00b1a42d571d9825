"""Jobs on a local directory, for tests: trees, tasks and what is visible."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.options.job import Options
from asynccommit.runtime.host import Host
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.urls import Address
from tests.support.faults import apart

JOB = "job_202601010000_0001"
HOST = Host(
    now=lambda: 1_795_000_000.0,
    new_id=lambda: "one",
    rng=random.Random(0),
    name="driver-0",
    user="alice",
)


def committer(
    dest: Path,
    *policies: Policy,
    job_id: str = JOB,
    attempt: int = 0,
    conf: Mapping[str, str] | None = None,
    **options: Any,
) -> ManifestCommitter:
    """Return a committer of one job under ``dest``; policies go innermost."""
    stats = Stats("asked")
    store = Wrapped(LocalStore(), stats, *apart(policies))
    chosen = Options.from_conf(conf) if conf else Options(**options)
    layout = Layout(Address("file", "", str(dest)), job_id, attempt)
    return ManifestCommitter(
        store,
        layout,
        chosen,
        HOST,
        counted=stats.counts,
        open_store=lambda address: Wrapped(LocalStore()),
    )


def ids(task: int, attempt: int = 0) -> tuple[str, str]:
    """Return task id and task attempt id as MapReduce writes them."""
    return f"task_202601010000_0001_m_{task:06d}", (
        f"attempt_202601010000_0001_m_{task:06d}_{attempt}"
    )


def write(directory: str | Path, files: Mapping[str, str]) -> None:
    """Write small files, with their directories; a name that ends in ``/`` is a directory."""
    for name, text in files.items():
        path = Path(directory) / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


async def run_task(
    job: ManifestCommitter, task: int, files: Mapping[str, str], attempt: int = 0
) -> TaskCommit:
    """Set up, write and commit one task attempt."""
    task_id, attempt_id = ids(task, attempt)
    write(await job.setup_task(attempt_id), files)
    return await job.commit_task(task_id, attempt_id)


def visible(dest: Path) -> dict[str, str]:
    """Return what a reader sees: files below ``dest`` but those of ``_temporary``, with content."""
    return {
        str(path.relative_to(dest)): path.read_text()
        for path in sorted(dest.rglob("*"))
        if path.is_file() and not str(path.relative_to(dest)).startswith(("_", "."))
    }


def left(dest: Path) -> list[str]:
    """Return everything below ``_temporary``."""
    return sorted(str(path.relative_to(dest)) for path in dest.glob("_temporary/**/*"))
