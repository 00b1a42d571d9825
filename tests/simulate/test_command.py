"""``asynccommit simulate``: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asynccommit.cli import main
from asynccommit.cli.output import Exit
from asynccommit.commit.meter import OnProgress

SMALL = ("--files", "2_000", "--tasks", "10", "--partitions", "4")


def test_it_says_what_a_commit_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """The response is on standard output, for people."""
    assert main(["simulate", *SMALL, "--faults", "lossy", "--seed", "3"]) == Exit.DONE

    out = capsys.readouterr().out
    assert out.startswith("a commit of 2,000 files of 10 tasks in 4 partitions takes ")
    assert "adls, 30 ms a response, 20,000 requests/s, 512 in flight, faults lossy, seed 3" in out
    assert "done, and the response lost" in out


def test_json_is_one_value(capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--json`` standard output holds one value, the same for the same seed but for speed."""
    values = []
    for _ in range(2):
        assert main(["simulate", *SMALL, "--json", "--quiet"]) == Exit.DONE
        value = json.loads(capsys.readouterr().out)
        values.append({k: v for k, v in value.items() if k not in _OF_THE_MACHINE})

    assert values[0] == values[1]
    assert values[0]["requests"]["rename"] > 1_500
    assert values[0]["extrapolated"] is False


_OF_THE_MACHINE = {"memory", "real_seconds", "simulated"}


@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize(
    "store, said",
    [("gcs", "gcs, 30 ms a response, 1,000 writes/s"), ("gcs-hns", "8,000 writes/s at first, 256")],
)
def test_a_bucket_shows_what_its_ramp_costs(
    capsys: pytest.CaptureFixture[str], store: str, said: str
) -> None:
    """On Google Cloud Storage it says what it would be on a bucket that takes any rate."""
    assert main(["simulate", *SMALL, "--store", store, "-q", "--json"]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert main(["simulate", *SMALL, "--store", store]) == Exit.DONE
    out = capsys.readouterr().out

    assert said in out
    assert "the rate may at most double every 20 min" in out
    assert told["unlimited"]["seconds"] > 0
    assert told["requests"]["move"] == 2_001


def test_a_namenode_has_a_lock_and_no_ramp(capsys: pytest.CaptureFixture[str]) -> None:
    """On HDFS the changes of a NameNode are the limit, and nothing is compared."""
    assert main(["simulate", *SMALL, "--store", "hdfs", "-q", "--json"]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert main(["simulate", *SMALL, "--store", "hdfs", "--limit", "5_000"]) == Exit.DONE
    out = capsys.readouterr().out

    assert told["unlimited"] is None
    assert (told["setup"]["limit"]["rate"], told["setup"]["in_flight"]) == (18_000, 64)
    assert "hdfs, 2 ms a response, 5,000 changes/s, 64 in flight" in out


def test_a_large_job_is_extrapolated(capsys: pytest.CaptureFixture[str]) -> None:
    """A job beyond the bound says so, in the text and to programs."""
    large = ["simulate", "--files", "10_000_000", "--tasks", "50_000", "--exact", "3_000", "-q"]

    assert main(large[:-1]) == Exit.DONE
    assert "\nEXTRAPOLATED from " in capsys.readouterr().out
    assert main([*large, "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["extrapolated"] is True


def test_options_of_the_commit_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    """``-o`` is that of ``commit``; a key without effect is a warning."""
    options = ["-o", "asynccommit.rate=500", "-o", "mapreduce.manifest.committer.io.rate=3"]

    assert main(["simulate", *SMALL, *options, "--json"]) == Exit.DONE
    said = capsys.readouterr()
    assert json.loads(said.out)["setup"]["options"] == {"rate": 500.0}
    assert json.loads(said.out)["seconds"] > 2_000 / 500
    assert "warning: mapreduce.manifest.committer.io.rate has no effect" in said.err


@pytest.mark.parametrize(
    "args, message",
    [
        (["--files", "lots"], "--files is 'lots': expected a whole number"),
        (["--store", "s3"], "--store is 's3': expected adls, gcs, gcs-hns, hdfs"),
        (
            ["--store", "gcs", "--limit", "x"],
            "--limit is 'x': expected writes per second, such as 1_000",
        ),
        (["--faults", "hail"], "--faults is 'hail': expected one of none, lossy, throttled, storm"),
        (["--limit", "0"], "--limit is '0': expected requests per second"),
    ],
)
def test_a_bad_value_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    """A wrong value ends with 2, and the message names the option and the remedy."""
    assert main(["simulate", *args, "--json"]) == Exit.USAGE

    assert message in json.loads(capsys.readouterr().out)["message"]


def test_a_commit_that_fails_ends_with_its_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Weather in which no commit ends is a failure, with the commit's own message."""
    path = tmp_path / "weather.json"
    rule = {"kind": "before", "op": "rename", "path": "/day=", "code": "AuthorizationFailure"}
    path.write_text(json.dumps({"faults": [rule]}))

    assert main(["simulate", *SMALL, "--faults", str(path), "-q"]) == Exit.FAILED
    assert "AuthorizationFailure" in capsys.readouterr().err


def test_an_interrupted_simulation_leaves_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends with 130, and says that nothing is left to be cleaned."""

    def interrupted(setup: object, on_progress: OnProgress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("asynccommit.simulate.simulate", interrupted)

    assert main(["simulate", *SMALL]) == Exit.INTERRUPTED
    assert "a simulation leaves nothing" in capsys.readouterr().err
