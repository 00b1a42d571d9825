"""Command line: the command ``asynccommit``."""

from asynccommit.cli.app import app, main

__all__ = ["app", "main"]
