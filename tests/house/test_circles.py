"""No module imports one that imports it, by a statement or by its name as text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Graph = Mapping[str, set[str]]


def modules(root: Path, package: str) -> dict[str, str]:
    """Return the source of each module by its dotted name."""
    found = {}
    for path in (root / package).rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path.read_text("utf-8")
    return found


def graph(sources: Mapping[str, str]) -> Graph:
    """Return the modules that each module imports, anywhere in it."""
    return {name: set(_used(name, ast.parse(text), sources)) for name, text in sources.items()}


def _used(own: str, tree: ast.Module, known: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)):
                names = [f"{module}.{alias.name}" for alias in node.names]
                found = [name if name in known else module for name in names]
            case ast.Import():
                found = [alias.name for alias in node.names]
            case ast.Constant(value=str(text)):
                found = [_named(text, known)]
            case _:
                continue
        # A name with which the module's own begins is that of a logger, a thread or a setting.
        yield from (name for name in found if name in known and not own.startswith(name))


def _named(text: str, known: Mapping[str, str]) -> str:
    """Return the module whose name a text is, or the name of something in it."""
    place = text if text in known else text.rpartition(".")[0]
    return place if "." in place else ""


def circle(found: Graph) -> list[str]:
    """Return modules of which each imports the one before; empty without any."""
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_imports_go_in_a_circle() -> None:
    """A module can be read without those that use it, also where it loads them late."""
    assert circle(graph(modules(ROOT, "asynccommit"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "from a.two import y",
        "def f():\n    from a import two",
        "NAME = 'a.two'",
        "NAME = 'a.two.Class'",
    ],
)
def test_a_circle_is_found(text: str) -> None:
    """A statement anywhere, the name of a module and that of a class in it all count."""
    sources = {"a": "", "a.one": text, "a.two": "import a.three", "a.three": "import a.one"}

    assert sorted(set(circle(graph(sources)))) == ["a.one", "a.three", "a.two"]
