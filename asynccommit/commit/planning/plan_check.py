"""The limits that record, journal and files set to a plan.

A plan lies below ``_temporary``, where tasks write. So it is obeyed only as far as a commit with
this record could have written it: nothing is moved aside but what stands in the way of a file of
the job, and nothing is replaced outside of the directories that the record names.
"""

from __future__ import annotations

from collections.abc import Iterable

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.hints import by_hand
from asynccommit.commit.job.places import TARGETS, resolve_places
from asynccommit.commit.paths import above, ancestors, within
from asynccommit.commit.planning.plan import Plan
from asynccommit.errors import ManifestError
from asynccommit.formats.commit_record import CommitRecord
from asynccommit.stores.filesystem_names import file_of, is_checksum

REPLACES = "replaces"
"""Option of the record: whether existing files that stand in the way are moved aside."""


async def refuse_excess(run: CommitContext, record: CommitRecord, plan: Plan) -> None:
    """Refuse a plan that does more than its record allows; change nothing.

    Raises ``ManifestError`` that names the path.
    """
    targets = resolve_places(run.layout, str(record.options.get(TARGETS) or "[]"))
    targets += record.outside if targets else ()  # of many targets only the table is named
    _refuse_unnamed(run, record, targets, [aside.path for aside in plan.replaced])
    _refuse_unnamed(run, record, targets, plan.unit_directories())
    async for old in plan.old.each():
        _refuse_unnamed(run, record, targets, [old.dest])
    asides = [aside.path for aside in plan.aside if aside.path != run.layout.success]
    if asides and not _replaces(run, record):
        raise _excess(run, record, asides[0], "moves aside", "replaces no existing file")
    _refuse_unrelated(run, record, plan, asides)


def _replaces(run: CommitContext, record: CommitRecord) -> bool:
    """Return whether a commit may move existing files aside.

    A move asks its journal, which is not below ``_temporary``. Records of earlier versions do not
    tell.
    """
    if run.layout.outside:
        return run.options.delete_target_files
    return record.options.get(REPLACES) is not False


def _refuse_unnamed(
    run: CommitContext, record: CommitRecord, targets: list[str], paths: Iterable[str]
) -> None:
    """Refuse to replace what lies in no directory that the record names."""
    for path in paths:
        if not within(path, targets):
            raise _excess(run, record, path, "replaces", "names no such directory")


def _refuse_unrelated(
    run: CommitContext, record: CommitRecord, plan: Plan, asides: list[str]
) -> None:
    """Refuse to move aside what is in no file's way.

    In its way is what has its path, or its checksum file's, a file in the place of a directory
    above it, and where directories are not moved what is below it.
    """
    loaded = plan.loaded
    needed = ancestors("", loaded.parents | loaded.directories) if asides else set()
    suspects = [path for path in asides if path not in needed]
    with Fingerprints(run.options.spill_directory) as prints:
        for path in suspects:
            prints.add(_in_whose_way(path))
        known = loaded.dests.common(prints)
    for path in suspects:
        if not any(fingerprint(dest) in known for dest in _in_whose_way(path)):
            raise _excess(run, record, path, "moves aside", "has no file that it is in the way of")


def _in_whose_way(path: str) -> list[str]:
    """Return the destinations that a path stands in the way of."""
    parent, _, name = path.rpartition("/")
    return [path, *above(path), *([f"{parent}/{file_of(name)}"] if is_checksum(name) else [])]


def _excess(
    run: CommitContext, record: CommitRecord, path: str, does: str, why: str
) -> ManifestError:
    layout = run.layout
    plan = layout.record if record.chunk is not None else layout.plan(record.plan_id, 0)
    text = (
        f"the plan {does} {path}, but the commit {why}: somebody else has written it, and nothing "
        f"was changed. To end the commit, {by_hand(layout)}"
    )
    return ManifestError(layout.url(plan), text)
