"""The public packages: their names, and how little an import of them loads."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

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


def test_surface_is_in_the_architecture() -> None:
    """The page about the architecture lists the public packages, and no others."""
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    section = text.partition("## Public surface\n")[2].partition("\n## ")[0]

    assert set(re.findall(r"^\| `(asynccommit[a-z.]*)` \|", section, re.MULTILINE)) == {*PUBLIC}
