"""A store that is written by the page "How to add a store" keeps the contract."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asynccommit import open_job, open_store
from asynccommit.stores import registry
from asynccommit.stores.base import Store
from tests.support.contract import RULES, Rule, name_of
from tests.support.new_store.models.memory.model import MemoryModel

ROOT = Path(__file__).parents[2]
ROW = "tests.support.new_store.stores.memory.store.MemoryStore"
PLACES = (
    "asynccommit/stores",
    "asynccommit/testing/models",
    "asynccommit/testing/emulators",
    "tests/stores",
)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> MemoryModel:
    """The service of the throw-away store, whose scheme is a line in the table."""
    monkeypatch.setattr(registry, "STORES", {**registry.STORES, "memory": ROW})
    return MemoryModel()


@pytest.fixture
async def store(service: MemoryModel) -> AsyncIterator[Store]:
    """The throw-away store, opened by its scheme."""
    options = {"service": service}
    async with open_store("memory://bucket/", storage_options=options) as opened:
        await opened.mkdir("/t")
        yield opened


@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: Store) -> None:
    """The throw-away store keeps the rule."""
    await rule(store, "/t")


async def test_job_commits_to_a_new_store(service: MemoryModel) -> None:
    """A job commits to the throw-away store though nothing but the table knows of it."""
    options = {"service": service}
    async with (
        open_job("memory://bucket/t", storage_options=options) as job,
        job.task(0) as task,
    ):
        await task.put("day=1/part-0.csv", b"AA,JFK\n")

    files = sorted(path for path, node in service.nodes.items() if node.data is not None)
    assert files == ["/t/_SUCCESS", "/t/day=1/part-0.csv"]


@pytest.mark.parametrize("place", PLACES)
def test_page_lists_files_that_stores_have(place: str) -> None:
    """Each file that the page lists for a folder is there for one of the stores at least."""
    files = _listed(place)

    assert files
    assert [file for file in files if not [*(ROOT / place).glob(f"*/{file}")]] == []


@pytest.mark.parametrize("place", ["asynccommit/stores", "asynccommit/testing/models"])
def test_new_store_is_written_by_the_page(place: str) -> None:
    """The throw-away store has the files that the page says every store needs, and no others."""
    folder = ROOT / "tests/support/new_store" / place.rpartition("/")[2] / "memory"

    assert {path.name for path in folder.glob("*.py")} == {*_listed(place, needed=True)}


def _listed(place: str, *, needed: bool = False) -> list[str]:
    """Return the files that the page lists for a folder of a store, or those in bold."""
    text = (ROOT / "docs/stores.md").read_text("utf-8")
    page = text.partition("## How to add a store\n")[2].partition("\n## ")[0]
    section = page.partition(f"### `{place}/NAME`")[2].partition("\n### ")[0]
    bold = r"\*\*" if needed else r"\**"
    return re.findall(rf"^\| {bold}`(\w+\.py)`", section, re.MULTILINE)
