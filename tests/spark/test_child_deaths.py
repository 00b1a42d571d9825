"""Deaths between the JVM and its child, drawn by a seed: in a frame, at a rename, at an answer.

Whatever dies, the table is whole once somebody else has taken up the job, and nothing of it is
left. An actor that never strikes fails the test.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from asynccommit.spark.channel import GONE
from asynccommit.spark.frames import Frame, FrameKind
from asynccommit.spark.jars import build_id
from tests.spark.test_child import HOLDS, command, files, request, set_up
from tests.support.child import Child, running_child
from tests.support.selection import amount
from tests.support.spark import leftovers
from tests.support.strikes import counted, strike

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

_FILES = 5
_ACTORS = ("jvm in a frame", "jvm at a rename", "child at a rename", "jvm at the answer")
# An engine that goes on after its input has ended.
_DEAF = "from asynccommit.spark import channel\nchannel._end = lambda why: None\n"
_HOLDS = HOLDS.replace("after_renames(2,", "after_renames(int(sys.argv[3]),")
_HOLDS = _HOLDS.replace("map(Path, sys.argv[1:])", "map(Path, sys.argv[1:3])")


def problems(scratch: Path, seed: int, plant: str = "", patience: float = 60) -> Iterator[str]:
    """Let an actor strike a job; yield a line for each thing that must not be.

    Args:
        scratch: an empty directory.
        seed: what is drawn.
        plant: a fault of the engine.
        patience: seconds until a child that goes on is found.
    """
    draw, table = random.Random(seed), scratch / "t"
    actor = _ACTORS[seed % len(_ACTORS)]
    at, go = scratch / "at", scratch / "go"
    engine = ("-c", plant + _HOLDS, str(at), str(go), str(draw.randrange(_FILES)))
    asked = request("commit", table, tasks=set_up(table), overwrite=[], build=build_id())
    whole = Frame(FrameKind.REQUEST, 2, json.dumps(asked).encode()).encode()
    with running_child(*engine) as child:
        if not child.ask(**request("check", table))["ok"]:
            yield "the set-up was refused"
        if actor == "jvm in a frame":
            child.write(whole[: draw.randrange(len(whole))])
            yield from _ended(child, go, table, patience)
        else:
            child.write(whole)
            yield from _struck(actor, child, at, go, table, patience)
    strike(actor)
    if "rename" in actor and (code := command("resume", str(table)).returncode):
        yield f"resume ended with {code}"
    if actor == "jvm in a frame" and files(table):
        yield f"a request that was cut has been begun: {files(table)}"
    if actor != "jvm in a frame" and (len(files(table)) != _FILES or leftovers(table)):
        yield f"the table has {files(table)} and {leftovers(table)}"


def _struck(
    actor: str, child: Child, at: Path, go: Path, table: Path, patience: float
) -> Iterator[str]:
    while not at.exists():
        time.sleep(0.01)
    if actor == "jvm at a rename":
        yield from _ended(child, go, table, patience)
    elif actor == "child at a rename":
        child.process.send_signal(signal.SIGKILL)
        child.wait()
    else:  # the answer is in the pipe, and nobody reads it
        go.touch()
        while leftovers(table):
            time.sleep(0.01)
        yield from _ended(child, go, table, patience)


def _ended(child: Child, go: Path, table: Path, patience: float) -> Iterator[str]:
    """End the input; a child that does not end with it is let go on, and found."""
    before = files(table)
    assert child.process.stdin is not None
    child.process.stdin.close()
    end = time.monotonic() + patience
    while child.process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    go.touch()
    if (code := child.process.poll()) != GONE:
        yield f"the child has not ended with its input: {code}"
        return
    if files(table) != before:
        yield "something was begun after the end of the input"


def test_whoever_dies_the_table_is_whole(tmp_path: Path) -> None:
    """Each actor strikes, at a byte or a rename of its seed."""
    with counted() as strikes:
        for seed in range(amount("ASYNCCOMMIT_SEEDS", quick=4, full=12)):
            (scratch := tmp_path / str(seed)).mkdir()
            assert [*problems(scratch, seed)] == [], f"seed {seed}"

    assert set(strikes) >= {*_ACTORS}


def test_a_child_that_outlives_its_jvm_is_found(tmp_path: Path) -> None:
    """A planted fault: an engine that does not end with its input."""
    assert any("not ended" in line for line in problems(tmp_path, 1, _DEAF, 1))
