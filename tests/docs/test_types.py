"""The snippets of README are typed as strictly as the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.snippets import ROOT, snippets

README = ROOT / "README.md"


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("spark", [False, True], ids=["python", "spark"])
def test_readme_passes_mypy(tmp_path: Path, spark: bool) -> None:
    """README's code, copied into a module, has no error of ``mypy --strict``."""
    found = [
        each.text
        for each in snippets(README)
        if each.language == "python" and ("spark" in each.how) == spark
    ]
    done = _mypy(tmp_path, "\n".join(found))

    assert found
    assert done.returncode == 0, done.stdout


@pytest.mark.full
@pytest.mark.timeout(300)
def test_misspelt_mode_is_found_by_mypy(tmp_path: Path) -> None:
    """A type checker knows the names of the modes, in both forms of the public functions."""
    done = _mypy(
        tmp_path,
        """
from asynccommit import open_job, sync

open_job("/t", mode="replace_table")
sync.job("/t", mode="append")
open_job("/t", mode="replace_tabel")
sync.job("/t", mode="replace_tabel")
""",
    )

    found = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [line.split(":")[1] for line in found] == ["6", "7"]
    assert all("[arg-type]" in line for line in found)


def _mypy(directory: Path, code: str) -> subprocess.CompletedProcess[str]:
    module = directory / "copied.py"
    module.write_text(code)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
