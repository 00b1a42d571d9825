"""The kind of an account is chosen by an option, and checked by the first request."""

from __future__ import annotations

import pytest

from asynccommit.errors import OptionError, RejectedError
from asynccommit.stores.adls.flat.client import LATE
from asynccommit.stores.adls.flat.store import FlatBlobStore
from asynccommit.stores.adls.opening import open_account
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator

URL = "abfs://data@devstoreaccount1.dfs.core.windows.net/"
FLAT = "fs.azure.account.hns.enabled"


async def test_an_account_with_directories_is_refused() -> None:
    """Who says that it is flat is told that it is not, before anything is written."""
    async with AdlsEmulator(filesystems=["data"]) as emulator:
        options = {"connection_string": emulator.connection_string}
        store = FlatBlobStore(parse_url(URL), options, environ={})
        with pytest.raises(RejectedError, match="leave out fs"):
            await store.put("/f", b"x")
        await store.aclose()
        assert emulator.weather.requests == {"list_filesystems": 1}


async def test_an_account_without_directories_names_the_option() -> None:
    """The store with renames says how a flat account can be used."""
    async with AdlsEmulator(filesystems=["data"], hns=False) as emulator:
        options = {"connection_string": emulator.connection_string}
        store = AdlsStore(parse_url(URL), options, environ={})
        with pytest.raises(RejectedError, match="set fs"):
            await store.put("/f", b"x")
        await store.aclose()


@pytest.mark.parametrize(
    "options, kind",
    [
        ({}, AdlsStore),
        ({FLAT: "true"}, AdlsStore),
        ({FLAT: "false"}, FlatBlobStore),
        ({f"spark.hadoop.{FLAT}.devstoreaccount1.dfs.core.windows.net": "false"}, FlatBlobStore),
        ({f"{FLAT}.another.dfs.core.windows.net": "false"}, AdlsStore),
    ],
)
async def test_an_option_chooses_the_store(options: dict[str, str], kind: type[object]) -> None:
    """An account is flat if it is said to be; nobody is asked for that."""
    store = open_account(parse_url(URL), {"anon": True, **options})
    assert isinstance(store, kind)
    await store.aclose()


async def test_only_a_key_bounds_a_late_list() -> None:
    """With a SAS or a token the bound is the longest time that a request may take."""
    key = FlatBlobStore(parse_url(URL), {"account_key": "a2V5"}, environ={})
    sas = FlatBlobStore(parse_url(URL), {"sas_token": "sv=1&sig=x", "timeout": 50}, environ={})
    assert key.traits.multipart is not None
    assert sas.traits.multipart is not None
    assert (key.traits.multipart.late, sas.traits.multipart.late) == (LATE + 1, 50)
    await key.aclose()
    await sas.aclose()


def test_azures_sdk_is_refused() -> None:
    """The client of the SDK that others pass is for the other endpoint."""
    with pytest.raises(OptionError, match="leave out client"):
        FlatBlobStore(parse_url(URL), {"account_key": "a2V5", "http_library": "sdk"}, environ={})
