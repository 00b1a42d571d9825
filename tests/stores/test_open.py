"""Opening a store: the table of schemes and the order of the stack."""

from __future__ import annotations

import random

import pytest

from asynccommit.errors import UnsupportedError
from asynccommit.stores import StoreSettings, open_store
from asynccommit.stores.local import LocalStore
from asynccommit.urls import parse_url


def stack(settings: StoreSettings) -> list[str]:
    """Return the policies of a store opened so, as texts."""
    return [repr(policy) for policy in open_store(parse_url("/x"), settings).policies]


def test_a_local_path_opens_the_local_store() -> None:
    """A path without a scheme and a file: URL are on the local filesystem."""
    for url in ("/x", "file:/x", "file:///x"):
        store = open_store(parse_url(url), StoreSettings(random.Random(1)))
        assert isinstance(store.store, LocalStore)
        assert store.traits.name == "local filesystem"


def test_the_order_of_the_stack() -> None:
    """Outermost what was asked, innermost what was sent; retry outside throttle and limit."""
    settings = StoreSettings(random.Random(1), rate=100.0, in_flight=5, attempts=3)
    assert stack(settings) == [
        "Stats('asked')",
        "Retry(attempts=3, deadline=600.0)",
        "Throttle(100.0)",
        "Limit(5)",
        "Stats('sent')",
    ]


def test_a_dry_run_records_before_anything_is_retried() -> None:
    """A dry run puts the record right below what was asked for."""
    assert stack(StoreSettings(random.Random(1), dry_run=True))[1] == "Record(0 writes)"


@pytest.mark.parametrize("url", ["abfs://c@a.dfs.core.windows.net/x", "s3a://b/x", "hdfs://n/x"])
def test_an_unknown_scheme_is_named_with_what_to_do(url: str) -> None:
    """The error names the scheme, the stores there are, and a way out."""
    scheme = url.partition(":")[0]
    with pytest.raises(UnsupportedError) as caught:
        open_store(parse_url(url), StoreSettings(random.Random(1)))
    assert f"no store for {scheme}:" in str(caught.value)
    assert "there is one for file:" in str(caught.value)
    assert "Mount" in str(caught.value)
