"""``asynccommit man``: the manual page."""

from __future__ import annotations

import sys

import typer

from asynccommit.cli.man_page import man_page


def man(context: typer.Context) -> None:
    """Write the manual page, in the format of man, to standard output.

    To read it: asynccommit man > asynccommit.1 && man -l asynccommit.1
    """
    program = context.find_root().command
    sys.stdout.write(man_page(program))
