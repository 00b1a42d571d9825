"""The demo on S3: what it needs, what it starts, how it counts, and all of it on one month."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from asynccommit.cli import main
from asynccommit.cli.commands.demo import demo_s3
from asynccommit.demo import (
    S3,
    S3_WEATHER,
    BucketOutcome,
    BucketSide,
    Copied,
    Killed,
    Overwritten,
    StoreBehaviour,
    s3,
)
from asynccommit.demo.moto import serving_moto
from asynccommit.demo.s3 import BUCKET, emulated
from asynccommit.errors import AsyncCommitError, UnsupportedError
from asynccommit.results import JobReport
from asynccommit.runtime.cells import to_text
from tests.support.schemas import check

SIDE = BucketSide(
    url="s3a://flights/t",
    files=4,
    task_commit=1.0,
    job_commit=8.0,
    write=20.0,
    requests={"complete_upload": 4, "head": 90},
    refused=0,
    lost=0,
    left=0,
    rows=10,
    content="-17",
)
DONE = JobReport("job", "s3a://x", files=4, success="s3a://x/_SUCCESS")
OUTCOME = BucketOutcome(
    store=S3,
    rows=10,
    content="-17",
    theirs=SIDE,
    ours=replace(SIDE, job_commit=0.5, requests={"complete_upload": 5, "list": 42}, lost=2),
    copied=Copied(files=3, copies=6, job_commit=7.0),
    report=replace(DONE, recovered={"complete_upload": 2}),
    trial=None,
    overwritten=Overwritten("month=1/day=1", 3.0, 1, True, True),
    killed=Killed("s3a://flights/killed", 2, 2.0, replace(DONE, resumed=True), True),
    left=0,
    uploads=0,
    weather=StoreBehaviour(lost="5%"),
    log="/log",
)


@pytest.mark.parametrize(
    "changes",
    [
        {"ours": replace(OUTCOME.ours, content="-18")},
        {"ours": replace(OUTCOME.ours, rows=9)},
        {"theirs": replace(OUTCOME.theirs, rows=11)},
        {"ours": replace(OUTCOME.ours, files=5)},
        {"theirs": replace(OUTCOME.theirs, files=5)},
        {"ours": replace(OUTCOME.ours, lost=3)},
        {"ours": replace(OUTCOME.ours, lost=1)},
        {"overwritten": replace(OUTCOME.overwritten, right=False)},
        {"overwritten": replace(OUTCOME.overwritten, untouched=False)},
        {"killed": replace(OUTCOME.killed, right=False)},
        {"killed": replace(OUTCOME.killed, visible=0)},
        {"killed": replace(OUTCOME.killed, visible=4)},
        {"killed": replace(OUTCOME.killed, report=DONE)},
        {"left": 1},
        {"uploads": 1},
        {"report": replace(OUTCOME.report, success=None)},
    ],
    ids=str,
)
def test_nothing_is_proven_by_halves(changes: dict[str, Any]) -> None:
    """Each check can fail alone, and then the whole does."""
    assert OUTCOME.proven
    outcome = replace(OUTCOME, **changes)

    assert not outcome.proven
    assert to_text(outcome.table()).count("\nNO ") == 1
    assert outcome.to_json()["proven"] is False


def test_table_compares() -> None:
    """The table has each operation of both sides, the times, the checks and the rest."""
    text = to_text(OUTCOME.table())

    words = [line.split() for line in text.splitlines()]
    assert ["lost", "responses", "none", "2", "(5%)"] in words
    assert ["requests", "94", "47", "2.0x", "less"] in words
    assert words[4:7] == [["complete_upload", "4", "5"], ["head", "90", "0"], ["list", "0", "42"]]
    assert ["job", "commit", "8.00", "s", "500", "ms", "16.0x", "less"] in words
    assert "3 files by 6 copies, job commit 7.00 s" in text
    assert "overwrite of month=1/day=1" in text
    assert "its job was done" in text
    assert text.count("\nyes  ") == len(OUTCOME.checks) == 7


def test_error_of_the_other_committer_is_shown() -> None:
    """Where its job fails when answers are lost, the table has the first cause."""
    assert "NoSuchUpload" in to_text(replace(OUTCOME, trial="NoSuchUpload: gone").table())


def test_defaults_of_the_command_are_those_of_the_function() -> None:
    """What the command does without options is what ``run_on_s3`` does without arguments."""
    default = {name: one.default for name, one in signature(demo_s3).parameters.items()}

    assert StoreBehaviour(default["latency"], default["limit"], default["lost"]) == S3_WEATHER


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without moto there is one message that says what to install, and nothing is begun."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("asynccommit.demo.flights.find_flights", lambda: tmp_path)
    monkeypatch.setattr(
        "asynccommit.demo.moto.find_spec", lambda name: None if name == "moto" else 1
    )

    assert main(["demo", "s3"]) == 2
    assert "pip install 'moto[server]>=5.1'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(120)  # on a busy machine moto takes ten seconds to start
def test_server_and_proxy_of_the_demo(tmp_path: Path) -> None:
    """They run for as long as the block; what the proxy passes on can be seen in moto."""
    pytest.importorskip("moto")
    with emulated(S3_WEATHER, tmp_path) as (moto, proxy):
        for method, place in (("PUT", "t/a"), ("PUT", "u/b"), ("POST", "t/c?uploads")):
            _ask(f"{proxy.endpoint}/{BUCKET}/{place}", method)
        [(key, _)] = moto.objects(BUCKET, "t/").items()
        assert (key, moto.uploads(BUCKET, "t/"), moto.uploads(BUCKET, "u/")) == ("t/a", ["t/c"], [])
        assert proxy.stats()["requests"] == {"put": 2, "create_upload": 1}

    for url in (moto.url, proxy.endpoint):
        with pytest.raises(OSError, match="refused"):
            _ask(url, "GET")


def _ask(url: str, method: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, b"x", method=method), timeout=30).close()


def test_server_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the log, where its last words are."""
    broken, log = tmp_path / "broken", tmp_path / "log"
    broken.write_text("#!/bin/sh\necho no moto >&2\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))

    with pytest.raises(AsyncCommitError, match=str(log)), serving_moto(log):
        pass
    assert log.read_text() == "no moto\n"


@pytest.mark.every(3, 0)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_demo_on_one_month(tmp_path: Path) -> None:
    """Spark's tasks upload through S3A, committed both ways; ours survives what it meets."""
    pytest.importorskip("moto")
    try:
        s3.client_jars()
        s3.committers_jar()
    except UnsupportedError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "asynccommit", "demo", "s3", "--month", "2", "--json"]
    done = subprocess.run([*command, "--lost", "20%"], capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    check("demo", said)
    assert said["proven"], said["checks"]
    assert said["report"]["recovered"]["complete_upload"] > 0
    assert (said["rows"], said["ours"]["files"], said["hadoop"]["files"]) == (24_951, 112, 112)
    assert said["hadoop"]["requests"].get("copy", 0) == 0
    assert os.listdir(tmp_path) == ["demo-out"]
