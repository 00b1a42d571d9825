"""``asynccommit-python`` outside of spark-submit; tests/field starts Spark with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from asynccommit.spark import launcher

SCRIPT = Path(launcher.__file__).with_name("asynccommit-python")
LAUNCHER = "import sys; sys.argv[0] = 'asynccommit-python'\n"
LAUNCHER += "from asynccommit.spark.launcher import main; main()"


@pytest.mark.parametrize("arguments", [["-c", "print(6 * 7)"], ["app.py"], []])
def test_launcher_is_any_python_elsewhere(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without spark-submit a command, a program and a pipe run as Python runs them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    Path("app.py").write_text("print(6 * 7)")

    command = [sys.executable, "-c", LAUNCHER, *arguments]
    done = subprocess.run(command, input="print(6 * 7)", capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_program_is_the_main_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its own directory, arguments and names, none of the launcher's, and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/beside.py").write_text("VALUE = 42")
    (tmp_path / "programs/app.py").write_text(
        "import beside, sys\n"
        "names = sorted(name for name in globals() if not name.startswith('__'))\n"
        "print(beside.VALUE, sys.argv, names, __file__, sys.modules['__main__'].beside.VALUE)\n"
        "sys.exit(7)\n"
    )
    begun = "import sys; from asynccommit.spark.launcher import run_program as run"
    command = [sys.executable, "-c", f"{begun}; run(sys.argv[1:])", "programs/app.py", "x"]

    done = subprocess.run(command, capture_output=True, text=True)

    said = "42 ['programs/app.py', 'x'] ['beside', 'sys'] programs/app.py 42\n"
    assert (done.returncode, done.stdout, done.stderr) == (7, said, "")


def test_launcher_is_the_python_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that was moved, as by an archive for a cluster, is used where it is now."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    venv.create(tmp_path / "made here", symlinks=True)
    shutil.copy(SCRIPT, tmp_path / "made here/bin")
    moved = (tmp_path / "made here").rename(tmp_path / "now there")
    (tmp_path / "link").symlink_to(moved / "bin/asynccommit-python")

    for path in map(str, (tmp_path / "link", moved / "bin/asynccommit-python")):
        command = [path, "-c", "import sys; print(sys.prefix)"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{moved}\n", "")
