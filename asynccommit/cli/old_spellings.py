"""Old spellings of commands and options: they work for one version, and name the new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "hive-dedup": ("hive", "dedup"),
    "mr-status": ("mapreduce", "status"),
    "demo-adls": ("demo", "adls"),
    "demo-gcs": ("demo", "gcs"),
    "demo-s3": ("demo", "s3"),
}
"""The new words of each old command."""


def modernized(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the command line in new spellings, and a note for each old one."""
    at = next((n for n, word in enumerate(args) if not word.startswith("-")), len(args))
    before, words = list(args[:at]), list(args[at:])
    notes: list[str] = []
    if words and words[0] in COMMANDS:
        old, new = words[0], COMMANDS[words[0]]
        notes.append(_note(old, " ".join(new)))
        words[:1] = new
    return before + words, notes


def _note(old: str, new: str) -> str:
    return f"`{old}` is deprecated and goes in the next version; use `{new}`"
