"""The manual page."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Command
from tests.support.command_tree import leaves


def test_page_has_every_command_and_option(command: Command) -> None:
    """Each command that the help lists has a section, and each of its options an item."""
    assert command("man") == 0
    text = command.out.replace("\\-", "-")

    for words, one in leaves():
        if one.hidden:
            continue
        assert f".SS {' '.join(words)}" in text
        for option in one.params:
            assert option.param_type_name == "argument" or f"\\fB{option.opts[0]}\\fR" in text


def test_page_has_the_sections_of_a_manual(command: Command) -> None:
    """The sections are those of man-pages(7), in their order."""
    command("man")

    sections = [line[4:] for line in command.out.splitlines() if line.startswith(".SH ")]
    assert sections == [
        *("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "COMMON OPTIONS"),
        *("EXIT STATUS", "ENVIRONMENT"),
    ]
    assert command.out.startswith(".TH ASYNCCOMMIT 1 ")


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_reads_it_without_a_warning(command: Command, tmp_path: Path) -> None:
    """``man`` formats the page and finds nothing to warn about."""
    command("man")
    (tmp_path / "asynccommit.1").write_text(command.out, "utf-8")

    done = subprocess.run(
        ["man", "--warnings", "-l", str(tmp_path / "asynccommit.1")],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )

    assert done.stderr == ""
    assert "--trust-manifests" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
