"""Keep a commit from displacing what an unfinished commit of another job has put in place.

Whatever is moved aside is deleted once the commit succeeds. If it belongs to a commit that was cut
short, that commit could then be neither finished nor undone. Jobs with another destination count as
well: one above, whose files lie here, and one below, whose table this is a part of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import orjson

from asynccommit.commit.by_rename.plan import Aside, Plan, above, outermost, within
from asynccommit.commit.context import CommitContext
from asynccommit.commit.hints import by_hand, job_command
from asynccommit.commit.layout import Layout
from asynccommit.commit.layout_uploads import UploadLayout
from asynccommit.errors import PreconditionError
from asynccommit.options.job import Mode
from asynccommit.results import NOT_BEGUN, JobStatus, State
from asynccommit.stores.base import Kind


class OtherCommit(NamedTuple):
    """The commit of another job, and the decoded paths of the places that it touches."""

    status: JobStatus
    layout: Layout
    places: list[str]


TARGETS = "targets"
"""The option of a record that names the directories whose content the commit replaces."""
_MAX_PLACES = 1_000


def places_of(run: CommitContext, plan: Plan) -> str:
    """Return the directories that a commit touches, in the form that the commit record holds."""
    return places_text(run, plan.loaded.parents | {aside.path for aside in plan.replaced})


def places_text(run: CommitContext, touched: Collection[str]) -> str:
    """Return directories in the form that a record holds: JSON, relative to the destination."""
    places = outermost(touched) if len(touched) <= _MAX_PLACES else [run.layout.dest.path]
    names = [run.layout.relative(path) for path in places]
    try:
        return orjson.dumps(names).decode()
    except TypeError:  # a name that is not Unicode
        return '["."]'


def read_places(text: str) -> list[str]:
    """Return the names that ``places_text`` wrote; the whole destination for anything else."""
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ["."]
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else ["."]


def resolve_places(layout: Layout, text: str) -> list[str]:
    """Return as decoded paths the places in a record of the job that ``layout`` describes."""
    return [layout.resolve(name) for name in read_places(text)]


def displaced(run: CommitContext, plan: Plan) -> list[str]:
    """Return the paths that the commit needs for itself.

    These are the directories whose content it replaces, and one file for each directory in which
    files are in its way. A directory counts although nothing is there now: the other commit may
    have moved all of it aside. The marker of an earlier job does not: all jobs replace it.
    """
    asides = [aside for aside in plan.aside if aside.path != run.layout.success]
    return plan.targets + one_a_directory(asides)


def one_a_directory(asides: Iterable[Aside]) -> list[str]:
    """Return the directories among ``asides``, and for the files one of each directory.

    Places in records are directories, so that files of one directory have one answer.
    """
    directories, files = set[str](), dict[str, str]()
    for aside in asides:
        if aside.kind is Kind.DIRECTORY:
            directories.add(aside.path)
        else:
            files.setdefault(aside.path.rpartition("/")[0], aside.path)
    return sorted(directories | set(files.values()))


def related(layout: Layout, paths: Iterable[str]) -> list[str]:
    """Return the other destinations whose jobs may have files at ``paths``.

    These are all directories above the destination up to the root of the container or filesystem,
    and those between the destination and the paths. Without paths there is no such destination.
    """
    wanted = set(paths)
    found = {parent for path in wanted for parent in above(path)}
    return sorted((found | {"/"}) - {layout.dest.path, layout.root}) if wanted else []


def refuse_others(
    run: CommitContext, plan: Plan, others: Iterable[OtherCommit], mode: Mode
) -> None:
    """Refuse to displace what an unfinished commit of another job touches.

    Args:
        run: the commit under way.
        plan: what it will do.
        others: the commits of other jobs.
        mode: ``FAIL`` needs the whole destination.

    Raises ``PreconditionError`` that names the job.
    """
    mine = [run.layout.dest.path] if mode is Mode.FAIL else displaced(run, plan)
    refuse_within(mine, others)


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
    over = {State.ENDED, *NOT_BEGUN} | (set() if decided else {State.COMMITTED})
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
    text = f"job {status.job_id} writes there, and its commit to {layout.dest} is not finished"
    if status.unreadable:
        return f"{text}, and cannot be: {status.error}. To end it, {by_hand(layout)}"
    forward, back = "resume", "abort"
    if status.state is State.COMMITTING:
        text += f". Wait for {status.owner}; if that process is known to be dead, end the commit"
        if not isinstance(layout, UploadLayout):
            forward = back = "takeover"
    text += f". Finish it: {job_command(forward, layout)}"
    if status.state in (State.COMMITTED, State.ROLLING_BACK):
        return text
    return f"{text} - or roll it back: {job_command(back, layout, '--rollback')}"
