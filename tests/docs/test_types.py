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
    module = tmp_path / "copied.py"
    module.write_text("\n".join(found))

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert found
    assert done.returncode == 0, done.stdout
