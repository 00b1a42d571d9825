"""A clock in the place of the loop's own."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.stack import Clock


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock in the place of the loop's own."""
    clock = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.time)
    return clock
