"""``doctor`` prints a table or JSON, and exits with 3 if there is a problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Command


def test_a_sound_machine_and_place(command: Command, tmp_path: Path) -> None:
    """Every check is a line; with ``--write`` the destination is tried."""
    assert command("doctor", tmp_path) == 0
    assert "Python" in command.out
    assert "no overwrite" not in command.out
    found = command.json("doctor", tmp_path, "--write")
    assert (found["code"], found["ok"]) == (0, True)
    assert "no overwrite" in {check["name"] for check in found["checks"]}


def test_a_problem_has_an_exit_code(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java that is too old is a problem, and so is a store that cannot be reached."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text("#!/bin/sh\necho 'java version \"11.0.2\"' >&2\n")
    (tmp_path / "bin/java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert command("doctor") == 3
    assert "install Java 17" in command.out


def test_a_url_without_a_store_is_named(command: Command) -> None:
    """A scheme without a store is a problem, with the schemes that there are."""
    found = command.json("doctor", "ftp://host/x")
    assert found["code"] == 3
    assert "no store for ftp" in found["checks"][-1]["found"]
