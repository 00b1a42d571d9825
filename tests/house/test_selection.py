"""Which tests are in the quick selection, and which in the rest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.run import JVM_FOLDERS

ROOT = Path(__file__).parents[2]

_CONFTEST = "from tests.conftest import *\n"
_SUITE = """
import pytest
from tests.support.selection import amount

def test_plain(): pass

@pytest.mark.more
def test_loop(): assert amount("ASYNCCOMMIT_ANY", quick=2, full=5) == 5

@pytest.mark.full
def test_long(): pass

@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(9))
def test_sampled(seed): pass

@pytest.mark.rotate("act")
@pytest.mark.parametrize("act", ["resume", "rollback"])
@pytest.mark.parametrize("kind", ["a", "b", "c"])
def test_rotated(kind, act): pass

@pytest.mark.rotate("store", keep=2)
@pytest.mark.parametrize("store", range(5))
@pytest.mark.parametrize("rule", ["a", "b"])
def test_kept(rule, store): pass
"""
_SPREAD = """
import pytest

@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(8))
def test_spread(seed): pass

@pytest.mark.full
@pytest.mark.every(3, 1)
@pytest.mark.parametrize("what", "ab")
def test_together(what): pass
"""
_INI = "[pytest]\nmarkers = full\n  every(n)\n  more\n  sample(n)\n  rotate(name)\n"


def collected(place: Path, part: str, day: int) -> list[str]:
    """Return the names of the tests of one part, on one day."""
    around = {**os.environ, "PYTHONPATH": str(ROOT), "ASYNCCOMMIT_TEST_DAY": str(day)}
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--part", part, str(place)]
    done = subprocess.run(
        command, cwd=place, env=around, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with a few tests."""
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "pytest.ini").write_text(_INI)
    (tmp_path / "test_suite.py").write_text(_SUITE)
    return tmp_path


def test_each_test_is_in_one_part(suite: Path) -> None:
    """The quick selection and the rest have all tests together, and none twice."""
    quick, rest, every = (collected(suite, part, 1) for part in ("quick", "rest", "all"))

    assert {*quick} | {*rest} == {*every}
    assert {*quick} & {*rest} == {"test_loop"}
    assert len(quick) == 2 + 0 + 2 + 3 + 4


def test_a_case_of_each_other_parameter_is_kept(suite: Path) -> None:
    """A rotated parameter has one value for each case of the others, or as many as are kept."""
    names = sorted(collected(suite, "quick", 1))

    assert [name[13] for name in names if name.startswith("test_rotated[")] == [*"abc"]
    assert [name[10] for name in names if name.startswith("test_kept[")] == [*"aabb"]


@pytest.mark.full
def test_the_quick_selection_is_the_same_every_day(suite: Path) -> None:
    """The day does not change which cases `make test` runs."""
    assert collected(suite, "quick", 1) == collected(suite, "quick", 2)


@pytest.mark.full
def test_every_case_is_due_within_its_days(suite: Path) -> None:
    """A day has a share of the cases in the rest; so many days, and all, have every one."""
    (suite / "test_suite.py").write_text(_SPREAD)
    days = [{*collected(suite, "quick", day), *collected(suite, "rest", day)} for day in range(3)]

    assert max(len(names) for names in days) <= 1 + 3 + 2
    assert ["test_together[a]" in names for names in days] == [False, True, False]
    assert ["test_together[b]" in names for names in days] == [False, True, False]
    assert set.union(*days) == {*collected(suite, "all", 0)}


@pytest.mark.full
def test_the_runner_knows_where_a_jvm_is_started() -> None:
    """Tests that start a JVM are in the folders where the runner collects them."""
    marked = re.compile(r"\bmark\.(jvm|spark|cluster)\b")
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    found = {str(path.relative_to(ROOT)) for path in files if marked.search(path.read_text())}

    assert found
    assert {name for name in found if not name.startswith(JVM_FOLDERS)} == set()
