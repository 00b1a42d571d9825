"""A store's clock, for ages that decide what is deleted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.errors import DeniedError
from asynccommit.inspect.store_time import S3_SKEW, on_clock_of
from asynccommit.runtime.host import this_host
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address, parse_url
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support.faults import Fault, Faults

DENIED = Fault("put", DeniedError, "_asynccommit-clock-")


@pytest.mark.parametrize("wrong", [-4e6, 4e6])
async def test_the_clock_that_dates_files(wrong: float, tmp_path: Path) -> None:
    """It is the store's, whatever this machine's is; nothing is left of the file that told."""
    host, store = this_host(), LocalStore()
    other = replace(host, now=lambda: host.now() + wrong)

    found = await on_clock_of(store, parse_url(str(tmp_path)), other)

    (tmp_path / "later").touch()
    assert 0 <= (await store.head(f"{tmp_path}/later")).modified - found.now() + 1.0 < 60.0
    assert [path.name for path in tmp_path.iterdir()] == ["later"]
    await store.aclose()


async def test_a_place_where_nothing_may_be_written(tmp_path: Path) -> None:
    """The message says what the file is for."""
    store = Wrapped(LocalStore(), Faults(replace(DENIED)))
    with pytest.raises(DeniedError, match="tells the store's time: be a user who may write there"):
        await on_clock_of(store, parse_url(str(tmp_path)), this_host())
    await store.aclose()


async def test_a_bucket_where_uploads_may_only_be_aborted() -> None:
    """This machine's clock tells there, as late as S3 lets it be wrong."""
    bucket = S3Bucket("data", now=lambda: 0.0, new_id=lambda: "id")
    store = Wrapped(
        SimS3Store(Address("s3", "data", "/"), {"bucket": bucket}), Faults(replace(DENIED))
    )
    host = replace(this_host(), now=lambda: 5_000.0)

    found = await on_clock_of(store, Address("s3", "data", "/t"), host)

    assert found.now() == 5_000.0 - S3_SKEW
    await store.aclose()
