"""The snippets of README are typed as strictly as the package, and options know their names."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.snippets import ROOT, snippets

README = ROOT / "README.md"


SPARK = pytest.mark.parametrize("spark", [False, True], ids=["python", "spark"])
NAMES = """
from concurrent.futures import ThreadPoolExecutor
from asynccommit import Options, UploadOptions, open_job, sync
from asynccommit.parallel import commit_parallel

open_job("/t", mode="replace_table")
sync.job("/t", mode="append")
commit_parallel("/t", print, [], ThreadPoolExecutor(), mode="overwrite")
Options(on_unfinished="resume", on_failure="rollback", cleanup="wait", on_cleanup_failure="fail")
UploadOptions(conflict="replace", etags="strings")
open_job("/t", mode="replace_tabel")
sync.job("/t", mode="replace_tabel")
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


def _mypy(directory: Path, code: str) -> subprocess.CompletedProcess[str]:
    module = directory / "copied.py"
    module.write_text(code)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(module)],
        cwd=ROOT,
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
