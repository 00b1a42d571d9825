"""README and docs import the public surface of the package and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import asynccommit
from asynccommit import errors
from tests.support.public import PUBLIC
from tests.support.snippets import PAGES, ROOT, snippets


def _name(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_page_imports_only_public_names(page: Path) -> None:
    """Every import of the package on a page is of a public package and of a name in ``__all__``."""
    private = [
        f"line {line}: {module}{f', {name}' if name else ''}"
        for line, module, name in _imports(page)
        if not _is_public(module, name)
    ]

    assert private == []


def _imports(page: Path) -> Iterator[tuple[int, str, str | None]]:
    """Yield line, module and imported name of each import of the package on a page."""
    for snippet in snippets(page):
        if snippet.language != "python":
            continue
        for node in ast.walk(ast.parse(snippet.text)):
            found: list[tuple[str, str | None]] = []
            if isinstance(node, ast.Import):
                found = [(alias.name, None) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = [(node.module or "", alias.name) for alias in node.names]
            for module, name in found:
                if module.partition(".")[0] == "asynccommit":
                    yield snippet.line + getattr(node, "lineno", 1) - 1, module, name


def _is_public(module: str, name: str | None) -> bool:
    if module not in PUBLIC:
        return False
    return name is None or f"{module}.{name}" in PUBLIC or name in import_module(module).__all__


def test_errors_to_catch_are_exported() -> None:
    """Every error of a store or a commit that the page on errors names is in ``asynccommit``."""
    text = (ROOT / "docs" / "errors.md").read_text("utf-8")
    named = set(re.findall(r"`([A-Z][A-Za-z]+Error)`", text)) & set(vars(errors))

    assert len(named) > 10
    assert named <= set(asynccommit.__all__)
