"""The commands that messages suggest: complete, and quoted for a shell."""

from __future__ import annotations

import shlex

from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import TEMPORARY, Layout
from asynccommit.commit.layouts.move import MoveLayout
from asynccommit.commit.layouts.uploads import StagingLayout, UploadLayout
from asynccommit.options.uploads import NAME, STAGING_PATH
from asynccommit.stores.urls import Address

STAGING = "staging"
"""The name in ``_temporary`` for the pending sets of all staging jobs."""

_BEFORE_RECORDS = ("commit", "abort")
"""Verbs for jobs without a record, whose committer is unknown."""


_MOVES: dict[tuple[str, bool], tuple[str, ...]] = {
    ("resume", False): ("--resume",),
    ("takeover", False): ("--force", "--resume"),
    ("takeover", True): ("--force", "--rollback"),
    ("abort", False): ("--rollback",),
    ("abort", True): ("--rollback",),
}
"""Verb, and whether it rolls back -> the words that do the same to a move with a journal."""


def command(verb: str, dest: Address, *flags: str) -> str:
    """Return a command line: ``asynccommit VERB URL ...``."""
    words = ("asynccommit", verb, str(dest), *flags)
    return " ".join(quoted(word) for word in words)


def job_command(verb: str, layout: Layout, *flags: str) -> str:
    """Return a command line for one job attempt."""
    if isinstance(layout, MoveLayout) and (words := _MOVES.get((verb, "--rollback" in flags))):
        return " ".join(map(quoted, ("asynccommit", "mv", *words, layout.journal)))
    named = ["--job-id", layout.job_id]
    if layout.attempt:
        named += ["--attempt", str(layout.attempt)]
    if isinstance(layout, FileLayout) and verb in _BEFORE_RECORDS and "--rollback" not in flags:
        named += ["--committer", "file_v1"]
    return command(verb, layout.dest, *named, *flags, *_options(layout))


def by_hand(layout: Layout) -> str:
    """Return how a person ends a commit with an unreadable record or plan.

    No command can end such a commit.
    """
    if isinstance(layout, UploadLayout):
        return f"restore that file, or delete {layout.attempt_dir}, which leaves open uploads open"
    return (
        f"restore that file; or put back any files in {layout.attempt_dir}/commit-epoch-*/aside, "
        f"and delete {layout.attempt_dir}"
    )


def _options(layout: Layout) -> list[str]:
    """Return the options that are required to find the job.

    Staging jobs are found through options only.
    """
    if not isinstance(layout, StagingLayout):
        return []
    said = ["-o", f"{NAME}={layout.committer}"]
    above = layout.tmp.path.rpartition("/")[0] or "/"
    if layout.tmp.at(above) != layout.dest.child(TEMPORARY, STAGING):
        said += ["-o", f"{STAGING_PATH}={layout.tmp.at(above)}"]
    return said


def quoted(word: str) -> str:
    """Return a word quoted for a shell.

    Invisible characters are escaped in bash's syntax.
    """
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(_escaped(letter) for letter in word)}'"


def _escaped(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
