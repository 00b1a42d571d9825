"""Commands whose help names a value only where an option takes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

SETTINGS: dict[str, Any] = {
    "name": "asynccommit",
    "help": "Commit, resume, abort and inspect the output of parallel jobs.",
    "epilog": "Exit codes: 0 done, 1 failed, 2 usage error, 3 refused or problems found, "
    "4 outcome unknown, 5 not found, 130 interrupted, 143 terminated.",
    "no_args_is_help": True,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
}
"""The settings of the whole command."""


class PlainCommand(TyperCommand):
    """A command without types in the help of its flags, ``--help`` included."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments."""
        return _unnamed(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A group of commands; see ``PlainCommand``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options."""
        return _unnamed(super().get_params(ctx))


class Program(typer.Typer):
    """A program, or a group of its commands.

    Args:
        settings: those of ``typer.Typer``.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": PlainGroup, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Return the decorator of a command."""
        return super().command(name, cls=PlainCommand, **settings)


def _no_type(ctx: Any) -> None:
    return None


def _unnamed(options: Sequence[Any]) -> list[Any]:
    for option in options:
        if getattr(option, "param_type_name", "") == "argument":
            option.display_type_rich = _no_type  # beside its name
        elif getattr(option, "is_bool_flag", False) and option.metavar is None:
            option.metavar = ""  # the type would look as if the flag took a value
    return [*options]
