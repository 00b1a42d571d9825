"""The commands that messages end with: whole, and quoted for a shell."""

from __future__ import annotations

import shlex

from asynccommit.job import Layout
from asynccommit.urls import Address


def command(verb: str, dest: Address, *flags: str) -> str:
    """Return what to type: ``asynccommit VERB URL ...``."""
    words = ("asynccommit", verb, str(dest), *flags)
    return " ".join(quoted(word) for word in words)


def job_command(verb: str, layout: Layout, *flags: str) -> str:
    """Return what to type for one job attempt."""
    named = ["--job-id", layout.job_id]
    if layout.attempt:
        named += ["--attempt", str(layout.attempt)]
    return command(verb, layout.dest, *named, *flags)


def quoted(word: str) -> str:
    """Return a word for a shell; what cannot be seen is escaped, as bash reads it."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(_escaped(letter) for letter in word)}'"


def _escaped(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
