"""``ls``, ``mv``, ``rm`` and ``verify``: files without a job."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from asynccommit import open_store
from asynccommit.cli import main
from asynccommit.runtime.concurrency import for_each
from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.pytest_plugin import adls_emulator_thread
from tests.cli.support import Command

__all__ = ["adls_emulator_thread"]

SLOW = Climate.from_json({"latency": 0.02})


def _write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def _names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def _said(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    code = main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return code, out, err


def test_ls_lists_one_level_or_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Directories end with a slash; the totals are on standard error."""
    _write(tmp_path, "a/b/c", "d")

    code, out, err = _said(capsys, "ls", tmp_path)
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()] == ["a/", "d"]
    assert err == "1 file, 1 B\n"
    code, out, _ = _said(capsys, "ls", "-r", "--format", "names", tmp_path)
    assert sorted(out.splitlines()) == ["a/b/c", "d"]
    code, out, _ = _said(capsys, "ls", "-r", "--format", "tsv", f"{tmp_path}/a/*")
    name, size, etag = out.rstrip("\n").split("\t")
    assert (name, size, bool(etag)) == ("b/c", "5", True)
    _, out, _ = _said(capsys, "ls", f"{tmp_path}/d", "--json")
    assert [entry["name"] for entry in json.loads(out)["entries"]] == ["d"]


def test_mv_moves_a_directory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """To the destination itself, or into it if it ends with a slash."""
    _write(tmp_path, "a/x", "b/y")

    assert _said(capsys, "mv", tmp_path / "a", tmp_path / "c")[0] == 0
    assert _said(capsys, "mv", tmp_path / "c", f"{tmp_path}/b/")[0] == 0
    assert _names(tmp_path) == {"b/y", "b/c/x"}


def test_mv_replaces_only_if_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file in the way is refused with the remedy; a dry run says so before."""
    _write(tmp_path, "a/x", "b/x")

    for more in ((), ("--dry-run",)):
        code, _, err = _said(capsys, "mv", tmp_path / "a", tmp_path / "b", *more)
        assert code == 3
        assert "--replace" in err
    assert _names(tmp_path) == {"a/x", "b/x"}
    assert _said(capsys, "mv", tmp_path / "a", tmp_path / "b", "--replace")[0] == 0
    assert (tmp_path / "b/x").read_text() == "a/x"


def test_mv_keeps_going(command: Command, tmp_path: Path) -> None:
    """With ``--keep-going`` all others are moved, and the exit code is 1."""
    _write(tmp_path, "a/x", "a/y", "b/x")

    told = command.json("mv", tmp_path / "a", tmp_path / "b", "-k")

    assert told["code"] == 1
    assert (told["done"], told["failed"]) == (1, 1)
    assert _names(tmp_path) == {"a/x", "b/x", "b/y"}


def test_patterns_and_lists_select_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern is relative to its fixed part, a list to the URL; a path that exists is literal."""
    _write(tmp_path, "in/p=1/a", "in/p=1/b", "in/p=2/a", "in/p=3/[a]", "in/p=3/a")
    pattern = f"{tmp_path}/in/p=[12]/a"

    assert "would move 2 files" in _said(capsys, "mv", pattern, tmp_path / "o", "--dry-run")[1]
    assert _said(capsys, "mv", pattern, tmp_path / "out")[0] == 0
    assert _names(tmp_path / "out") == {"p=1/a", "p=2/a"}
    assert _said(capsys, "rm", f"{tmp_path}/in/p=3/[a]")[0] == 0
    assert _names(tmp_path / "in") == {"p=1/b", "p=3/a"}

    (tmp_path / "list").write_text("p=1/b\n\np=3/a\t5\n")
    listed = ("--from-file", tmp_path / "list")
    assert _said(capsys, "mv", tmp_path / "in", tmp_path / "out", *listed)[0] == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("p=1/b\np=2/a\nnone\n"))
    code, out, _ = _said(capsys, "rm", tmp_path / "out", "--from-file", "-")
    assert code == 0
    assert "deleted 2 files\n1 file did not exist\n" in out
    assert _names(tmp_path / "out") == {"p=1/a", "p=3/a"}
    for args in (("rm", f"{tmp_path}/no*"), ("ls", f"{tmp_path}/no*"), ("rm", tmp_path / "no")):
        assert _said(capsys, *args)[0] == 5


@pytest.mark.parametrize("more", [(), ("--replace",), ("--journal",)])
def test_a_pattern_moves_each_file_once(
    command: Command, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """A destination below the pattern's directory is left out; the command again finds no file."""
    names = [f"d/{i}.csv" for i in range(300)]
    _write(tmp_path, *names, "d/archive/old.csv", "d/sub/0.csv")
    args = ("mv", f"{tmp_path}/d/*.csv", f"{tmp_path}/d/archive/")
    journal = [str(tmp_path / "journal")] * ("--journal" in more)

    told = command.json(*args, *more, *journal)

    assert (told["code"], told["done"]) == (0, 301)
    archived = {f"d/archive/{name[2:]}" for name in [*names, "d/sub/0.csv"]}
    assert _names(tmp_path) - {"journal"} == archived | {"d/archive/old.csv"}
    assert (tmp_path / "d/archive/0.csv").read_text() == "d/0.csv"
    assert command(*args) == 5
    assert "outside of" in command.err


def test_a_pattern_does_not_move_into_itself(command: Command, tmp_path: Path) -> None:
    """A file that would land where the pattern finds it again is refused with nothing moved."""
    _write(tmp_path, "d/sub/a.csv", "d/sub/sub/b.csv")

    assert command("mv", f"{tmp_path}/d/sub/*.csv", tmp_path / "d") == 2
    assert "--from-file" in command.err
    assert _names(tmp_path) == {"d/sub/a.csv", "d/sub/sub/b.csv"}


def test_rm_deletes_directories_only_if_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A directory needs ``--recursive``, and the root of the store is never deleted."""
    _write(tmp_path, "a/x", "a/y", "b")

    code, _, err = _said(capsys, "rm", tmp_path / "a")
    assert code == 2
    assert "--recursive" in err
    assert "would delete 2 files" in _said(capsys, "rm", "-r", tmp_path / "a", "--dry-run")[1]
    assert _said(capsys, "rm", tmp_path / "b")[0] == 0
    assert _said(capsys, "rm", "-r", tmp_path / "a")[1].startswith("deleted 1 whole directory\n")
    assert _names(tmp_path) == set()
    assert _said(capsys, "rm", "-r", "/")[0] == 2


def test_verify_tells_differences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The list of ``ls`` is verified; a missing and a changed file are named with exit code 3."""
    _write(tmp_path, "t/a", "t/b", "t/c")
    listing = tmp_path / "list"
    listing.write_text(_said(capsys, "ls", "-r", "--format", "tsv", tmp_path / "t")[1])
    verify = ("verify", tmp_path / "t", "--from-file", listing)
    assert "all are as expected" in _said(capsys, *verify)[1]

    (tmp_path / "t/a").unlink()
    (tmp_path / "t/b").write_text("longer than before")
    code, out, _ = _said(capsys, *verify)

    assert code == 3
    assert "1 missing, 1 changed:" in out
    assert f"{tmp_path}/t/b: size 18" in out
    listing.write_text("a\tmany\n")
    code, _, err = _said(capsys, *verify)
    assert code == 2
    assert "line 1" in err


def test_an_empty_list_is_noticed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It is no proof that all files are as expected."""
    (tmp_path / "list").touch()

    code, out, err = _said(capsys, "verify", tmp_path, "--from-file", tmp_path / "list")

    assert code == 0
    assert "list is empty: no file was compared" in err
    assert "as expected" not in out


def test_a_list_of_a_terminal_goes_to_its_file(tmp_path: Path) -> None:
    """Only standard error is a terminal: each line is in the file, and none on the terminal."""
    _write(tmp_path / "t", "a", "b")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "asynccommit", "ls", "--format", "names", str(tmp_path / "t")]
    with (tmp_path / "list").open("wb") as file:
        subprocess.run(command, stdout=file, stderr=theirs, stdin=theirs, check=True)
    os.close(theirs)
    os.close(ours)

    assert (tmp_path / "list").read_text() == "a\nb\n"


def test_a_list_that_cannot_be_read_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A missing list and one that is not text are usage errors; nothing is deleted."""
    _write(tmp_path, "a")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("none", "bytes"):
        code, _, err = _said(capsys, "rm", tmp_path, "--from-file", tmp_path / name)
        assert code == 2
        assert name in err
    assert (tmp_path / "a").exists()


def test_dots_lead_where_the_system_says(command: Command, tmp_path: Path) -> None:
    """``..`` after a link is the parent of its target; ``.`` and ``..`` are not taken."""
    _write(tmp_path, "near/x", "far/x", "far/deep/y", "near/a..b/../z")
    (tmp_path / "near/link").symlink_to(tmp_path / "far/deep")

    assert command("rm", f"{tmp_path}/near/link/../x") == 0
    assert command("mv", f"file:{tmp_path}/near/a..b/../z", f"{tmp_path}/near/link/../../n") == 0
    assert _names(tmp_path) == {"near/x", "far/deep/y", "n"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "far")
        for path in (".", "./", "deep/..", "deep/../", "../far/."):
            for args in (("rm", "-r", path), ("mv", path, tmp_path / "other")):
                assert command(*args) == 2
                assert "give its name" in command.err
    assert _names(tmp_path) == {"near/x", "far/deep/y", "n"}


@pytest.mark.parametrize("more", [(), ("--replace",)])
def test_an_alias_of_the_source_is_no_destination(
    command: Command, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """A directory that is moved to a link to itself stays, and nothing is reported as moved."""
    _write(tmp_path, "t/x", "t/y")
    (tmp_path / "alias").symlink_to(tmp_path / "t")

    told = command.json("mv", tmp_path / "t", tmp_path / "alias", *more)

    assert told["code"] == 3
    assert told["report"]["done"] == 0
    assert not told["report"]["recovered"]
    assert _names(tmp_path / "t") == {"x", "y"}


def test_a_hard_link_of_the_source_is_replaced(command: Command, tmp_path: Path) -> None:
    """Of a file with two names the old one goes, as ``mv`` does; without replacing both stay."""
    _write(tmp_path, "a")
    (tmp_path / "b").hardlink_to(tmp_path / "a")

    assert command("mv", tmp_path / "a", tmp_path / "b") == 3
    assert _names(tmp_path) == {"a", "b"}
    assert command("mv", tmp_path / "a", tmp_path / "b", "--replace") == 0
    assert _names(tmp_path) == {"b"}


def test_stores_cannot_be_mixed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A destination in another store is a usage error."""
    code, _, err = _said(capsys, "mv", tmp_path, "gs://bucket/x")
    assert code == 2
    assert "different stores" in err


def test_an_interrupted_move_is_finished_by_the_same_command(
    adls_emulator_thread: EmulatorThread, tmp_path: Path
) -> None:
    """SIGINT ends the command with 130 and advice that is true: the list has etags."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net"
    options = ("-s", f"connection_string={emulator.connection_string}")
    _fill(url, emulator.connection_string, 300)
    listing = tmp_path / "list"
    with open(listing, "w") as file:
        _run("ls", f"{url}/in", "--format", "tsv", *options, stdout=file)
    move = ("mv", f"{url}/in", f"{url}/out", "--from-file", str(listing), *options)

    emulator.do(lambda running: setattr(running.weather, "climate", SLOW))
    before = emulator.do(lambda running: running.weather.requests["rename"])
    running = subprocess.Popen(
        [sys.executable, "-m", "asynccommit", *move, "--max-concurrency", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not emulator.do(lambda running: running.weather.requests["rename"]) >= before + 3:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    emulator.do(lambda running: running.weather.clear())

    assert running.returncode == 130
    assert "run the same command again" in err
    assert main(list(move)) == 0
    assert main(["verify", f"{url}/out", "--from-file", str(listing), *options]) == 0


def _fill(url: str, connection_string: str, count: int) -> None:
    async def fill() -> None:
        async with open_store(
            url, storage_options={"connection_string": connection_string}
        ) as store:
            await store.mkdir("/in")
            await for_each(range(count), lambda it: store.put(f"/in/f{it}", b"x" * it), workers=32)

    asyncio.run(fill())


def _run(*args: str, stdout: IO[str]) -> None:
    subprocess.run([sys.executable, "-m", "asynccommit", *args], stdout=stdout, check=True)
