"""An environment with the wheel installed, for users who have no copy of the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.walk.user import User

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the interpreter of a fresh environment with the wheel installed.

    The packages that it needs are those of this environment: nothing is downloaded.
    """
    folder = tmp_path_factory.mktemp("walk")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run(build, check=True, capture_output=True, cwd=folder)
    (wheel,) = folder.glob("asynccommit-*.whl")
    venv.create(folder / "env", with_pip=False)
    made = folder / "env/bin/python"
    install = [*pip, "--python", str(made), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, cwd=folder)
    (site,) = (folder / "env/lib").glob("python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site / "locked.pth").write_text("\n".join(others) + "\n", "utf-8")
    return str(made)


@pytest.fixture(autouse=True)
def _shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the programs of a walk the variables of a user's shell, without this checkout's."""
    for name in list(os.environ):
        if name.startswith("PYTHON"):
            monkeypatch.delenv(name)


@pytest.fixture
def user(python: str, tmp_path: Path) -> User:
    """Return a user in an empty folder."""
    return User(tmp_path, python)
