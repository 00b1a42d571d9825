"""Protect the output of another job's unfinished commit.

Whatever is moved aside is deleted once the commit succeeds. Otherwise an interrupted commit could
be neither finished nor undone. Jobs with another destination count as well: one above, whose files
lie here, and one below, whose table this is a part of.
"""

from __future__ import annotations

from collections.abc import Iterable

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.places import OtherCommit, places_text, refuse_within
from asynccommit.commit.planning.plan import Aside, Plan
from asynccommit.options.job import Mode
from asynccommit.stores.base import Kind


def places_of(run: CommitContext, plan: Plan) -> str:
    """Return the directories that a commit touches, as recorded."""
    return places_text(run, plan.loaded.parents | {aside.path for aside in plan.replaced})


def displaced(run: CommitContext, plan: Plan) -> list[str]:
    """Return the paths that the commit needs for itself.

    These are the directories whose content it replaces, and one file for each directory in which
    files are in its way. A directory counts even if it is empty now: the other commit may have
    moved its content aside. The marker of an earlier job does not: all jobs replace it.
    """
    asides = [aside for aside in plan.aside if aside.path != run.layout.success]
    return plan.targets + one_a_directory(asides)


def one_a_directory(asides: Iterable[Aside]) -> list[str]:
    """Return the directories in ``asides``, and one file per directory.

    Places in records are directories, so that files of one directory have one answer.
    """
    directories, files = set[str](), dict[str, str]()
    for aside in asides:
        if aside.kind is Kind.DIRECTORY:
            directories.add(aside.path)
        else:
            files.setdefault(aside.path.rpartition("/")[0], aside.path)
    return sorted(directories | set(files.values()))


def refuse_others(
    run: CommitContext, plan: Plan, others: Iterable[OtherCommit], mode: Mode
) -> None:
    """Refuse to displace what an unfinished commit of another job touches.

    Args:
        run: the commit under way.
        plan: the planned changes.
        others: the commits of other jobs.
        mode: ``FAIL`` needs the whole destination.

    Raises ``PreconditionError`` that names the job.
    """
    mine = [run.layout.dest.path] if mode is Mode.FAIL else displaced(run, plan)
    refuse_within(mine, others)
