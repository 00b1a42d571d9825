"""Inspect a job of uploads, and what a commit of it would do. Nothing is changed."""

from __future__ import annotations

from typing import Any

from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.by_upload.load_sets import entries_of
from asynccommit.commit.by_upload.open_uploads import fingerprints_of_open
from asynccommit.commit.fingerprints import Fingerprints
from asynccommit.commit.layout_uploads import UploadLayout
from asynccommit.errors import AsyncCommitError, CommitError, DeniedError
from asynccommit.formats.pending_set import MAX_PENDING_SET_BYTES, decode_pending_set
from asynccommit.inspect.discovery import FoundJob, children
from asynccommit.inspect.files import SHOWN, Inspection, UploadCompletion
from asynccommit.inspect.status import how_far
from asynccommit.inspect.terminal import count_of
from asynccommit.inspect.upload_status import run_of
from asynccommit.options.job import Options
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import this_host
from asynccommit.stores.multipart import MultipartStore

_SETS_AT_ONCE = 4  # each may have many megabytes


async def inspect_uploads(store: MultipartStore, job: FoundJob) -> Inspection:
    """Inspect a job attempt whose own files are in the store of its data.

    This takes one request for each pending set, one for each thousand open uploads, and the
    requests of a commit's preflight. Raises ``StoreError``.
    """
    layout = job.layout
    assert isinstance(layout, UploadLayout)
    with Fingerprints() as wanted:
        look = _SetInspector(store, layout, wanted)
        infos = await children(store, layout.sets_dir)
        paths = [i.path for i in infos if not i.is_dir and layout.is_set(i.path.rpartition("/")[2])]
        await for_each(sorted(paths), look.read, workers=_SETS_AT_ONCE)
        facts = _facts_of(job, look)
        await _note_open(store, layout, wanted, facts)
    look.tasks.sort(key=lambda row: str(row["task_id"]))
    problems = sorted(look.problems)
    if job.ended:
        problems.insert(0, "this job has ended, and was not wholly deleted")
    elif job.begun:
        problems.insert(0, await how_far(store, job, facts))
    elif not problems:
        problems += await _refusal(store, layout)
    place = str(layout.pending.at(layout.attempt_dir))
    look.uploads.sort(key=lambda file: file.dest)
    return Inspection("job", place, facts, look.tasks, uploads=look.uploads, problems=problems)


def _facts_of(job: FoundJob, look: _SetInspector) -> dict[str, Any]:
    return {
        "job_id": job.layout.job_id,
        "attempt": job.layout.attempt,
        "committer": job.committer,
        "destination": str(job.layout.dest),
        "commit_begun": job.begun,
        "pending_sets": job.manifests,
        "files": sum(row["files"] for row in look.tasks),
        "bytes": sum(row["bytes"] for row in look.tasks),
    }


class _SetInspector:
    """A reader of a job's pending sets that keeps what will be shown."""

    def __init__(self, store: MultipartStore, layout: UploadLayout, wanted: Fingerprints) -> None:
        self.tasks: list[dict[str, Any]] = []
        self.uploads: list[UploadCompletion] = []
        self.problems: list[str] = []
        self._store = store
        self._layout = layout
        self._wanted = wanted

    async def read(self, path: str) -> None:
        """Read one pending set; record what is wrong with it as a problem."""
        layout, url = self._layout, self._layout.pending_url(path)
        try:
            found = decode_pending_set(await self._store.get(path, MAX_PENDING_SET_BYTES), url)
            files = list(entries_of(layout, found, url))
        except AsyncCommitError as error:
            text = str(error)
            self.problems.append(text if text.startswith(url) else f"{url}: {text}")
            return
        self._wanted.add([(file.dest, file.upload_id) for file in files])
        attempts = {commit.task_id for commit in found.commits} - {""}
        self.tasks.append(
            {
                "task_id": layout.task_of(path.rpartition("/")[2]),
                "task_attempt_id": ", ".join(sorted(attempts)[:2]) or "unknown",
                "files": len(files),
                "bytes": sum(file.size for file in files),
            }
        )
        room = SHOWN - len(self.uploads)
        self.uploads += [
            UploadCompletion(layout.url(f.dest), f.upload_id, f.size) for f in files[:room]
        ]


async def _note_open(
    store: MultipartStore, layout: UploadLayout, wanted: Fingerprints, facts: dict[str, Any]
) -> None:
    """Count the open uploads of the job, and those that no task has committed."""
    try:
        there = await fingerprints_of_open(run_of(store, layout, None))
    except DeniedError:
        there = None
    if there is None:
        facts["open_uploads"] = "unknown: no permission to list them"
        return
    with there:
        ours, others = len(wanted.common(there)), len(there.missing(wanted))
    facts["open_uploads"] = f"{ours:,} of {count_of(facts['files'], 'file')}"
    facts["uploads_of_others"] = others


async def _refusal(store: MultipartStore, layout: UploadLayout) -> list[str]:
    """Return the preflight's objection to a commit."""
    try:
        await UploadCommitter(store, layout, Options(), this_host()).plan_job()
    except CommitError as error:
        return [str(reason) for reason in error.failures] or [str(error)]
    return []
