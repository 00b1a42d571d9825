"""Ranges of seeds add up to one result, and an actor that never strikes is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import simulator
from tests.crash.__main__ import main
from tests.crash.simulator import SIMULATIONS, Simulation, idle, run
from tests.support.strikes import strike


@pytest.mark.sample(3)
@pytest.mark.timeout(120)
@pytest.mark.parametrize("scenario", SIMULATIONS)
def test_every_actor_strikes(scenario: str) -> None:
    """In twenty seeds each danger of a simulation happens at least once, and nothing is found."""
    one = run(scenario, range(20))

    assert one.failures == ()
    assert idle([one]) == []


async def _odd(seed: int) -> list[str]:
    strike("weather")
    return [f"seed {seed}: odd"] if seed % 2 else []


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of results of two simulations, which find odd seeds."""
    simulations = {
        "first": Simulation(_odd, frozenset({"weather"})),
        "second": Simulation(_odd, frozenset({"weather", "thief"})),
    }
    monkeypatch.setattr(simulator, "SIMULATIONS", simulations)
    monkeypatch.setattr(simulator, "this_commit", lambda: "c1")
    return tmp_path / "build" / "seeds.jsonl"


def _said(capsys: pytest.CaptureFixture[str], results: Path, *arguments: str) -> tuple[int, str]:
    code = main([*arguments, "--results", str(results)])
    return code, capsys.readouterr().out


def test_ranges_of_one_commit_add_up(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeds of several runs count once each, and those of another commit not at all."""
    _said(capsys, results, "--seeds", "0:70", "first")
    _said(capsys, results, "--seeds", "60:100", "first")

    code, text = _said(capsys, results)
    assert code == 1
    assert "first: 100 seeds, 50 failures; strikes: weather 110" in text
    assert "seed 1: odd" in text

    monkeypatch.setattr(simulator, "this_commit", lambda: "c2")
    assert _said(capsys, results, "--seeds", "0:1", "first") == (
        0,
        "commit c2\nfirst: 1 seeds, 0 failures; strikes: weather 1\n",
    )


def test_an_actor_that_never_strikes_is_a_failure(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The summary names it, and the exit code is 1."""
    code, text = _said(capsys, results, "--seeds", "0:1")

    assert code == 1
    assert text.splitlines()[-1] == "second: thief never struck"


def test_a_simulation_that_does_not_exist_is_refused(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names those that exist, and nothing is run."""
    with pytest.raises(SystemExit):
        main(["--seeds", "0:1", "third"])

    assert "no simulation is named third: expected first, second" in capsys.readouterr().err
    assert not results.exists()


def test_the_commit_says_if_files_differ() -> None:
    """Results of changed files do not add up with those of the commit."""
    assert simulator.this_commit().removesuffix("-dirty").isalnum()
