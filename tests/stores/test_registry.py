"""Opening a store: the table of schemes and the order of the stack."""

from __future__ import annotations

import random
from typing import Any

import pytest

from asynccommit.errors import UnsupportedError
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.base import Traits
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.rate_queue import Ceilings
from asynccommit.stores.registry import STORES, StoreSettings, open_store, wrap
from asynccommit.stores.urls import parse_url

RNG = random.Random(1)


def stack(settings: StoreSettings) -> list[str]:
    """Return the policies of a store opened so, as texts."""
    return [repr(policy) for policy in open_store(parse_url("/x"), settings).policies]


def remote(settings: StoreSettings) -> list[str]:
    """Return the policies of a store that shares an account."""

    class Remote:
        traits = Traits("remote", account="acc", tokens=True)

        def __getattr__(self, name: str) -> object:
            return None

    store: Any = Remote()
    return [repr(policy) for policy in wrap(store, settings).policies]


def test_a_local_path_opens_the_local_store() -> None:
    """A path without a scheme and a file: URL are on the local filesystem."""
    for url in ("/x", "file:/x", "file:///x"):
        store = open_store(parse_url(url), StoreSettings(RNG))
        assert isinstance(store.store, LocalStore)
        assert store.traits.name == "local filesystem"


@pytest.mark.parametrize("scheme", ["abfs", "abfss", "az"])
async def test_azure_urls_open_the_azure_store(scheme: str) -> None:
    """The three schemes of ADLS Gen2 are one store, paced by its account."""
    url = f"{scheme}://c@acc.dfs.core.windows.net/x"
    options = {"account_key": "c2VjcmV0"}
    store = open_store(parse_url(url), StoreSettings(RNG, options=options))
    assert isinstance(store.store, AdlsStore)
    (pace,) = (policy for policy in store.policies if isinstance(policy, Adaptive))
    assert "acc.dfs.core.windows.net" in repr(pace)
    await store.aclose()


@pytest.mark.parametrize("scheme", ["gs", "gcs"])
async def test_google_urls_open_the_google_store(scheme: str) -> None:
    """Both schemes are one store, paced by its bucket, name by name before the rate."""
    options = {"token": "anon"}
    store = open_store(parse_url(f"{scheme}://bucket/x"), StoreSettings(RNG, options=options))
    assert isinstance(store.store, GcsStore)
    kinds = [type(policy).__name__ for policy in store.policies]
    assert kinds == [
        "Stats",
        "Recover",
        "Retry",
        "PerObjectRate",
        "Adaptive",
        "InFlightLimit",
        "Stats",
    ]
    assert "gs://bucket" in repr(store.policies[4])
    assert (store.traits.name_interval, store.traits.ramp) == (1.0, (5000.0, 1000.0, 1200.0))
    await store.aclose()


def test_the_order_of_the_stack() -> None:
    """Outermost what was asked, innermost what was sent; retry outside throttle and limit."""
    settings = StoreSettings(RNG, rate=100.0, in_flight=5, attempts=3)
    assert stack(settings) == [
        "Stats('asked')",
        "Recover(attempts=3)",
        "Retry(attempts=3, deadline=600.0)",
        "Throttle(100.0)",
        "Limit(5)",
        "Stats('sent')",
    ]


def test_an_account_is_paced_by_what_it_takes() -> None:
    """A store of an account has the adaptive limiter at the throttle's place, with its ceilings."""
    settings = StoreSettings(RNG, rate=500.0, ceilings=Ceilings(total=900.0, deletes=50.0))
    ceilings = Ceilings(total=500.0, deletes=50.0)
    assert remote(settings)[3] == f"Adaptive('acc', {ceilings!r})"
    assert remote(StoreSettings(RNG))[3] == f"Adaptive('acc', {Ceilings()!r})"


def test_a_network_gets_more_attempts() -> None:
    """Unless told otherwise a remote store is asked more often than a disk."""
    assert remote(StoreSettings(RNG))[1:3] == [
        "Recover(attempts=12)",
        "Retry(attempts=12, deadline=600.0)",
    ]
    assert stack(StoreSettings(RNG))[2] == "Retry(attempts=5, deadline=600.0)"


def test_a_dry_run_records_before_anything_is_retried() -> None:
    """A dry run puts the record right below what was asked for."""
    assert stack(StoreSettings(RNG, dry_run=True))[1] == "Record(0 writes)"


@pytest.mark.parametrize("url", ["s3x://b/x", "ftp://h/x", "wasb://n/x"])
def test_an_unknown_scheme_is_named_with_what_to_do(url: str) -> None:
    """The error names the scheme, the stores there are, and a way out."""
    scheme = url.partition(":")[0]
    with pytest.raises(UnsupportedError) as caught:
        open_store(parse_url(url), StoreSettings(RNG))
    assert f"no store for {scheme}:" in str(caught.value)
    assert f"supported schemes: {', '.join(sorted(STORES))}." in str(caught.value)
    assert f"mount {scheme}: as a directory" in str(caught.value)
    assert "-s asynccommit.store=jvm" in str(caught.value)


def test_a_scheme_that_is_gone_is_refused_with_the_one_to_use() -> None:
    """Hadoop's second connector of S3 is refused by name: the third one reads the same objects."""
    with pytest.raises(UnsupportedError, match="s3a://"):
        open_store(parse_url("s3n://b/x"), StoreSettings(RNG))


def test_an_account_gets_no_more_requests_than_it_has_connections() -> None:
    """What the store takes gladly is the bound, unless another is set."""
    assert remote(StoreSettings(RNG))[4] == f"Limit({Traits('remote').workers})"
    assert remote(StoreSettings(RNG, in_flight=3))[4] == "Limit(3)"
    assert stack(StoreSettings(RNG))[4] == "Limit(None)"
