"""Jobs as they are found under a destination."""

from __future__ import annotations

from dataclasses import dataclass

from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.layouts.uploads import UploadLayout


@dataclass(frozen=True, slots=True)
class FoundJob:
    """One attempt of a job that is under a destination.

    Attributes:
        layout: the paths of the attempt.
        present: whether the directory of the attempt exists.
        manifests: number of tasks that have committed: manifests, or pending sets.
        begun: whether a job commit has begun.
        ended: whether a commit or rollback has ended and its clean-up was interrupted.
        closed: whether an abort has begun; it was interrupted or is still running.
        modified: when the directory last changed, in seconds since the epoch; 0.0 if unknown.
        staged: whether tasks staged files for places outside the destination.
        classic: whether it is a job of FileOutputCommitter, which has no manifests.
        bare: whether its set-up was cut short before anything but its directory, or on stores
            without directories its owner, was there.
    """

    layout: Layout
    present: bool = False
    manifests: int = 0
    begun: bool = False
    ended: bool = False
    closed: bool = False
    modified: float = 0.0
    staged: bool = False
    classic: bool = False
    bare: bool = False

    @property
    def name(self) -> str:
        """The job id, and the attempt if it is not the first."""
        attempt = f", attempt {self.layout.attempt}" if self.layout.attempt else ""
        return self.layout.job_id + attempt

    @property
    def committer(self) -> str:
        """The name of the job's committer."""
        return committer_of(self.layout)


def committer_of(layout: Layout) -> str:
    """Return the name of the committer whose jobs have such a layout."""
    if isinstance(layout, FileLayout):
        return "file_v1"
    return layout.committer if isinstance(layout, UploadLayout) else "manifest"
