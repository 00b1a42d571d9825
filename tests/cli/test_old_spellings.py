"""Old spellings of commands and options work, and name the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.cli.old_spellings import COMMANDS, OPTIONS, modernized
from tests.cli.support import Command
from tests.support.command_tree import every_command, leaves


@pytest.mark.parametrize("old, new", COMMANDS.items())
def test_an_old_command_works(command: Command, old: str, new: tuple[str, ...]) -> None:
    """An old command does what the new one does, and one line to stderr says the new one."""
    assert command(*new, "--help") == 0
    shown = command.out

    assert command(old, "--help") == 0
    assert command.out == shown
    assert command.err == (
        f"warning: `{old}` is deprecated and goes in the next version; use `{' '.join(new)}`\n"
    )


def test_old_commands_are_hidden() -> None:
    """No help lists an old command, and every new one exists."""
    names = {words for words, _ in every_command()}

    assert {(old,) for old in COMMANDS} & names == set()
    assert set(COMMANDS.values()) <= {words for words, _ in leaves()}


@pytest.mark.parametrize(
    "old, new",
    [
        ("uploads abort s3://b/t --job j --yes", "uploads abort s3://b/t --job-id j --yes"),
        ("uploads abort s3://b/t --job=j", "uploads abort s3://b/t --job-id=j"),
        ("mv --undo /t/journal", "mv --rollback /t/journal"),
        ("simulate --latency-ms 30", "simulate --latency 30ms"),
        ("simulate --latency-ms=10-50 --json", "simulate --latency=10ms-50ms --json"),
        ("simulate --latency-ms", "simulate --latency"),
    ],
)
def test_an_old_option_is_renamed(old: str, new: str) -> None:
    """An old option becomes the new one with the same meaning, and one note says so."""
    words, notes = modernized(old.split())

    assert words == new.split()
    assert len(notes) == 1


def test_old_options_are_hidden() -> None:
    """No command lists an old option, and each has the new one."""
    options = {
        words: {name for option in command.params for name in option.opts}
        for words, command in leaves()
    }

    for (words, old), (new, _) in OPTIONS.items():
        assert old not in options[words]
        assert new in options[words]


def test_every_command_has_the_common_options() -> None:
    """``--json``, ``--quiet`` and ``--debug`` are options of every command."""
    for words, command in leaves():
        options = {name for option in command.params for name in option.opts}

        assert {"--json", "--quiet", "-q", "--debug"} <= options, words


def test_json_stays_json(command: Command, tmp_path: Path) -> None:
    """The note of an old command leaves standard output to the JSON value."""
    assert command.json("mr-status", tmp_path)["jobs"] == []
    assert "use `mapreduce status`" in command.err
    assert command("--json", "mr-status", tmp_path) == 0


@pytest.mark.parametrize(
    "args", [("status", "hive-dedup"), ("commit", "t", "--mode", "append"), ()]
)
def test_new_spellings_stay(args: tuple[str, ...]) -> None:
    """A command line without old spellings is left alone, also where a path is named like one."""
    assert modernized(args) == (list(args), [])


def test_demo_is_the_local_one(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a sub-command ``demo`` runs ``local``, with its options."""
    seen: list[bool] = []

    def stop(*args: object, big: bool, **how: object) -> None:
        seen.append(big)
        raise KeyboardInterrupt

    monkeypatch.setattr("asynccommit.demo.run", stop)

    assert command("demo") == 130
    assert command("demo", "--big") == 130
    assert command("demo", "local", "--big") == 130
    assert seen == [False, True, True]
