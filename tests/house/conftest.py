"""Syntax trees of the whole package, for the rules only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.house.trees import parsed


@pytest.fixture(scope="package", autouse=True)
def _forgotten_trees() -> Iterator[None]:
    """Drop the trees after the last rule: the collector of garbage would visit all of them."""
    yield
    parsed.cache_clear()
