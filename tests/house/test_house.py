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
from tests.house.trees import parsed

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "asynccommit").rglob("*.py"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

LINES_OF_A_MODULE = 600
LINES_OF_A_FUNCTION = 35
QUESTIONS = {"How", "What", "Where", "Whether", "Which", "Who", "Whose", "Why"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(parsed(path)):
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
        for name in dir(asynccommit)
        if not name.startswith("_") and not inspect.ismodule(getattr(asynccommit, name))
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


def test_module_has_one_subject() -> None:
    """A module that is longer than its limit has two subjects."""
    lengths = {_name(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}

    assert {name: lines for name, lines in lengths.items() if lines > LINES_OF_A_MODULE} == {}


def test_functions_are_short() -> None:
    """A function, its docstring apart, fits on half a screen."""
    lengths = {
        f"{_name(path)}: {function.name}": _length(function)
        for path in MODULES
        for function in _functions(path)
    }

    assert {name: lines for name, lines in lengths.items() if lines > LINES_OF_A_FUNCTION} == {}


def test_no_update_spans_an_await() -> None:
    """What coroutines share is not read, awaited for and then written: an update would be lost."""
    found = [
        f"{_name(path)}:{each.lineno}: {ast.unparse(each)}"
        for path in MODULES
        for each in _torn_updates(parsed(path))
    ]

    assert not found, "await into a local variable first"


@pytest.mark.parametrize(
    "text",
    [
        "async def f(a): a.n += await g()",
        "async def f(a): a['n'] += 1 + await g()",
        "async def f(a): a.n = a.n + await g()",
        "async def f(a): a.n = await g(a.n)",
        "async def f(a): a.n += [one for one in await g()]",
        "async def f(a): a.n += sum([one async for one in g()])",
        "def f():\n n = 0\n async def h():\n  nonlocal n\n  n = n or await g()",
        "n = 0\nasync def f():\n global n\n n += await g()",
    ],
)
def test_torn_updates_are_seen(text: str) -> None:
    """The rule about updates sees each way in which one can span an await."""
    assert _torn_updates(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "async def f(a): n = 0; n += await g()",
        "async def f(a): n = await g(); a.n += n",
        "async def f(a): a.n = await g(a.m)",
        "def f(a):\n async def h(): await g()\n a.n += h()",
    ],
)
def test_whole_updates_are_allowed(text: str) -> None:
    """An update of a local variable, or one after the await, is no offence."""
    assert not _torn_updates(ast.parse(text))


def _torn_updates(tree: ast.Module) -> list[ast.Assign | ast.AugAssign]:
    """Return the assignments that read what they write, with an await in between."""
    kinds = ast.Nonlocal | ast.Global
    shared = {name for node in ast.walk(tree) if isinstance(node, kinds) for name in node.names}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign)
        and _awaits(node.value)
        and any(_is_shared(target, shared) for target in _read_and_written(node))
    ]


def _awaits(node: ast.AST) -> bool:
    kinds = ast.Await | ast.AsyncFor
    waits = isinstance(node, kinds) or (isinstance(node, ast.comprehension) and bool(node.is_async))
    return waits or any(_awaits(child) for child in ast.iter_child_nodes(node))


def _read_and_written(node: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    if isinstance(node, ast.AugAssign):
        return [node.target]
    read = {ast.unparse(each) for each in ast.walk(node.value) if isinstance(each, ast.expr)}
    return [target for target in node.targets if ast.unparse(target) in read]


def _is_shared(target: ast.expr, shared: set[str]) -> bool:
    return not isinstance(target, ast.Name) or target.id in shared


def test_docstrings_begin_with_the_thing_or_a_verb() -> None:
    """A first line is a noun phrase or an imperative, and begins with no question word."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [
        f"{_name(path)}: {text.splitlines()[0]}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, kinds) and (text := ast.get_docstring(node))
        if text.split()[0] in QUESTIONS
    ]

    assert found == []


def test_no_two_classes_have_one_name() -> None:
    """A class is known by its name alone, wherever it is imported."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(_name(path))

    assert {name: where for name, where in places.items() if len(where) > 1} == {}


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
