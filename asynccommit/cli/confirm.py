"""Ask on a terminal before something is deleted or taken over."""

from __future__ import annotations

import sys

import typer
from rich.console import RenderableType

from asynccommit.cli.output import Exit, Output, Stopped


def is_asked(output: Output, *, yes: bool) -> bool:
    """Return whether a person is there to be asked.

    A script is not asked: it has neither a terminal nor a hand.
    """
    return not (yes or output.json) and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(output: Output, shown: RenderableType, question: str) -> None:
    """Show what would be done, and ask whether to do it.

    Ends the command with ``Exit.REFUSED`` if the answer is no.

    Args:
        output: of the command.
        shown: what would be done.
        question: the question, without its question mark.

    Raises ``Stopped`` if the person interrupts the question.
    """
    output.ask(shown)
    try:
        answer = typer.confirm(question, err=True)
    except typer.Abort:
        text = "the question was not answered: nothing was changed"
        raise Stopped(Exit.INTERRUPTED, text) from None
    if not answer:
        output.note("nothing was changed")
        raise typer.Exit(int(Exit.REFUSED))
