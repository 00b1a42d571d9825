"""``asynccommit man``: the manual page."""

from __future__ import annotations

import sys

import typer

from asynccommit.cli.arguments import reporting
from asynccommit.cli.man_page import man_page
from asynccommit.cli.output import Output


@reporting
def man(output: Output, context: typer.Context) -> None:
    """Write the manual page, in the format of man, to standard output.

    To read it: asynccommit man > asynccommit.1 && man -l asynccommit.1
    """
    page = man_page(context.find_root().command)
    if output.json:
        output.result({"page": page}, "")
    else:
        sys.stdout.write(page)
