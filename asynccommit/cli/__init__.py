"""Command line: the command ``asynccommit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.cli.start import main
    from asynccommit.cli.verbs import app
else:
    __getattr__, __dir__ = lazy_names(__name__, {"verbs": ["app"], "start": ["main"]})

__all__ = ["app", "main"]
