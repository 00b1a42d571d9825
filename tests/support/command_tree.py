"""The commands of ``asynccommit``, as click knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from asynccommit.cli import app


def every_command() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words and the click command of each command, groups and the program included."""
    yield from _below((), get_command(app))


def leaves() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words and the click command of each command that is no group."""
    for words, command in every_command():
        if not hasattr(command, "commands"):
            yield words, command


def _below(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _below((*words, name), child)
