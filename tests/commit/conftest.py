"""A site to commit to, on the local store and on the model, and commits file by file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.commit.planning import whole_directories
from asynccommit.stores.local.store import LocalStore
from tests.support.commits import Site, open_site

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests of a site have one of the two in the quick selection, the other in the rest."""
    for item in items:
        if HERE not in item.path.parents or not hasattr(item, "callspec"):
            continue
        chosen = any(item.get_closest_marker(name) for name in ("full", "rotate", "sample"))
        if "site" in item.callspec.params and not chosen:
            item.add_marker(pytest.mark.rotate("site"))


@pytest.fixture(params=["local", "sim"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """An empty place, which local store and model must treat alike."""
    made = await open_site(request.param, tmp_path / "root")
    yield made
    await made.close()


@pytest.fixture
def reached_by_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have whole directories moved on a local disk too, as if nobody could have one open."""
    monkeypatch.setattr(LocalStore, "traits", replace(LocalStore.traits, handles=False))


@pytest.fixture
def files_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each file renamed, and no directory moved whole."""
    monkeypatch.setattr(whole_directories, "LEAST", 1_000_000)
