"""Old spellings of commands and options, which work with a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "hive-dedup": ("hive", "dedup"),
    "mr-status": ("mapreduce", "status"),
    "demo-adls": ("demo", "adls"),
    "demo-gcs": ("demo", "gcs"),
    "demo-s3": ("demo", "s3"),
}
"""The new words of each old command."""


def _same(value: str) -> str:
    return value


def _milliseconds(value: str) -> str:
    """Return ``30`` or ``10-50`` with units."""
    return "-".join(f"{number}ms" for number in value.replace("_", "").split("-"))


OPTIONS: Mapping[tuple[tuple[str, ...], str], tuple[str, Callable[[str], str]]] = {
    (("mv",), "--undo"): ("--rollback", _same),
    (("uploads", "abort"), "--job"): ("--job-id", _same),
    (("simulate",), "--latency-ms"): ("--latency", _milliseconds),
}
"""The new name of each old option of a command, and how to convert its value."""


def modernized(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the command line in new spellings, and a note for each old one."""
    at = next((n for n, word in enumerate(args) if not word.startswith("-")), len(args))
    before, words = list(args[:at]), list(args[at:])
    notes: list[str] = []
    if words and words[0] in COMMANDS:
        old, new = words[0], COMMANDS[words[0]]
        notes.append(_note(old, " ".join(new)))
        words[:1] = new
    for (command, option), (name, convert) in OPTIONS.items():
        if tuple(words[: len(command)]) == command and _renamed(words, option, name, convert):
            notes.append(_note(option, name))
    return before + words, notes


def _renamed(words: list[str], old: str, new: str, convert: Callable[[str], str]) -> bool:
    """Replace an option and its value, separated by a blank or ``=``."""
    found = False
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name != old:
            continue
        found = True
        words[at] = f"{new}={convert(value)}" if equals else new
        if not equals and at + 1 < len(words):
            words[at + 1] = convert(words[at + 1])
    return found


def _note(old: str, new: str) -> str:
    return f"`{old}` is deprecated and goes in the next version; use `{new}`"
