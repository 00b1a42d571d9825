"""The commands that messages end with."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from asynccommit.commands import command, job_command, quoted
from asynccommit.job import Layout
from asynccommit.urls import Address


def test_a_job_is_named() -> None:
    """The job id is said, and the attempt if it is not the first."""
    dest = Address("abfs", "c@a.dfs.core.windows.net", "/t")

    assert job_command("resume", Layout(dest, "j")) == f"asynccommit resume {dest} --job-id j"
    assert job_command("abort", Layout(dest, "j", 2), "--rollback") == (
        f"asynccommit abort {dest} --job-id j --attempt 2 --rollback"
    )


@pytest.mark.parametrize("name", ["a b", "it's", "$HOME", "ö", "-rf", "a;b", "`x`", "a\\b"])
def test_words_are_quoted(name: str) -> None:
    """What to type goes through a shell unharmed, whatever the table is called."""
    dest = Address("file", "", f"/{name}")

    assert shlex.split(command("status", dest)) == ["asynccommit", "status", f"file:/{name}"]


@pytest.mark.parametrize("word", ["a\x1b[31m\n", "it's\t\\n", "\u202eturned", "\u200b"])
def test_what_cannot_be_seen_is_escaped(word: str) -> None:
    """It is written so that a terminal shows it and bash reads it as it was."""
    text = quoted(word)
    environment = {"LC_ALL": "C.UTF-8"}
    read = subprocess.run(
        ["bash", "-c", f"printf %s {text}"], capture_output=True, check=True, env=environment
    )

    assert text.isprintable()
    assert read.stdout.decode() == word
