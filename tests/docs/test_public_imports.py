"""README and docs import the public surface of the package and nothing else."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from asynccommit import errors
from tests.support.public import PUBLIC
from tests.support.snippets import PAGES, snippets

OF_OTHERS = {
    "InternalError",
    "NoClassDefFoundError",
}
"""Names that end like an error of Python but are a code of a service, or Java's."""


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
    """Every error and warning that a page names can be imported from a public package."""
    pages = [page for page in PAGES if page.name != "architecture.md"]  # it names internal ones
    text = "\n".join(page.read_text("utf-8") for page in pages)
    named = set(re.findall(r"`([A-Z][A-Za-z]+(?:Error|Warning))`", text))
    named -= {*OF_OTHERS, *vars(builtins)}
    exported = {name for package in PUBLIC for name in import_module(package).__all__}

    assert len(named) > 25
    assert sorted(named - exported) == []


def test_errors_that_are_raised_are_exported() -> None:
    """So can every error that the docstring of a public name says it raises."""
    known = {name for name in vars(errors) if name.endswith("Error")}
    exported: set[str] = set()
    raised: set[str] = set()
    for package in PUBLIC:
        module = import_module(package)
        exported |= {*module.__all__}
        for name in module.__all__:
            for text in _docstrings(getattr(module, name)):
                raised |= known & set(re.findall(r"\b[A-Z]\w+Error\b", text))

    assert len(raised) > 15
    assert sorted(raised - exported) == []


def _docstrings(thing: object) -> Iterator[str]:
    """Yield the docstrings of a function, or of a class and its public methods."""
    yield inspect.getdoc(thing) or ""
    if inspect.isclass(thing):
        for name, member in vars(thing).items():
            if not name.startswith("_"):
                yield inspect.getdoc(member) or ""
