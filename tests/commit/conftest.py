"""A site to commit to, on the local store and on the model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.commits import Site, open_site


@pytest.fixture(params=["local", "sim"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """An empty place, which local store and model must treat alike."""
    made = await open_site(request.param, tmp_path / "root")
    yield made
    await made.close()
