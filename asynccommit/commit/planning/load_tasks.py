"""FileOutputCommitter's first step: list the output of the tasks.

There is no manifest: all that is in a committed task's directory is its output. Only tasks of this
job count; those of other jobs are beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.messages import tell_of_no_file
from asynccommit.commit.layouts.file_output import job_of_task
from asynccommit.commit.layouts.layout import TEMPORARY, TaskCommit
from asynccommit.commit.ownership.shared_directories import identity_of
from asynccommit.commit.planning.load_manifests import LoadedManifests, by_task
from asynccommit.commit.tasks.scan_task import TaskFiles, refuse_reserved, scan_task_attempt
from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there, list_all

_NAMED = 5


async def load_tasks(
    run: CommitContext,
    loaded: LoadedManifests,
    tasks: Sequence[TaskCommit] | None,
    *,
    strict: bool = False,
    expected: bool = True,
) -> None:
    """Read the directory of every committed task that counts into ``loaded``.

    Args:
        run: the commit under way.
        loaded: takes what they hold.
        tasks: the commit messages of the tasks; ``None`` if there are none; then every committed
            task of this job counts.
        strict: refuse a job with committed tasks without a message.
        expected: that is all that the tasks have written: a job without files is warned of, and
            without messages one is refused that has no committed task where others have.

    Raises ``ManifestError`` for what cannot be trusted, ``NotFoundError`` without the directory of
    the job attempt.
    """
    loaded.vouched = True  # links are refused where the directories are read, just now
    with run.meter.timed("job_stage_load_manifests", None if tasks is None else len(tasks)):
        found = await _committed(run, expected=expected and tasks is None)
        messages = None if tasks is None else by_task(run.layout, tasks)
        if messages is not None:
            _ignore(run, loaded, sorted(found.keys() - messages.keys()), strict=strict)
        wanted = found.keys() if messages is None else messages.keys()
        loaded.manifests = {
            found[name].path: identity_of(found[name]) for name in wanted if name in found
        }
        run.meter.total = len(wanted)

        async def take(task_id: str) -> None:
            await _take(run, loaded, task_id, None if messages is None else messages[task_id])

        await for_each(sorted(wanted), take, workers=run.workers)
        if expected:
            tell_of_no_file(run, len(loaded.tasks), loaded.files)


async def _committed(run: CommitContext, *, expected: bool) -> dict[str, Info]:
    """Return this job's committed tasks by id.

    Raises ``ManifestError`` for anything unexpected.
    """
    layout, found = run.layout, dict[str, Info]()
    others: set[str] = set()
    for info in await _children(run):
        name = info.path.rpartition("/")[2]
        if name == TEMPORARY:
            continue
        if layout.has_committed(name) and info.is_dir:
            found[name] = info
        elif (job := job_of_task(name)) is not None and info.is_dir and job != layout.job_id:
            others.add(job)
        else:
            text = "is not the directory of a committed task; Hadoop would publish it: move it away"
            raise ManifestError(layout.url(info.path), text)
    if expected and others and not found:
        text = f"holds no committed task of job {layout.job_id}, only of {_some(others)}"
        raise ManifestError(layout.url(layout.committed_dir), text)
    return found


async def _children(run: CommitContext) -> list[Info]:
    """Return the entries of the directory that jobs share.

    While it has nothing of this job, the clean-up of another job considers it unused.
    """
    try:
        return await list_all(run.store, run.layout.committed_dir)
    except NotFoundError:
        if not await is_there(run.store, run.layout.attempt_dir):
            raise
    await run.store.mkdir(run.layout.committed_dir)
    return []


def _ignore(
    run: CommitContext, loaded: LoadedManifests, names: Sequence[str], *, strict: bool
) -> None:
    layout = run.layout
    loaded.ignored = [f"{layout.committed_dir}/{name}" for name in names]
    for path in loaded.ignored:
        if strict:
            text = "belongs to a task that was not passed to the job commit"
            raise ManifestError(layout.url(path), text)
        run.warn(f"ignored {layout.url(path)}: no task commit message names it")


async def _take(
    run: CommitContext, loaded: LoadedManifests, task_id: str, message: TaskCommit | None
) -> None:
    base = f"{run.layout.committed_dir}/{task_id}"
    url = run.layout.url(base)
    if not run.layout.has_committed(task_id):
        raise ManifestError(
            url, f"is named by a commit message, but is not a task of job {run.layout.job_id}"
        )
    if message is not None and message.absolute:
        raise ManifestError(url, "this committer cannot write files to other places")
    try:
        found = await scan_task_attempt(run, base)
    except NotFoundError as error:
        raise ManifestError(
            url, "is missing although its task committed: run the job again"
        ) from error
    said = listing_digest(found, base)
    if message is not None and message.digest != said:
        raise ManifestError(
            url,
            f"is not the output that {message.attempt_id} committed: another attempt of the task "
            "replaced it. Run the task again",
        )
    refuse_reserved(run, found, base)
    loaded.tasks[task_id] = task_id if message is None else message.attempt_id
    loaded.digests[task_id] = said
    await loaded.add(found.files, list(found.directories))
    run.meter.step()


def listing_digest(found: TaskFiles, base: str) -> str:
    """Return the digest of a task's output in its commit message.

    The same before and after the directory is renamed, and another if a file was changed.
    """
    whole = sha256()
    for source, _, size, etag in found.files:
        line = f"{source[len(base) :]}\0{size}\0{etag or ''}\n"
        whole.update(line.encode("utf-8", "surrogatepass"))
    return "sha256:" + whole.hexdigest()


def _some(names: set[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - _NAMED} more" if shown[_NAMED:] else ""
    return ", ".join(shown[:_NAMED]) + more
