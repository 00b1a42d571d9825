"""The help of every command: plain English that fits a terminal of 80 columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from asynccommit.cli import app
from tests.support.command_tree import every_command

EVERY = list(every_command())
NAMES = [" ".join(words) or "asynccommit" for words, _ in EVERY]

DENIED = (
    *("by and by", "gladly", "is none", "says no", "that is to", "of whom", "what is no"),
    *("Whose", "is wanted"),
)
VERB = re.compile(
    r"(Abort|Check|Clean up|Commit|Compare|Delete|Finish|List|Measure|Move|Predict|Repair|Serve"
    r"|Show|Take over|Write)\b"
)


@pytest.mark.parametrize("words", [words for words, _ in EVERY], ids=NAMES)
def test_help_fits_a_terminal(words: tuple[str, ...]) -> None:
    """No line of a help is longer than 80 columns, no frame is broken, no riddle is left."""
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"})
    lines = shown.output.splitlines()
    text = re.sub(r"[\s│]+", " ", shown.output)

    assert shown.exit_code == 0
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line.startswith("│") and not line.endswith("│")] == []
    assert re.findall(r"<.*?>", shown.output) == [], "a type of Python in place of a name"
    assert [phrase for phrase in DENIED if phrase in text] == []


@pytest.mark.parametrize("words, command", EVERY, ids=NAMES)
def test_summary_is_one_imperative_line(words: tuple[str, ...], command: Any) -> None:
    """The first line of a help is an instruction of at most 72 characters; none wraps."""
    summary, *rest = (command.help or "").splitlines()

    assert VERB.match(summary), summary
    assert summary.endswith(".")
    assert len(summary) <= 72
    assert [line for line in rest if len(line) > 78] == []


@pytest.mark.parametrize("words, command", EVERY, ids=NAMES)
def test_every_option_is_explained(words: tuple[str, ...], command: Any) -> None:
    """Each option and argument has a help that is a sentence."""
    for option in command.params:
        if option.name != "help":
            assert (option.help or "").endswith("."), option.name
            assert option.help[0].isupper() or option.help.startswith(("none", "adls"))


def test_an_option_says_the_same_everywhere() -> None:
    """An option that means the same in several commands has one help."""
    shared = {"url", "json", "quiet", "debug", "option", "storage_option", "committer", "outside"}
    helps: dict[str, set[str]] = {name: set() for name in (*shared, "dry_run", "yes", "port")}
    for _, command in EVERY:
        for option in command.params:
            if option.name in helps:
                helps[option.name].add(option.help or "")

    assert {name: texts for name, texts in helps.items() if len(texts) != 1} == {}


@pytest.mark.parametrize("words", [words for words, _ in EVERY], ids=NAMES)
def test_short_option_is_the_same_help(words: tuple[str, ...]) -> None:
    """``-h`` prints what ``--help`` prints, of each command and each group."""
    short, long = (CliRunner().invoke(app, [*words, option]) for option in ("-h", "--help"))

    assert (short.exit_code, short.output) == (0, long.output)


def test_shell_completes_commands_and_options() -> None:
    """What ``--install-completion`` installs asks for words, and gets those there are."""

    def complete(line: str) -> set[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        environment = {**os.environ, "_ASYNCCOMMIT_COMPLETE": "complete_bash", **words}
        command = [str(Path(sys.executable).with_name("asynccommit"))]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return {*done.stdout.split()}

    assert complete("asynccommit sta") == {"status"}
    assert "--adopt" in complete("asynccommit resume --a")


@pytest.mark.parametrize("words, command", EVERY, ids=NAMES)
def test_flag_names_no_value(words: tuple[str, ...], command: Any) -> None:
    """The help of a flag does not look as if the flag took a value; each value has a name."""
    options = command.get_params(command.context_class(command))
    flags = [one for one in options if getattr(one, "is_bool_flag", False)]
    values = [one for one in options if one not in flags]

    assert [one.name for one in flags if one.metavar != ""] == []
    assert [one.name for one in values if one.metavar is None] == []
