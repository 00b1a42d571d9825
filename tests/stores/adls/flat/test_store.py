"""The store of a flat account against the emulator: the contract, and what it leaves out."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from asynccommit.errors import StoreError
from asynccommit.stores.adls.flat.store import FlatBlobStore
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.adls.account import AdlsLimits
from tests.support import contract, contract_multipart
from tests.support.contract import FLAT_RULES, NAMES, Rule, name_of
from tests.support.contract_multipart import MULTIPART_RULES, MultipartRule

FS = "data"
URL = f"abfs://{FS}@devstoreaccount1.dfs.core.windows.net/"
LACKS = {
    "uploads_are_listed_by_directory": "an upload without a block is unknown to the service",
    "pages_of_uploads_show_everything_once": "the same",
    "the_last_sending_of_a_part_counts": "a block list does not say which sending it means",
    "an_aborted_upload_is_gone": "blocks cannot be deleted",
    "a_completed_upload_cannot_be_aborted": "the same",
    "an_upload_belongs_to_its_path": "a block makes the upload wherever it is sent",
    "completing_replaces_unless_told_not_to": "the blocks of a name that has a blob are not listed",
    "completing_lets_one_of_many_win": "whoever commits first discards the blocks of the others",
    "readers_see_whole_uploads": "the same",
    "an_etag_lets_one_of_many_replace": "the same",
    "completing_may_ask_for_an_etag": "whoever puts a blob discards the blocks of others",
    "completed_tells_what_became_of_an_upload": "the same",
}
"""Rules of uploads that blocks do not keep, and why."""


@pytest.fixture(params=[*TRANSPORTS, "small pages"])
async def emulator(request: pytest.FixtureRequest) -> AsyncIterator[AdlsEmulator]:
    """A flat account with one container; one for each way to reach it."""
    small = request.param == "small pages"
    limits = AdlsLimits(page=7, empty_pages=True) if small else AdlsLimits()
    async with AdlsEmulator(pages=limits, hns=False) as running:
        running.model.create_filesystem(FS)
        yield running


@pytest.fixture
async def store(
    request: pytest.FixtureRequest, emulator: AdlsEmulator
) -> AsyncIterator[FlatBlobStore]:
    """The store of that container."""
    kind: str = request.node.callspec.params["emulator"]
    library = kind if kind in TRANSPORTS else "aiohttp"
    options = {"connection_string": emulator.connection_string, "http_library": library}
    opened = FlatBlobStore(parse_url(URL), options, environ={})
    yield opened
    await opened.aclose()


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the name that ends in a dot, which the service removes."""
    monkeypatch.setattr(contract, "NAMES", [name for name in NAMES if name[-1] != "."])
    monkeypatch.setattr(contract_multipart, "NAMES", contract.NAMES)


@pytest.mark.rotate("emulator")
@pytest.mark.parametrize("rule", FLAT_RULES, ids=name_of)
async def test_contract(rule: Rule, store: FlatBlobStore) -> None:
    """The store keeps the rule."""
    await store.mkdir("/root")
    if name_of(rule) == "a_file_and_a_directory_may_have_one_name":
        pytest.skip("the emulator has no blob whose name is a directory of another")
    await rule(store, "/root")


@pytest.mark.rotate("emulator")
@pytest.mark.parametrize("rule", MULTIPART_RULES, ids=name_of)
async def test_multipart_contract(rule: MultipartRule, store: FlatBlobStore) -> None:
    """The store keeps the rule of uploads, or the service is known to lack it."""
    await store.mkdir("/root")
    if name_of(rule) not in LACKS:  # type: ignore[arg-type]
        await rule(store, "/root")
        return
    with pytest.raises((StoreError, AssertionError, pytest.fail.Exception)):
        await rule(store, "/root")
