"""The rules of the house that no other tool checks."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import asynccommit
from asynccommit import errors

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "asynccommit").rglob("*.py"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

LINES_OF_A_MODULE = 400
LINES_OF_A_FUNCTION = 35

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, Function):
            yield node


def _length(function: Function) -> int:
    """Return the lines of the body; the docstring is no burden."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_all_names_what_is_public() -> None:
    """``__all__`` is sorted and holds every public name of the package that is no module."""
    public = {
        name
        for name, value in vars(asynccommit).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert {*asynccommit.__all__} == public | {"__version__"}
    assert asynccommit.__all__ == sorted(asynccommit.__all__)


def test_error_tree_is_drawn_as_it_is() -> None:
    """The drawing at the top of errors.py shows every class under its base."""
    drawn: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"( *)([A-Z]\w+)(?= |$)", line):
            depth = len(found[1]) // 2
            above[depth:] = [found[2]]
            drawn[found[2]] = above[depth - 1] if depth else "Exception"
    classes = {
        name: kind.__bases__[0].__name__
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, Exception)
    }

    assert drawn.items() >= classes.items()


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_module_has_one_subject(path: Path) -> None:
    """A module that is longer than its limit has two subjects."""
    assert len(path.read_text("utf-8").splitlines()) <= LINES_OF_A_MODULE


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_functions_are_short(path: Path) -> None:
    """A function, its docstring apart, fits on half a screen."""
    long = {_.name: _length(_) for _ in _functions(path) if _length(_) > LINES_OF_A_FUNCTION}

    assert not long


def test_import_is_light() -> None:
    """Importing the package loads neither Spark nor the command line's libraries."""
    heavy = {"numpy", "pandas", "py4j", "pyarrow", "pyspark", "rich", "typer"}
    code = f"import sys, asynccommit.sync; print(*sorted({heavy} & sys.modules.keys()))"

    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()

    assert loaded == []


@pytest.mark.parametrize("path", LOCKS, ids=_name)
def test_lock_pins_by_hash_and_names_no_place(path: Path) -> None:
    """Every requirement has a version and hashes, and no line says where to fetch it."""
    text = path.read_text("utf-8")
    requirements = re.findall(r"^[a-z0-9].*(?:\n +--hash.*)*", text, flags=re.MULTILINE)

    assert requirements
    assert all(re.match(r"[a-z0-9-]+==\S+", _) and "--hash=sha256:" in _ for _ in requirements)
    assert "//" not in text


def test_lock_covers_the_extras() -> None:
    """What pyproject.toml asks of a developer is in the lock: ``make lock`` was not forgotten."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = project["dependencies"] + [
        line
        for extra in ("test", "dev", "fast")
        for line in project["optional-dependencies"][extra]
    ]
    names = {re.split(r"[\[<>=!; ]", line)[0] for line in wanted} - {"asynccommit"}
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements/dev.txt").read_text(), re.M))

    assert names <= locked


def test_changelog_knows_the_version() -> None:
    """The changelog has a section for the version, or says what is not released yet."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")

    assert re.search(rf"^## (\[?{re.escape(asynccommit.__version__)}\]?|Unreleased)", text, re.M)
