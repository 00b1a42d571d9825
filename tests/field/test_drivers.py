"""A driver without Python is killed in its commit, and resumed by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.field import drivers, effects
from tests.field.belongings import jars
from tests.field.cells import LOCAL, TIMEOUT
from tests.field.environments import environment, installed_line
from tests.field.place import Place, StartError

pytestmark = [
    pytest.mark.every(3),
    pytest.mark.full,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

# What runs in the place of Python: the engine kills the JVM or itself, then goes on if it can.
ENGINE = """\
#!{python}
import os, signal, sys, time
if sys.argv[-1] != "asynccommit.spark.child":
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
sys.path.insert(0, {root!r})
from asynccommit.spark import channel, child
from tests.support.spark import after_renames

def jvm():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(120)  # until the end of input ends this process


def engine():
    os.kill(os.getpid(), signal.SIGKILL)

def in_mid_frame():
    read = channel.read_frame
    def cut(source):
        def half(length):
            if length < 500:  # a head, or a request to set up
                return source(length)
            source(length // 2)
            os.kill(os.getppid(), signal.SIGKILL)
            return source(length)
        return read(half)
    channel.read_frame = cut

{act}
sys.exit(child.main())
"""


def engine_that(place: Place, act: str) -> str:
    """Write the program; return its path."""
    path = place.folder / "engine"
    root = str(Path(__file__).parents[2])
    python = str(place.environment.python)
    path.write_text(ENGINE.format(python=python, root=root, act=act), "utf-8")
    path.chmod(0o700)
    return str(path)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place for the installed Spark."""
    return Place(tmp_path, environment(installed_line()), LOCAL, jars(), TIMEOUT)


def killed(place: Place, act: str) -> str:
    """Submit the job in Scala, which is killed; return what it has printed."""
    drivers.prepare(place, engine_that(place, act))
    with pytest.raises(StartError) as failed:
        drivers.submit(place, drivers.SCALA)
    return str(failed.value)


def is_whole(place: Place) -> bool:
    """Return whether the table has its rows and nothing else."""
    return not [*effects.table_problems(place.folder / "flights")]


@pytest.mark.parametrize(
    "act",
    [
        "after_renames(0, jvm)",
        "after_renames(9, jvm)",
        "after_renames(0, jvm, '_SUCCESS')",
        "after_renames(9, engine)",
    ],
)
def test_a_killed_scala_job_is_resumed(place: Place, act: str) -> None:
    """Before the first rename, between two, and before the marker; the JVM, or the engine alone."""
    said = killed(place, act)
    before = is_whole(place)
    shown = place.python("-m", "asynccommit", "status", "flights")
    place.python("-m", "asynccommit", "resume", "flights")

    assert not before
    assert "asynccommit resume" in shown
    assert is_whole(place)
    if "engine" in act:
        assert "no answer from the engine" in said
        assert "has ended with exit code 137" in said


def test_a_jvm_that_dies_in_mid_frame_has_begun_nothing(place: Place) -> None:
    """Half a request to commit is none: the next run of the same job finds an empty table."""
    killed(place, "in_mid_frame()")
    found = effects.rows(place.folder / "flights")
    with (place.folder / "conf/spark-defaults.conf").open("a", encoding="utf-8") as file:
        file.write(f"spark.asynccommit.python {place.environment.python}\n")
    drivers.submit(place, drivers.SCALA)

    assert found == []
    assert is_whole(place)
