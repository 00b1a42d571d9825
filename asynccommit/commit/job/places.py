"""The directories that a commit touches; conflicts with other commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import orjson

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.record_owner import not_ours
from asynccommit.commit.hints import by_hand, job_command
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.commit.paths import above, outermost, within
from asynccommit.errors import PreconditionError
from asynccommit.results import NOT_BEGUN, JobState, JobStatus


class OtherCommit(NamedTuple):
    """The commit of another job, and the decoded paths that it touches."""

    status: JobStatus
    layout: Layout
    places: list[str]


TARGETS = "targets"
"""The option of a record with the directories whose content the commit replaces."""


_MAX_PLACES = 1_000


def places_text(run: CommitContext, touched: Collection[str]) -> str:
    """Return directories as recorded: JSON, relative to the destination."""
    places = outermost(touched) if len(touched) <= _MAX_PLACES else [run.layout.dest.path]
    names = [run.layout.relative(path) for path in places]
    try:
        return orjson.dumps(names).decode()
    except TypeError:  # a name that is not Unicode
        return '["."]'


def read_places(text: str) -> list[str]:
    """Parse the result of ``places_text``.

    Return the whole destination for any other text.
    """
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ["."]
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else ["."]


def resolve_places(layout: Layout, text: str) -> list[str]:
    """Return the places in the record of ``layout`` as decoded paths."""
    return [layout.resolve(name) for name in read_places(text)]


def related(layout: Layout, paths: Iterable[str]) -> list[str]:
    """Return the other destinations whose jobs may have files at ``paths``.

    These are all directories above the destination up to the root of the container or filesystem,
    and those between the destination and the paths. Without paths there is no such destination.
    """
    wanted = set(paths)
    found = {parent for path in wanted for parent in above(path)}
    return sorted((found | {"/"}) - {layout.dest.path, layout.root}) if wanted else []


def refuse_within(
    mine: Sequence[str], others: Iterable[OtherCommit], *, decided: bool = False
) -> None:
    """Refuse places that an unfinished commit of another job touches.

    Args:
        mine: the paths that this commit needs for itself.
        others: the commits of other jobs.
        decided: also refuse those of a commit that is decided and still has work to do.

    Raises ``PreconditionError`` that names the job.
    """
    over = {JobState.ENDED, *NOT_BEGUN} | (set() if decided else {JobState.COMMITTED})
    for other in others:
        if other.status.state in over:
            continue
        theirs = other.places
        hit = next(
            (m for m in mine if within(m, theirs) or any(within(t, [m]) for t in theirs)), None
        )
        if hit is not None:
            raise PreconditionError("rename", hit, _refusal(other))


def _refusal(other: OtherCommit) -> str:
    status, layout = other.status, other.layout
    text = f"job {status.job_id} writes there and has not finished its commit to {layout.dest}"
    if status.unreadable:
        return f"{text}, and cannot finish it: {status.error}. To end it, {by_hand(layout)}"
    if status.belongs_to:
        return f"{text}; {not_ours(layout, status.belongs_to)}"
    forward, back = "resume", "abort"
    if status.state is JobState.COMMITTING:
        text += f". Wait for {status.owner}; if that process is dead, end the commit"
        if not isinstance(layout, UploadLayout):
            forward = back = "takeover"
    text += f". Finish it: {job_command(forward, layout)}"
    if status.state in (JobState.COMMITTED, JobState.ROLLING_BACK):
        return text
    return f"{text} - or roll it back: {job_command(back, layout, '--rollback')}"
