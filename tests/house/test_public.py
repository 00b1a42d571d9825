"""The public packages: their names, and how little an import of them loads."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.public import PUBLIC

ROOT = Path(__file__).parents[2]
HEAVY = {
    *("aiohttp", "botocore", "daft", "dask", "duckdb", "google_crc32c", "httptools", "numpy"),
    *("pandas", "polars", "py4j", "pyarrow", "pyreqwest", "pyspark", "pytest", "ray", "rich"),
    *("typer", "uvloop"),
}
LOOP_THREAD = "asynccommit.runtime.loop_thread"
ENGINES = {f"asynccommit.{name}" for name in ("arrow", "daft", "dask", "duckdb", "polars", "ray")}
BLOCKING = {
    "asynccommit.committers",
    "asynccommit.parallel",
    "asynccommit.spark",
    "asynccommit.sync",
    *ENGINES,
}


@pytest.mark.parametrize("package", PUBLIC)
def test_all_is_sorted_and_importable(package: str) -> None:
    """``__all__`` of a public package is sorted and names what can be imported from it."""
    module = import_module(package)

    assert module.__all__ == sorted(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert {*module.__all__} <= {*dir(module)}


@pytest.mark.parametrize("package", PUBLIC)
def test_no_public_name_is_that_of_a_module(package: str) -> None:
    """A public name is not the name of a module in its folder, which would take its place."""
    module = import_module(package)
    folder = Path(module.__file__ or "").parent if hasattr(module, "__path__") else None
    modules = {path.stem for path in folder.iterdir()} if folder else set()

    assert modules & {*module.__all__} == set()


@pytest.mark.parametrize("package", PUBLIC)
def test_unknown_name_is_an_attribute_error(package: str) -> None:
    """A name that a public package does not have is an ``AttributeError`` that says both."""
    with pytest.raises(AttributeError, match=f"'{re.escape(package)}' has no attribute 'nothing'"):
        import_module(package).nothing  # noqa: B018


@pytest.mark.parametrize("package", PUBLIC)
def test_import_is_light(package: str) -> None:
    """The import of a public package loads no optional library, and the loop's thread if needed."""
    heavy = HEAVY if package in BLOCKING else {*HEAVY, LOOP_THREAD}
    code = f"import sys, {package}; print(*sorted({heavy} & sys.modules.keys()))"

    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()

    assert loaded == []


def _classes(hint: object) -> Iterator[type]:
    """Yield the classes of this package that a type hint names."""
    if typing.get_origin(hint) is typing.Annotated:
        yield from _classes(typing.get_args(hint)[0])
        return
    for part in (typing.get_origin(hint), *typing.get_args(hint)):
        for one in part if isinstance(part, list) else [part]:
            if one is not None:
                yield from _classes(one)
    if isinstance(hint, type) and hint.__module__.startswith("asynccommit."):
        yield hint


def _signatures(thing: object) -> Iterator[Callable[..., object]]:
    """Yield a function, or the public methods and properties of a class."""
    if inspect.isfunction(thing):
        yield thing
    for name, member in vars(thing).items() if inspect.isclass(thing) else ():
        found = member.fget if isinstance(member, property) else inspect.unwrap(member)
        if inspect.isfunction(found) and not name.startswith("_"):
            yield found


@pytest.mark.parametrize("package", [_ for _ in PUBLIC if _ != "asynccommit.testing"])
def test_signatures_name_what_is_exported(package: str) -> None:
    """A public function takes and returns nothing of this package that is not public itself.

    The emulators and their models, which ``asynccommit.testing`` shows, are read and not imported.
    """
    exported = {value for public in map(import_module, PUBLIC) for value in _values(public)}
    module, hidden = import_module(package), dict[str, str]()
    for name in module.__all__:
        for function in _signatures(getattr(module, name)):
            for hint in _hints(inspect.unwrap(function)).values():
                hidden |= {
                    kind.__qualname__: f"{name}: {function.__qualname__}"
                    for kind in _classes(hint)
                    if kind not in exported
                }

    assert hidden == {}


def _values(module: Any) -> Iterator[object]:
    """Yield the classes and functions that a module exports."""
    for name in module.__all__:
        if callable(value := getattr(module, name)):
            yield value


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    """Return the hints of a function; of another library's names, those that can be read."""
    known = dict[str, Any]()
    for name, text in function.__annotations__.items():
        one = types.FunctionType((lambda: None).__code__, function.__globals__)
        one.__annotations__ = {name: text}
        with suppress(NameError):  # imported for type checkers only: of another library
            known |= typing.get_type_hints(one, include_extras=True)
    return known


def test_surface_is_in_the_architecture() -> None:
    """The page about the architecture lists the public packages, and no others."""
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    section = text.partition("## Public surface\n")[2].partition("\n## ")[0]

    assert set(re.findall(r"^\| `(asynccommit[a-z.]*)` \|", section, re.MULTILINE)) == {*PUBLIC}
