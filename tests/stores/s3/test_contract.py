"""The rules of the contract, kept on servers of two other hands; what those leave out is listed.

A gap that is written down here must stay one, so that a newer server does not go unnoticed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from asynccommit.errors import StoreError
from asynccommit.stores.s3.store import S3Store
from tests.support.contract import FLAT_RULES, RULES, Rule, name_of
from tests.support.contract_multipart import MULTIPART_RULES, MultipartRule
from tests.support.s3_servers import SMALLEST, ministack_url, moto_url, new_bucket, open_s3

__all__ = ["ministack_url", "moto_url"]

KINDS: dict[str, dict[str, str]] = {
    "moto, pyreqwest": {
        "http_library": "pyreqwest",
        "conditional_delete": "single",
        "checksum": "sha256",
        "fs.s3a.paging.maximum": "7",
    },
    "moto, aiohttp": {"http_library": "aiohttp", "checksum": "none"},
    "ministack": {"conditional_delete": "single", "conditional_replace": "true"},
}
# Server -> rule that it breaks -> how.
GAPS: dict[str, dict[str, str]] = {
    "moto": {
        "an_upload_is_completed_once": "fails inside if the file was replaced since",
        "an_aborted_upload_is_gone": "a part sent to it fails inside",
        "an_upload_belongs_to_its_path": "looks at the id of an upload only",
    },
    "ministack": {},
}


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[S3Store]:
    """A store on a new bucket of each server, opened in each way."""
    server = str(request.param).split()[0].strip(",")
    url = request.getfixturevalue(f"{server}_url")
    opened = open_s3(url, new_bucket(url), **KINDS[request.param])
    smallest = SMALLEST if server == "moto" else 0
    assert opened.traits.multipart is not None
    opened.traits = replace(
        opened.traits, multipart=opened.traits.multipart._replace(smallest=smallest)
    )
    yield opened
    await opened.aclose()


async def keep(rule: Rule | MultipartRule, store: S3Store, gaps: dict[str, str]) -> None:
    """See that a rule is kept, or still broken by the server."""
    await store.mkdir("/root")
    if name_of(rule) not in gaps:  # type: ignore[arg-type]
        await rule(store, "/root")
        return
    with pytest.raises((StoreError, AssertionError, pytest.fail.Exception)):
        await rule(store, "/root")


@pytest.fixture
def gaps(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return what the server of this test leaves out."""
    return GAPS[str(request.node.callspec.params["store"]).split()[0].strip(",")]


@pytest.mark.rotate("store")
@pytest.mark.parametrize("rule", FLAT_RULES, ids=name_of)
async def test_contract(rule: Rule, store: S3Store, gaps: dict[str, str]) -> None:
    """The store keeps the rule."""
    await keep(rule, store, gaps)


@pytest.mark.rotate("store")
@pytest.mark.parametrize("rule", MULTIPART_RULES, ids=name_of)
async def test_multipart_contract(
    rule: MultipartRule, store: S3Store, gaps: dict[str, str]
) -> None:
    """The store keeps the rule of uploads."""
    await keep(rule, store, gaps)


async def test_moto_passes_over_the_etag_of_a_completion(moto_url: str) -> None:
    """Told to rely on it, the store replaces another's file: so it looks first unless it is."""
    store = open_s3(moto_url, new_bucket(moto_url), conditional_replace=True)
    try:
        await store.put("/f", b"another")
        upload_id = await store.create_upload("/f")
        part = await store.put_part("/f", upload_id, 1, b"mine")
        await store.complete_upload("/f", upload_id, [part], etag="0" * 32)
        assert await store.get("/f", 10) == b"mine"
    finally:
        await store.aclose()


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in FLAT_RULES], ids=name_of)
def test_rules_of_renames_do_not_apply(rule: Rule) -> None:
    """The rules of renames are left out, visibly: the store says by its traits that it has none."""
    pytest.skip("S3 has no rename")
