"""Say what a resume or an abort would do to a job, and with which command."""

from __future__ import annotations

from dataclasses import dataclass

from asynccommit.commit.driver.record_owner import not_ours
from asynccommit.commit.hints import job_command
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.layouts.move import PREFIX
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.results import JobState, JobStatus
from asynccommit.runtime.terminal import count_of


@dataclass(frozen=True, slots=True)
class Advice:
    """The effect of a command on a job; no command if nothing is to do."""

    does: str
    command: str = ""


def on_resume(status: JobStatus, layout: Layout, moved: int = 0, files: int = 0) -> Advice:
    """Return what a resume would do.

    Args:
        status: the status of the job.
        layout: the paths of the job.
        moved: number of files of a job without a record that are not where its tasks left them.
        files: number of all files of that job.
    """
    if isinstance(layout, UploadLayout):
        return _on_resume_uploads(status, layout, moved, files)
    if status.belongs_to:
        return Advice(not_ours(layout, status.belongs_to))
    resume = job_command("resume", layout)
    if not status.begun and moved:
        does = (
            f"adopts it: {moved:,} of {count_of(files, 'file')} are no longer where tasks left them"
        )
        return Advice(does, job_command("resume", layout, "--adopt"))
    if not status.begun:
        return _on_resume_early(status, layout)
    if status.state is JobState.COMMITTING:
        does = "refused while its owner is alive; takeover proceeds anyway"
        return Advice(does, job_command("takeover", layout))
    if status.state is JobState.ROLLING_BACK:
        return Advice("finishes the rollback", resume)
    if status.state is JobState.COMMITTED:
        return Advice("finishes the clean-up; every file is visible", resume)
    if status.state is JobState.ENDED:
        return Advice("deletes its remains; every file is visible", resume)
    marker = "" if layout.outside else " and writes _SUCCESS"
    return Advice(f"moves {_rest(status)}{marker}", resume)


def on_abort(status: JobStatus, layout: Layout, moved: int = 0) -> Advice:
    """Return what an abort would do."""
    if isinstance(layout, UploadLayout):
        return _on_abort_uploads(status, layout, moved)
    if status.belongs_to:
        return Advice("")
    rollback = job_command("abort", layout, "--rollback")
    if not status.begun:
        does = f"deletes what {count_of(status.tasks, 'committed task')} and others wrote"
        if moved:
            does += f"; {count_of(moved, 'file')} that another commit moved would remain"
        return _on_abort_early(status, layout, does)
    if status.state is JobState.COMMITTING:
        return Advice(
            "keeps everything; with --rollback refused while its owner is alive", rollback
        )
    if status.state is JobState.ROLLING_BACK:
        return Advice("keeps everything; with --rollback it finishes the rollback", rollback)
    if status.state in (JobState.COMMITTED, JobState.ENDED):
        return Advice("nothing: the job is committed")
    back = "the moved files" if status.done is None else count_of(status.done, "file")
    if layout.outside:
        return Advice(f"moves {back} back and restores the replaced files", rollback)
    does = f"keeps everything; with --rollback it undoes {back} and restores the replaced files"
    return Advice(does, rollback)


def _on_resume_early(status: JobStatus, layout: Layout) -> Advice:
    """Return what a resume would do before a commit has begun: nothing."""
    if status.state is JobState.RUNNING:
        return Advice("nothing: its driver is alive, and its commit has not begun")
    if layout.job_id.startswith(PREFIX):
        return Advice("nothing: no file has been moved; asynccommit mv --resume takes its journal")
    commit = job_command("commit", layout, "--tasks", str(status.tasks))
    if status.state is JobState.DEAD:
        return Advice("nothing: its commit has not begun. Commit or abort it", commit)
    does = "nothing: its commit has not begun. If its program has died, commit or abort it"
    return Advice(does, commit)


def _on_abort_early(status: JobStatus, layout: Layout, does: str) -> Advice:
    """Return what an abort would do to a job whose commit has not begun."""
    if status.state is JobState.RUNNING:
        return Advice(f"refused while its driver is alive; with --force it {does}")
    if status.state is JobState.DEAD:
        return Advice(does, job_command("abort", layout))
    forced = job_command("abort", layout, "--force")
    return Advice(f"refused while its program may be alive; with --force it {does}", forced)


def _rest(status: JobStatus) -> str:
    if status.done is None:
        return f"the rest of {count_of(status.files, 'file')}"
    return f"the other {status.files - status.done:,} of {count_of(status.files, 'file')}"


def _on_resume_uploads(status: JobStatus, layout: Layout, ended: int, files: int) -> Advice:
    """Return what a resume would do to uploads.

    A commit of uploads has no owner, so a resume of it is never refused.
    """
    resume = job_command("resume", layout)
    if not status.begun and ended:
        does = f"adopts it: {ended:,} of {count_of(files, 'upload')} have ended"
        return Advice(does, job_command("resume", layout, "--adopt"))
    if not status.begun:
        return _on_resume_early(status, layout)
    if status.state is JobState.ROLLING_BACK:
        return Advice("finishes the rollback", resume)
    if status.state is JobState.COMMITTED:
        return Advice("finishes the clean-up; every file is visible", resume)
    if status.state is JobState.ENDED:
        if not status.epoch:
            return Advice("nothing: its abort has begun")
        return Advice("deletes its remains, if it was committed", resume)
    does = f"completes {_rest(status)} and writes _SUCCESS"
    if status.state is JobState.COMMITTING:
        does += "; its owner, if running, does the same"
    return Advice(does, resume)


def _on_abort_uploads(status: JobStatus, layout: Layout, ended: int) -> Advice:
    rollback = job_command("abort", layout, "--rollback")
    if not status.begun:
        does = f"aborts the uploads of {count_of(status.tasks, 'committed task')} and others"
        if ended:
            does += f"; the files of {count_of(ended, 'upload')} that ended would remain"
        return _on_abort_early(status, layout, does)
    if status.state is JobState.ENDED and not status.epoch:
        return Advice("deletes its remains", job_command("abort", layout))
    if status.state in (JobState.COMMITTED, JobState.ENDED):
        return Advice("nothing: its commit has ended")
    if status.state is JobState.ROLLING_BACK:
        return Advice("keeps everything; with --rollback it finishes the rollback", rollback)
    back = "the completed uploads" if status.done is None else count_of(status.done, "file")
    does = f"keeps everything; with --rollback it undoes {back} and restores the replaced files"
    return Advice(does, rollback)
