"""Lists of files hold any name, and are read back exactly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit import OptionError
from asynccommit.cli.name_lists import ListedName, quote_name, read_list
from tests.cli.support import Command

NAMES = {
    "plain name.csv": "plain name.csv",
    "größe=1/ä": "größe=1/ä",
    "back\\slash": "back\\slash",
    '"quoted"': r'"\"quoted\""',
    "a\tb": r'"a\tb"',
    "a\nb\r": r'"a\nb\r"',
    "\x1b[31m\x85\u202e": r'"\033[31m\302\205\342\200\256"',
    "p\udcff\\": r'"p\377\\"',
}


async def _read(tmp_path: Path, text: str) -> list[ListedName]:
    (tmp_path / "list").write_text(text)
    return [line async for line in read_list(str(tmp_path / "list"))]


async def test_every_name_fits_into_a_line(tmp_path: Path) -> None:
    """A name that is not printable text is quoted as git quotes it, alone or with facts."""
    assert {name: quote_name(name) for name in NAMES} == NAMES
    lines = [f"{quote_name(name)}{facts}\n" for name in NAMES for facts in ("", "\t5\te", "\t\te")]

    found = await _read(tmp_path, "".join(lines))

    facts = ((None, None), (5, "e"), (None, "e"))
    assert found == [ListedName(name, *more) for name in NAMES for more in facts]


@pytest.mark.parametrize(
    "line",
    ["a\tb", "a\t5\te\tmore", "a\t\u0665", '"a', '"a"b', r'"a\9"', r'"a\777"', '"a"\tb'],
)
async def test_other_lines_are_refused(tmp_path: Path, line: str) -> None:
    """A line that is neither a name nor one with size and etag is named by its number."""
    with pytest.raises(OptionError, match="line 2: expected a name"):
        await _read(tmp_path, f"good\n{line}\n")


@pytest.mark.parametrize("columns", ["names", "tsv"])
def test_a_list_of_ls_names_the_same_files(command: Command, tmp_path: Path, columns: str) -> None:
    """Files with any names are moved, verified and deleted by it; look-alikes stay."""
    for name in NAMES:
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_text("x")
    listing = tmp_path / "list"
    assert command("ls", "-r", tmp_path / "t", "--format", columns) == 0
    listing.write_text(command.out)

    assert command("mv", tmp_path / "t", tmp_path / "u", "--from-file", listing) == 0
    assert command("verify", tmp_path / "u", "--from-file", listing) == 0
    assert sum(len(files) for _, _, files in os.walk(tmp_path / "u")) == len(NAMES)
    for name in ("p\\udcff\\", "a"):  # what a lossy list would name
        (tmp_path / "u" / name).write_text("y")
    assert command("rm", tmp_path / "u", "--from-file", listing) == 0
    left = [name for _, _, files in os.walk(tmp_path / "u") for name in files]
    assert sorted(left) == ["a", "p\\udcff\\"]


def test_a_list_with_a_tab_in_a_name_deletes_nothing(command: Command, tmp_path: Path) -> None:
    """``a<TAB>b`` is not ``a``: the list is refused, with all files kept."""
    for name in ("a", "b", "a\tb"):
        (tmp_path / name).write_text("x")
    (tmp_path / "list").write_text("b\na\tb\n")

    assert command("rm", tmp_path, "--from-file", tmp_path / "list") == 2
    assert "line 2" in command.err
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "a\tb", "list"}
