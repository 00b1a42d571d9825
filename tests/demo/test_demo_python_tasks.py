"""The demos of Python tasks: on a directory bucket of S3, and on a flat account of Azure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from asynccommit.cli.commands.demo import demo_azure_flat, demo_s3_express
from asynccommit.demo import (
    ResumedOutcome,
    StoreBehaviour,
    run_on_azure_flat,
    run_on_s3_express,
)
from asynccommit.demo.azure_flat import AZURE_FLAT_WEATHER
from asynccommit.demo.s3_express import EXPRESS_WEATHER
from asynccommit.errors import OptionError
from asynccommit.runtime.cells import to_text
from tests.support.schemas import check

OUTCOME = ResumedOutcome(
    files=1000,
    visible=252,
    committed=1000,
    exact=True,
    changes="block lists",
    lost=41,
    leftovers=0,
    seconds=3.25,
    requests={"tasks": {"Put Block": 1000}, "resume": {"Put Block": 2, "Put Block List": 1748}},
    log="/logs/emulator.log",
)


@pytest.mark.more
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "run, change",
    [(run_on_s3_express, "rename"), (run_on_azure_flat, "Put Block List")],
    ids=["s3-express", "azure-flat"],
)
def test_a_killed_driver_leaves_a_commit_that_another_process_ends(
    tmp_path: Path, blockbuster: BlockBuster, run: Callable[..., ResumedOutcome], change: str
) -> None:
    """Every check of the demo passes, with responses that were lost meanwhile."""
    blockbuster.deactivate()  # a store's first request imports its client, which reads files
    said: list[str] = []
    found = run(tmp_path / "logs", say=said.append)
    assert found.proven, found.checks
    assert found.lost > 0
    sent = {who: counts.get(change, 0) for who, counts in found.requests.items()}
    assert found.visible <= sent["killed driver"] < found.files
    assert found.files <= sent["killed driver"] + sent["resume"]
    assert "it was killed" in said[-1]


def test_findings_say_what_was_seen_and_what_it_took() -> None:
    """As text and as JSON: the files, and each one's requests with their sum."""
    lines = [line.split() for line in to_text(OUTCOME.table()).splitlines()]

    assert ["visible", "after", "resume", "1,000,", "in", "3.2", "s"] in lines
    assert ["block", "lists", "whose", "response", "was", "lost", "41"] in lines
    assert ["Put", "Block", "List", "0", "1,748"] in lines
    assert ["in", "all", "1,000", "1,750"] in lines
    assert OUTCOME.proven
    check("demo", {**OUTCOME.to_json(), "schema_version": 1})


@pytest.mark.parametrize(
    "wrong", [{"visible": 1000}, {"committed": 999}, {"exact": False}, {"leftovers": 1}], ids=str
)
def test_what_went_wrong_is_a_check_that_failed(wrong: dict[str, Any]) -> None:
    """A driver killed too late, a file that lacks or differs, and what is left of the job."""
    found = replace(OUTCOME, **wrong)

    assert list(found.checks.values()).count(False) == 1
    assert not found.proven


@pytest.mark.parametrize(
    "command, weather",
    [(demo_s3_express, EXPRESS_WEATHER), (demo_azure_flat, AZURE_FLAT_WEATHER)],
)
def test_defaults_of_a_command_are_those_of_its_function(
    command: Callable[..., None], weather: StoreBehaviour
) -> None:
    """A command without options does the same as its function without arguments."""
    default = {name: one.default for name, one in signature(command).parameters.items()}

    assert StoreBehaviour(default["latency"], default["limit"], default["lost"]) == weather


@pytest.mark.parametrize("run", [run_on_s3_express, run_on_azure_flat])
def test_a_directory_of_somebody_else_is_refused(
    tmp_path: Path, run: Callable[..., ResumedOutcome]
) -> None:
    """A directory with files is not written to, and no emulator is started."""
    (tmp_path / "mine.txt").touch()

    with pytest.raises(OptionError, match="is not empty"):
        run(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
