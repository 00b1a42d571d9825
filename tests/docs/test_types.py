"""The snippets of README are typed as strictly as the package, and options know their names.

Those of the pages are checked as a user's program that has few types.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.snippets import PAGES, ROOT, Snippet, snippets

README = ROOT / "README.md"
LOOSE = (
    "--allow-untyped-defs",
    "--allow-incomplete-defs",
    "--allow-untyped-calls",
    "--allow-untyped-decorators",
    "--allow-any-generics",
    "--allow-redefinition",
    "--ignore-missing-imports",
)
"""What a program without types may do, beside ``--strict``."""
EXPECTED = {
    "emulators.md: arg-type": "``ca_pem`` is None without a certificate; the page asks for one",
    "file-committers.md: attr-defined": "only FileOutputCommitter has ``recover_task``",
    "guide-daft.md: operator": "Daft types the operands of an expression as expressions",
    "guide-dask.md: attr-defined": "Dask does not export ``delayed`` as mypy understands it",
    "observability.md: index": "OpenTelemetry types the attributes of a span as optional",
    "stores-s3.md: attr-defined": "only stores of buckets have uploads and ``list_tree``",
}
"""Page and kind of an error -> why the page has it."""

SPARK = pytest.mark.parametrize("spark", [False, True], ids=["python", "spark"])
NAMES = """
from concurrent.futures import ThreadPoolExecutor
from asynccommit import Options, UploadOptions, open_job, sync
from asynccommit.parallel import commit_parallel

open_job("/t", mode="replace_table")
sync.open_job("/t", mode="append")
commit_parallel("/t", print, [], ThreadPoolExecutor(), mode="overwrite")
Options(on_unfinished="resume", on_failure="rollback", cleanup="wait", on_cleanup_failure="fail")
UploadOptions(conflict="replace", etags="strings")
open_job("/t", mode="replace_tabel")
sync.open_job("/t", mode="replace_tabel")
commit_parallel("/t", print, [], ThreadPoolExecutor(), mode="overwritten")
Options(on_unfinished="resumed")
Options(on_failure="roll back")
Options(cleanup="waits")
Options(on_cleanup_failure="failing")
UploadOptions(conflict="replaces")
UploadOptions(etags="string")
"""
MISSPELT = list(range(11, 20))
"""The lines of ``NAMES`` in which a name is wrong."""


def _readme(spark: bool) -> str:
    found = [
        each.text
        for each in snippets(README)
        if each.language == "python" and ("spark" in each.how) == spark
    ]
    assert found
    return "\n".join(found)


@pytest.mark.full
@pytest.mark.timeout(300)
@SPARK
def test_readme_passes_mypy(tmp_path: Path, spark: bool) -> None:
    """README's code, copied into a module, has no error of ``mypy --strict``."""
    done = _mypy(tmp_path, _readme(spark))

    assert done.returncode == 0, done.stdout


@pytest.mark.full
@pytest.mark.timeout(300)
@SPARK
def test_readme_passes_pyright(tmp_path: Path, spark: bool) -> None:
    """README's code has no error of pyright."""
    assert _pyright(tmp_path, _readme(spark)) == []


@pytest.mark.full
@pytest.mark.timeout(300)
def test_misspelt_name_is_found_by_mypy(tmp_path: Path) -> None:
    """A type checker knows the names of modes and of choices, everywhere that they are given."""
    done = _mypy(tmp_path, NAMES)

    found = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [int(line.split(":")[1]) for line in found] == MISSPELT, done.stdout
    assert all("[arg-type]" in line for line in found)


@pytest.mark.full
@pytest.mark.timeout(300)
def test_misspelt_name_is_found_by_pyright(tmp_path: Path) -> None:
    """So does pyright."""
    assert _pyright(tmp_path, NAMES) == MISSPELT


@pytest.mark.every(2)
@pytest.mark.full
@pytest.mark.timeout(600)
def test_pages_pass_mypy(tmp_path: Path) -> None:
    """The scripts and files of each page have no error in their use of this package."""
    made = {path: page for page in PAGES for path in _modules(page, tmp_path)}
    assert len(made) > 40
    environment = {**os.environ, "MYPYPATH": os.pathsep.join({str(path.parent) for path in made})}

    done = _run_mypy(*LOOSE, *map(str, made), environment=environment)

    found = re.findall(r"^(.+?):\d+: error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    pages = {f"{made[Path(path)].name}: {kind}" for path, kind in found}
    assert pages == set(EXPECTED), done.stdout
    assert done.returncode <= 1, done.stdout


def _modules(page: Path, folder: Path) -> Iterator[Path]:
    """Write the Python of a page, each line where the page has it; yield the modules."""
    stem = re.sub(r"\W", "_", page.stem)
    parts: dict[str, list[Snippet]] = {}
    python = [each for each in snippets(page) if each.language == "python"]
    for each in python:
        kind = next((kind for kind in ("spark", "abfs") if kind in each.how), "script")
        name = each.file or f"{kind}.py"
        imported = rf"^(from|import) {name.removesuffix('.py')}\b"
        if not any(re.search(imported, other.text, re.MULTILINE) for other in python):
            name = f"{stem}_{name}"  # several pages have a file of this name
        parts.setdefault(name, []).append(each)
    for name, found in parts.items():
        text = ""
        for each in found:
            text += "\n" * (each.line - 1 - text.count("\n")) + each.text
        module = folder / stem / name
        module.parent.mkdir(exist_ok=True)
        module.write_text(text, "utf-8")
        yield module


def _mypy(directory: Path, code: str) -> subprocess.CompletedProcess[str]:
    module = directory / "copied.py"
    module.write_text(code)
    return _run_mypy(str(module))


def _run_mypy(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def _pyright(directory: Path, code: str) -> list[int]:
    """Return the lines in which pyright finds an error, its own default rules given."""
    beside = str(Path(sys.executable).parent)
    command = next(filter(None, map(shutil.which, ("pyright", "basedpyright"))), None)
    command = command or shutil.which("basedpyright", path=beside)
    if command is None:
        pytest.skip("pyright is not installed: pip install basedpyright")
    (directory / "copied.py").write_text(code)
    settings = {"include": ["copied.py"], "typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    (directory / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [command, "--project", str(directory), "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"]
