"""The cells: the page made of their results, the effects that they must have, and one that runs."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.field import __main__ as runner
from tests.field import effects, events, programs, results
from tests.field.belongings import LOADS
from tests.field.cells import CELLS, LOCAL, Cell, run_cell
from tests.field.environments import LINES, NEWEST, Environment, environment, installed_line
from tests.field.place import PROTOCOL, Place, TooLongError
from tests.field.starts import run_cells

OUTPUT = "8 files of 2 tasks are visible in file:/data/flights\n"
PROCESS = "17@here"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place where an application has had every effect that it must have."""
    jar = tmp_path / "user.jar"
    made = Place(tmp_path, Environment(Path(sys.executable)), LOCAL, (jar, jar), timeout=1)
    for name in ("flights", "threads", "batches"):
        write(tmp_path / name, [dict(row) for row in effects.TABLES[name]])
    classes = [{"name": name, "process": PROCESS} for name in (PROTOCOL, LOADS)]
    write(tmp_path / "classes", classes)
    dests = [f"file:{tmp_path}/{name}" for name in effects.OURS if name != "again"]
    found = {"active": True, "master": LOCAL, "version": LINES[NEWEST], "rows": 1000}
    found |= {"reports": [[dest, 2] for dest in dests], "last": dests[-1], "process": PROCESS}
    (tmp_path / "found.json").write_text(json.dumps(found))
    return made


def write(table: Path, rows: list[dict[str, Any]]) -> None:
    """Write a table of one file."""
    table.mkdir(exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows), table / "part-0.parquet")


def change(place: Place, **changes: Any) -> None:
    """Change what the application has found."""
    path = place.folder / "found.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_an_application_with_every_effect_has_no_problem(place: Place) -> None:
    """Nothing is missed of an application that has done everything."""
    assert effects.problems(place, [], OUTPUT) == []


def test_other_rows_are_seen(place: Place) -> None:
    """A row more, a row fewer and a leftover are problems of their table."""
    write(place.folder / "flights", [dict(row) for row in effects.TABLES["flights"][:-1]])
    write(place.folder / "threads", [{"id": 0, "n": 0}] * 110)
    (place.folder / "batches/_temporary/0").mkdir(parents=True)

    found = effects.problems(place, [], OUTPUT)

    assert [line.partition(" ")[0] for line in found] == ["flights", "threads", "batches"]


@pytest.mark.parametrize(
    "changes,said",
    [
        ({"active": False}, "is not configured"),
        ({"master": "local[*]"}, "the master is local[*]"),
        ({"version": "2.4.8"}, "Spark is 2.4.8"),
        ({"rows": 999}, "Spark has read 999 rows"),
        ({"process": "18@here"}, "tasks have run in"),
        ({"last": None}, "the last report is of None"),
        ({"reports": [["file:/data/flights", 2]]}, "no report of the job that wrote batches"),
        ({"reports": [["file:/data/before", 2]]}, "a report of a job before configure"),
    ],
)
def test_other_findings_are_seen(place: Place, changes: dict[str, Any], said: str) -> None:
    """A session that is not configured, a job without a report and a wrong process are problems."""
    change(place, **changes)

    assert said in "\n".join(effects.problems(place, [], OUTPUT))


def test_a_class_that_no_task_has_loaded_is_seen(place: Place) -> None:
    """A jar that does not reach the tasks is a problem, and so is a missing table of a start."""
    write(place.folder / "classes", [{"name": PROTOCOL, "process": PROCESS}])

    loaded, *_ = found = effects.problems(place, ["again"], OUTPUT)

    assert any(f"expected ['{PROTOCOL}', '{LOADS}']" in line for line in found), loaded
    assert any(line.startswith("again has other rows: 0") for line in found)


def test_an_application_that_ends_early_is_seen(place: Place) -> None:
    """An application without findings has a problem, whatever its exit code."""
    (place.folder / "found.json").unlink()

    assert effects.problems(place, [], "") == ["the program has not reached its end"]


def test_a_module_from_elsewhere_is_seen(place: Place) -> None:
    """With ``--py-files`` the package must be the zip, and tasks must import the user's module."""
    place.given["module"] = "helper"
    change(place, package="/site-packages/asynccommit/__init__.py", tasks=[[0, "", "/usr"]])

    found = effects.problems(place, [], OUTPUT)

    assert [line.partition(" /")[0] for line in found][:1] == ["the package was imported from"]
    assert len(found) == 2


def test_a_notebook_that_runs_out_of_time_is_told_apart(place: Place) -> None:
    """A notebook that a run's last fraction of a second ends has not failed."""
    place.timeout = 0.5

    with pytest.raises(TooLongError):
        asyncio.run(run_cells(place, ["import time; time.sleep(60)"]))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_readmes_example_runs_under_spark_submit() -> None:
    """The example of README is an application that ``spark-submit`` runs as it is."""
    run_cell(Cell("submit", installed_line(), LOCAL), environment(installed_line()))


def test_starts_with_another_call_are_made_from_the_example() -> None:
    """Each variation of README's example differs from it by one call, so the example is in use."""
    example = programs.example().splitlines()
    for made in (
        programs.example_of_running(),
        programs.example_without_call(),
        programs.example_with_package(),
        programs.example_with_store(),
    ):
        assert len(set(made.splitlines()) ^ set(example)) == 2


def test_page_is_that_of_the_results() -> None:
    """The page says what the file of results says, and each cell of the table has passed."""
    recorded = results.read_results(results.RECORDED)

    assert results.PAGE.read_text("utf-8") == results.page(recorded)
    assert recorded.keys() == {cell.name for cell in CELLS}
    assert {result.outcome for result in recorded.values()} == {"yes"}


def test_a_run_without_time_begins_no_cell(capsys: pytest.CaptureFixture[str]) -> None:
    """A run whose time is up says how many cells it has not reached, and has not failed."""
    assert runner.main(["--minutes", "0", "--again"]) == 0

    assert f", {len(CELLS)} not reached" in capsys.readouterr().out


def test_a_run_of_minutes_has_a_draw_of_events() -> None:
    """A run that may not reach every cell begins with one draw; the others, and YARN, are last."""
    first, *rest = runner._chosen(runner._parser().parse_args(["--minutes", "5"]))

    assert first.has_events
    assert [cell.has_events for cell in rest] == sorted(cell.has_events for cell in rest)
    assert rest[-1].has_events


def test_a_cell_is_chosen_by_its_name_or_by_parts_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A whole name chooses one cell, though it is a part of another's."""
    name = Cell("submit", NEWEST, LOCAL).name

    for names, count in (([name], 1), (["submit", NEWEST], 2)):
        assert runner.main([*names, "--minutes", "0", "--again"]) == 0
        assert f", {count} not reached" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        runner.main(["submit", "yarn"])


@pytest.mark.parametrize(
    "name, late",
    [
        ("_temporary/", True),
        ("_temporary/id/", True),
        ("_temporary/id/00/tasks/attempt/part.parquet", True),
        ("_temporary/id/00/manifests/task-manifest.json", True),
        ("_temporary/id/00/commit-record.json", False),
        ("_temporary/id/00/commit-epoch-000001/", False),
        ("_temporary/id/00/alive/", False),
        ("_temporary/id/00.committed/tasks/", False),
    ],
)
def test_only_what_tasks_make_may_be_left_of_an_event(name: str, late: bool) -> None:
    """Files of tasks may come after the end of a job; those of a driver or a clean-up may not."""
    assert (events.IS_LATE.fullmatch(name) is not None) is late


def test_results_of_changed_files_are_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results that no commit can repeat are refused, and the file of results stays as it was."""
    own = {CELLS[0].name: results.Result("yes", "0123456+changes", "2026-11-26", 9)}
    results.write_results(tmp_path / "results.json", own)
    monkeypatch.setattr(runner, "_OWN", tmp_path / "results.json")
    before = results.RECORDED.read_text("utf-8")

    assert runner.main(["--record"]) == 1
    assert CELLS[0].name in capsys.readouterr().err
    assert results.RECORDED.read_text("utf-8") == before
