"""The command, for every test of it."""

from __future__ import annotations

import pytest

from tests.cli.support import Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command."""
    return Command(capsys)
