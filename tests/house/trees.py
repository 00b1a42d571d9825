"""The syntax trees of modules, each parsed once for all rules."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a module, which no rule changes."""
    return ast.parse(path.read_text("utf-8"))
